from typing import Any

from django import forms
from django.http import QueryDict

from evaluations.domain import exact_usd
from evaluations.forms.endpoint_new import EndpointForm
from evaluations.models import Endpoint, Price
from evaluations.services.judging.pricing import MOST_TOKENS_OUT

FIXED = ("base_url", "key_variable")


class ChangedEndpointForm(EndpointForm):
    """What may change. Where judges are asked already, address and key name stand fast."""

    def __init__(self, data: QueryDict | None = None, *, endpoint: Endpoint, is_used: bool) -> None:
        super().__init__(data, initial={name: getattr(endpoint, name) for name in EndpointForm.base_fields})
        for name in FIXED:
            self.fields[name].disabled = is_used
            if is_used:
                self.fields[name].help_text = "Judges are asked here: it stays. Add another endpoint for a new one."


class USDField(forms.DecimalField):
    """US dollars for a million tokens."""

    def __init__(self, **options: Any) -> None:
        super().__init__(min_value=0, max_value=1_000_000, max_digits=15, decimal_places=9, **options)
        self.widget.attrs["step"] = "any"


class PriceForm(forms.Form):
    model = forms.CharField(
        max_length=200,
        help_text="As the endpoint calls it.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}),
    )
    tokens_in = USDField(label="Tokens in", help_text="USD a million.")
    tokens_cached = USDField(label="Tokens in, cached", required=False, help_text="Empty: as all tokens in.")
    tokens_out = USDField(label="Tokens out", help_text="USD a million.")
    batch_percent = forms.IntegerField(
        label="Batch API, percent of it", min_value=0, max_value=100, initial=50, help_text="50 is half price."
    )
    most_tokens_out = forms.IntegerField(
        label="Longest reply",
        min_value=1,
        max_value=MOST_TOKENS_OUT,
        required=False,
        help_text="In tokens, reasoning included. Budgets need it where a judge sets no limit.",
    )


def price_values(price: Price) -> dict[str, Any]:
    return {
        "model": price.model,
        "tokens_in": exact_usd(price.tokens_in),
        "tokens_cached": exact_usd(price.tokens_cached),
        "tokens_out": exact_usd(price.tokens_out),
        "batch_percent": price.batch_percent,
        "most_tokens_out": price.most_tokens_out,
    }

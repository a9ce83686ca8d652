"""The forms of endpoints and prices."""

from collections.abc import Iterator, Sequence
from typing import Final

from django import forms
from django.forms import BoundField
from django.http import QueryDict

from evaluations.domain.judges import DIALECT_NAMES
from evaluations.domain.money import format_exact_usd
from evaluations.domain.secrets import is_plain_address, is_probable_key, is_variable_name
from evaluations.judges.endpoints.prices import MAX_OUTPUT_TOKENS
from evaluations.judges.endpoints.services import (
    MAX_IN_FLIGHT_LIMIT,
    MAX_PER_MINUTE_LIMIT,
    MAX_TIMEOUT_SECONDS,
    REQUEST_OPTION_FIELDS,
)
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Endpoint, Price
from evaluations.web.forms import (
    BudgetField,
    HeaderLinesField,
    JSONObjectField,
    SecretFreeForm,
    SecretFreeInput,
    SecretFreeURLInput,
)

PROVIDER_CHOICES: Final = [("", "Automatic"), *((dialect.value, title) for dialect, title in DIALECT_NAMES.items())]
VARIABLES_HINT: Final = "For a secret, write $ and the name of an environment variable: $…_API_KEY or $JUDGEWEB_KEY_…."


class EndpointForm(SecretFreeForm):
    name = forms.CharField(
        max_length=120,
        help_text="What people choose it by.",
        widget=SecretFreeInput(lambda text: not is_probable_key(text)),
    )
    base_url = forms.CharField(
        max_length=500,
        label="Base URL",
        help_text="An OpenAI-compatible API, such as https://api.openai.com/v1 or http://localhost:11434/v1.",
        widget=SecretFreeURLInput(is_plain_address, attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    key_variable = forms.CharField(
        max_length=120,
        required=False,
        label="Environment variable of the key",
        help_text="Its name, never the key: …_API_KEY or JUDGEWEB_KEY_…, set where the worker runs. Empty: no key.",
        widget=SecretFreeInput(
            is_variable_name, attrs={"autocomplete": "off", "autocapitalize": "characters", "spellcheck": "false"}
        ),
    )
    max_in_flight = forms.IntegerField(
        min_value=1,
        max_value=MAX_IN_FLIGHT_LIMIT,
        required=False,
        label="Requests at once, at most",
        help_text="Empty: found out.",
    )
    requests_per_minute = forms.IntegerField(
        min_value=1,
        max_value=MAX_PER_MINUTE_LIMIT,
        required=False,
        label="Requests a minute, at most",
        help_text="Empty: as many as the server takes.",
    )
    tokens_per_minute = forms.IntegerField(
        min_value=1,
        max_value=MAX_PER_MINUTE_LIMIT,
        required=False,
        label="Tokens a minute, at most",
        help_text="In and out together. Empty: as many as the server takes.",
    )
    daily_budget = BudgetField(
        label="Daily budget in USD", help_text="Of all evaluations together, per UTC day. Leave it empty for no limit."
    )
    is_offered = forms.BooleanField(
        label="Offer to all evaluations",
        required=False,
        help_text="Off: only evaluations that you grant it to can use it.",
    )
    dialect = forms.ChoiceField(
        choices=PROVIDER_CHOICES,
        required=False,
        label="Provider",
        help_text="How requests are written and replies are read. Automatic: by the base URL.",
    )
    timeout_seconds = forms.IntegerField(
        min_value=1,
        max_value=MAX_TIMEOUT_SECONDS,
        required=False,
        label="Timeout (seconds)",
        help_text="For one request. Default: 600 for servers on this machine or network, else the site's setting.",
    )
    extra_headers = HeaderLinesField(
        label="Extra headers", help_text=f"One per line, as in “X-Title: judgeweb”. {VARIABLES_HINT}"
    )
    extra_query = HeaderLinesField(
        label="Extra query parameters",
        help_text="One per line, as in “api-version: 2025-04-01”. Secrets as in headers.",
    )
    extra_body = JSONObjectField(
        label="Extra body fields",
        help_text='A JSON object, as in {"top_p": 0.9}. Added to every request of all judges.',
    )

    def basics(self) -> Iterator[BoundField]:
        return (field for field in self if field.name not in REQUEST_OPTION_FIELDS)

    def advanced(self) -> Iterator[BoundField]:
        """The fields that most endpoints leave empty."""
        return (self[name] for name in REQUEST_OPTION_FIELDS)

    def opens_advanced(self) -> bool:
        """Whether an advanced field has a value, or may be the one that was refused."""
        return self.is_bound or any(self[name].value() for name in REQUEST_OPTION_FIELDS)


class ChangedEndpointForm(EndpointForm):
    """The form of an existing endpoint. ``fixed``: the fields that no longer change."""

    def __init__(self, data: QueryDict | None = None, *, endpoint: Endpoint, fixed: Sequence[str]) -> None:
        initial = {name: getattr(endpoint, name) for name in EndpointForm.base_fields}
        if endpoint.daily_budget is not None:
            initial["daily_budget"] = format_exact_usd(endpoint.daily_budget)
        super().__init__(data, initial=initial)
        for name in fixed:
            self.fields[name].disabled = True
            self.fields[name].help_text = "Judges are asked here: it stays. Add another endpoint for a new one."


class USDField(forms.DecimalField):
    """US dollars for a million tokens."""

    def __init__(self, *, label: str, help_text: str, required: bool = True) -> None:
        super().__init__(
            min_value=0,
            max_value=1_000_000,
            max_digits=15,
            decimal_places=9,
            label=label,
            help_text=help_text,
            required=required,
        )
        self.widget.attrs["step"] = "any"


class GrantForm(forms.Form):
    """Grants an endpoint to an evaluation, or changes the budget of a grant."""

    evaluation = forms.ModelChoiceField(Evaluation.objects.order_by("name", "pk"), empty_label="Choose an evaluation")
    budget = BudgetField(help_text="For all its runs here together. Leave it empty for no limit.")


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
        max_value=MAX_OUTPUT_TOKENS,
        required=False,
        help_text="In tokens, reasoning included. Budgets need it where a judge sets no limit.",
    )


def price_initial_values(price: Price) -> dict[str, object]:
    return {
        "model": price.model,
        "tokens_in": format_exact_usd(price.tokens_in),
        "tokens_cached": format_exact_usd(price.tokens_cached),
        "tokens_out": format_exact_usd(price.tokens_out),
        "batch_percent": price.batch_percent,
        "most_tokens_out": price.most_tokens_out,
    }

"""The forms of endpoints and prices."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

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


class APIKeyField(forms.CharField):
    """An API key. No page shows it again, also where the form was refused."""

    def __init__(self, **options: Any) -> None:
        attrs = {"autocomplete": "off", "spellcheck": "false"}
        super().__init__(label="API key", widget=forms.PasswordInput(attrs=attrs), **options)


PROVIDER_CHOICES: Final = [("", "Automatic"), *((dialect.value, title) for dialect, title in DIALECT_NAMES.items())]
VARIABLES_HINT: Final = "For a secret, write $ and the name of an environment variable: $…_API_KEY or $JUDGEWEB_KEY_…."


class EndpointForm(SecretFreeForm):
    name = forms.CharField(
        max_length=120,
        help_text="Shown in lists.",
        widget=SecretFreeInput(lambda text: not is_probable_key(text)),
    )
    base_url = forms.CharField(
        max_length=500,
        label="Base URL",
        help_text="An OpenAI-compatible API, such as https://api.openai.com/v1 or http://localhost:11434/v1.",
        widget=SecretFreeURLInput(is_plain_address, attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    api_key = APIKeyField(required=False, help_text="Stored encrypted and never shown again.")
    key_variable = forms.CharField(
        max_length=120,
        required=False,
        label="API key variable",
        help_text="Instead of a stored key: the worker's environment variable, …_API_KEY or JUDGEWEB_KEY_….",
        widget=SecretFreeInput(
            is_variable_name, attrs={"autocomplete": "off", "autocapitalize": "characters", "spellcheck": "false"}
        ),
    )
    max_in_flight = forms.IntegerField(
        min_value=1,
        max_value=MAX_IN_FLIGHT_LIMIT,
        required=False,
        label="Max concurrency",
        help_text="Default: adapts to the server.",
    )
    requests_per_minute = forms.IntegerField(
        min_value=1,
        max_value=MAX_PER_MINUTE_LIMIT,
        required=False,
        label="Requests per minute",
        help_text="Default: no limit.",
    )
    tokens_per_minute = forms.IntegerField(
        min_value=1,
        max_value=MAX_PER_MINUTE_LIMIT,
        required=False,
        label="Tokens per minute",
        help_text="Input and output together. Default: no limit.",
    )
    daily_budget = BudgetField(
        label="Daily budget in USD", help_text="For all evaluations together, per UTC day. Default: no limit."
    )
    is_offered = forms.BooleanField(
        label="Offer to all evaluations",
        required=False,
        help_text="Otherwise only evaluations that you grant it to can use it.",
    )
    dialect = forms.ChoiceField(
        choices=PROVIDER_CHOICES,
        required=False,
        label="Provider",
        help_text="The API that the server speaks. Automatic goes by the base URL.",
    )
    timeout_seconds = forms.IntegerField(
        min_value=1,
        max_value=MAX_TIMEOUT_SECONDS,
        required=False,
        label="Timeout (seconds)",
        help_text="Per request. Default: 600 for servers on this machine or network, else the site's setting.",
    )
    extra_headers = HeaderLinesField(
        label="Extra headers", help_text=f"One per line, such as “X-Title: judgeweb”. {VARIABLES_HINT}"
    )
    extra_query = HeaderLinesField(
        label="Extra query parameters",
        help_text="One per line, such as “api-version: 2025-04-01”. Secrets as in headers.",
    )
    extra_body = JSONObjectField(
        label="Extra body fields",
        help_text='A JSON object, such as {"top_p": 0.9}. Added to every request of every judge.',
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
        initial = {name: getattr(endpoint, name) for name in EndpointForm.base_fields if name != "api_key"}
        if endpoint.daily_budget is not None:
            initial["daily_budget"] = format_exact_usd(endpoint.daily_budget)
        super().__init__(data, initial=initial)
        if endpoint.encrypted_key:
            self.fields["api_key"].help_text = "A key is stored. Paste another one to replace it."
            self.fields["removes_key"] = forms.BooleanField(required=False, label="Remove the stored key")
            self.order_fields(["name", "base_url", "api_key", "removes_key"])
        for name in fixed:
            self.fields[name].disabled = True
            self.fields[name].help_text = "Judges use it, so it cannot change. Add another endpoint for a new one."


class USDField(forms.DecimalField):
    """US dollars per million tokens."""

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
    budget = BudgetField(help_text="For all its runs here together. Default: no limit.")


class PriceForm(forms.Form):
    model = forms.CharField(
        max_length=200,
        help_text="Its ID at the endpoint.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}),
    )
    tokens_in = USDField(label="Input tokens", help_text="USD per million.")
    tokens_cached = USDField(label="Cached input tokens", required=False, help_text="Default: as other input tokens.")
    tokens_out = USDField(label="Output tokens", help_text="USD per million.")
    batch_percent = forms.IntegerField(
        label="Batch API price in percent", min_value=0, max_value=100, initial=50, help_text="50 is half price."
    )
    most_tokens_out = forms.IntegerField(
        label="Max output tokens",
        min_value=1,
        max_value=MAX_OUTPUT_TOKENS,
        required=False,
        help_text="Of one reply, reasoning included. Budgets need it for judges without a token limit.",
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

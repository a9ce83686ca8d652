from collections.abc import Iterator
from typing import Final

from django import forms
from django.forms import BoundField

from evaluations.domain import DIALECTS_IN_WORDS, is_plain_address, is_variable_name, may_be_key
from evaluations.forms.extras import LinesField, ObjectField
from evaluations.forms.secrets import SecretFreeForm, SecretFreeInput, SecretFreeURLInput
from evaluations.services.judging.judging import LONGEST_TIMEOUT_SECONDS, MOST_A_MINUTE, MOST_IN_FLIGHT, WAYS_OF_ASKING

PROVIDERS: Final = [("", "Automatic"), *((one.value, title) for one, title in DIALECTS_IN_WORDS.items())]
VARIABLES_HINT: Final = "For a secret, write $ and the name of an environment variable: $…_API_KEY or $JUDGEWEB_KEY_…."


class EndpointForm(SecretFreeForm):
    name = forms.CharField(
        max_length=120, help_text="What people choose it by.", widget=SecretFreeInput(lambda text: not may_be_key(text))
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
        max_value=MOST_IN_FLIGHT,
        required=False,
        label="Requests at once, at most",
        help_text="Empty: found out.",
    )
    requests_per_minute = forms.IntegerField(
        min_value=1,
        max_value=MOST_A_MINUTE,
        required=False,
        label="Requests a minute, at most",
        help_text="Empty: as many as the server takes.",
    )
    tokens_per_minute = forms.IntegerField(
        min_value=1,
        max_value=MOST_A_MINUTE,
        required=False,
        label="Tokens a minute, at most",
        help_text="In and out together. Empty: as many as the server takes.",
    )
    dialect = forms.ChoiceField(
        choices=PROVIDERS,
        required=False,
        label="Provider",
        help_text="How requests are written and replies are read. Automatic: by the base URL.",
    )
    timeout_seconds = forms.IntegerField(
        min_value=1,
        max_value=LONGEST_TIMEOUT_SECONDS,
        required=False,
        label="Timeout (seconds)",
        help_text="For one request. Default: 600 for servers on this machine or network, else the site's setting.",
    )
    extra_headers = LinesField(
        label="Extra headers", help_text=f"One per line, as in “X-Title: judgeweb”. {VARIABLES_HINT}"
    )
    extra_query = LinesField(
        label="Extra query parameters",
        help_text="One per line, as in “api-version: 2025-04-01”. Secrets as in headers.",
    )
    extra_body = ObjectField(
        label="Extra body fields",
        help_text='A JSON object, as in {"top_p": 0.9}. Added to every request of all judges.',
    )

    def basics(self) -> Iterator[BoundField]:
        return (field for field in self if field.name not in WAYS_OF_ASKING)

    def advanced(self) -> Iterator[BoundField]:
        """The fields that most endpoints leave empty."""
        return (self[name] for name in WAYS_OF_ASKING)

    def opens_advanced(self) -> bool:
        """Whether one of them has a value, or may be what was refused."""
        return self.is_bound or any(self[name].value() for name in WAYS_OF_ASKING)

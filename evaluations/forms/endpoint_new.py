from django import forms

from evaluations.domain import is_plain_address, is_variable_name, may_be_key
from evaluations.forms.secrets import SecretFreeForm, SecretFreeInput, SecretFreeURLInput
from evaluations.services.judging.judging import MOST_A_MINUTE, MOST_IN_FLIGHT


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

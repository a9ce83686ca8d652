"""The form that adds an endpoint and tests it, on the page of a new run."""

from collections.abc import Mapping

from django import forms

from evaluations.domain.errors import InputRefused
from evaluations.domain.secrets import is_plain_address, is_variable_name
from evaluations.judges.endpoints.forms import APIKeyField
from evaluations.judges.forms import PLAIN_ATTRS
from evaluations.judges.new_run.providers import Provider
from evaluations.models.judges import Endpoint
from evaluations.net.addresses import refuse_pasted_key
from evaluations.web.forms import SecretFreeForm, SecretFreeInput, SecretFreeURLInput


class EndpointTestForm(SecretFreeForm):
    """An address and a key. Of an endpoint that was added before, what is left empty stays."""

    base_url = forms.CharField(max_length=500, label="Base URL", widget=SecretFreeURLInput(is_plain_address))
    api_key = APIKeyField(required=False, help_text="Stored encrypted and never shown again.")
    key_variable = forms.CharField(
        max_length=120,
        required=False,
        label="API key variable",
        help_text="Instead of a pasted key: the worker's environment variable, …_API_KEY or JUDGEWEB_KEY_….",
        widget=SecretFreeInput(is_variable_name, attrs=PLAIN_ATTRS),
    )
    model = forms.CharField(
        max_length=200,
        required=False,
        help_text="Default: one that the server lists.",
        widget=forms.TextInput(attrs=PLAIN_ATTRS),
    )

    def __init__(
        self, data: Mapping[str, object] | None = None, *, provider: Provider, endpoint: Endpoint | None = None
    ) -> None:
        initial = {"base_url": endpoint.base_url if endpoint else provider.base_url}
        super().__init__(data, initial=initial, auto_id="test_%s")  # the page has another field for the model
        self.provider, self.endpoint = provider, endpoint
        self.fields["base_url"].help_text = provider.url_hint
        if provider.has_own_url:
            self.fields["base_url"].disabled = True
        if provider.slug == "azure":
            self.fields["model"].required = not endpoint
            self.fields["model"].label = "Deployment"
            self.fields["model"].help_text = ""

    def clean_model(self) -> str:
        model: str = self.cleaned_data["model"]
        try:
            refuse_pasted_key(model, "The model")
        except InputRefused as refused:
            raise forms.ValidationError(str(refused)) from None
        return model

    def clean(self) -> dict[str, object]:
        cleaned = super().clean() or {}
        has_key = cleaned.get("api_key") or cleaned.get("key_variable")
        if self.provider.needs_key and self.endpoint is None and not has_key and "api_key" not in self.errors:
            self.add_error("api_key", f"{self.provider.name} requires an API key.")
        return cleaned

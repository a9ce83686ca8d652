"""The forms of webhooks."""

from django import forms

from evaluations.domain.events import SELECTABLE_WEBHOOK_KINDS, WebhookKind
from evaluations.web.forms import SecretFreeForm, SecretFreeURLInput

KIND_LABELS = {
    WebhookKind.RUN_FINISHED: "A run finished: every call of it has its outcome",
    WebhookKind.RUN_STOPPED: "A run stopped and waits for somebody to mend something",
    WebhookKind.ROUND_REVIEWED: "A queue is reviewed: it has every review that it wants",
    WebhookKind.DISAGREEMENT_OPENED: "A disagreement opened: people differ on a comparison, or differ from the judge",
}


class WebhookKindsForm(SecretFreeForm):
    kinds = forms.MultipleChoiceField(
        label="Tell it when",
        choices=[(kind.value, KIND_LABELS[kind]) for kind in SELECTABLE_WEBHOOK_KINDS],
        initial=list(SELECTABLE_WEBHOOK_KINDS),
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one event."},
    )


class WebhookForm(WebhookKindsForm):
    url = forms.CharField(
        label="Address",
        max_length=500,
        help_text="Where messages are posted to, as in https://example.org/hooks/judgeweb. No private address, unless "
        "the site allows its network.",
        widget=SecretFreeURLInput(
            lambda text: "@" not in text,
            attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"},
        ),
    )

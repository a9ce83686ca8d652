"""The forms of webhooks."""

from django import forms

from evaluations.domain.events import SELECTABLE_WEBHOOK_KINDS, WebhookKind
from evaluations.web.forms import SecretFreeForm, SecretFreeURLInput

KIND_LABELS = {
    WebhookKind.RUN_FINISHED: "A run finished",
    WebhookKind.RUN_STOPPED: "A run stopped and needs attention",
    WebhookKind.QUEUE_REVIEWED: "A queue is fully reviewed",
    WebhookKind.DISAGREEMENT_OPENED: "A disagreement opened",
}


class WebhookKindsForm(SecretFreeForm):
    kinds = forms.MultipleChoiceField(
        label="Events",
        choices=[(kind.value, KIND_LABELS[kind]) for kind in SELECTABLE_WEBHOOK_KINDS],
        initial=list(SELECTABLE_WEBHOOK_KINDS),
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one event."},
    )


class WebhookForm(WebhookKindsForm):
    url = forms.CharField(
        label="URL",
        max_length=500,
        help_text="Messages are sent here by POST. Private addresses work only if the site allows their network.",
        widget=SecretFreeURLInput(
            lambda text: "@" not in text,
            attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"},
        ),
    )

from django import forms

from evaluations.domain import CHOSEN_KINDS, HookKind
from evaluations.forms.secrets import SecretFreeForm, SecretFreeURLInput

IN_WORDS = {
    HookKind.RUN_FINISHED: "A run finished: every call of it has its outcome",
    HookKind.RUN_STOPPED: "A run stopped and waits for somebody to mend something",
    HookKind.ROUND_REVIEWED: "A round is reviewed: it has every review that it wants",
    HookKind.DISAGREEMENT_OPENED: "A disagreement opened: people differ on a comparison, or differ from the judge",
}


class KindsForm(SecretFreeForm):
    kinds = forms.MultipleChoiceField(
        label="Tell it when",
        choices=[(kind.value, IN_WORDS[kind]) for kind in CHOSEN_KINDS],
        initial=list(CHOSEN_KINDS),
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one thing that it is to be told of."},
    )


class WebhookForm(KindsForm):
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

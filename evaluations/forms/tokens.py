from typing import Any

from django import forms

from evaluations.domain import SCOPES_IN_WORDS, Scope
from evaluations.models import Evaluation, User

DAYS = [(7, "7 days"), (30, "30 days"), (90, "90 days"), (365, "a year")]


class TokenForm(forms.Form):
    name = forms.CharField(
        max_length=80,
        help_text="What it is for, so that you know which one to revoke.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    scopes = forms.MultipleChoiceField(
        label="It may",
        choices=[(scope.value, f"{scope} – {words}") for scope, words in SCOPES_IN_WORDS.items()],
        initial=[Scope.READ],
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one thing that the token may be used for."},
    )
    days = forms.TypedChoiceField(label="Valid for", choices=DAYS, initial=90, coerce=int)
    evaluation = forms.ModelChoiceField(
        Evaluation.objects.none(),
        required=False,
        empty_label="all that you take part in",
        help_text="A token that is tied to one opens no other, and no account or endpoint.",
    )

    def __init__(self, data: Any = None, *, user: User) -> None:
        super().__init__(data)
        evaluations: forms.ModelChoiceField[Evaluation] = self.fields["evaluation"]  # type: ignore[assignment]
        evaluations.queryset = Evaluation.objects.of(user).order_by("name")

    def wanted(self) -> dict[str, Any]:
        return {**self.cleaned_data, "scopes": [Scope(one) for one in self.cleaned_data["scopes"]]}

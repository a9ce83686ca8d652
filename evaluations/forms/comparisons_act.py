"""What is to be done with comparisons of the list, and with which of them."""

from enum import StrEnum
from typing import Any

from django import forms


class Act(StrEnum):
    TAG = "tag"
    UNTAG = "untag"
    GIVE = "give"
    ROUND = "round"


class Which(StrEnum):
    CHOSEN = "chosen"
    ALL = "all"


class ActForm(forms.Form):
    act = forms.ChoiceField(choices=[(act.value, act.value) for act in Act])
    which = forms.ChoiceField(choices=[(which.value, which.value) for which in Which], required=False)
    tag = forms.CharField(required=False)  # how long it may be is said by the services
    round = forms.CharField(required=False)
    confirmed = forms.BooleanField(required=False)

    def wanted(self) -> dict[str, Any]:
        given = self.cleaned_data
        return {**given, "act": Act(given["act"]), "which": Which(given["which"] or Which.CHOSEN)}

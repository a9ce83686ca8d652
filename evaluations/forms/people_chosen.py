from typing import Any

from django import forms

from evaluations.domain import InputRefused
from evaluations.models import User


class PeopleForm(forms.Form):
    """Whom comparisons are given to by name."""

    people = forms.ModelMultipleChoiceField(
        User.objects.none(),
        error_messages={
            "required": "Choose at least one person.",
            "invalid_choice": "One of these people does not review here.",
        },
    )

    def __init__(self, data: Any, *, people: Any) -> None:
        super().__init__(data)
        self.fields["people"].queryset = people  # type: ignore[attr-defined]

    def chosen(self) -> list[User]:
        """The people, or in one sentence why not."""
        if not self.is_valid():
            raise InputRefused(" ".join(map(str, self.errors["people"])))
        return list(self.cleaned_data["people"])

"""The shape of what a reviewer sends; what of it is allowed, the service says."""

from typing import Any

from django import forms

from evaluations.domain import REASONS_IN_WORDS, Choice, RubricKind, RubricSpec
from evaluations.models import Review
from evaluations.services.reviewing.saying import Choices, Given, Scores

LONGEST_NOTE = 10_000
REASONS = [("", "Reason (optional)"), *((reason.value, words) for reason, words in REASONS_IN_WORDS.items())]
CHOICES = [(choice.value, choice.value) for choice in Choice]


class StepForm(forms.Form):
    """Every step names the version of the review that it was made from, the page, and the time spent on it.

    ``rubric``: by which version of the rubric the page asked; a script may leave it out.
    """

    version = forms.IntegerField(min_value=0, max_value=2**31 - 1)
    rubric = forms.IntegerField(required=False)
    tab = forms.CharField(required=False, max_length=Review._meta.get_field("draft_tab").max_length)
    active_ms = forms.IntegerField(min_value=0, required=False)

    def clean_active_ms(self) -> int:
        return self.cleaned_data["active_ms"] or 0


class ChoicesForm(StepForm):
    """A choice or two scores per aspect, as the person sees the two sides, and a note to each and to all."""

    note = forms.CharField(required=False, max_length=LONGEST_NOTE)

    def __init__(self, spec: RubricSpec, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.is_pointwise = spec.kind == RubricKind.POINTWISE
        self.keys = [aspect.key for aspect in spec.aspects]
        for aspect in spec.aspects:
            if self.is_pointwise:
                for side, letter in (("left", "A"), ("right", "B")):
                    label = f"score of {letter} for {aspect.name}"
                    self.fields[f"{side}_{aspect.key}"] = forms.FloatField(required=False, label=label)
            else:
                choice = forms.ChoiceField(choices=CHOICES, required=False, label=aspect.name)
                self.fields[f"choice_{aspect.key}"] = choice
            note = forms.CharField(required=False, max_length=LONGEST_NOTE, label=f"note on {aspect.name}")
            self.fields[f"note_{aspect.key}"] = note
            reason = forms.ChoiceField(choices=REASONS, required=False, label=f"reason on {aspect.name}")
            self.fields[f"reason_{aspect.key}"] = reason

    def choices(self) -> Choices:
        given = {key: self.scores(key) if self.is_pointwise else self.choice(key) for key in self.keys}
        return {key: one for key, one in given.items() if one is not None}

    def choice(self, key: str) -> Given | None:
        return Choice(chosen) if (chosen := self.cleaned_data.get(f"choice_{key}")) else None

    def scores(self, key: str) -> Given | None:
        left, right = (self.cleaned_data.get(f"{side}_{key}") for side in ("left", "right"))
        return None if left is None or right is None else Scores(left, right)

    def notes(self) -> dict[str, str]:
        return self.words("note")

    def reasons(self) -> dict[str, str]:
        return self.words("reason")

    def words(self, kind: str) -> dict[str, str]:
        given = {key: self.cleaned_data.get(f"{kind}_{key}") for key in self.keys}
        return {key: text for key, text in given.items() if text}

    def entered(self) -> dict[str, str]:
        """What stands in the fields of the page, taken or not."""
        steps = StepForm.base_fields
        return {name: self.data.get(name, "") for name in self.fields if name not in steps}


class SkipForm(StepForm):
    reason = forms.CharField(required=False, max_length=Review._meta.get_field("skip_reason").max_length)

"""Forms of the review page."""

from typing import Any, Literal

from django import forms

from evaluations.domain.choices import Choice
from evaluations.domain.reviews import DIFFERENCE_REASON_TEXTS
from evaluations.domain.rubrics import RubricKind, RubricSpec
from evaluations.models.verdicts import Review
from evaluations.reviews.answers import Answer, Answers, ScorePair, SingleScore

MAX_NOTE_LENGTH = 10_000

REASON_CHOICES = [
    ("", "Reason"),
    *((reason.value, words) for reason, words in DIFFERENCE_REASON_TEXTS.items()),
]

CHOICE_OPTIONS = [(choice.value, choice.value) for choice in Choice]


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
    """A choice, two scores as the person sees the two sides, or one score per aspect, and a note to each and to all."""

    note = forms.CharField(required=False, max_length=MAX_NOTE_LENGTH)

    def __init__(self, spec: RubricSpec, *args: Any, is_single: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.is_pointwise = spec.kind == RubricKind.POINTWISE
        self.is_single = is_single
        self.keys = [aspect.key for aspect in spec.aspects]
        for aspect in spec.aspects:
            if is_single:
                self.fields[f"score_{aspect.key}"] = forms.FloatField(required=False, label=f"score for {aspect.name}")
            elif self.is_pointwise:
                for side, letter in (("left", "A"), ("right", "B")):
                    label = f"score of {letter} for {aspect.name}"
                    self.fields[f"{side}_{aspect.key}"] = forms.FloatField(required=False, label=label)
            else:
                choice = forms.ChoiceField(choices=CHOICE_OPTIONS, required=False, label=aspect.name)
                self.fields[f"choice_{aspect.key}"] = choice
            note = forms.CharField(required=False, max_length=MAX_NOTE_LENGTH, label=f"note on {aspect.name}")
            self.fields[f"note_{aspect.key}"] = note
            reason = forms.ChoiceField(choices=REASON_CHOICES, required=False, label=f"reason on {aspect.name}")
            self.fields[f"reason_{aspect.key}"] = reason

    def choices(self) -> Answers:
        answers = {key: self.scores(key) if self.is_pointwise else self.choice(key) for key in self.keys}
        return {key: answer for key, answer in answers.items() if answer is not None}

    def choice(self, key: str) -> Answer | None:
        return Choice(chosen) if (chosen := self.cleaned_data.get(f"choice_{key}")) else None

    def scores(self, key: str) -> Answer | None:
        if self.is_single:
            value = self.cleaned_data.get(f"score_{key}")
            return None if value is None else SingleScore(value)
        left, right = (self.cleaned_data.get(f"{side}_{key}") for side in ("left", "right"))
        return None if left is None or right is None else ScorePair(left, right)

    def texts(self, kind: Literal["note", "reason"]) -> dict[str, str]:
        """The notes or the reasons by aspect."""
        texts = {key: self.cleaned_data.get(f"{kind}_{key}") for key in self.keys}
        return {key: text for key, text in texts.items() if text}

    def entered(self) -> dict[str, str]:
        """The values in the fields of the page, valid or not."""
        return {name: self.data.get(name, "") for name in self.fields if name not in StepForm.base_fields}

    def filled(self) -> dict[str, str]:
        return {name: value for name, value in self.entered().items() if value}


class SkipForm(StepForm):
    reason = forms.CharField(required=False, max_length=Review._meta.get_field("skip_reason").max_length)


class DraftForm(StepForm):
    """``number``: of the last draft that the page has seen."""

    number = forms.IntegerField(min_value=0, max_value=2**31 - 1)


class SpanCommentForm(forms.Form):
    comment = forms.CharField(required=False)
    aspect = forms.CharField(required=False, max_length=200)


class SpanForm(SpanCommentForm):
    """``side``: the response as shown. Without a position the quote is searched for."""

    side = forms.ChoiceField(choices=[("a", "A"), ("b", "B")])
    turn = forms.IntegerField(min_value=0, max_value=32_767, required=False)
    start = forms.IntegerField(min_value=0, max_value=2**31 - 1, required=False)
    end = forms.IntegerField(min_value=0, max_value=2**31 - 1, required=False)
    quote = forms.CharField(required=False, strip=False)

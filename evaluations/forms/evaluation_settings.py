from django import forms
from django.db.models import Model, QuerySet
from django.http import QueryDict

from evaluations.domain import Reveal, RubricKind
from evaluations.forms.prose import ProseField
from evaluations.models import Evaluation, Judge, RubricVersion

WHEN_SHOWN = [
    (Reveal.BLIND, "Blind first: after they saved their own choices"),
    (Reveal.SHOWN, "From the start"),
    (Reveal.NEVER, "Never"),
    (Reveal.RANDOMISED, "Drawn at random for each comparison: blind first, or from the start"),
]
COLUMNS = ("name", "description", "guidelines", "review_rubric", "reviews_wanted", "shown_judge", "reveal")


class VersionChoice(forms.ModelChoiceField):  # type: ignore[type-arg]
    def label_from_instance(self, obj: RubricVersion) -> str:
        return f"{obj.rubric.name}, version {obj.number}"


class JudgeChoice(forms.ModelChoiceField):  # type: ignore[type-arg]
    def label_from_instance(self, obj: Judge) -> str:
        return f"{obj.name} – baseline, not an LLM" if obj.is_baseline else obj.name


class SettingsForm(forms.Form):
    name = forms.CharField(max_length=200)
    description = ProseField(rows=3, required=False)
    guidelines = ProseField(
        rows=8,
        required=False,
        help_text="What reviewers should know beforehand; shown on their page. Markdown is understood.",
    )
    review_rubric = VersionChoice(
        RubricVersion.objects.none(),
        label="Rubric for reviews",
        required=False,
        empty_label="None: nobody can review",
        help_text="What people are asked. Reviews made by another version stay, and are counted as theirs.",
    )
    reviews_wanted = forms.IntegerField(
        label="Reviews wanted",
        min_value=1,
        max_value=100,
        help_text="How many people should review each comparison. Those with enough reviews come last.",
    )
    shown_judge = JudgeChoice(
        Judge.objects.none(),
        label="Judge shown to reviewers",
        required=False,
        empty_label="None",
        help_text="Whose choices stand beside a reviewer’s own.",
    )
    reveal = forms.ChoiceField(
        label="When reviewers see the judge’s choices",
        choices=WHEN_SHOWN,
        widget=forms.RadioSelect,
        help_text="Blind first keeps people’s first choices their own: agreement is computed from these.",
    )

    def __init__(self, data: QueryDict | None, *, evaluation: Evaluation) -> None:
        super().__init__(data, initial={column: getattr(evaluation, column) for column in COLUMNS})
        versions = RubricVersion.objects.filter(rubric__evaluation=evaluation, rubric__kind=RubricKind.PAIRWISE)
        self.choices_of("review_rubric", versions.select_related("rubric").order_by("rubric__name", "-number"))
        self.choices_of("shown_judge", Judge.objects.filter(evaluation=evaluation).order_by("name"))

    def choices_of(self, name: str, rows: QuerySet[Model]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = rows

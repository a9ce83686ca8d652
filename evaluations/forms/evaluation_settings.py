from django import forms
from django.db.models import Model, QuerySet
from django.http import QueryDict

from evaluations.domain import LabelPolicy, Reveal, RubricKind, RubricOrigin
from evaluations.forms.prose import ProseField
from evaluations.models import Evaluation, Judge, RubricVersion

WHEN_SHOWN = [
    (Reveal.BLIND, "Blind first: after they saved their own choices"),
    (Reveal.SHOWN, "From the start"),
    (Reveal.NEVER, "Never"),
    (Reveal.RANDOMISED, "Drawn at random for each comparison: blind first, or from the start"),
]
WHO_LABELS = [
    (LabelPolicy.PEOPLE_THEN_JUDGES, "On people, and where nobody voted on judges: a panel, else one judge"),
    (LabelPolicy.PEOPLE, "On people alone"),
]
COLUMNS = (
    *("name", "description", "guidelines", "review_rubric"),
    *("reviews_wanted", "hold_minutes", "shown_judge", "reveal", "label_policy", "settles_judge"),
)
LONGEST_HOLD_MINUTES = 7 * 24 * 60


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
        help_text="What reviewers should know beforehand: one key away on their page, and a page of their own. "
        "Markdown is understood. A change is announced once to everyone who reviewed before it.",
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
        help_text="How many different people should review each comparison; a round can ask for more or fewer. What "
        "has enough is given to nobody else, and agreement among people needs at least 2.",
    )
    hold_minutes = forms.IntegerField(
        label="Kept for a reviewer, in minutes",
        min_value=1,
        max_value=LONGEST_HOLD_MINUTES,
        help_text="How long a comparison that someone has open is kept for them, so that no two people do the same one "
        "needlessly. Then it is free for others; whoever saves it later still can.",
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
        help_text="Blind first keeps people’s first choices their own: agreement is computed from these. Drawn at "
        "random, the report can say how far people follow the judge.",
    )
    label_policy = forms.ChoiceField(
        label="What a label may rest on",
        choices=WHO_LABELS,
        widget=forms.RadioSelect,
        help_text="An adjudication comes before the majority of people, and that before a single person. A split among "
        "people stays open: no judge breaks it. Baselines never label, and every label says what it rests on.",
    )
    settles_judge = forms.BooleanField(
        label="Settle differences with the judge too",
        required=False,
        help_text="Comparisons on which people and the shown judge differ then line up among the disagreements, beside "
        "those on which people differ.",
    )

    def __init__(self, data: QueryDict | None, *, evaluation: Evaluation) -> None:
        super().__init__(data, initial={column: getattr(evaluation, column) for column in COLUMNS})
        versions = RubricVersion.objects.filter(rubric__evaluation=evaluation).exclude(
            # It only says what files held: of its scores the lower ones may be the better.
            rubric__origin=RubricOrigin.IMPORTED,
            rubric__kind=RubricKind.POINTWISE,
        )
        self.choices_of("review_rubric", versions.select_related("rubric").order_by("rubric__name", "-number"))
        self.choices_of("shown_judge", Judge.objects.current().filter(evaluation=evaluation).order_by("name"))

    def choices_of(self, name: str, rows: QuerySet[Model]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = rows

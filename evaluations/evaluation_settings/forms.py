"""Forms of an evaluation's settings and model families."""

from collections.abc import Iterable, Mapping, Sequence

from django import forms
from django.db.models import Model, QuerySet
from django.forms.boundfield import BoundField
from django.http import QueryDict

from evaluations.domain.choices import LabelPolicy
from evaluations.domain.reviews import Reveal
from evaluations.evaluation_settings.selectors import list_review_rubrics, list_showable_judges
from evaluations.evaluation_settings.services import (
    MAX_RESERVATION_MINUTES,
    MAX_REVIEWS_WANTED,
    SETTINGS_COLUMNS,
    EvaluationSettings,
)
from evaluations.models.comparisons import Candidate
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Judge
from evaluations.models.rubrics import RubricVersion
from evaluations.web.forms import MultilineField

REVEAL_CHOICES = [
    (Reveal.BLIND, "Blind first: after they saved their own choices"),
    (Reveal.SHOWN, "From the start"),
    (Reveal.NEVER, "Never"),
    (Reveal.RANDOMISED, "Drawn at random for each comparison: blind first, or from the start"),
]

LABEL_POLICY_CHOICES = [
    (LabelPolicy.PEOPLE_THEN_JUDGES, "On people, and where nobody voted on judges: a panel, else one judge"),
    (LabelPolicy.PEOPLE, "On people alone"),
]


class RubricVersionField(forms.ModelChoiceField):  # type: ignore[type-arg]
    def label_from_instance(self, obj: RubricVersion) -> str:
        return f"{obj.rubric.name}, version {obj.number}"


class ShownJudgeField(forms.ModelChoiceField):  # type: ignore[type-arg]
    def label_from_instance(self, obj: Judge) -> str:
        return f"{obj.name} – baseline, not an LLM" if obj.is_baseline else obj.name


class SettingsForm(forms.Form):
    name = forms.CharField(max_length=200)
    description = MultilineField(rows=3, required=False)
    guidelines = MultilineField(
        rows=8,
        required=False,
        help_text="What reviewers should know beforehand: one key away on their page, and a page of their own. "
        "Markdown is understood. A change is announced once to everyone who reviewed before it.",
    )
    review_rubric = RubricVersionField(
        RubricVersion.objects.none(),
        label="Rubric for reviews",
        required=False,
        empty_label="None: nobody can review",
        help_text="What people are asked. Reviews made by another version stay, and are counted as theirs.",
    )
    reviews_wanted = forms.IntegerField(
        label="Reviews wanted",
        min_value=1,
        max_value=MAX_REVIEWS_WANTED,
        help_text="How many different people should review each comparison; a queue can ask for more or fewer. What "
        "has enough is given to nobody else, and agreement among people needs at least 2.",
    )
    reservation_minutes = forms.IntegerField(
        label="Kept for a reviewer, in minutes",
        min_value=1,
        max_value=MAX_RESERVATION_MINUTES,
        help_text="How long a comparison that someone has open is kept for them, so that no two people do the same one "
        "needlessly. Then it is free for others; whoever saves it later still can.",
    )
    shown_judge = ShownJudgeField(
        Judge.objects.none(),
        label="Judge shown to reviewers",
        required=False,
        empty_label="None",
        help_text="Whose choices stand beside a reviewer’s own.",
    )
    reveal = forms.ChoiceField(
        label="When reviewers see the judge’s choices",
        choices=REVEAL_CHOICES,
        widget=forms.RadioSelect,
        help_text="Blind first keeps people’s first choices their own: agreement is computed from these. Drawn at "
        "random, the report can say how far people follow the judge.",
    )
    label_policy = forms.ChoiceField(
        label="What a label may rest on",
        choices=LABEL_POLICY_CHOICES,
        widget=forms.RadioSelect,
        help_text="An adjudication comes before the majority of people, and that before a single person. A split among "
        "people stays open: no judge breaks it. Baselines never label, and every label says what it rests on.",
    )
    resolve_judge_disagreements = forms.BooleanField(
        label="Settle differences with the judge too",
        required=False,
        help_text="Comparisons on which people and the shown judge differ then line up among the disagreements, beside "
        "those on which people differ.",
    )

    def __init__(self, data: QueryDict | None, *, evaluation: Evaluation) -> None:
        super().__init__(data, initial={column: getattr(evaluation, column) for column in SETTINGS_COLUMNS})
        self.set_choices("review_rubric", list_review_rubrics(evaluation))
        self.set_choices("shown_judge", list_showable_judges(evaluation))

    def set_choices(self, name: str, rows: QuerySet[Model]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = rows

    def settings(self) -> EvaluationSettings:
        return EvaluationSettings(**self.cleaned_data)


class FamiliesForm(forms.Form):
    """A field for each candidate and each judge."""

    def __init__(
        self, data: Mapping[str, object] | None, *, candidates: Sequence[Candidate], judges: Sequence[Judge]
    ) -> None:
        super().__init__(data)
        self.rows: dict[str, list[Candidate] | list[Judge]] = {"candidate": list(candidates), "judge": list(judges)}
        for kind, rows in self.rows.items():
            for row in rows:
                attributes = {"list": "families", "autocomplete": "off"}
                self.fields[f"{kind}_{row.pk}"] = forms.CharField(
                    label=row.name,
                    required=False,
                    max_length=80,
                    initial=row.family,
                    widget=forms.TextInput(attrs=attributes),
                )

    def get_families(self, kind: str) -> dict[int, str]:
        """What was entered, by id."""
        return {row.pk: self.cleaned_data[f"{kind}_{row.pk}"].strip() for row in self.rows[kind]}

    def list_fields(self, kind: str) -> list[BoundField]:
        return [self[f"{kind}_{row.pk}"] for row in self.rows[kind]]

    @property
    def candidates(self) -> Iterable[BoundField]:
        return self.list_fields("candidate")

    @property
    def judges(self) -> Iterable[BoundField]:
        return self.list_fields("judge")

    @property
    def known(self) -> list[str]:
        """The families that are set, each once."""
        return sorted({row.family for rows in self.rows.values() for row in rows if row.family})

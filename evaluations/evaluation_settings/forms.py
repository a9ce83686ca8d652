"""Forms of an evaluation's settings, bars of decisions and model families."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from django import forms
from django.db.models import Model, QuerySet
from django.forms.boundfield import BoundField
from django.http import QueryDict

from evaluations.domain.choices import LabelPolicy
from evaluations.domain.decisions import DecisionBars
from evaluations.domain.reviews import NameReveal, Reveal
from evaluations.evaluation_settings.selectors import list_review_rubrics, list_showable_judges
from evaluations.evaluation_settings.services import (
    BAR_LABELS,
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
    (Reveal.BLIND, "After the reviewer’s first save"),
    (Reveal.SHOWN, "From the start"),
    (Reveal.NEVER, "Never"),
    (Reveal.RANDOMISED, "Random per comparison: after the first save, or from the start"),
]

NAME_REVEAL_CHOICES = [
    (NameReveal.NEVER, "Never"),
    (NameReveal.AFTER_LAST, "After their last comparison"),
    (NameReveal.AFTER_SAVE, "After each save"),
]

LABEL_POLICY_CHOICES = [
    (LabelPolicy.PEOPLE_THEN_JUDGES, "Reviewers; without votes, a judge panel or a single judge"),
    (LabelPolicy.PEOPLE, "Reviewers only"),
]


class RubricVersionField(forms.ModelChoiceField):  # type: ignore[type-arg]
    def label_from_instance(self, obj: RubricVersion) -> str:
        return f"{obj.rubric.name}, version {obj.number}"


class ShownJudgeField(forms.ModelChoiceField):  # type: ignore[type-arg]
    def label_from_instance(self, obj: Judge) -> str:
        return f"{obj.name} (rule-based)" if obj.is_baseline else obj.name


class SettingsForm(forms.Form):
    name = forms.CharField(max_length=200)
    description = MultilineField(rows=3, required=False)
    guidelines = MultilineField(
        rows=8, required=False, help_text="Markdown. Reviewers see a notice once after each change."
    )
    review_rubric = RubricVersionField(
        RubricVersion.objects.none(),
        label="Rubric for reviews",
        required=False,
        empty_label="None (no reviews)",
        help_text="Reviews by earlier versions are kept.",
    )
    reviews_wanted = forms.IntegerField(
        label="Reviews per comparison",
        min_value=1,
        max_value=MAX_REVIEWS_WANTED,
        help_text="At least 2 to measure agreement among reviewers.",
    )
    reservation_minutes = forms.IntegerField(
        label="Reservation (min)",
        min_value=1,
        max_value=MAX_RESERVATION_MINUTES,
        help_text="How long an open comparison is reserved for its reviewer.",
    )
    shown_judge = ShownJudgeField(
        Judge.objects.none(), label="Judge shown to reviewers", required=False, empty_label="None"
    )
    reveal = forms.ChoiceField(
        label="Judge revealed",
        choices=REVEAL_CHOICES,
        widget=forms.RadioSelect,
        help_text="Agreement is computed from choices made before the reveal. Random lets you measure anchoring.",
    )
    name_reveal = forms.ChoiceField(
        label="When reviewers see the models’ names",
        choices=NAME_REVEAL_CHOICES,
        widget=forms.RadioSelect,
        help_text="Earlier than after the last comparison, reviewers learn to recognize a model by its style.",
    )
    label_policy = forms.ChoiceField(
        label="Label source",
        choices=LABEL_POLICY_CHOICES,
        widget=forms.RadioSelect,
        help_text="Resolutions come first, then the majority. Judges never break a tie among reviewers.",
    )
    resolve_judge_disagreements = forms.BooleanField(
        label="Treat judge disagreements as open",
        required=False,
        help_text="Resolve then also lists comparisons where the shown judge differs from the label.",
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


class PercentField(forms.DecimalField):
    """A share of 1, entered and shown in percent or points."""

    def __init__(self, **options: Any) -> None:
        super().__init__(min_value=0, max_value=100, **options)

    def prepare_value(self, value: object) -> object:
        return f"{round(100 * value, 6):.10g}" if isinstance(value, float) else value

    def clean(self, value: object) -> float:
        return float(super().clean(value) / 100)


BAR_UNITS: Final = {"failures": "%", "inconsistency": "%", "half_width": "± points"}
BAR_HINTS: Final = {
    "stand_in": "How far below reviewers’ own agreement a judge may be and still stand in.",
    "aspect": "The same for a single aspect.",
    "unreliable": "From this far below reviewers’ own agreement, a judge is not reliable.",
    "failures": "The largest share of calls without an answer.",
    "inconsistency": "The largest share of comparisons on which the two orders disagree.",
    "bias": "The largest effect of position, length or own model family.",
    "half_width": "How precisely spot checks estimate a win rate.",
}


class BarsForm(forms.Form):
    """A field for each bar of decisions, by the names of `DecisionBars`."""

    def __init__(self, data: QueryDict | None, *, bars: DecisionBars) -> None:
        super().__init__(data, initial=asdict(bars))
        for name, label in BAR_LABELS.items():
            unit = BAR_UNITS.get(name, "points")
            self.fields[name] = PercentField(label=f"{label} ({unit})", help_text=BAR_HINTS[name])

    def bars(self) -> DecisionBars:
        return DecisionBars(**self.cleaned_data)

    def list_fields(self, *names: str) -> list[BoundField]:
        return [self[name] for name in names]

    @property
    def margins(self) -> list[BoundField]:
        return self.list_fields("stand_in", "aspect", "unreliable")

    @property
    def faults(self) -> list[BoundField]:
        return self.list_fields("failures", "inconsistency", "bias")


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
                if isinstance(row, Candidate):
                    self.fields[f"name_{row.pk}"] = forms.CharField(
                        label=f"{row.name}: name", max_length=200, initial=row.name
                    )
                self.fields[f"{kind}_{row.pk}"] = forms.CharField(
                    label=f"{row.name}: family",
                    required=False,
                    max_length=80,
                    initial=row.family,
                    widget=forms.TextInput(attrs=attributes),
                )

    def get_families(self, kind: str) -> dict[int, str]:
        """What was entered, by id."""
        return {row.pk: self.cleaned_data[f"{kind}_{row.pk}"].strip() for row in self.rows[kind]}

    def get_names(self) -> dict[int, str]:
        """The names of the models as entered, by id."""
        return {row.pk: self.cleaned_data[f"name_{row.pk}"].strip() for row in self.rows["candidate"]}

    def list_fields(self, kind: str) -> list[BoundField]:
        return [self[f"{kind}_{row.pk}"] for row in self.rows[kind]]

    @property
    def candidates(self) -> Iterable[tuple[Candidate | Judge, BoundField, BoundField]]:
        """Each model with the fields of its name and its family."""
        rows = self.rows["candidate"]
        return [(row, self[f"name_{row.pk}"], self[f"candidate_{row.pk}"]) for row in rows]

    @property
    def judges(self) -> Iterable[tuple[Candidate | Judge, BoundField]]:
        return list(zip(self.rows["judge"], self.list_fields("judge"), strict=True))

    @property
    def known(self) -> list[str]:
        """The families that are set, each once."""
        return sorted({row.family for rows in self.rows.values() for row in rows if row.family})

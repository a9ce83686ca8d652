"""Forms that create queues and calibrations."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from django import forms
from django.db.models import QuerySet
from django.http import QueryDict

from evaluations.domain.reviews import RANDOM_SELECTION, QueueAudience, SelectionMethod, StratifyBy
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User
from evaluations.reviews.queues.calibration import MAX_CALIBRATION_ITEMS
from evaluations.reviews.queues.sampler import DEFAULT_RANDOM_PERCENT, MAX_QUEUE_SIZE, QueuePlan
from evaluations.web.forms import RowsField


class ComparisonIdsField(forms.CharField):
    """Numbers of comparisons, in any order, separated by commas, spaces or lines."""

    def __init__(self, **options: Any) -> None:
        super().__init__(widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}), **options)

    def clean(self, value: object) -> list[int]:
        parts: list[str] = [part for part in re.split(r"[\s,;]+", super().clean(value)) if part]
        wrong = [part for part in parts if not (part.isascii() and part.isdecimal() and len(part) < 19)]
        if wrong:
            raise forms.ValidationError(f"“{wrong[0][:40]}” is not a comparison number.")
        return [int(part) for part in parts]


class CalibrationForm(forms.Form):
    name = forms.CharField(max_length=120, initial="Calibration")
    size = forms.IntegerField(
        label="Random sample size",
        min_value=1,
        max_value=MAX_CALIBRATION_ITEMS,
        required=False,
        help_text="8–20 comparisons with a gold label are enough to spot different readings of the guidelines.",
    )
    comparisons = ComparisonIdsField(
        label="Or comparison numbers",
        required=False,
        help_text="Comparisons with a gold label, in review order.",
    )
    seed = forms.IntegerField(initial=0, min_value=0, max_value=2**53, help_text="The same seed draws the same sample.")


# What each order of work finds, in one sentence.
STRATEGY_TEXTS: Final[Mapping[SelectionMethod, tuple[str, str]]] = {
    SelectionMethod.RANDOM: (
        "Random",
        "Next in the random order, as in the default queue.",
    ),
    SelectionMethod.STRATIFIED: (
        "Stratified random",
        "Equal numbers per category or model pair, with known probabilities.",
    ),
    SelectionMethod.FLIPS: (
        "Order-inconsistent",
        "A judge’s choice flips when A and B are swapped. Finds position bias and near ties.",
    ),
    SelectionMethod.JUDGES_DISAGREE: (
        "Judges disagree",
        "Two judges chose differently. Finds judge errors.",
    ),
    SelectionMethod.PEOPLE_DISAGREE: (
        "Reviewers disagree",
        "Adds another opinion on hard cases and unclear rubrics.",
    ),
    SelectionMethod.LEAST_CONFIDENT: (
        "Low confidence",
        "The judge’s probabilities are closest to even.",
    ),
}

STRATA_OPTIONS: Final = [
    (StratifyBy.CATEGORY, "prompt category"),
    (StratifyBy.CANDIDATE_PAIR, "model pair"),
]

REVIEWER_OPTIONS: Final = [
    (QueueAudience.EVERYONE, "Everyone, before the default queue"),
    (QueueAudience.SPLIT, "Split among selected reviewers"),
    (QueueAudience.EACH, "Everyone selected reviews all"),
]


class ReviewersField(RowsField):
    def label_from_instance(self, obj: User) -> str:
        return str(obj)


class QueueForm(forms.Form):
    name = forms.CharField(max_length=120, widget=forms.TextInput(attrs={"autocomplete": "off"}))
    strategy = forms.ChoiceField(
        label="Comparisons",
        choices=[(value, name) for value, (name, _) in STRATEGY_TEXTS.items()],
        widget=forms.RadioSelect,
    )
    strata = forms.ChoiceField(label="Groups", choices=STRATA_OPTIONS, required=False)
    size = forms.IntegerField(
        label="Limit", min_value=1, max_value=MAX_QUEUE_SIZE, required=False, help_text="Blank for all matches."
    )
    random_percent = forms.IntegerField(
        label="Random share (%)",
        min_value=0,
        max_value=100,
        required=False,
        help_text="Drawn at random from all comparisons; only these count in agreement estimates.",
    )
    reviews_wanted = forms.IntegerField(label="Reviews per comparison", min_value=1, max_value=100)
    who = forms.ChoiceField(label="Reviewers", choices=REVIEWER_OPTIONS, widget=forms.RadioSelect)
    people = ReviewersField(
        User.objects.none(),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        error_messages={"invalid_choice": "A selected member is not a reviewer here."},
    )
    seed = forms.IntegerField(
        min_value=0,
        max_value=2**53,
        required=False,
        help_text="The same seed draws the same sample.",
    )

    def __init__(
        self, data: QueryDict | None, *, evaluation: Evaluation, people: QuerySet[User], name: str = ""
    ) -> None:
        initial = {
            "name": name,
            "strategy": SelectionMethod.RANDOM,
            "size": 50,
            "random_percent": DEFAULT_RANDOM_PERCENT,
            "reviews_wanted": evaluation.reviews_wanted,
            "who": QueueAudience.EVERYONE,
            "seed": 0,
        }
        super().__init__(data, initial=initial)
        self.fields["people"].queryset = people  # type: ignore[attr-defined]

    def strategies(self) -> Iterator[dict[str, object]]:
        """The choices with what each finds, and whether estimates may use what it takes."""
        chosen = self["strategy"].value()
        for value, (name, finds) in STRATEGY_TEXTS.items():
            yield {
                "value": value,
                "name": name,
                "finds": finds,
                "is_chosen": chosen == value,
                "is_drawn": value in RANDOM_SELECTION,
            }

    def plan(self) -> QueuePlan | None:
        """The plan of the queue; None while one of the fields that the preview needs is invalid."""
        if not self.is_bound:
            values = {name: self.get_initial_for_field(field, name) for name, field in self.fields.items()}
        elif self.errors.keys() & {"strategy", "strata", "size", "random_percent", "reviews_wanted", "who"}:
            return None
        else:
            values = self.cleaned_data
        return QueuePlan(
            SelectionMethod(values["strategy"]),
            StratifyBy(values["strata"]) if values.get("strata") else None,
            values.get("size"),
            values.get("random_percent"),
            values["reviews_wanted"],
            QueueAudience(values["who"]),
            list(values.get("people") or ()),
            values.get("seed") or 0,
        )

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
            raise forms.ValidationError(f"“{wrong[0][:40]}” is not the number of a comparison.")
        return [int(part) for part in parts]


class CalibrationForm(forms.Form):
    name = forms.CharField(max_length=120, initial="Calibration")
    size = forms.IntegerField(
        label="How many, drawn at random",
        min_value=1,
        max_value=MAX_CALIBRATION_ITEMS,
        required=False,
        help_text="Of those with a known label. Eight to twenty show whether somebody reads the guidelines as you do.",
    )
    comparisons = ComparisonIdsField(
        label="Or these",
        required=False,
        help_text="The numbers of comparisons with a known label, in the order in which they are to be met.",
    )
    seed = forms.IntegerField(
        initial=0, min_value=0, max_value=2**53, help_text="The same seed draws the same comparisons again."
    )


# What each order of work finds, in one sentence.
STRATEGY_TEXTS: Final[Mapping[SelectionMethod, tuple[str, str]]] = {
    SelectionMethod.RANDOM: (
        "Random",
        "The next in the one random order, as from the default queue. The unbiased one.",
    ),
    SelectionMethod.STRATIFIED: (
        "Random, from each group alike",
        "As many from every category or pair of candidates, so that small groups are seen too; each with a known "
        "probability.",
    ),
    SelectionMethod.FLIPS: (
        "A judge flips between orders",
        "A judge chose otherwise once A and B had changed places: finds position bias and near ties.",
    ),
    SelectionMethod.JUDGES_DISAGREE: (
        "Judges disagree among themselves",
        "Two judges chose differently, so at least one of them is wrong: finds where a judge fails.",
    ),
    SelectionMethod.PEOPLE_DISAGREE: (
        "People disagree",
        "Reviewers chose differently: finds hard cases and unclear rubrics, and brings a further opinion.",
    ),
    SelectionMethod.LEAST_CONFIDENT: (
        "A judge is least confident",
        "The judge’s own probabilities are closest to even: finds what it cannot tell.",
    ),
}

STRATA_OPTIONS: Final = [
    (StratifyBy.CATEGORY, "category of the query"),
    (StratifyBy.CANDIDATE_PAIR, "pair of candidates"),
]

REVIEWER_OPTIONS: Final = [
    (QueueAudience.EVERYONE, "Everyone: whoever reviews next meets them before the default queue"),
    (QueueAudience.SPLIT, "The people below, divided among them"),
    (QueueAudience.EACH, "The people below, all of it to each"),
]


class ReviewersField(RowsField):
    def label_from_instance(self, obj: User) -> str:
        return str(obj)


class QueueForm(forms.Form):
    name = forms.CharField(max_length=120, widget=forms.TextInput(attrs={"autocomplete": "off"}))
    strategy = forms.ChoiceField(
        label="Which comparisons",
        choices=[(value, name) for value, (name, _) in STRATEGY_TEXTS.items()],
        widget=forms.RadioSelect,
    )
    strata = forms.ChoiceField(label="Groups", choices=STRATA_OPTIONS, required=False)
    size = forms.IntegerField(
        label="How many", min_value=1, max_value=MAX_QUEUE_SIZE, required=False, help_text="Empty: all that match."
    )
    random_percent = forms.IntegerField(
        label="Random share, in percent",
        min_value=0,
        max_value=100,
        required=False,
        help_text="So many of them are drawn at random from all comparisons instead. Where the rest is selected, "
        "and not drawn, estimates use these alone.",
    )
    reviews_wanted = forms.IntegerField(label="Reviews of each", min_value=1, max_value=100)
    who = forms.ChoiceField(label="Who reviews them", choices=REVIEWER_OPTIONS, widget=forms.RadioSelect)
    people = ReviewersField(
        User.objects.none(),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        error_messages={"invalid_choice": "One of these people does not review here."},
    )
    seed = forms.IntegerField(
        min_value=0,
        max_value=2**53,
        required=False,
        help_text="What chance decides here is decided the same way by the same seed.",
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

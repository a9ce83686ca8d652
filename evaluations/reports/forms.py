"""The filters, rules and layout of a report, all of them in the query string."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from django import forms
from django.utils.datastructures import MultiValueDict

from evaluations.domain.reports import FailedRule, ReportRules, SeenRule, SideCoding, SplitRule, candidate_conditions
from evaluations.domain.reviews import ScreeningChoice
from evaluations.domain.roles import RaterKind
from evaluations.domain.splits import SplitPart
from evaluations.models.comparisons import Candidate, SavedFilter
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.rubrics import Aspect
from evaluations.models.selection import list_categories
from evaluations.web.forms import CleanedData

# The first of each is the default.
SEEN_CHOICES = [
    (SeenRule.NOTHING, "blind and imported"),
    (SeenRule.BLIND, "blind only"),
    (SeenRule.JUDGE, "judge first"),
]
SPLIT_CHOICES = [
    (SplitRule.TIE, "count as tie"),
    (SplitRule.DROP, "excluded"),
    (SplitRule.FIRST, "first choice wins"),
]
FAILURE_CHOICES = [(FailedRule.EXCLUDE, "excluded"), (FailedRule.TIE, "count as tie")]
CODING_CHOICES = [(SideCoding.CANDIDATE, "models"), (SideCoding.SHOWN, "first and second shown")]
PART_CHOICES = [("", "all"), *((part, str(part)) for part in SplitPart)]
PAIR_CHOICES = [("", "top 20 by shared items (above 30 reviewers)"), ("all", "all")]
TIE_CHOICES = [("with", "with ties"), ("without", "without ties")]
EXCLUDED_CHOICES = [("", "left out"), ("true", "included")]
MEASURE_CHOICES = [("agreement", "Agreement"), ("cohen_kappa", "Cohen’s kappa"), ("gwet_ac1", "AC1")]
SORT_CHOICES = [("aspect", "aspect"), ("judge", "judge"), ("people", "people"), ("difference", "difference")]

Choices = Sequence[tuple[object, str]]
QueryValues = dict[str, list[str]]


@dataclass(frozen=True)
class ActiveFilter:
    """A value of a filter or rule. ``without``: the query without it."""

    label: str
    value: str
    without: QueryValues


def build_choice_field(label: str, choices: Choices) -> forms.ChoiceField:
    wrong = f"“%(value)s” is not a value of “{label}”."
    return forms.ChoiceField(label=label, choices=choices, required=False, error_messages={"invalid_choice": wrong})


def build_multiple_choice_field(label: str, kind: str) -> forms.MultipleChoiceField:
    wrong = f"There is no {kind} “%(value)s”."
    widget = forms.CheckboxSelectMultiple
    return forms.MultipleChoiceField(
        label=label, required=False, widget=widget, error_messages={"invalid_choice": wrong}
    )


def build_name_field(label: str, kind: str) -> forms.ChoiceField:
    wrong = f"There is no {kind} “%(value)s”."
    return forms.ChoiceField(label=label, required=False, error_messages={"invalid_choice": wrong})


def build_day_field(label: str) -> forms.DateField:
    wrong = f"“{label}” is not a date. Use the form 2026-01-31."
    widget = forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
    return forms.DateField(
        label=label, required=False, input_formats=["%Y-%m-%d"], widget=widget, error_messages={"invalid": wrong}
    )


def build_score_field(label: str) -> forms.FloatField:
    wrong = f"“{label}” is not a number. Use a score, such as 4."
    widget = forms.NumberInput(attrs={"step": "any"})
    return forms.FloatField(label=label, required=False, widget=widget, error_messages={"invalid": wrong})


class ReportForm(forms.Form):
    """All fields are optional. Filters that the user may not use are removed."""

    judge = build_multiple_choice_field("Judges", "judge")
    saved_filter = build_name_field("Saved filter", "saved filter")
    category = build_name_field("Category", "category")
    candidate_1 = build_name_field("Model", "model")
    candidate_2 = build_name_field("vs.", "model")

    reviewer = build_multiple_choice_field("Reviewers", "reviewer")
    since = build_day_field("Votes from")
    until = build_day_field("Votes until")
    seen = build_choice_field("Reviews", SEEN_CHOICES)
    split_rule = build_choice_field("Split votes", SPLIT_CHOICES)
    failed = build_choice_field("Failed calls", FAILURE_CHOICES)
    coding = build_choice_field("Sides", CODING_CHOICES)
    part = build_choice_field("Split", PART_CHOICES)
    pass_from = build_score_field("Pass from")
    pairs = build_choice_field("Pairs of reviewers", PAIR_CHOICES)
    with_excluded = build_choice_field("Excluded reviewers", EXCLUDED_CHOICES)

    ties = build_choice_field("Ties", TIE_CHOICES)
    measure = build_choice_field("Measure", MEASURE_CHOICES)
    sort = build_choice_field("Order", SORT_CHOICES)
    aspect = build_name_field("Aspect", "aspect")

    FREQUENT: Final = ("judge", "saved_filter", "category", "candidate_1", "candidate_2")
    RARE: Final = (
        *("reviewer", "with_excluded", "since", "until", "seen", "split_rule", "failed", "coding", "part"),
        *("pass_from", "pairs"),
    )
    LAYOUT: Final = ("ties", "measure", "sort", "aspect")

    def __init__(
        self, data: MultiValueDict[str, str], *, evaluation: Evaluation, sees_all: bool, sees_judges: bool
    ) -> None:
        super().__init__(data)
        self.evaluation = evaluation
        listed = Rater.objects.current().filter(evaluation=evaluation).order_by("name")
        rows = list(listed.values_list("kind", "name", "screening_choice"))
        raters = [(kind, name) for kind, name, _ in rows]
        self.has_excluded = any(choice == ScreeningChoice.EXCLUDE for *_, choice in rows)
        aspects = Aspect.objects.filter(evaluation=evaluation).order_by("name").values_list("key", "name")
        self.set_choices("judge", [(name, name) for kind, name in raters if kind == RaterKind.JUDGE], sees_judges)
        self.set_choices("reviewer", [(name, name) for kind, name in raters if kind == RaterKind.HUMAN], sees_all)
        self.set_choices("with_excluded", EXCLUDED_CHOICES, sees_all)
        saved_filters = SavedFilter.objects.filter(evaluation=evaluation).order_by("name") if sees_all else ()
        self.saved_filters = {saved.name: saved for saved in saved_filters}
        self.set_choices(
            "saved_filter", [("", "all comparisons"), *((name, name) for name in self.saved_filters)], sees_all
        )
        self.set_choices("category", [("", "all"), *((name, name) for name in list_categories(evaluation))])
        candidates = Candidate.objects.filter(evaluation=evaluation).order_by("name") if sees_all else ()
        names = [(candidate.name, candidate.name) for candidate in candidates]
        self.set_choices("candidate_1", [("", "all"), *names], sees_all)
        self.set_choices("candidate_2", [("", "any model"), *names], sees_all)
        self.set_choices("aspect", [("", "all"), *aspects])

    def set_choices(self, name: str, choices: Choices, is_allowed: bool = True) -> None:
        if is_allowed:
            self.fields[name].choices = choices  # type: ignore[attr-defined]
        else:
            del self.fields[name]

    def clean(self) -> CleanedData:
        cleaned = super().clean() or self.cleaned_data
        since, until = cleaned.get("since"), cleaned.get("until")
        if since and until and since > until:
            self.add_error("until", "The end date is before the start date.")
        if cleaned.get("candidate_1") and cleaned.get("candidate_1") == cleaned.get("candidate_2"):
            self.add_error("candidate_2", "Choose two different models.")
        return cleaned

    def rules(self) -> ReportRules:
        cleaned = self.cleaned_data
        return ReportRules(
            judges=tuple(cleaned.get("judge", ())),
            reviewers=tuple(cleaned.get("reviewer", ())),
            seen=SeenRule(cleaned["seen"] or SeenRule.NOTHING),
            since=cleaned["since"],
            until=cleaned["until"],
            saved_filter=self.saved_filters[cleaned["saved_filter"]].named if cleaned.get("saved_filter") else None,
            where=(
                *([("category", cleaned["category"])] if cleaned.get("category") else []),
                *candidate_conditions(cleaned.get("candidate_1", ""), cleaned.get("candidate_2", "")),
            ),
            coding=SideCoding(cleaned["coding"] or SideCoding.CANDIDATE),
            split_rule=SplitRule(cleaned["split_rule"] or SplitRule.TIE),
            failed=FailedRule(cleaned["failed"] or FailedRule.EXCLUDE),
            part=SplitPart(cleaned["part"]) if cleaned["part"] else None,
            all_pairs=cleaned["pairs"] == "all",
            with_excluded=cleaned.get("with_excluded") == "true",
            pass_from=cleaned["pass_from"],
        )

    def get_layout(self, name: str) -> str:
        """The value of a layout field; the first choice by default."""
        choices: Choices = self.fields[name].choices  # type: ignore[attr-defined]
        return str(self.cleaned_data[name] or choices[0][0])

    def to_query(self) -> QueryValues:
        """The requested parameters, without defaults."""
        values = {name: self.cleaned_data.get(name) for name in self.fields}
        lists = {
            name: value if isinstance(value, list) else [format_query_value(value)]
            for name, value in values.items()
            if value or value == 0
        }
        return {name: value for name, value in lists.items() if value != [self.get_default(name)]}

    def get_default(self, name: str) -> str:
        field = self.fields[name]
        is_single = isinstance(field, forms.ChoiceField) and not isinstance(field, forms.MultipleChoiceField)
        return str(next(iter(field.choices))[0]) if is_single else ""  # type: ignore[attr-defined]

    def active_filters(self) -> list[ActiveFilter]:
        """The values that differ from the defaults."""
        query = self.to_query()
        return [
            ActiveFilter(
                str(self.fields[name].label), self.get_text(name, value), remove_query_value(query, name, value)
            )
            for name in (*self.FREQUENT, *self.RARE)
            for value in query.get(name, ())
        ]

    def get_text(self, name: str, value: str) -> str:
        return str(dict(getattr(self.fields[name], "choices", ())).get(value, value))

    def frequent(self) -> list[forms.BoundField]:
        return self.list_usable(self.FREQUENT)

    def rare(self) -> list[forms.BoundField]:
        return self.list_usable(self.RARE)

    def list_usable(self, names: Iterable[str]) -> list[forms.BoundField]:
        """The filters that have a choice or an error."""
        return [self[name] for name in names if name in self.fields and (self.has_choice(name) or name in self.errors)]

    def has_choice(self, name: str) -> bool:
        if name == "with_excluded":
            return self.has_excluded
        choices = getattr(self.fields[name], "choices", None)
        return choices is None or len(choices) >= (1 if name == "reviewer" else 2)

    def is_rare_set(self) -> bool:
        """Whether a filter of the folded section has a value or an error."""
        return any(name in self.errors for name in self.RARE) or any(
            self.data.get(name, "") not in ("", self.get_default(name)) for name in self.RARE if name in self.fields
        )

    def complaints(self) -> list[str]:
        """The errors of the form, in whole sentences."""
        return [str(message) for messages in self.errors.values() for message in messages]


def format_query_value(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def remove_query_value(query: QueryValues, name: str, value: str) -> QueryValues:
    remaining = {**query, name: [other for other in query[name] if other != value]}
    return {name: values for name, values in remaining.items() if values}

"""What to report on, by which rules, and how it is laid out. All of it stands in the address."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.utils.datastructures import MultiValueDict

from evaluations.domain import Coding, FailedRule, RaterKind, Rules, Seen, SplitPart, SplitRule
from evaluations.forms.candidates import candidates_where
from evaluations.models import Aspect, Candidate, Evaluation, Rater, Slice
from evaluations.services.reporting.browsing import categories

# The first of each is what holds where nothing is said.
SEEN = [
    (Seen.NOTHING, "nothing of the judge, or imported"),
    (Seen.BLIND, "nothing of the judge"),
    (Seen.JUDGE, "the judge’s choice"),
]
SPLITS = [
    (SplitRule.TIE, "count as ties"),
    (SplitRule.DROP, "are left out"),
    (SplitRule.FIRST, "go to the choice made first"),
]
FAILURES = [(FailedRule.EXCLUDE, "are left out"), (FailedRule.TIE, "count as ties")]
CODINGS = [(Coding.CANDIDATE, "candidates"), (Coding.SHOWN, "first and second shown")]
PARTS = [("", "all"), *((part, str(part)) for part in SplitPart)]
PAIRS = [("", "the 20 with most shared items, above 30 reviewers"), ("all", "all")]
TIES = [("with", "with ties"), ("without", "without ties")]
MEASURES = [("agreement", "Agreement"), ("cohen_kappa", "Cohen’s kappa"), ("gwet_ac1", "AC1")]
SORTS = [("aspect", "aspect"), ("judge", "judge"), ("people", "people"), ("difference", "difference")]

Choices = Sequence[tuple[Any, str]]
Asked = dict[str, list[str]]


@dataclass(frozen=True)
class InForce:
    """One value of a filter that narrows the report or changes its rules, and what is asked for without it."""

    label: str
    value: str
    without: Asked


def one_of(label: str, choices: Choices, **more: Any) -> forms.ChoiceField:
    wrong = f"“%(value)s” is nothing that “{label}” can be."
    return forms.ChoiceField(
        label=label, choices=choices, required=False, error_messages={"invalid_choice": wrong}, **more
    )


def some_of(label: str, kind: str) -> forms.MultipleChoiceField:
    wrong = f"There is no {kind} “%(value)s” here."
    widget = forms.CheckboxSelectMultiple
    return forms.MultipleChoiceField(
        label=label, required=False, widget=widget, error_messages={"invalid_choice": wrong}
    )


def named(label: str, kind: str) -> forms.ChoiceField:
    wrong = f"There is no {kind} “%(value)s” here."
    return forms.ChoiceField(label=label, required=False, error_messages={"invalid_choice": wrong})


def day(label: str) -> forms.DateField:
    wrong = f"“{label}” is no day: write it as 2026-01-31."
    widget = forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
    return forms.DateField(
        label=label, required=False, input_formats=["%Y-%m-%d"], widget=widget, error_messages={"invalid": wrong}
    )


class ReportForm(forms.Form):
    """Everything may be left out. A filter that this reader may not use is no field of the form."""

    judge = some_of("Judges", "judge")
    slice = named("Slice", "slice")
    category = named("Category", "category")
    candidate_1 = named("Candidate", "candidate")
    candidate_2 = named("against", "candidate")

    reviewer = some_of("People", "reviewer")
    since = day("Votes from")
    until = day("Votes until")
    seen = one_of("People had seen", SEEN)
    split_rule = one_of("Split majorities", SPLITS)
    failed = one_of("Failed verdicts", FAILURES)
    coding = one_of("Sides are", CODINGS)
    part = one_of("Part of the split", PARTS)
    pairs = one_of("Pairs of reviewers", PAIRS)

    ties = one_of("Ties", TIES)
    measure = one_of("Measure", MEASURES)
    sort = one_of("Order", SORTS)
    aspect = named("Aspect", "aspect")

    FREQUENT: Final = ("judge", "slice", "category", "candidate_1", "candidate_2")
    RARE: Final = ("reviewer", "since", "until", "seen", "split_rule", "failed", "coding", "part", "pairs")
    LAYOUT: Final = ("ties", "measure", "sort", "aspect")

    def __init__(
        self, data: MultiValueDict[str, str], *, evaluation: Evaluation, sees_all: bool, sees_judges: bool
    ) -> None:
        super().__init__(data)
        raters = list(
            Rater.objects.current().filter(evaluation=evaluation).order_by("name").values_list("kind", "name")
        )
        aspects = Aspect.objects.filter(evaluation=evaluation).order_by("name").values_list("key", "name")
        self.offer("judge", [(name, name) for kind, name in raters if kind == RaterKind.JUDGE], sees_judges)
        self.offer("reviewer", [(name, name) for kind, name in raters if kind == RaterKind.HUMAN], sees_all)
        slices = Slice.objects.filter(evaluation=evaluation).order_by("name") if sees_all else ()
        self.slices = {one.name: one for one in slices}
        self.offer("slice", [("", "all comparisons"), *((name, name) for name in self.slices)], sees_all)
        self.offer("category", [("", "all"), *((name, name) for name in categories(evaluation))])
        candidates = Candidate.objects.filter(evaluation=evaluation).order_by("name") if sees_all else ()
        names = [(candidate.name, candidate.name) for candidate in candidates]
        self.offer("candidate_1", [("", "all"), *names], sees_all)
        self.offer("candidate_2", [("", "any other"), *names], sees_all)
        self.offer("aspect", [("", "all"), *aspects])

    def offer(self, name: str, choices: Choices, is_allowed: bool = True) -> None:
        if is_allowed:
            self.fields[name].choices = choices  # type: ignore[attr-defined]
        else:
            del self.fields[name]

    def clean(self) -> dict[str, Any]:
        told = super().clean() or self.cleaned_data
        since, until = told.get("since"), told.get("until")
        if since and until and since > until:
            self.add_error("until", "The last day is before the first.")
        if told.get("candidate_1") and told.get("candidate_1") == told.get("candidate_2"):
            self.add_error("candidate_2", "Choose two different candidates, or one and any other.")
        return told

    def rules(self) -> Rules:
        told = self.cleaned_data
        return Rules(
            judges=tuple(told.get("judge", ())),
            reviewers=tuple(told.get("reviewer", ())),
            seen=Seen(told["seen"] or Seen.NOTHING),
            since=told["since"],
            until=told["until"],
            sliced=self.slices[told["slice"]].named if told.get("slice") else None,
            where=(*of_category(told), *candidates_where(told.get("candidate_1", ""), told.get("candidate_2", ""))),
            coding=Coding(told["coding"] or Coding.CANDIDATE),
            split_rule=SplitRule(told["split_rule"] or SplitRule.TIE),
            failed=FailedRule(told["failed"] or FailedRule.EXCLUDE),
            part=SplitPart(told["part"]) if told["part"] else None,
            all_pairs=told["pairs"] == "all",
        )

    def laid_out(self, name: str) -> str:
        """How the page is to be laid out; where nothing is said, by the first choice."""
        choices: Choices = self.fields[name].choices  # type: ignore[attr-defined]
        return str(self.cleaned_data[name] or choices[0][0])

    def asked(self) -> Asked:
        """What was asked for, by parameter, without what holds anyway."""
        told = {name: self.cleaned_data.get(name) for name in self.fields}
        lists = {name: value if isinstance(value, list) else [str(value)] for name, value in told.items() if value}
        return {name: value for name, value in lists.items() if value != [self.usual(name)]}

    def usual(self, name: str) -> str:
        field = self.fields[name]
        is_single = isinstance(field, forms.ChoiceField) and not isinstance(field, forms.MultipleChoiceField)
        return str(next(iter(field.choices))[0]) if is_single else ""  # type: ignore[attr-defined]

    def in_force(self) -> list[InForce]:
        """Each value that differs from what holds anyway, as the page names it."""
        asked = self.asked()
        return [
            InForce(str(self.fields[name].label), self.named(name, value), without(asked, name, value))
            for name in (*self.FREQUENT, *self.RARE)
            for value in asked.get(name, ())
        ]

    def named(self, name: str, value: str) -> str:
        return str(dict(getattr(self.fields[name], "choices", ())).get(value, value))

    def frequent(self) -> list[forms.BoundField]:
        return self.offered(self.FREQUENT)

    def rare(self) -> list[forms.BoundField]:
        return self.offered(self.RARE)

    def offered(self, names: Iterable[str]) -> list[forms.BoundField]:
        """The filters that have anything to choose from, or that were used wrongly."""
        return [self[name] for name in names if name in self.fields and (self.has_choice(name) or name in self.errors)]

    def has_choice(self, name: str) -> bool:
        choices = getattr(self.fields[name], "choices", None)
        least = 1 if name == "reviewer" else 2
        return choices is None or len(choices) >= least

    def is_rare_set(self) -> bool:
        """Whether a filter of those that are folded away is in use, or was used wrongly."""
        return any(name in self.errors for name in self.RARE) or any(
            self.data.get(name, "") not in ("", self.usual(name)) for name in self.RARE if name in self.fields
        )

    def complaints(self) -> list[str]:
        """What cannot be, in whole sentences."""
        return [str(message) for messages in self.errors.values() for message in messages]


def of_category(told: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return (("category", told["category"]),) if told.get("category") else ()


def without(asked: Asked, name: str, value: str) -> Asked:
    left = {**asked, name: [one for one in asked[name] if one != value]}
    return {name: values for name, values in left.items() if values}

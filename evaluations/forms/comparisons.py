"""The list of comparisons: which ones, and by what cell of a report."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from django import forms

from evaluations.domain import (
    ANY_FAILURE,
    DIFFERS,
    FAILURE_STATES,
    ORIGINS_IN_WORDS,
    REVIEWS_IN_WORDS,
    SPLIT,
    Choice,
    DisagreementState,
    FailedRule,
    Filter,
    InputRefused,
    NamedFilter,
    RaterKind,
    Rules,
    Seen,
    SplitRule,
    filter_from,
    search_for,
)
from evaluations.forms.candidates import candidates_where
from evaluations.models import Aspect, Candidate, Evaluation, Import, Rater, Slice, Tag
from evaluations.models.row import one_of
from evaluations.services.reporting.browsing import categories

FAILED = [
    ("", "–"),
    (ANY_FAILURE, "in any way"),
    *((state.value, state.value.replace("_", " ")) for state in FAILURE_STATES),
]
CHOICES = [
    ("", "anything"),
    *((choice.value, choice.value.replace("_", " ")) for choice in Choice),
    (DIFFERS, "differs from itself"),
    (SPLIT, "split, no label"),
]
STATES = [("", "any"), (DisagreementState.OPEN, "open"), (DisagreementState.SETTLED, "settled")]
MOST_OFFERED: Final = 500
NOT_HERE: Final = "There is no “%(value)s” here, or no longer: choose another."
Offered = Iterable[tuple[Any, Any]]


class FilterForm(forms.Form):
    """Everything may be left out. A filter that this person may not use is no field of the form.

    Its fields are named as `domain.filters` names them in an address.
    """

    q = forms.CharField(
        label="Words in its texts",
        required=False,
        max_length=200,
        widget=forms.SearchInput(attrs={"placeholder": "words, “a phrase”, -without"}),
    )
    category = forms.ChoiceField(required=False)
    candidate = forms.ChoiceField(required=False)
    against = forms.ChoiceField(required=False, label="Against")
    tag = forms.MultipleChoiceField(required=False, label="Tags", widget=forms.CheckboxSelectMultiple)
    flagged = forms.BooleanField(required=False, label="Speaks to the judge")

    aspect = forms.ChoiceField(required=False)
    choice = forms.ChoiceField(required=False, choices=CHOICES, label="Chosen on it")
    rater = forms.ChoiceField(required=False, label="By")
    reviews = forms.ChoiceField(
        required=False, choices=[("", "any"), *((one.value, words) for one, words in REVIEWS_IN_WORDS.items())]
    )
    disagreement = forms.ChoiceField(required=False, choices=STATES)
    judge_failed = forms.ChoiceField(choices=FAILED, required=False, label="Judge failed")
    origin = forms.ChoiceField(
        required=False, choices=[("", "any"), *((one.value, words) for one, words in ORIGINS_IN_WORDS.items())]
    )

    FREQUENT: Final = ("q", "category", "candidate", "against")
    RARE: Final = (
        *("aspect", "choice", "rater", "reviews", "disagreement", "judge_failed", "flagged", "tag", "origin"),
        *("import", "slice"),
    )

    def __init__(
        self, data: Any, *, evaluation: Evaluation, sees_all: bool, judges_shown: bool, in_cell: bool = False
    ) -> None:
        super().__init__(data)
        self.evaluation = evaluation
        self.fields["import"] = forms.ChoiceField(required=False, label="Import")
        self.fields["slice"] = forms.ChoiceField(required=False, label="Within the slice")
        slices = Slice.objects.filter(evaluation=evaluation).order_by("name") if sees_all else ()
        self.slices = {one.name: one for one in slices}
        found = categories(evaluation)
        self.offer("category", "all", named(found), self.is_wanted("category", found))
        self.offer_names(sees_all)
        self.offer_choices(sees_all)
        if in_cell:  # whose choice on which aspect is asked is said by the cell
            for name in ("aspect", "choice", "rater"):
                self.fields.pop(name, None)
        if not judges_shown:
            del self.fields["judge_failed"]
        for field in self.fields.values():
            if isinstance(field, forms.ChoiceField):
                field.error_messages["invalid_choice"] = NOT_HERE

    def offer_names(self, sees_all: bool) -> None:
        here = {"evaluation": self.evaluation}
        candidates = list(names_of(Candidate, **here)) if sees_all else []
        self.offer("candidate", "all", named(candidates), sees_all and self.is_wanted("candidate", candidates))
        self.offer("against", "any other", named(candidates), sees_all and self.is_wanted("against", candidates[1:]))
        tags = list(names_of(Tag, **here)) if sees_all else []
        self.tags = tags
        self.offer("tag", None, named(tags), sees_all and self.is_wanted("tag", tags))
        self.offer("slice", "all comparisons", named(self.slices), sees_all and self.is_wanted("slice", self.slices))
        imports = Import.objects.filter(**here, state="done").order_by("-pk") if sees_all else Import.objects.none()
        rows = [(str(pk), f"{pk}: {name}") for pk, name in imports.values_list("pk", "file_name")[:MOST_OFFERED]]
        self.offer("import", "any", rows, sees_all and self.is_wanted("import", rows))
        if not sees_all:
            del self.fields["origin"]

    def offer_choices(self, sees_all: bool) -> None:
        if not sees_all:
            for name in ("aspect", "choice", "rater", "reviews", "disagreement"):
                del self.fields[name]
            return
        here = {"evaluation": self.evaluation}
        aspects = Aspect.objects.filter(**here).order_by("place").values_list("key", "name")
        self.offer("aspect", "–", list(aspects)[:MOST_OFFERED], True)
        raters = (
            Rater.objects.current().filter(**here).order_by("kind", "name").values_list("kind", "name")[:MOST_OFFERED]
        )
        kinds = {RaterKind.HUMAN: "person", RaterKind.JUDGE: "judge", RaterKind.GOLD: "gold"}
        those = [(f"{kind}:{name}", f"{kinds[RaterKind(kind)]} {name}") for kind, name in raters]
        self.offer("rater", "the label", those, True)

    def is_wanted(self, name: str, there: Collection[Any]) -> bool:
        """Where there is something to choose; else only for an address that names what is gone, which is told."""
        return bool(there or self.data.get(name))

    def offer(self, name: str, empty: str | None, rows: Offered, is_allowed: bool) -> None:
        if is_allowed:
            first = [] if empty is None else [("", empty)]
            self.fields[name].choices = [*first, *rows]  # type: ignore[attr-defined]
        else:
            del self.fields[name]

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        self.filter = Filter()
        try:
            if given.get("q"):
                search_for(given["q"])
            self.filter = filter_from({name: value for name, value in given.items() if name != "slice"})
        except InputRefused as refused:
            self.add_error(None, str(refused))
        return given

    def wanted(self) -> Filter:
        """What was asked for; a filter that cannot be is none."""
        return self.filter if self.is_valid() else Filter()

    def sliced(self) -> NamedFilter | None:
        name = self.cleaned_data.get("slice") if self.is_valid() else None
        return self.slices[name].named if name else None

    def frequent(self) -> list[forms.BoundField]:
        return [self[name] for name in self.FREQUENT if name in self.fields]

    def rare(self) -> list[forms.BoundField]:
        return [self[name] for name in self.RARE if name in self.fields]

    def is_rare_set(self) -> bool:
        """Whether a filter of those that are folded away is in use, or was used wrongly."""
        return any(name in self.errors or self.data.get(name) for name in self.RARE if name in self.fields)


def named(names: Iterable[str]) -> Sequence[tuple[str, str]]:
    return [(name, name) for name in names]


def names_of(model: Any, **where: Any) -> Iterable[str]:
    names: Iterable[str] = model.objects.filter(**where).order_by("name").values_list("name", flat=True)
    return names


class CellForm(forms.Form):
    """One cell of a confusion matrix and the rules by which it was counted, as the report links to it."""

    judge_rater: Rater

    aspect = forms.CharField(max_length=60)
    judge = forms.IntegerField(min_value=1, max_value=2**63 - 1)
    judge_choice = forms.ChoiceField(choices=one_of(Choice))
    human_choice = forms.ChoiceField(choices=one_of(Choice))
    split_rule = forms.ChoiceField(choices=one_of(SplitRule), required=False)
    failed = forms.ChoiceField(choices=one_of(FailedRule), required=False)
    seen = forms.ChoiceField(choices=one_of(Seen), required=False)
    since = forms.DateField(required=False)
    until = forms.DateField(required=False)
    candidate_1 = forms.CharField(max_length=200, required=False)
    candidate_2 = forms.CharField(max_length=200, required=False)
    reviewer = forms.Field(required=False, widget=forms.MultipleHiddenInput)

    def rules(self) -> Rules:
        told = self.cleaned_data
        return Rules(
            reviewers=tuple(told["reviewer"]),
            seen=Seen(told["seen"] or Seen.NOTHING),
            since=told["since"],
            until=told["until"],
            where=candidates_where(told["candidate_1"], told["candidate_2"]),
            split_rule=SplitRule(told["split_rule"] or SplitRule.TIE),
            failed=FailedRule(told["failed"] or FailedRule.EXCLUDE),
        )

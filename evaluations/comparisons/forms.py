"""Forms that filter, add or act on comparisons."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from django import forms

from evaluations.domain.choices import Choice
from evaluations.domain.errors import InputRefused
from evaluations.domain.filters import (
    ANY_FAILURE,
    DIFFERS,
    ORIGIN_TEXTS,
    REVIEWS_SAVED_TEXTS,
    SPLIT,
    ComparisonFilter,
    DisagreementState,
    NamedFilter,
    list_usable_parameters,
    parse_filter,
)
from evaluations.domain.judges import FAILURE_STATES
from evaluations.domain.reports import FailedRule, ReportRules, SeenRule, SplitRule, candidate_conditions
from evaluations.domain.roles import RaterKind
from evaluations.domain.search import parse_search_text
from evaluations.models.base import enum_choices
from evaluations.models.comparisons import Candidate, SavedFilter, Tag
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from evaluations.models.judges import Rater
from evaluations.models.rubrics import Aspect
from evaluations.models.selection import list_categories
from evaluations.web.forms import CleanedData, add_refusal

MAX_TEXT_LENGTH = 500_000

CANDIDATE_INPUT = forms.TextInput(attrs={"list": "candidates", "autocomplete": "off", "spellcheck": "false"})


class LongText(forms.CharField):
    def __init__(self, *, rows: int, **options: Any) -> None:
        super().__init__(
            max_length=MAX_TEXT_LENGTH,
            strip=False,
            widget=forms.Textarea(attrs={"rows": rows, "dir": "auto"}),
            **options,
        )


class ManualComparisonForm(forms.Form):
    query = LongText(rows=4, label="Prompt")
    category = forms.CharField(required=False, max_length=120, help_text="Groups prompts in filters and results.")
    context = LongText(rows=3, required=False, help_text="Documents or other input that both models were given.")
    reference = LongText(rows=3, required=False, help_text="A known correct answer.")
    first_candidate = forms.CharField(label="Model", max_length=200, widget=CANDIDATE_INPUT)
    first_response = LongText(rows=10, label="Response")
    second_candidate = forms.CharField(label="Other model", max_length=200, widget=CANDIDATE_INPUT)
    second_response = LongText(rows=10, label="Other response")


FAILURE_CHOICES = [
    ("", "–"),
    (ANY_FAILURE, "any failure"),
    *((state.value, state.value.replace("_", " ")) for state in FAILURE_STATES),
]

VOTE_CHOICES = [
    ("", "any"),
    *((choice.value, choice.value.replace("_", " ")) for choice in Choice),
    (DIFFERS, "inconsistent across orders"),
    (SPLIT, "split votes, no label"),
]

DISAGREEMENT_CHOICES = [("", "any"), (DisagreementState.OPEN, "open"), (DisagreementState.RESOLVED, "resolved")]

MAX_OPTIONS: Final = 500

UNKNOWN_VALUE: Final = "“%(value)s” does not exist here. Choose another."

Options = Sequence[tuple[object, object]]


class FilterForm(forms.Form):
    """All fields are optional and named as in `domain.filters`. Filters that the user may not use are removed."""

    q = forms.CharField(
        label="Search",
        required=False,
        max_length=200,
        widget=forms.SearchInput(attrs={"placeholder": "words, “a phrase”, -exclude"}),
    )
    category = forms.ChoiceField(required=False)
    candidate = forms.ChoiceField(required=False, label="Model")
    against = forms.ChoiceField(required=False, label="vs.")
    tag = forms.MultipleChoiceField(required=False, label="Tags", widget=forms.CheckboxSelectMultiple)
    flagged = forms.BooleanField(required=False, label="Possible prompt injection")

    aspect = forms.ChoiceField(required=False)
    choice = forms.ChoiceField(required=False, choices=VOTE_CHOICES, label="Choice")
    rater = forms.ChoiceField(required=False, label="Rater")
    reviews = forms.ChoiceField(
        required=False, choices=[("", "any"), *((saved.value, words) for saved, words in REVIEWS_SAVED_TEXTS.items())]
    )
    disagreement = forms.ChoiceField(required=False, choices=DISAGREEMENT_CHOICES)
    judge_failed = forms.ChoiceField(choices=FAILURE_CHOICES, required=False, label="Judge failure")
    origin = forms.ChoiceField(
        required=False, choices=[("", "any"), *((origin.value, words) for origin, words in ORIGIN_TEXTS.items())]
    )

    FREQUENT: Final = ("q", "category", "candidate", "against")
    RARE: Final = (
        *("aspect", "choice", "rater", "reviews", "disagreement", "judge_failed", "flagged", "tag", "origin"),
        *("import", "saved_filter"),
    )

    def __init__(
        self,
        data: Mapping[str, object] | None,
        *,
        evaluation: Evaluation,
        sees_all: bool,
        sees_judges: bool,
        in_cell: bool = False,
    ) -> None:
        super().__init__(data)
        self.evaluation = evaluation
        self.fields["import"] = forms.ChoiceField(required=False, label="Import")
        self.fields["saved_filter"] = forms.ChoiceField(required=False, label="Saved filter")
        usable = set(list_usable_parameters(sees_all=sees_all, sees_judges=sees_judges))
        if sees_all:
            usable.add("saved_filter")
        if in_cell:  # the cell determines whose choice on which aspect
            usable -= {"aspect", "choice", "rater"}
        for name in self.fields.keys() - usable:
            del self.fields[name]
        self.saved_filters: dict[str, SavedFilter] = {}
        self.tags: list[str] = []
        self.set_names("category", "all", list_categories(evaluation))
        if sees_all:
            self.set_rows()
        for field in self.fields.values():
            if isinstance(field, forms.ChoiceField):
                field.error_messages["invalid_choice"] = UNKNOWN_VALUE

    def set_rows(self) -> None:
        here = {"evaluation": self.evaluation}
        candidates, self.tags = (
            list(model.objects.filter(**here).order_by("name").values_list("name", flat=True))
            for model in (Candidate, Tag)
        )
        self.set_names("candidate", "all", candidates)
        self.set_names("against", "any model", candidates if len(candidates) > 1 else [])
        self.set_names("tag", None, self.tags)
        self.saved_filters = {saved.name: saved for saved in SavedFilter.objects.filter(**here).order_by("name")}
        self.set_names("saved_filter", "all comparisons", self.saved_filters)
        imports = Import.objects.filter(**here, state="done").order_by("-pk").values_list("pk", "file_name")
        self.set_options("import", "any", [(str(pk), f"{pk}: {name}") for pk, name in imports[:MAX_OPTIONS]])
        aspects = Aspect.objects.filter(**here).order_by("slot").values_list("key", "name")
        self.set_options("aspect", "–", list(aspects)[:MAX_OPTIONS], is_always_shown=True)
        raters = (
            Rater.objects.current().filter(**here).order_by("kind", "name").values_list("kind", "name")[:MAX_OPTIONS]
        )
        kinds = {RaterKind.HUMAN: "reviewer", RaterKind.JUDGE: "judge", RaterKind.GOLD: "gold"}
        options = [(f"{kind}:{name}", f"{kinds[RaterKind(kind)]} {name}") for kind, name in raters]
        self.set_options("rater", "label (all sources)", options, is_always_shown=True)

    def set_names(self, name: str, empty: str | None, names: Iterable[str]) -> None:
        self.set_options(name, empty, [(option, option) for option in names])

    def set_options(self, name: str, empty: str | None, rows: Options, *, is_always_shown: bool = False) -> None:
        """Set the options of a filter. Without options it is removed, unless the address has a value to refuse."""
        if name not in self.fields:
            return
        if rows or is_always_shown or self.data.get(name):
            first = [] if empty is None else [("", empty)]
            self.fields[name].choices = [*first, *rows]  # type: ignore[attr-defined]
        else:
            del self.fields[name]

    def clean(self) -> CleanedData:
        cleaned = super().clean() or {}
        self.filter = ComparisonFilter()
        try:
            if cleaned.get("q"):
                parse_search_text(cleaned["q"])
            self.filter = parse_filter({name: value for name, value in cleaned.items() if name != "saved_filter"})
        except InputRefused as refused:
            add_refusal(self, refused)
        return cleaned

    def to_filter(self) -> ComparisonFilter:
        """The filter; an invalid form filters nothing."""
        return self.filter if self.is_valid() else ComparisonFilter()

    def get_saved_filter(self) -> NamedFilter | None:
        name = self.cleaned_data.get("saved_filter") if self.is_valid() else None
        return self.saved_filters[name].named if name else None

    def frequent(self) -> list[forms.BoundField]:
        return [self[name] for name in self.FREQUENT if name in self.fields]

    def rare(self) -> list[forms.BoundField]:
        return [self[name] for name in self.RARE if name in self.fields]

    def is_rare_set(self) -> bool:
        """Whether a filter of the folded section has a value or an error."""
        return any(name in self.errors or self.data.get(name) for name in self.RARE if name in self.fields)


class CellForm(forms.Form):
    """One cell of a confusion matrix and the rules by which it was counted, as the report links to it."""

    judge_rater: Rater

    aspect = forms.CharField(max_length=60)
    judge = forms.IntegerField(min_value=1, max_value=2**63 - 1)
    judge_choice = forms.ChoiceField(choices=enum_choices(Choice))
    human_choice = forms.ChoiceField(choices=enum_choices(Choice))
    split_rule = forms.ChoiceField(choices=enum_choices(SplitRule), required=False)
    failed = forms.ChoiceField(choices=enum_choices(FailedRule), required=False)
    seen = forms.ChoiceField(choices=enum_choices(SeenRule), required=False)
    since = forms.DateField(required=False)
    until = forms.DateField(required=False)
    candidate_1 = forms.CharField(max_length=200, required=False)
    candidate_2 = forms.CharField(max_length=200, required=False)
    reviewer = forms.Field(required=False, widget=forms.MultipleHiddenInput)
    with_excluded = forms.BooleanField(required=False)

    def rules(self) -> ReportRules:
        cleaned = self.cleaned_data
        return ReportRules(
            reviewers=tuple(cleaned["reviewer"]),
            seen=SeenRule(cleaned["seen"] or SeenRule.NOTHING),
            since=cleaned["since"],
            until=cleaned["until"],
            where=candidate_conditions(cleaned["candidate_1"], cleaned["candidate_2"]),
            split_rule=SplitRule(cleaned["split_rule"] or SplitRule.TIE),
            failed=FailedRule(cleaned["failed"] or FailedRule.EXCLUDE),
            with_excluded=cleaned["with_excluded"],
        )


class BulkAction(StrEnum):
    TAG = "tag"
    UNTAG = "untag"
    ASSIGN = "assign"
    QUEUE = "queue"


class BulkScope(StrEnum):
    SELECTED = "selected"
    ALL = "all"


class BulkActionForm(forms.Form):
    act = forms.ChoiceField(choices=[(act.value, act.value) for act in BulkAction])
    which = forms.ChoiceField(choices=[(which.value, which.value) for which in BulkScope], required=False)
    tag = forms.CharField(required=False)  # the services limit its length
    queue = forms.CharField(required=False)
    confirmed = forms.BooleanField(required=False)

    def to_options(self) -> dict[str, Any]:
        step = self.cleaned_data
        return {**step, "act": BulkAction(step["act"]), "which": BulkScope(step["which"] or BulkScope.SELECTED)}

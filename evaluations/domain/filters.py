"""The filter of comparisons, the same in an address, a saved filter, a report and an export."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, Final
from urllib.parse import urlencode

from evaluations.domain.choices import Choice, LabelSource
from evaluations.domain.errors import InputRefused
from evaluations.domain.json_values import JsonDict, JsonMapping
from evaluations.domain.judges import FAILURE_STATES
from evaluations.domain.roles import RaterKind
from evaluations.domain.texts import ComparisonOrigin

MAX_FILTER_CHARACTERS: Final = 300
MAX_FILTER_TAGS: Final = 10


class ReviewsSaved(StrEnum):
    """How far people have come with a comparison."""

    NONE = "none"
    BEGUN = "begun"
    SAVED = "saved"
    FINAL = "final"
    SKIPPED = "skipped"


class DisagreementState(StrEnum):
    OPEN = "open"
    RESOLVED = "resolved"


# What a rater, or the label, may have chosen; of a rater also that its own answers differ, of a label that it is split.
DIFFERS: Final = "differs"
SPLIT: Final = LabelSource.SPLIT.value
FILTERED_CHOICES: Final = (*(choice.value for choice in Choice), DIFFERS, SPLIT)


class FilterUser(StrEnum):
    """Who may use a filter: it must not reveal what its user may not see."""

    EVERYONE = "everyone"
    SEES_ALL = "sees_all"
    SEES_JUDGES = "sees_judges"


def condition(
    description: str, *, default: object = "", parameter: str = "", user: FilterUser = FilterUser.SEES_ALL
) -> Any:
    """A field of the filter. ``parameter``: its short name in addresses, if it has one."""
    return field(default=default, metadata={"description": description, "parameter": parameter, "user": user})


@dataclass(frozen=True)
class ComparisonFilter:
    """Conditions that must all hold; an empty one is not applied. Values are names."""

    text: str = condition("words in the texts", parameter="q", user=FilterUser.EVERYONE)  # see `domain.search`
    category: str = condition("the category of the query", user=FilterUser.EVERYONE)
    candidate: str = condition("one of the two")
    against: str = condition("the other one")
    rater: str = condition("`kind:name`; empty: the label")
    aspect: str = condition("what a choice is about")
    choice: str = condition("what was chosen: A, B, tie, both_bad, differs (inconsistent across orders), split")
    reviews: str = condition("none, begun, saved, final or skipped")
    disagreement: str = condition("open or resolved")
    failed: str = condition("how a judge's call ended, or `any`", parameter="judge_failed", user=FilterUser.SEES_JUDGES)
    flagged: bool = condition("`on`: possible prompt injection", default=False, user=FilterUser.EVERYONE)
    tags: tuple[str, ...] = condition("may be given several times", default=(), parameter="tag")
    origin: str = condition("imported, paired or by_hand")
    source: int = condition("the id of the import that brought it", default=0, parameter="import")

    def __bool__(self) -> bool:
        return self != EMPTY_FILTER

    def __str__(self) -> str:
        return self.as_query()

    def as_json(self) -> JsonDict:
        """The conditions that apply, by their names in a query string; equal filters give equal JSON."""
        return {
            FILTER_PARAMETERS[name]: list(value) if isinstance(value, tuple) else value
            for name, value in self.conditions()
            if value
        }

    def as_query(self) -> str:
        parameters = {name: "on" if value is True else value for name, value in self.as_json().items()}
        return urlencode(parameters, doseq=True)

    def conditions(self) -> Iterator[tuple[str, object]]:
        return ((column.name, getattr(self, column.name)) for column in fields(self))

    @property
    def reveals_choices(self) -> bool:
        """Whether the result reveals what reviewers, judges or adjudicators chose."""
        return bool(self.rater or self.choice or self.aspect or self.disagreement)

    def without_choices(self) -> "ComparisonFilter":
        """The filter without the conditions that reveal what others chose."""
        return replace(self, rater="", aspect="", choice="", disagreement="")

    def parts(self) -> "list[ComparisonFilter]":
        """A filter for each condition; the two candidates stay together, and so do rater, aspect and choice."""
        together = {"against": "candidate", "rater": "choices", "aspect": "choices", "choice": "choices"}
        groups: dict[str, JsonDict] = {}
        for name, value in self.conditions():
            if value:
                groups.setdefault(together.get(name, name), {})[name] = value
        return [ComparisonFilter(**columns) for columns in groups.values()]

    def in_words(self) -> str:
        """“category is “math”, the label for clarity is tie”: for rules, records and pages."""
        return " and ".join(self.phrases()) or "every comparison"

    def phrases(self) -> Iterator[str]:
        if self.text:
            yield f"its texts contain {self.text}"
        if self.category:
            yield f"category is “{self.category}”"
        if self.candidate or self.against:
            named = [name for name in (self.candidate, self.against) if name]
            yield ("models are " if len(named) > 1 else "a model is ") + " and ".join(f"“{name}”" for name in named)
        yield from self.phrases_of_choices()
        if self.flagged:
            yield "a text may contain a prompt injection"
        yield from (f"it is tagged “{tag}”" for tag in self.tags)
        if self.origin:
            yield f"it was {ORIGIN_TEXTS[ComparisonOrigin(self.origin)]}"
        if self.source:
            yield f"it came from import {self.source}"

    def phrases_of_choices(self) -> Iterator[str]:
        who = self.rater.partition(":")[2]
        if self.choice == DIFFERS:
            yield f"“{who}” is inconsistent on {self.aspect}"
        elif self.choice:
            choice = self.choice.replace("_", " ")
            yield f"“{who}” chose {choice} on {self.aspect}" if who else f"the label for {self.aspect} is {choice}"
        elif self.rater:
            yield f"“{who}” rated {self.aspect or 'it'}"
        elif self.aspect:
            yield f"it has a label for {self.aspect}"
        if self.reviews:
            yield REVIEWS_SAVED_TEXTS[ReviewsSaved(self.reviews)]
        if self.disagreement:
            yield f"it has {'an open' if self.disagreement == DisagreementState.OPEN else 'a resolved'} disagreement"
        if self.failed:
            how = "" if self.failed == ANY_FAILURE else f": {self.failed.replace('_', ' ')}"
            yield f"a judge failed on it{how}"


EMPTY_FILTER: Final = ComparisonFilter()
ANY_FAILURE: Final = "any"
FILTER_PARAMETERS: Final[Mapping[str, str]] = {
    column.name: column.metadata["parameter"] or column.name for column in fields(ComparisonFilter)
}
REPEATABLE_PARAMETERS: Final = frozenset(
    FILTER_PARAMETERS[column.name] for column in fields(ComparisonFilter) if isinstance(column.default, tuple)
)
PARAMETER_DESCRIPTIONS: Final[Mapping[str, str]] = {
    FILTER_PARAMETERS[column.name]: column.metadata["description"] for column in fields(ComparisonFilter)
}


def list_usable_parameters(*, sees_all: bool, sees_judges: bool) -> Collection[str]:
    """The parameters of the filters that this person may use."""
    is_usable = {FilterUser.EVERYONE: True, FilterUser.SEES_ALL: sees_all, FilterUser.SEES_JUDGES: sees_judges}
    return {FILTER_PARAMETERS[column.name] for column in fields(ComparisonFilter) if is_usable[column.metadata["user"]]}


REVIEWS_SAVED_TEXTS: Final = {
    ReviewsSaved.NONE: "unreviewed",
    ReviewsSaved.BEGUN: "review in progress",
    ReviewsSaved.SAVED: "reviewed",
    ReviewsSaved.FINAL: "review confirmed",
    ReviewsSaved.SKIPPED: "skipped by a reviewer",
}
ORIGIN_TEXTS: Final = {
    ComparisonOrigin.IMPORTED: "imported",
    ComparisonOrigin.PAIRED: "paired from responses",
    ComparisonOrigin.BY_HAND: "added by hand",
}


@dataclass(frozen=True)
class NamedFilter:
    """A saved filter as a report or an export keeps it: its name, with its conditions at that time."""

    name: str
    comparison_filter: ComparisonFilter

    def in_words(self) -> str:
        return f"“{self.name}”: {self.comparison_filter.in_words()}"


def parse_filter(parameters: JsonMapping) -> ComparisonFilter:
    """The filter of a query string or of JSON. Unknown names and impossible values are refused."""
    fields_by_parameter = {parameter: name for name, parameter in FILTER_PARAMETERS.items()}
    for parameter in parameters:
        if parameter not in fields_by_parameter:
            raise InputRefused(f"A filter has no “{parameter}”: it has {', '.join(fields_by_parameter)}.")
    conditions: JsonDict = {
        fields_by_parameter[parameter]: value
        for parameter, value in parameters.items()
        if value not in (None, "", [], ())
    }
    if conditions.get("disagreement") == "settled":  # as saved filters, runs and exports of 0.1 say it
        conditions["disagreement"] = DisagreementState.RESOLVED
    if "tags" in conditions:
        tags = conditions["tags"]
        conditions["tags"] = tuple(dict.fromkeys([tags] if isinstance(tags, str) else list(tags)))
    if "flagged" in conditions:
        conditions["flagged"] = conditions["flagged"] in (True, "on", "true", "1")
    if "source" in conditions:
        conditions["source"] = parse_filter_number(conditions["source"])
    parsed = ComparisonFilter(**conditions)
    refuse_impossible_filter(parsed)
    return parsed


def parse_filter_number(value: object) -> int:
    text = str(value)
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise InputRefused(f"Name an import by its number: “{text[:40]}” is not one.", field="import")
    return int(text)


def refuse_impossible_filter(parsed: ComparisonFilter) -> None:
    for name, value in parsed.conditions():
        parameter = FILTER_PARAMETERS[name]
        for text in value if isinstance(value, tuple) else (value,):
            if isinstance(text, str) and (len(text) > MAX_FILTER_CHARACTERS or "\x00" in text):
                wrong = f"The filter “{parameter}” takes up to {MAX_FILTER_CHARACTERS} characters."
                raise InputRefused(wrong, field=parameter)
            if not isinstance(text, (str, int)):
                raise InputRefused(f"The filter “{parameter}” takes a text.", field=parameter)
    if len(parsed.tags) > MAX_FILTER_TAGS:
        raise InputRefused(f"A filter takes up to {MAX_FILTER_TAGS} tags.", field="tag")
    refuse_unknown_word(parsed.reviews, ReviewsSaved, "reviews")
    refuse_unknown_word(parsed.disagreement, DisagreementState, "disagreement")
    refuse_unknown_word(parsed.origin, ORIGIN_TEXTS, "origin")
    refuse_unknown_word(parsed.failed, (ANY_FAILURE, *FAILURE_STATES), "judge_failed")
    refuse_incomplete_choice(parsed)


def refuse_unknown_word(word: str, allowed: Iterable[str], parameter: str) -> None:
    if word and word not in list(allowed):
        wrong = f"“{word}” is not a value of “{parameter}”. Choose one of {', '.join(allowed)}."
        raise InputRefused(wrong, field=parameter)


def refuse_incomplete_choice(parsed: ComparisonFilter) -> None:
    kind, _, name = parsed.rater.partition(":")
    if parsed.rater and (kind not in list(RaterKind) or not name):
        raise InputRefused(f"Name a rater as kind:name, where kind is one of {', '.join(RaterKind)}.", field="rater")
    if parsed.choice and parsed.choice not in FILTERED_CHOICES:
        wrong = f"“{parsed.choice}” is not a choice. Choose one of {', '.join(FILTERED_CHOICES)}."
        raise InputRefused(wrong, field="choice")
    if parsed.choice and not parsed.aspect:
        raise InputRefused("Choose the aspect of this choice.", field="aspect")
    if parsed.choice == DIFFERS and not parsed.rater:
        raise InputRefused("“Differs” needs a rater: choose one.", field="rater")
    if parsed.choice == SPLIT and parsed.rater:
        raise InputRefused("Only labels can be split: remove the rater.", field="rater")
    if parsed.against and not parsed.candidate:
        raise InputRefused("Choose the first candidate, too.", field="candidate")
    if parsed.against and parsed.against == parsed.candidate:
        raise InputRefused("Choose two different candidates, or one alone.", field="against")

"""The filter of comparisons, the same in an address, a saved filter, a report and an export."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Final
from urllib.parse import urlencode

from evaluations.domain.choices import Choice, LabelSource
from evaluations.domain.errors import InputRefused
from evaluations.domain.json_values import JsonDict, JsonMapping
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
    SETTLED = "settled"


# What a rater, or the label, may have chosen; of a rater also that its own answers differ, of a label that it is split.
DIFFERS: Final = "differs"
SPLIT: Final = LabelSource.SPLIT.value
FILTERED_CHOICES: Final = (*(choice.value for choice in Choice), DIFFERS, SPLIT)


@dataclass(frozen=True)
class ComparisonFilter:
    """Conditions that must all hold; an empty one is not applied. Values are names.

    ``text``: a search in its texts, see `domain.search`. ``against``: the other candidate of a pair.
    ``rater``: as ``kind:name``. ``choice`` on ``aspect``: that rater's, or without a rater the label's.
    ``failed``: how a judge's call on it ended, or ``any``. ``source``: the number of the import that brought it.
    """

    text: str = ""
    category: str = ""
    candidate: str = ""
    against: str = ""
    rater: str = ""
    aspect: str = ""
    choice: str = ""
    reviews: str = ""
    disagreement: str = ""
    failed: str = ""
    flagged: bool = False
    tags: tuple[str, ...] = ()
    origin: str = ""
    source: int = 0

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
        """The filter as a query string."""
        parameters = {name: "on" if value is True else value for name, value in self.as_json().items()}
        return urlencode(parameters, doseq=True)

    def conditions(self) -> Iterator[tuple[str, object]]:
        return ((field.name, getattr(self, field.name)) for field in fields(self))

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
            yield f"its texts have {self.text}"
        if self.category:
            yield f"category is “{self.category}”"
        if self.candidate or self.against:
            named = [name for name in (self.candidate, self.against) if name]
            yield ("candidates are " if len(named) > 1 else "a candidate is ") + " and ".join(
                f"“{one}”" for one in named
            )
        yield from self.phrases_of_choices()
        if self.flagged:
            yield "a text speaks to the judge"
        yield from (f"it is tagged “{tag}”" for tag in self.tags)
        if self.origin:
            yield f"it was {ORIGIN_TEXTS[ComparisonOrigin(self.origin)]}"
        if self.source:
            yield f"it came with import {self.source}"

    def phrases_of_choices(self) -> Iterator[str]:
        who = self.rater.partition(":")[2]
        if self.choice == DIFFERS:
            yield f"“{who}” answered differently on {self.aspect} when asked again"
        elif self.choice:
            choice = self.choice.replace("_", " ")
            yield f"“{who}” chose {choice} on {self.aspect}" if who else f"the label for {self.aspect} is {choice}"
        elif self.rater:
            yield f"“{who}” spoke of {self.aspect or 'it'}"
        elif self.aspect:
            yield f"it has a label for {self.aspect}"
        if self.reviews:
            yield REVIEWS_SAVED_TEXTS[ReviewsSaved(self.reviews)]
        if self.disagreement:
            yield f"a disagreement on it is {self.disagreement}"
        if self.failed:
            how = "" if self.failed == ANY_FAILURE else f": {self.failed.replace('_', ' ')}"
            yield f"a judge failed on it{how}"


EMPTY_FILTER: Final = ComparisonFilter()
ANY_FAILURE: Final = "any"
# Short words for addresses, where the name of the column is none.
FILTER_PARAMETERS: Final[Mapping[str, str]] = {field.name: field.name for field in fields(ComparisonFilter)} | {
    "text": "q",
    "failed": "judge_failed",
    "tags": "tag",
    "source": "import",
}
REVIEWS_SAVED_TEXTS: Final = {
    ReviewsSaved.NONE: "nobody has saved a review",
    ReviewsSaved.BEGUN: "a review is begun and not saved",
    ReviewsSaved.SAVED: "a review is saved",
    ReviewsSaved.FINAL: "a review is final",
    ReviewsSaved.SKIPPED: "somebody skipped it",
}
ORIGIN_TEXTS: Final = {
    ComparisonOrigin.IMPORTED: "imported",
    ComparisonOrigin.PAIRED: "paired from single responses",
    ComparisonOrigin.BY_HAND: "written by hand",
}


@dataclass(frozen=True)
class NamedFilter:
    """A saved filter as a report or an export keeps it: its name, with its conditions at that time."""

    name: str
    wanted: ComparisonFilter

    def in_words(self) -> str:
        return f"“{self.name}”: {self.wanted.in_words()}"


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
        raise InputRefused(f"An import is meant by its number: “{text[:40]}” is none.")
    return int(text)


def refuse_impossible_filter(wanted: ComparisonFilter) -> None:
    for name, value in wanted.conditions():
        for text in value if isinstance(value, tuple) else (value,):
            if isinstance(text, str) and (len(text) > MAX_FILTER_CHARACTERS or "\x00" in text):
                raise InputRefused(
                    f"What a filter says of {FILTER_PARAMETERS[name]} has at most {MAX_FILTER_CHARACTERS} characters."
                )
            if not isinstance(text, (str, int)):
                raise InputRefused(f"What a filter says of {FILTER_PARAMETERS[name]} must be a text.")
    if len(wanted.tags) > MAX_FILTER_TAGS:
        raise InputRefused(f"A filter names at most {MAX_FILTER_TAGS} tags.")
    refuse_unknown_word(wanted.reviews, ReviewsSaved, "reviews")
    refuse_unknown_word(wanted.disagreement, DisagreementState, "disagreement")
    refuse_unknown_word(wanted.origin, ComparisonOrigin, "origin")
    refuse_incomplete_choice(wanted)


def refuse_unknown_word(word: str, known: type[StrEnum], what: str) -> None:
    if word and word not in list(known):
        raise InputRefused(f"“{word}” is nothing that {what} can be: it is one of {', '.join(known)}.")


def refuse_incomplete_choice(wanted: ComparisonFilter) -> None:
    kind, _, name = wanted.rater.partition(":")
    if wanted.rater and (kind not in list(RaterKind) or not name):
        raise InputRefused(f"A rater is meant as kind:name, the kind being one of {', '.join(RaterKind)}.")
    if wanted.choice and wanted.choice not in FILTERED_CHOICES:
        raise InputRefused(f"“{wanted.choice}” is no choice: it is one of {', '.join(FILTERED_CHOICES)}.")
    if wanted.choice and not wanted.aspect:
        raise InputRefused("Say on which aspect that was chosen.")
    if wanted.choice == DIFFERS and not wanted.rater:
        raise InputRefused("Only of a rater can it be asked whether its own answers differ: name one.")
    if wanted.choice == SPLIT and wanted.rater:
        raise InputRefused("Only a label can be split: leave the rater out.")
    if wanted.against and not wanted.candidate:
        raise InputRefused("Name the candidate first, then the one it stands against.")
    if wanted.against and wanted.against == wanted.candidate:
        raise InputRefused("Choose two different candidates, or one alone.")

"""Which of its two responses an exported comparison prefers, with all that must be known of that; or why neither."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from evaluations.domain import Choice, Deciding, Message, NoPreference, aspects_heard, decide
from evaluations.formats.exported import Label, LabelledRow

Words = str | Sequence[Message]


class LeftOut(StrEnum):
    """Why a comparison with a choice makes no row of a format that holds preferences."""

    TIE = "tie"
    BOTH_BAD = "both_bad"
    EQUAL_RESPONSES = "equal_responses"  # preferred to itself


CHOICES: Final[Mapping[str | None, Choice | None]] = {None: None, **{str(choice): choice for choice in Choice}}
LEFT_OUT_IN_WORDS: Final[Mapping[str, str]] = {
    NoPreference.NO_LABEL: "an aspect that is needed has no label",
    NoPreference.SPLIT: "the people who voted are split",
    NoPreference.ASPECTS_DISAGREE: "some aspects are for A, others for B",
    LeftOut.TIE: "a tie",
    LeftOut.BOTH_BAD: "both responses are bad",
    LeftOut.EQUAL_RESPONSES: "the two responses are the same text",
}


@dataclass
class Account:
    """What became of the comparisons that went into a file, known after the last one.

    ``rows`` were written. ``excluded``: comparisons, or what is said in them, that are not in the file, by reason.
    ``noted``: rows that are, and should be known of.
    """

    rows: int = 0
    excluded: Counter[str] = field(default_factory=Counter)
    noted: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Decided:
    """A comparison with its one choice.

    ``labels`` are those that it was made from. ``sources`` says where they come from, several with a plus between them.
    """

    row: LabelledRow
    choice: Choice
    labels: Sequence[Label]
    by: str

    @property
    def sources(self) -> str:
        return "+".join(sorted({label["source"] for label in self.labels}))

    @property
    def agreement(self) -> float | None:
        """The share of the votes behind its labels that are for the choice; None where nobody voted."""
        votes = sum(label["n"] for label in self.labels)
        if not votes:
            return None
        return round(sum(label["votes"].get(self.choice, 0) for label in self.labels) / votes, 6)

    @property
    def votes(self) -> int:
        return sum(label["n"] for label in self.labels)


def decided(row: LabelledRow, how: Deciding, aspects: Sequence[str]) -> Decided | NoPreference:
    """The one choice of a comparison, or why it has none."""
    told, asked = row["labels"], how.aspects or aspects
    labels = {key: CHOICES[told[key]["choice"]] for key in asked if key in told}
    choice = decide(how, labels, aspects)
    if isinstance(choice, NoPreference):
        return choice
    used = [told[key] for key in aspects_heard(how, labels)]
    return Decided(row, choice, used, how.name)


def all_decided(
    rows: Iterable[LabelledRow], how: Deciding, aspects: Sequence[str], account: Account
) -> Iterator[Decided]:
    """The comparisons that have a choice; the others are counted by reason."""
    for row in rows:
        found = decided(row, how, aspects)
        if isinstance(found, NoPreference):
            account.excluded[found] += 1
        else:
            yield found


@dataclass(frozen=True)
class Preference:
    """A response that is preferred to another one. ``a_is_chosen`` tells the side."""

    of: Decided
    chosen: Words
    rejected: Words
    a_is_chosen: bool

    @property
    def candidates(self) -> tuple[str, str]:
        """The chosen and the rejected one."""
        row = self.of.row
        pair = row["candidate_a"], row["candidate_b"]
        return pair if self.a_is_chosen else (pair[1], pair[0])


def preference(one: Decided) -> Preference | LeftOut:
    """Ties and two bad responses prefer nothing; a text is never preferred to itself."""
    if one.choice == Choice.TIE:
        return LeftOut.TIE
    if one.choice == Choice.BOTH_BAD:
        return LeftOut.BOTH_BAD
    a, b = one.row["response_a"], one.row["response_b"]
    if a == b:
        return LeftOut.EQUAL_RESPONSES
    return Preference(one, a, b, True) if one.choice == Choice.A else Preference(one, b, a, False)


def preferences(
    rows: Iterable[LabelledRow], how: Deciding, aspects: Sequence[str], account: Account
) -> Iterator[Preference]:
    """The preferences that there are; every other comparison is counted by reason."""
    for one in all_decided(rows, how, aspects, account):
        found = preference(one)
        if isinstance(found, LeftOut):
            account.excluded[found] += 1
        else:
            yield found


def told_of(one: Decided) -> dict[str, Any]:
    """What goes with every row that was made from a choice, whatever its format. Trainers leave these columns alone."""
    row = one.row
    return {
        "query_id": row["query_id"],
        "cluster": row["cluster"],
        "category": row["category"],
        "context": row["context"],
        "reference": row["reference"],
        "label_by": one.by,
        "label_source": one.sources,
        "votes": one.votes,
        "agreement": one.agreement,
        "split": split_of(row),
    }


def split_of(row: LabelledRow) -> str | None:
    """The part of the evaluation it belongs to, where an export is split."""
    return row.get("split")

"""What screening says about reviewers: flags with their numbers in a sentence, and what could not be checked."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from math import floor
from typing import Final, Protocol

from evaluations.stats.estimates import Estimate
from evaluations.stats.phrases import join_words

MOST_NAMES: Final = 8


class FlagKind(StrEnum):
    COPIES = "copies"
    INVERTED = "inverted"
    RANDOM = "random"
    ONE_SIDED = "one_sided"
    TOO_FAST = "too_fast"


AGREEMENT_KINDS = (FlagKind.INVERTED, FlagKind.RANDOM)


@dataclass(frozen=True)
class ReviewerFlag:
    """A flag on one reviewer, or on a group of copies, whose members are in ``reviewers``.

    ``own`` and ``others``: the number of the reviewers flagged, and that of the others. Copies: the share of identical
    verdicts, lowest in the group and highest elsewhere. Inverted and random: mean kappa, n in pairs of verdicts.
    One-sided: the share of the choice. Too fast: median active seconds, n in reviews.
    """

    kind: FlagKind
    reviewers: tuple[str, ...]
    sentence: str
    own: Estimate
    others: Estimate


@dataclass(frozen=True)
class NotChecked:
    """Why flags of these kinds could not be raised: for these reviewers, or for all where none is named."""

    kinds: tuple[FlagKind, ...]
    reviewers: tuple[str, ...]
    why: str


class HasFlags(Protocol):
    @property
    def flags(self) -> tuple[ReviewerFlag, ...]: ...


def format_kappa(value: float) -> str:
    """“−0.06”, with a minus sign; “0.00” for what rounds to it."""
    rounded = f"{value:.2f}"
    return "0.00" if rounded == "-0.00" else rounded.replace("-", "−")


def format_kappa_estimate(kappa: Estimate) -> str:
    """“kappa 0.02, 95% CI −0.06 to 0.10”."""
    assert kappa.value is not None
    text = f"kappa {format_kappa(kappa.value)}"
    if kappa.ci95 is None:
        return text
    low, high = map(format_kappa, kappa.ci95)
    return f"{text}, 95% CI {low} to {high}"


def format_percent_reached(share: float) -> str:
    """The percentage that a share reaches: 99.7% is not yet 100%."""
    return f"{floor(share * 100 + 1e-9)}%"


def list_open_flags(flags: Collection[ReviewerFlag], kept: Collection[str]) -> list[ReviewerFlag]:
    """The flags on a reviewer whom the owner has not decided to keep."""
    return [flag for flag in flags if not set(flag.reviewers) <= set(kept)]


def describe_open_flags(screening: HasFlags | None, kept: Collection[str]) -> str | None:
    """“Provisional: 2 reviewers are flagged (ann, ben). Exclude or keep them.”; None without an open flag."""
    if screening is None or not (flags := list_open_flags(screening.flags, kept)):
        return None
    names = sorted({name for flag in flags for name in flag.reviewers} - set(kept))
    listed = join_words(names[:MOST_NAMES] + [f"{len(names) - MOST_NAMES} more"] * (len(names) > MOST_NAMES))
    return f"Provisional until the owner excludes or keeps the flagged reviewers: {listed}."

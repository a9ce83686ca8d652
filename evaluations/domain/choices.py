"""What a rater may choose, and how several choices become one."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Choice(StrEnum):
    """A rater's choice on one aspect of one comparison, in terms of A and B as stored."""

    A = "A"
    B = "B"
    TIE = "tie"
    BOTH_BAD = "both_bad"


class ShownOrder(StrEnum):
    """The order in which a rater saw the two responses. Never null."""

    AS_STORED = "as_stored"
    SWAPPED = "swapped"
    UNKNOWN = "unknown"
    FOLDED = "folded"  # one choice made from both orders together


class Stage(StrEnum):
    FIRST = "first"
    FINAL = "final"


# The code of a choice or an order in packed votes and arrays is its position here. The two sides come first, so that a
# table without ties is the upper left corner of the table with them.
PACKED_CHOICES: Final = (Choice.A, Choice.B, Choice.TIE, Choice.BOTH_BAD)
PACKED_ORDERS: Final = (ShownOrder.AS_STORED, ShownOrder.SWAPPED, ShownOrder.UNKNOWN, ShownOrder.FOLDED)

FLIPPED_CHOICES: Final[Mapping[Choice, Choice]] = {
    Choice.A: Choice.B,
    Choice.B: Choice.A,
    Choice.TIE: Choice.TIE,
    Choice.BOTH_BAD: Choice.BOTH_BAD,
}

INCONSISTENT: Final = "inconsistent"  # a choice value of verdict rows: both orders, disagreeing

# The verdict from both orders: (choice as stored, choice swapped) -> (choice, inconsistent). Two different choices make
# a tie, which is inconsistent if either is a side.
CONSOLIDATION: Final[Mapping[tuple[Choice, Choice], tuple[Choice, bool]]] = {
    (stored, swapped): (
        (stored, False) if stored == swapped else (Choice.TIE, not {stored, swapped} <= {Choice.TIE, Choice.BOTH_BAD})
    )
    for stored in Choice
    for swapped in Choice
}


@dataclass(frozen=True)
class ConsolidatedChoice:
    """One rater's choice on one aspect of one comparison, all orders and samples together."""

    choice: Choice
    inconsistent: bool = False


def plurality_choice(choices: Sequence[Choice]) -> Choice:
    """The choice made most often; a tie where no single one leads. Needs at least one."""
    counts = {choice: choices.count(choice) for choice in choices}
    most = max(counts.values())
    leading = [choice for choice, count in counts.items() if count == most]
    return leading[0] if len(leading) == 1 else Choice.TIE


def consolidate_orders(
    answers: Mapping[ShownOrder, Sequence[ConsolidatedChoice]], orders_asked: Set[ShownOrder]
) -> ConsolidatedChoice | None:
    """A judge's one verdict: the plurality of samples in each order, then the orders combined.

    ``answers``: by the order shown. None if one of ``orders_asked`` has no answer.
    """
    if not answers or any(not answers.get(shown) for shown in orders_asked):
        return None
    orders = [plurality_choice([sample.choice for sample in samples]) for samples in answers.values() if samples]
    choice, inconsistent = orders[0], any(sample.inconsistent for samples in answers.values() for sample in samples)
    for other in orders[1:]:
        choice, differs = CONSOLIDATION[choice, other]
        inconsistent = inconsistent or differs
    return ConsolidatedChoice(choice, inconsistent)


def choice_from_scores(score_a: float | None, score_b: float | None, margin: float) -> Choice | None:
    """The side with the higher score, a tie within the margin; None if a score is missing."""
    if score_a is None or score_b is None:
        return None
    # Means of decimal scores: 0.3 − 0.2 is not to be more than 0.1.
    difference = round(score_a - score_b, 9)
    if abs(difference) <= margin:
        return Choice.TIE
    return Choice.A if difference > 0 else Choice.B


@dataclass(frozen=True)
class ScoreRule:
    """How two scores of one aspect are compared."""

    margin: float = 0.0
    lower_is_better: bool = False

    def choice(self, score_a: float | None, score_b: float | None) -> Choice | None:
        if self.lower_is_better:
            score_a, score_b = score_b, score_a
        return choice_from_scores(score_a, score_b, self.margin)

    @property
    def remark(self) -> str:
        """The remark shown with every choice that was made by this rule."""
        direction = ", lower is better" if self.lower_is_better else ""
        return f"derived from scores{direction}, margin {self.margin}"


@dataclass(frozen=True)
class SideScores:
    """The scores of both responses on one aspect, with the rule by which they make a choice."""

    score_a: float | None
    score_b: float | None
    rule: ScoreRule

    @property
    def choice(self) -> Choice | None:
        """None where a score is missing."""
        return self.rule.choice(self.score_a, self.score_b)


@dataclass(frozen=True)
class CompleteSideScores(SideScores):
    score_a: float
    score_b: float

    @property
    def choice(self) -> Choice:
        choice = super().choice
        assert choice is not None
        return choice


class LabelPolicy(StrEnum):
    """The votes that a label may come from. A split among people is an open disagreement under either policy."""

    PEOPLE_THEN_JUDGES = "people_then_judges"
    PEOPLE = "people"


class LabelSource(StrEnum):
    """Where the label of a comparison and aspect comes from."""

    ADJUDICATED = "adjudicated"  # settled by an adjudicator
    MAJORITY = "majority"  # the one choice that most of several votes of people share
    SINGLE = "single"  # the only vote of a person there is
    SPLIT = "split"  # no single choice leads: an open disagreement, and no label
    PANEL = "panel"  # no person voted; what most judges of a panel chose
    JUDGE = "judge"  # no person voted; what one judge chose

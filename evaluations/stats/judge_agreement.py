"""Agreement of a judge with people, with gold labels or with another judge."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from evaluations.domain.choices import PACKED_CHOICES, Choice
from evaluations.domain.reports import SideCoding
from evaluations.stats.agreement import NOTHING_SHARED, AgreementBlock, MajorityBlock, agreement_block
from evaluations.stats.cluster_totals import cross_tabulate_by_cluster
from evaluations.stats.coding import BOTH_BAD, MISSING, TIE, A, B, IntArray, cross_tabulate_choices
from evaluations.stats.estimates import Estimate, undefined_estimate
from evaluations.stats.judge_verdicts import ConsolidatedVerdicts
from evaluations.stats.polls import Poll
from evaluations.stats.shown_coding import NO_ORDER, order_shown_to_judge, recode_by_position
from evaluations.stats.votes import Majority

NO_MACRO_INTERVAL: Final = "Macro averages have no CI here."
POSITION_LABELS: Final = {Choice.A: "first", Choice.B: "second"}
DISPLAY_ORDER: Final = (A, TIE, BOTH_BAD, B)  # the sides first and last


@dataclass(frozen=True)
class MacroAverages:
    """Means over the choices that occur, with the columns as the truth. A choice that was never made counts as 0."""

    precision: Estimate
    recall: Estimate
    f1: Estimate


@dataclass(frozen=True)
class ConfusionMatrix:
    """``counts[i][j]``: how often the judge made choice i where the reference made choice j."""

    rows: str
    columns: str
    choices: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    macro: MacroAverages


def confusion_matrix(table: IntArray, offered: Collection[int], coding: SideCoding, columns: str) -> ConfusionMatrix:
    """The matrix of choices that were offered or occur. ``table``: counts, 4 × 4, the judge's choices in rows."""
    occurring = table.sum(axis=0) + table.sum(axis=1)
    codes = [code for code in DISPLAY_ORDER if code in offered or occurring[code]]
    return ConfusionMatrix(
        rows="judge",
        columns=columns,
        choices=tuple(choice_label(PACKED_CHOICES[code], coding) for code in codes),
        counts=tuple(tuple(int(table[row, column]) for column in codes) for row in codes),
        macro=macro_averages(table),
    )


def macro_averages(table: IntArray) -> MacroAverages:
    """Macro averages. ``table``: counts, 4 × 4, the judge's choices in rows and the right ones in columns."""
    n = int(table.sum())
    if not n:
        return MacroAverages(*(undefined_estimate(NOTHING_SHARED) for _ in range(3)))
    chosen, right = table.sum(axis=1), table.sum(axis=0)
    occurs = chosen + right > 0
    hit, chosen, right = np.diag(table)[occurs], chosen[occurs], right[occurs]
    shares = hit / np.maximum(chosen, 1), hit / np.maximum(right, 1), 2 * hit / (chosen + right)
    return MacroAverages(*(Estimate(float(share.mean()), n, ci95_why=NO_MACRO_INTERVAL) for share in shares))


def choice_label(choice: Choice, coding: SideCoding) -> str:
    return POSITION_LABELS.get(choice, str(choice)) if coding is SideCoding.SHOWN else str(choice)


GOLD: Final = "gold"


@dataclass(frozen=True)
class ReferenceVotes:
    """The votes that a judge is compared with: a poll, its majority and, under shown coding, the order shown.

    ``names``: the person of each rater number of the poll.
    """

    poll: Poll
    majority: Majority
    order: IntArray | None
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class PersonAgreementBlock(AgreementBlock):
    rater: str


@dataclass(frozen=True)
class JudgeHuman:
    votes: AgreementBlock
    majority: MajorityBlock
    people: tuple[PersonAgreementBlock, ...]


@dataclass(frozen=True)
class JudgeGold(MajorityBlock):
    confusion: ConfusionMatrix


def recode_like_reference(own: ConsolidatedVerdicts, reference: ReferenceVotes) -> IntArray:
    """The judge's choices in the coding of the reference: by candidate, or by position in the common order."""
    if reference.order is None:
        return own.choice
    order = order_shown_to_judge(own)
    return recode_by_position(own.choice, np.where(order == reference.order, order, MISSING))


def explain_nothing_shared(coding: SideCoding) -> str:
    return NO_ORDER if coding is SideCoding.SHOWN else NOTHING_SHARED


def judge_human_agreement(choice: IntArray, people: ReferenceVotes, q: int, coding: SideCoding) -> JudgeHuman:
    """Agreement of a judge with people: ``choice``, the judge's on each item of the poll; ``q``: choices offered."""
    poll = people.poll
    votes = cross_tabulate_by_cluster(choice[poll.design.unit], poll.choice, poll.cluster)
    return JudgeHuman(
        votes=agreement_block(votes, q, empty=explain_nothing_shared(coding)),
        majority=agreement_with_majority(choice, people, q, coding),
        people=tuple(agreement_with_each_person(choice, people, q, coding)),
    )


def agreement_with_each_person(
    choice: IntArray, people: ReferenceVotes, q: int, coding: SideCoding
) -> Iterator[PersonAgreementBlock]:
    """Agreement of the judge with each person who voted; two votes of a person on a comparison count once."""
    each = people.poll.per_rater
    judged = choice[each.design.unit]
    for rater, entries in each.design.by_rater.items():
        table = cross_tabulate_by_cluster(judged[entries], each.choice[entries], each.cluster[entries])
        block = agreement_block(table, q, empty=explain_nothing_shared(coding))
        yield PersonAgreementBlock(block.with_ties, block.without_ties, block.dropped, people.names[rater])


def judge_gold_agreement(
    choice: IntArray, gold: ReferenceVotes, offered: Collection[int], coding: SideCoding
) -> JudgeGold:
    block = agreement_with_majority(choice, gold, len(offered), coding)
    matrix = confusion_matrix(cross_tabulate_choices(choice, gold.majority.choice), offered, coding, GOLD)
    return JudgeGold(block.with_ties, block.without_ties, block.dropped, block.n_split, matrix)


def agreement_with_majority(choice: IntArray, reference: ReferenceVotes, q: int, coding: SideCoding) -> MajorityBlock:
    """Agreement with a majority; splits are counted among the comparisons that the judge has a verdict on."""
    table = cross_tabulate_by_cluster(choice, reference.majority.choice, reference.poll.cluster_of_items)
    block = agreement_block(table, q, empty=explain_nothing_shared(coding))
    n_split = int((reference.majority.split & (choice != MISSING)).sum())
    return MajorityBlock(block.with_ties, block.without_ties, block.dropped, n_split)


NO_SHARED_VERDICT: Final = "No comparison has verdicts of both judges."


@dataclass(frozen=True)
class JudgePair(AgreementBlock):
    judge_1: str
    judge_2: str


def judge_pair_agreements(
    own: Mapping[str, ConsolidatedVerdicts],
    members: Mapping[str, tuple[str, ...]],
    cluster: IntArray,
    q: int,
    coding: SideCoding,
) -> tuple[JudgePair, ...]:
    """Agreement of each two judges on the comparisons for which both have a verdict.

    ``members``: the judges of each panel, which is not paired with them because its choices are theirs.
    """
    empty = NO_ORDER if coding is SideCoding.SHOWN else NO_SHARED_VERDICT
    pairs = []
    for name_1, name_2 in combinations(own, 2):
        if name_2 in members.get(name_1, ()) or name_1 in members.get(name_2, ()):
            continue
        choices = own[name_1].choice, own[name_2].choice
        if coding is SideCoding.SHOWN:
            choices = choices_in_same_order(own[name_1], own[name_2])
        block = agreement_block(cross_tabulate_by_cluster(*choices, cluster), q, empty=empty)
        pairs.append(JudgePair(block.with_ties, block.without_ties, block.dropped, name_1, name_2))
    return tuple(pairs)


def choices_in_same_order(first: ConsolidatedVerdicts, second: ConsolidatedVerdicts) -> tuple[IntArray, IntArray]:
    """Choices by position, where both judges saw the comparison in the same known order."""
    orders = [order_shown_to_judge(judge) for judge in (first, second)]
    order = np.where(orders[0] == orders[1], orders[0], MISSING)
    return recode_by_position(first.choice, order), recode_by_position(second.choice, order)

"""One judge on one aspect: against people, against gold, against itself in the other order, and its failures."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np

from evaluations.domain import FAILURE_STATES, OPEN_CALL_STATES, CallState, Coding, Rules
from evaluations.stats.agreement import NOTHING_SHARED, Block, MajorityBlock, block
from evaluations.stats.coding import MISSING, IntArray, cross_table
from evaluations.stats.confusion import Confusion, confusion
from evaluations.stats.consolidation import STATES, Consolidated, Unanswered, Verdicts, consolidate
from evaluations.stats.deriving import Derived, Member, panel_of
from evaluations.stats.majority import Majority
from evaluations.stats.position import EachOrder, Position, each_order, position
from evaluations.stats.shown import NO_ORDER, by_place, common_order
from evaluations.stats.votes import Votes

MAJORITY: Final = "majority of people"
GOLD: Final = "gold"
PANEL: Final = "panel"


@dataclass(frozen=True)
class JudgeMaterial:
    """What the database holds of one judge on one aspect. ``label`` is what must be said wherever it is shown.

    ``derived``: where its choices come from, if no call gave them. ``states``: those of its calls
    without an answer, where they are not calls on comparisons. A panel has no rater.
    """

    name: str
    rater_id: int | None
    kind: str
    label: str | None
    verdicts: Verdicts
    unanswered: Unanswered
    repaired: int = 0
    derived: Derived | None = None
    states: IntArray | None = None

    @property
    def open_states(self) -> IntArray:
        """The state of each call that brought no verdict on this aspect, once."""
        return self.unanswered.without(self.verdicts).state if self.states is None else self.states


@dataclass(frozen=True)
class Reference:
    """What a judge is held against: votes, their majority, and in the coding by place the order they were seen in."""

    votes: Votes
    majority: Majority
    order: IntArray | None


@dataclass(frozen=True)
class JudgeHuman:
    votes: Block
    majority: MajorityBlock


@dataclass(frozen=True)
class JudgeGold(MajorityBlock):
    confusion: Confusion


@dataclass(frozen=True)
class Failed:
    """Calls without a verdict by state, and ``incomplete``: comparisons that therefore have none.

    ``calls``: those that failed for good; a call that waits or was cancelled may still be asked.
    """

    unreadable: int
    refused: int
    truncated: int
    too_long: int
    failed: int
    calls: int
    waiting: int
    cancelled: int
    incomplete: int

    @property
    def by_state(self) -> dict[str, int]:
        """The states that occur, with how many calls are in each."""
        told = {name: count for name, count in asdict(self).items() if name not in ("calls", "incomplete")}
        return {name: count for name, count in told.items() if count}


@dataclass(frozen=True)
class JudgeReport:
    """``repaired`` counts calls whose verdict came when asked a second time; they are among the others."""

    rater_id: int | None
    kind: str
    label: str | None
    derived: Derived | None
    verdicts: int
    repaired: int
    judge_human: JudgeHuman
    judge_gold: JudgeGold
    each_order: EachOrder
    confusion: Confusion
    position: Position
    failed: Failed


def judge_report(
    judge: JudgeMaterial,
    people: Reference,
    gold: Reference,
    gold_choice: IntArray,
    offered: Collection[int],
    rules: Rules,
) -> JudgeReport:
    """``gold_choice``: the gold label in terms of A and B whatever the coding; accuracy does not depend on it."""
    items = len(people.majority.choice)
    unanswered = judge.unanswered.without(judge.verdicts)
    own = consolidate(judge.verdicts, unanswered, items, rules.failed)
    against_people = in_terms_of(own, people)
    return JudgeReport(
        rater_id=judge.rater_id,
        kind=judge.kind,
        label=judge.label,
        derived=judge.derived,
        repaired=judge.repaired,
        verdicts=int((own.choice != MISSING).sum()),
        judge_human=judge_human(against_people, people, len(offered), rules.coding),
        judge_gold=judge_gold(in_terms_of(own, gold), gold, offered, rules.coding),
        each_order=each_order(judge.verdicts, own.by_order, gold_choice),
        confusion=confusion(cross_table(against_people, people.majority.choice), offered, rules.coding, MAJORITY),
        position=position(own.by_order),
        failed=failed(judge.open_states, own),
    )


def panel_material(name: str, judges: Sequence[JudgeMaterial], items: int, rules: Rules) -> JudgeMaterial:
    """Several judges as one rater: what most of them say. Their failures and repairs are the panel's."""
    panel = panel_of([Member(one.name, one.verdicts, one.unanswered) for one in judges], items, rules)
    return JudgeMaterial(
        name=name,
        rater_id=None,
        kind=PANEL,
        label=f"majority of {len(judges)} judges",
        verdicts=panel.verdicts,
        unanswered=panel.unanswered,
        repaired=sum(one.repaired for one in judges),
        derived=panel.derived,
        states=np.concatenate([one.open_states for one in judges]),
    )


def in_terms_of(own: Consolidated, reference: Reference) -> IntArray:
    """The judge's choices as the reference counts them: by candidate, or by place where both saw the same order."""
    if reference.order is None:
        return own.choice
    item, shown = np.nonzero(own.by_order != MISSING)
    order = common_order(item, shown, len(own.choice))
    return by_place(own.choice, np.where(order == reference.order, order, MISSING))


def empty_for(coding: Coding) -> str:
    return NO_ORDER if coding is Coding.SHOWN else NOTHING_SHARED


def judge_human(choice: IntArray, people: Reference, q: int, coding: Coding) -> JudgeHuman:
    votes = cross_table(choice[people.votes.item], people.votes.choice)
    return JudgeHuman(
        votes=block(votes, q, empty=empty_for(coding)), majority=against(choice, people.majority, q, coding)
    )


def judge_gold(choice: IntArray, gold: Reference, offered: Collection[int], coding: Coding) -> JudgeGold:
    found = against(choice, gold.majority, len(offered), coding)
    matrix = confusion(cross_table(choice, gold.majority.choice), offered, coding, GOLD)
    return JudgeGold(found.with_ties, found.without_ties, found.dropped, found.n_split, matrix)


def against(choice: IntArray, found: Majority, q: int, coding: Coding) -> MajorityBlock:
    """Held against a majority; the splits are counted among the comparisons that the judge has a verdict on."""
    held = block(cross_table(choice, found.choice), q, empty=empty_for(coding))
    n_split = int((found.split & (choice != MISSING)).sum())
    return MajorityBlock(held.with_ties, held.without_ties, held.dropped, n_split)


def failed(states: IntArray, own: Consolidated) -> Failed:
    calls = dict(zip(STATES, np.bincount(states, minlength=len(STATES)).tolist(), strict=True))
    return Failed(
        unreadable=calls[CallState.UNREADABLE],
        refused=calls[CallState.REFUSED],
        truncated=calls[CallState.TRUNCATED],
        too_long=calls[CallState.TOO_LONG],
        failed=calls[CallState.FAILED],
        calls=sum(calls[state] for state in FAILURE_STATES),
        waiting=sum(calls[state] for state in OPEN_CALL_STATES),
        cancelled=calls[CallState.CANCELLED],
        incomplete=int(own.incomplete.sum()),
    )

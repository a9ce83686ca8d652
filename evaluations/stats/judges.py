"""One judge on one aspect: against people, against gold, against itself in the other order, and its failures."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np

from evaluations.domain import FAILURE_STATES, OPEN_CALL_STATES, CallState, Rules
from evaluations.stats.bias.strata import Strata
from evaluations.stats.ceiling import Ceiling, ceiling
from evaluations.stats.coding import MISSING, BoolArray, IntArray, cross_table
from evaluations.stats.confusion import Confusion, confusion
from evaluations.stats.consolidation import STATES, Consolidated, Verdicts
from evaluations.stats.coverage import Coverage, coverage
from evaluations.stats.deriving import Derived, Member, panel_of
from evaluations.stats.majority import Majority
from evaluations.stats.numbers import undefined
from evaluations.stats.position import NO_FOLD, EachOrder, Position, Tally, each_order, inconsistent, position
from evaluations.stats.references import JudgeGold, JudgeHuman, Reference, in_terms_of, judge_gold, judge_human

MAJORITY: Final = "majority of people"
PANEL: Final = "panel"
NO_STATES: Final = ("calls", "incomplete", "asked", "elsewhere")


@dataclass(frozen=True)
class JudgeMaterial:
    """What one judge said on one aspect. ``label`` is what must be said wherever it is shown.

    ``derived``: where its choices come from, if no call gave them. ``states``: that of each call without an answer
    on this aspect, once. ``single``: the verdicts one by one, with failed calls as ties where the rules say so.
    ``selected``: the comparisons that it was to judge. ``elsewhere``: as `Failed` has it. A panel has no rater.
    """

    name: str
    rater_id: int | None
    kind: str
    label: str | None
    verdicts: Verdicts
    single: Verdicts
    own: Consolidated
    states: IntArray
    selected: BoolArray
    repaired: int = 0
    derived: Derived | None = None
    elsewhere: int = 0

    @property
    def has_answers(self) -> bool:
        """Whether it answered anything: a tie that stands for a failed call is no answer."""
        return self.verdicts.n > 0 or bool(((self.own.choice != MISSING) & ~self.own.incomplete).any())


@dataclass(frozen=True)
class Failed:
    """Calls without a verdict by state, and ``incomplete``: comparisons that therefore have none.

    ``calls``: those that failed for good; a call that waits or was cancelled may still be asked. ``asked``: all calls,
    answered or not; None where they asked for scores of single responses. ``elsewhere``: calls that a file says failed,
    on none of the aspects on which the judge has a verdict; a file's call does not say on which.
    """

    unreadable: int
    suspect: int
    refused: int
    truncated: int
    too_long: int
    failed: int
    calls: int
    waiting: int
    cancelled: int
    incomplete: int
    asked: int | None = None
    elsewhere: int = 0

    @property
    def by_state(self) -> dict[str, int]:
        """The states that occur, with how many calls are in each."""
        return {name: count for name, count in asdict(self).items() if name not in NO_STATES and count}

    @property
    def in_words(self) -> str:
        """“60 of 120 calls failed (50 unreadable, 10 refused)”, then those that wait or were cancelled, if any."""
        kinds = ", ".join(
            f"{count:,} {name.replace('_', ' ')}"
            for name, count in self.by_state.items()
            if name not in ("waiting", "cancelled")
        )
        calls = plural(self.calls) if self.asked is None else f"{self.calls:,} of {plural(self.asked)}"
        said = [f"{calls} failed ({kinds})"] if self.calls else []
        said += [f"{plural(self.waiting)} waiting"] if self.waiting else []
        said += [f"{plural(self.cancelled)} cancelled"] if self.cancelled else []
        return ", ".join(said)


def plural(calls: int) -> str:
    return f"{calls:,} call{'s' * (calls != 1)}"


@dataclass(frozen=True)
class JudgeReport:
    """``repaired`` counts calls whose verdict came when asked a second time; they are among the others.

    ``inconsistent``: comparisons on which its orders differ, or which a file says it was inconsistent on.
    """

    rater_id: int | None
    kind: str
    label: str | None
    derived: Derived | None
    verdicts: int
    has_answers: bool
    coverage: Coverage
    inconsistent: Tally
    repaired: int
    judge_human: JudgeHuman
    ceiling: Ceiling
    judge_gold: JudgeGold
    each_order: EachOrder
    confusion: Confusion
    position: Position
    failed: Failed


def judge_report(
    judge: JudgeMaterial,
    people: Reference,
    others: Majority,
    gold: Reference,
    gold_choice: IntArray,
    cluster: IntArray,
    everything: Strata,
    offered: Collection[int],
    rules: Rules,
) -> JudgeReport:
    """``others``: of each vote of a person the majority of the others. ``everything``: the comparisons, undivided.

    ``gold_choice``: the gold label in terms of A and B whatever the coding; accuracy does not depend on it.
    """
    own = judge.own
    against_people, against_gold = (in_terms_of(own, held)[held.poll.items] for held in (people, gold))
    matrix = cross_table(against_people, people.majority.choice)
    in_orders = position(own, everything)
    return JudgeReport(
        rater_id=judge.rater_id,
        kind=judge.kind,
        label=judge.label,
        derived=judge.derived,
        repaired=judge.repaired,
        verdicts=int((own.choice != MISSING).sum()),
        has_answers=judge.has_answers,
        coverage=coverage(np.where(own.incomplete, MISSING, own.choice), judge.selected),
        inconsistent=inconsistent(own, cluster) if judge.derived is None else Tally(0, 0, undefined(NO_FOLD)),
        judge_human=judge_human(against_people, people, len(offered), rules.coding),
        ceiling=ceiling(against_people, people.poll, others, people.names),
        judge_gold=judge_gold(against_gold, gold, offered, rules.coding),
        each_order=each_order(judge.single, in_orders.consistency, gold_choice, cluster),
        confusion=confusion(matrix, offered, rules.coding, MAJORITY),
        position=in_orders,
        failed=failures(judge),
    )


def panel_material(name: str, judges: Sequence[JudgeMaterial], items: int) -> JudgeMaterial:
    """Several judges as one rater: what most of them say. Their failures and repairs are the panel's."""
    own, derived = panel_of([Member(one.name, one.own) for one in judges], items)
    return JudgeMaterial(
        name=name,
        rater_id=None,
        kind=PANEL,
        label=f"majority of {len(judges)} judges",
        verdicts=Verdicts(),
        single=Verdicts(),
        own=own,
        states=np.concatenate([one.states for one in judges]),
        selected=np.logical_or.reduce([one.selected for one in judges]),
        repaired=sum(one.repaired for one in judges),
        derived=derived,
    )


def failures(judge: JudgeMaterial) -> Failed:
    calls = dict(zip(STATES, np.bincount(judge.states, minlength=len(STATES)).tolist(), strict=True))
    return Failed(
        unreadable=calls[CallState.UNREADABLE],
        suspect=calls[CallState.SUSPECT],
        refused=calls[CallState.REFUSED],
        truncated=calls[CallState.TRUNCATED],
        too_long=calls[CallState.TOO_LONG],
        failed=calls[CallState.FAILED],
        calls=sum(calls[state] for state in FAILURE_STATES),
        waiting=sum(calls[state] for state in OPEN_CALL_STATES),
        cancelled=calls[CallState.CANCELLED],
        incomplete=int(judge.own.incomplete.sum()),
        asked=judge.verdicts.n + len(judge.states) if judge.derived is None else None,
        elsewhere=judge.elsewhere,
    )

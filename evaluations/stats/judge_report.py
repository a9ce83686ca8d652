"""The report on one judge and one aspect."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np

from evaluations.domain.judges import FAILURE_STATES, OPEN_CALL_STATES, CallState
from evaluations.domain.reports import ReportRules
from evaluations.stats.bias.position import (
    NOT_IN_BOTH_ORDERS,
    AccuracyByOrder,
    AgreementCount,
    PositionBias,
    accuracy_by_order,
    count_inconsistent,
    position_bias,
)
from evaluations.stats.bias.strata import Strata
from evaluations.stats.coding import MISSING, BoolArray, IntArray, cross_tabulate_choices
from evaluations.stats.estimates import undefined_estimate
from evaluations.stats.human_ceiling import HumanCeiling, human_ceiling
from evaluations.stats.judge_agreement import (
    ConfusionMatrix,
    JudgeGold,
    JudgeHuman,
    ReferenceVotes,
    confusion_matrix,
    judge_gold_agreement,
    judge_human_agreement,
    recode_like_reference,
)
from evaluations.stats.judge_verdicts import (
    STATES,
    ConsolidatedVerdicts,
    Derivation,
    JudgeCoverage,
    JudgeVerdicts,
    judge_coverage,
    panel_verdicts,
)
from evaluations.stats.phrases import count_phrase
from evaluations.stats.votes import Majority

MAJORITY: Final = "reviewer majority"
PANEL: Final = "panel"
NO_STATES: Final = ("calls", "incomplete", "asked", "elsewhere")


@dataclass(frozen=True)
class JudgeMaterial:
    """The verdicts of one judge on one aspect. ``label``: what accompanies its name.

    ``derived``: where its choices come from, if no call gave them. ``states``: that of each call without an answer
    on this aspect, once. ``individual``: the verdicts one by one, with failed calls as ties where the rules say so.
    ``selected``: the comparisons that it was to judge. ``failed_elsewhere``: as in `FailedCalls`. A panel has no rater.
    """

    name: str
    rater_id: int | None
    kind: str
    label: str | None
    verdicts: JudgeVerdicts
    individual: JudgeVerdicts
    consolidated: ConsolidatedVerdicts
    states: IntArray
    selected: BoolArray
    repaired: int = 0
    derived: Derivation | None = None
    failed_elsewhere: int = 0

    @property
    def has_answers(self) -> bool:
        """Whether the judge answered anything; a tie in place of a failed call is no answer."""
        return self.verdicts.n > 0 or bool(
            ((self.consolidated.choice != MISSING) & ~self.consolidated.incomplete).any()
        )


@dataclass(frozen=True)
class FailedCalls:
    """Calls without a verdict, by state.

    ``calls``: those that failed for good; waiting and cancelled calls may still be sent. ``incomplete``: comparisons
    without a verdict because of such calls. ``asked``: all calls, answered or not; None where they asked for scores of
    single responses. ``elsewhere``: failed calls of imported files that belong to none of the aspects on which the
    judge has a verdict; files do not say to which aspect a failed call belongs.
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
        """A phrase such as “60 of 120 calls failed (50 unreadable, 10 refused), 3 calls waiting”; empty without any."""
        kinds = ", ".join(
            f"{count:,} {name.replace('_', ' ')}"
            for name, count in self.by_state.items()
            if name not in ("waiting", "cancelled")
        )
        calls = (
            count_phrase(self.calls, "call")
            if self.asked is None
            else f"{self.calls:,} of {count_phrase(self.asked, 'call')}"
        )
        parts = [f"{calls} failed ({kinds})"] if self.calls else []
        parts += [f"{count_phrase(self.waiting, 'call')} waiting"] if self.waiting else []
        parts += [f"{count_phrase(self.cancelled, 'call')} cancelled"] if self.cancelled else []
        return ", ".join(parts)


@dataclass(frozen=True)
class JudgeReport:
    """All numbers of one judge on one aspect.

    ``repaired``: how many of its calls were answered only when asked a second time. ``inconsistent``: comparisons on
    which its orders differ, or which a file marks as inconsistent.
    """

    rater_id: int | None
    kind: str
    label: str | None
    derived: Derivation | None
    verdicts: int
    has_answers: bool
    coverage: JudgeCoverage
    inconsistent: AgreementCount
    repaired: int
    judge_human: JudgeHuman
    ceiling: HumanCeiling
    judge_gold: JudgeGold
    each_order: AccuracyByOrder
    confusion: ConfusionMatrix
    position: PositionBias
    failed: FailedCalls


def judge_report(
    judge: JudgeMaterial,
    people: ReferenceVotes,
    others: Majority,
    gold: ReferenceVotes,
    gold_choice: IntArray,
    cluster: IntArray,
    everything: Strata,
    offered: Collection[int],
    rules: ReportRules,
) -> JudgeReport:
    """The report on one judge and one aspect.

    ``others``: the majority of the others, for each entry of ``people.poll.per_rater``. ``everything``: all comparisons
    as one stratum. ``gold_choice``: the gold label of each comparison in terms of A and B, whatever the coding.
    """
    own = judge.consolidated
    against_people, against_gold = (
        recode_like_reference(own, reference)[reference.poll.items] for reference in (people, gold)
    )
    matrix = cross_tabulate_choices(against_people, people.majority.choice)
    in_orders = position_bias(own, everything)
    return JudgeReport(
        rater_id=judge.rater_id,
        kind=judge.kind,
        label=judge.label,
        derived=judge.derived,
        repaired=judge.repaired,
        verdicts=int((own.choice != MISSING).sum()),
        has_answers=judge.has_answers,
        coverage=judge_coverage(np.where(own.incomplete, MISSING, own.choice), judge.selected),
        inconsistent=count_inconsistent(own, cluster)
        if judge.derived is None
        else AgreementCount(0, 0, undefined_estimate(NOT_IN_BOTH_ORDERS)),
        judge_human=judge_human_agreement(against_people, people, len(offered), rules.coding),
        ceiling=human_ceiling(against_people, people.poll, others, people.names),
        judge_gold=judge_gold_agreement(against_gold, gold, offered, rules.coding),
        each_order=accuracy_by_order(judge.individual, in_orders.consistency, gold_choice, cluster),
        confusion=confusion_matrix(matrix, offered, rules.coding, MAJORITY),
        position=in_orders,
        failed=count_failed_calls(judge),
    )


def panel_material(name: str, judges: Sequence[JudgeMaterial], items: int) -> JudgeMaterial:
    own, derived = panel_verdicts({judge.name: judge.consolidated for judge in judges}, items)
    return JudgeMaterial(
        name=name,
        rater_id=None,
        kind=PANEL,
        label=f"majority of {len(judges)} judges",
        verdicts=JudgeVerdicts(),
        individual=JudgeVerdicts(),
        consolidated=own,
        states=np.concatenate([judge.states for judge in judges]),
        selected=np.logical_or.reduce([judge.selected for judge in judges]),
        repaired=sum(judge.repaired for judge in judges),
        derived=derived,
    )


def count_failed_calls(judge: JudgeMaterial) -> FailedCalls:
    calls = dict(zip(STATES, np.bincount(judge.states, minlength=len(STATES)).tolist(), strict=True))
    return FailedCalls(
        **{state.value: calls[state] for state in FAILURE_STATES},
        calls=sum(calls[state] for state in FAILURE_STATES),
        waiting=sum(calls[state] for state in OPEN_CALL_STATES),
        cancelled=calls[CallState.CANCELLED],
        incomplete=int(judge.consolidated.incomplete.sum()),
        asked=judge.verdicts.n + len(judge.states) if judge.derived is None else None,
        elsewhere=judge.failed_elsewhere,
    )

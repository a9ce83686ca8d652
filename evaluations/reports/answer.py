"""The first page of the results: for each judge a card with its decision, and who wins."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from django.db.models import Exists, OuterRef

from evaluations.disagreements.selectors import DisagreementFilter, count_disagreements
from evaluations.domain.decisions import AspectOutcome, Outcome
from evaluations.domain.reports import ReportPart
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Judge
from evaluations.models.runs import Call
from evaluations.models.verdicts import Score
from evaluations.stats.decisions.gauges import Gauge
from evaluations.stats.decisions.leaders import REVIEWERS_ALONE, Leader
from evaluations.stats.decisions.results import AspectDecision, Decision
from evaluations.stats.decisions.sentences import percent_of
from evaluations.stats.estimates import Estimate
from evaluations.stats.full_report import Report

# In the order of the cards: what a reader can use comes first.
TONES: Final = {
    Outcome.STAND_IN: "good",
    Outcome.SPOT_CHECKS: "accent",
    Outcome.NOT_ENOUGH_DATA: "",
    Outcome.CLARIFY_RUBRIC: "warn",
    Outcome.NOT_RELIABLE: "error",
}
ASPECT_TONES: Final = {AspectOutcome.STAND_IN: "good", AspectOutcome.NOT_RELIABLE: "error", AspectOutcome.NOT_SHOWN: ""}
EVEN: Final = 0.5
MOST_ROWS: Final = 12  # aspects of a card in sight


@dataclass(frozen=True)
class AspectRow:
    """One aspect of a card. ``decision``: None without a judge. ``leader``: None without win rates."""

    key: str
    name: str
    decision: AspectDecision | None
    leader: Leader | None

    @property
    def tone(self) -> str:
        return "" if self.decision is None else ASPECT_TONES[self.decision.outcome]


@dataclass(frozen=True)
class GaugeLine:
    """A gauge in words. ``kind``: how its value is printed. ``limit``: its bar in words."""

    label: str
    gauge: Gauge
    kind: str
    limit: str


@dataclass(frozen=True)
class Card:
    """A judge with its decision, or reviewers alone where ``decision`` is None."""

    decision: Decision | None
    rows: tuple[AspectRow, ...]

    @property
    def tone(self) -> str:
        return "" if self.decision is None else TONES[self.decision.outcome]

    @property
    def first_rows(self) -> tuple[AspectRow, ...]:
        """The rows that are in sight; the others are one click away."""
        return self.rows[:MOST_ROWS]

    @property
    def more_rows(self) -> tuple[AspectRow, ...]:
        return self.rows[MOST_ROWS:]

    @property
    def explored(self) -> ReportPart:
        """The part that has more on each aspect."""
        return ReportPart.SCORES if self.decision and self.decision.scale else ReportPart.AGREEMENT

    @property
    def has_results(self) -> bool:
        """Whether something is shown of single aspects."""
        return any(row.decision and row.decision.outcome is not AspectOutcome.NOT_SHOWN for row in self.rows)

    @property
    def has_levels(self) -> bool:
        """Whether agreement is known on an aspect, which needs two reviews."""
        return any(row.decision and row.decision.levels.reviewers.value is not None for row in self.rows)

    @property
    def has_leaders(self) -> bool:
        return any(row.leader for row in self.rows)

    @property
    def has_corrected(self) -> bool:
        """Whether a win rate of a leader is corrected by reviewers."""
        rates = [row.leader.rates.corrected for row in self.rows if row.leader]
        return any(rate is not None and rate.value is not None for rate in rates)

    @property
    def pair_leader(self) -> str:
        """The model whose win rates all rows show, if there are two."""
        return next((row.leader.candidate for row in self.rows if row.leader and row.leader.models <= 2), "")

    @property
    def lowest(self) -> float:
        """Where the scale of agreement begins."""
        levels = [row.decision.levels for row in self.rows if row.decision]
        ends = [
            low for level in levels for low in (lower_end(level.judge), lower_end(level.reviewers)) if low is not None
        ]
        return int(10 * min([*ends, EVEN])) / 10

    @property
    def gauges(self) -> list[GaugeLine]:
        return [] if self.decision is None else list(iterate_gauges(self.decision))


def lower_end(number: Estimate) -> float | None:
    return number.ci95[0] if number.ci95 else number.value


def iterate_gauges(decision: Decision) -> Iterator[GaugeLine]:
    gauges, bars = decision.gauges, decision.bars
    yield GaugeLine("Failed calls", gauges.failures, "percent", f"limit {percent_of(bars.failures)}")
    if decision.scale:  # of scores, the others are not computed
        return
    yield GaugeLine("Flips with order", gauges.inconsistency, "percent", f"limit {percent_of(bars.inconsistency)}")
    limits = f"limit {100 * (EVEN - bars.bias):.0f}–{percent_of(EVEN + bars.bias)}"
    yield GaugeLine("Prefers first", gauges.position, "percent", limits)
    for label, gauge in (("Longer response", gauges.length), ("Own family", gauges.own_family)):
        yield GaugeLine(label, gauge, "points", f"limit ±{100 * bars.bias:.0f}")


def build_score_cards(report: Report) -> list[Card]:
    """The cards of judges that score single responses, the most usable first."""
    return [
        Card(decision, tuple(AspectRow(key, aspect.name, aspect, None) for key, aspect in decision.aspects.items()))
        for decision in sorted(report.score_decisions.values(), key=rank_decision)
    ]


def build_cards(report: Report) -> list[Card]:
    """The cards, the most usable judge first; one of reviewers alone where no judge answered."""
    decisions = sorted(report.decisions.values(), key=rank_decision)
    if not decisions:
        rows = build_rows(report, None)
        return [Card(None, rows)] if rows else []
    return [Card(decision, build_rows(report, decision)) for decision in decisions]


def rank_decision(decision: Decision) -> tuple[bool, int, float, str]:
    difference = decision.levels.difference.value
    rank = list(TONES).index(decision.outcome)
    return decision.label is not None, rank, -difference if difference is not None else 1.0, decision.judge


def build_rows(report: Report, decision: Decision | None) -> tuple[AspectRow, ...]:
    name = REVIEWERS_ALONE if decision is None else decision.judge
    aspects: Mapping[str, AspectDecision | None] = (
        dict.fromkeys(report.leaders) if decision is None else decision.aspects
    )
    return tuple(
        AspectRow(key, report.names[key], aspect, report.leaders.get(key, {}).get(name))
        for key, aspect in aspects.items()
    )


@dataclass(frozen=True)
class NotRun:
    """Judges without a decision: ``tested`` have test calls alone."""

    never: tuple[str, ...]
    tested: tuple[str, ...]


def list_judges_not_run(evaluation: Evaluation, report: Report) -> NotRun:
    """The judges that were never run, or only tested; those whose calls wait and those that scored are neither."""
    decided = {*report.decisions, *report.unanswered, *report.judges}
    was_asked = Exists(Call.all_rows.filter(judge=OuterRef("pk"), is_test=False))
    has_scored = Exists(Score.all_rows.filter(rater__judge=OuterRef("pk")))
    judges = Judge.objects.current().filter(evaluation=evaluation).exclude(name__in=decided).order_by("name")
    waiting = list(judges.exclude(was_asked).exclude(has_scored))
    tests = Call.all_rows.filter(is_test=True, judge__in=waiting)
    tested = set(tests.order_by().values_list("judge_id", flat=True).distinct())
    return NotRun(
        never=tuple(judge.name for judge in waiting if judge.pk not in tested),
        tested=tuple(judge.name for judge in waiting if judge.pk in tested),
    )


def count_open_disagreements(evaluation: Evaluation) -> int:
    return count_disagreements(DisagreementFilter(evaluation))[0]

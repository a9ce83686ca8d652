"""The results on an overview: who wins, and how well judge and reviewers agree, on one aspect."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from evaluations.domain.json_values import JsonDict
from evaluations.domain.reports import ReportPart, ReportRules
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User
from evaluations.reports.selectors import build_report, get_full_report
from evaluations.stats.aspect_report import AspectReport
from evaluations.stats.estimates import Estimate
from evaluations.stats.full_report import Report
from evaluations.stats.judge_report import JudgeReport
from evaluations.stats.phrases import format_ci
from evaluations.stats.wins import Wins
from evaluations.visibility import can_see_judges, visible_comparisons

# With fewer reviewed comparisons of a model, its win rate is taken from the judge if there is one.
MIN_REVIEWED: Final = 30
OVERALL: Final = "overall"
EVEN: Final = 0.5


@dataclass(frozen=True)
class Figure:
    """A share with its 95% CI and sample size. ``why``: why there is no CI."""

    value: float
    n: int
    low: float | None = None
    high: float | None = None
    why: str = ""

    @property
    def percent(self) -> str:
        return f"{self.value:.0%}"

    @property
    def text(self) -> str:
        return f"{self.percent}{self.interval_text}, n\u00a0=\u00a0{self.n:,}"

    @property
    def interval_text(self) -> str:
        return "" if self.low is None or self.high is None else f" ({format_ci(self.low, self.high)})"

    @property
    def excludes_half(self) -> bool:
        return self.low is not None and self.high is not None and not self.low <= EVEN <= self.high


@dataclass(frozen=True)
class ModelWinRate:
    name: str
    rate: Figure


@dataclass(frozen=True)
class WinnerResult:
    """The models by win rate, highest first. ``judge``: whose verdicts they are from; empty for reviewers'.

    ``reviewed``: the reviewed comparisons of the leading model.
    """

    models: tuple[ModelWinRate, ...]
    judge: str
    reviewed: int

    @property
    def leader(self) -> ModelWinRate:
        return self.models[0]

    @property
    def is_tied(self) -> bool:
        return len(self.models) > 1 and self.models[1].rate.value == self.leader.rate.value

    @property
    def is_pair(self) -> bool:
        return len(self.models) == 2

    @property
    def is_significant(self) -> bool:
        """Whether one of two models wins more than half: of more models, intervals alone do not tell."""
        return self.is_pair and self.leader.rate.excludes_half


@dataclass(frozen=True)
class AgreementResult:
    """``judge``: agreement of the judge with reviewers, ``reviewers``: that of reviewers among themselves.

    ``is_leave_one_out``: both with the majority of the other reviewers, on the same comparisons; otherwise the judge
    with the majority of all. ``kappas``: Cohen's of both, where defined. ``other_judges``: how many more there are.
    ``decision``: the headline of the decision on the judge.
    """

    judge_name: str
    judge: Figure | None
    reviewers: Figure | None
    judge_kappa: float | None = None
    reviewer_kappa: float | None = None
    is_leave_one_out: bool = False
    other_judges: int = 0
    decision: str = ""


@dataclass(frozen=True)
class Results:
    """Results on one aspect. A part is None without the data for it."""

    aspect: str
    comparisons: int
    winner: WinnerResult | None
    agreement: AgreementResult | None
    sees_judges: bool = True


def compute_results(evaluation: Evaluation, reviewer: User | None) -> Results | None:
    """The results on all comparisons, or on those that the reviewer has reviewed; None without any verdict."""
    sees_judges = reviewer is None or can_see_judges(reviewer, evaluation)
    report = read_report(evaluation, reviewer, ReportPart.AGREEMENT, None, with_judges=sees_judges)
    key = choose_aspect(report.aspects)
    if key is None:
        return None
    wins = read_report(evaluation, reviewer, ReportPart.WINS, key, with_judges=sees_judges).wins.get(key)
    aspect = report.aspects[key]
    judge = choose_judge(aspect, evaluation)
    agreement = compare_agreement(aspect, judge)
    if agreement and judge:
        decided = read_report(evaluation, reviewer, ReportPart.DECISIONS, None, with_judges=sees_judges).decisions
        agreement = replace(agreement, decision=decided[judge].headline if judge in decided else "")
    return Results(
        aspect=aspect.name,
        comparisons=report.comparisons,
        winner=find_winner(wins, judge) if wins else None,
        agreement=agreement,
        sees_judges=sees_judges,
    )


def read_report(
    evaluation: Evaluation, reviewer: User | None, part: ReportPart, aspect: str | None, *, with_judges: bool
) -> Report:
    rules, parts = ReportRules(), (part,)
    if reviewer is None:
        return get_full_report(evaluation, rules, parts=parts, aspect=aspect)
    visible = visible_comparisons(reviewer, evaluation)
    return build_report(evaluation, visible, rules, with_judges=with_judges, parts=parts, aspect=aspect)


def choose_aspect(aspects: Mapping[str, AspectReport]) -> str | None:
    """The overall aspect if there is one, else the first that reviewers and a judge both answered, else the first."""
    if OVERALL in aspects:
        return OVERALL
    both = (key for key, aspect in aspects.items() if any(count_shared(judge) for judge in aspect.answering.values()))
    return next(both, next(iter(aspects), None))


def choose_judge(aspect: AspectReport, evaluation: Evaluation) -> str:
    """The judge that reviewers are shown, else the LLM judge with the most verdicts; empty if no LLM judge answered."""
    judges = {name: judge for name, judge in aspect.answering.items() if judge.rater_id is not None and not judge.label}
    shown = evaluation.shown_judge.name if evaluation.shown_judge else ""
    if shown in judges:
        return shown
    return max(sorted(judges), key=lambda name: judges[name].verdicts, default="")


def count_shared(judge: JudgeReport) -> int:
    return judge.judge_human.majority.with_ties.n


def find_winner(wins: Wins, judge: str) -> WinnerResult | None:
    """Win rates from reviewers if these reviewed enough, else from the judge, else from the few reviews."""
    people = rank_models(wins.people)
    reviewed = people[0].rate.n if people else 0
    if judge in wins.judges and reviewed < MIN_REVIEWED:
        rates = wins.judges[judge].rates.candidates
        if by_judge := rank_models({name: rate.judge for name, rate in rates.items()}):
            return WinnerResult(by_judge, judge, reviewed)
    return WinnerResult(people, "", reviewed) if people else None


def rank_models(rates: Mapping[str, Estimate]) -> tuple[ModelWinRate, ...]:
    found = [ModelWinRate(name, figure) for name, rate in rates.items() if (figure := to_figure(rate))]
    return tuple(sorted(found, key=lambda model: (-model.rate.value, model.name)))


def compare_agreement(aspect: AspectReport, judge: str) -> AgreementResult | None:
    others = max(sum(1 for row in aspect.answering.values() if row.rater_id is not None) - 1, 0)
    if judge:
        row = aspect.answering[judge]
        level, alone = row.ceiling.s1, row.judge_human.majority.with_ties
        if level.n:
            return AgreementResult(
                judge,
                to_figure(level.judge),
                to_figure(level.people),
                level.cohen_kappa.judge.value,
                level.cohen_kappa.people.value,
                is_leave_one_out=True,
                other_judges=others,
            )
        if figure := to_figure(alone.agreement):
            return AgreementResult(judge, figure, None, alone.cohen_kappa.value, other_judges=others)
    people = aspect.human_human.votes.with_ties.agreement
    return AgreementResult("", None, figure) if (figure := to_figure(people)) else None


def to_figure(estimate: Estimate) -> Figure | None:
    if estimate.value is None:
        return None
    low, high = estimate.ci95 or (None, None)
    return Figure(float(estimate.value), int(estimate.n), low, high, estimate.ci95_why or "")


def write_results(results: Results | None) -> JsonDict | None:
    return None if results is None else asdict(results)


def load_results(stored: JsonDict | None) -> Results | None:
    """The results that `write_results` wrote."""
    if stored is None:
        return None
    winner, agreement = stored["winner"], stored["agreement"]
    return Results(
        **{
            **stored,
            "winner": winner and WinnerResult(**{**winner, "models": tuple(load_models(winner["models"]))}),
            "agreement": agreement
            and AgreementResult(**{**agreement, **{side: load_figure(agreement[side]) for side in SIDES}}),
        }
    )


SIDES: Final = ("judge", "reviewers")


def load_models(stored: list[dict[str, Any]]) -> Iterator[ModelWinRate]:
    for row in stored:
        if rate := load_figure(row["rate"]):
            yield ModelWinRate(row["name"], rate)


def load_figure(stored: dict[str, Any] | None) -> Figure | None:
    return None if stored is None else Figure(**stored)

"""What an ended run says in a sentence or two: who was preferred, or why no reply could be used."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from evaluations.domain.judges import ACTIVE_RUN_STATES, CallState
from evaluations.judges.runs.results import OVERALL, AspectResults, JudgeResults, find_leader
from evaluations.judges.runs.selectors import RunProgress
from evaluations.models.runs import Call, Run
from evaluations.stats.estimates import Estimate
from evaluations.stats.judge_tally import Standing
from evaluations.stats.phrases import format_ci

MAX_READ_ERRORS: Final = 1_000
# What to do about a run whose calls ended in this state.
REMEDIES: Final[Mapping[str, str]] = {
    CallState.UNREADABLE: "Create a judge with another output format or a stronger model.",
    CallState.SUSPECT: "Open the calls, and confirm the verdicts that should count.",
    CallState.REFUSED: "Try another model, or reword the rubric.",
    CallState.TRUNCATED: "Create a judge with a higher max tokens.",
    CallState.TOO_LONG: "Use a model with a longer context window.",
    CallState.FAILED: "Fix the cause, then retry the failed calls.",
}
DESCRIPTIONS: Final[Mapping[str, str]] = {
    CallState.UNREADABLE: "The replies contain no verdict in the expected format.",
    CallState.SUSPECT: "The replies only repeat a judged text.",
    CallState.REFUSED: "The model refused to answer.",
    CallState.TRUNCATED: "The replies were cut off.",
    CallState.TOO_LONG: "The prompts are longer than the model accepts.",
    CallState.FAILED: "The requests failed.",
}


@dataclass(frozen=True)
class NotRun:
    """Why no reply of a run could be used: the state in which most of its calls ended, and their commonest error."""

    state: str
    calls: int
    total: int
    cause: str
    remedy: str


def explain_unusable_run(run: Run, progress: RunProgress) -> NotRun | None:
    """Why an ended run brought no verdict; None for one that is active, has an answer or had nothing to ask."""
    if run.state in ACTIVE_RUN_STATES or progress.counts[CallState.ANSWERED] or not progress.failures:
        return None
    state, calls = max(progress.failures.items(), key=lambda item: item[1])
    errors = Call.all_rows.filter(run=run, state=state).exclude(error="").order_by().values_list("error", flat=True)
    commonest = Counter(errors[:MAX_READ_ERRORS]).most_common(1)
    cause = commonest[0][0] if commonest else DESCRIPTIONS[state]
    return NotRun(state, calls, progress.total, cause, REMEDIES[state])


def summarise_results(name: str, results: JudgeResults) -> str:
    """Whom this judge preferred, in words; empty where it has chosen nothing."""
    headline = results.headline
    return "" if headline is None else " ".join(summary_sentences(name, results, headline))


def summary_sentences(name: str, results: JudgeResults, headline: AspectResults) -> Iterator[str]:
    standings = headline.tally.standings
    about = "" if headline.key == OVERALL or len(results.aspects) == 1 else f"On {headline.name}, "
    leader = find_leader(standings)
    if leader is None:
        yield f"{about}{describe_level(name, standings)}"
    elif leader.versus:
        yield f"{about}{name} preferred {describe_preference(leader)}."
        if is_undecided(leader.rate):
            yield "Difference not significant."
    else:
        yield (
            f"{about}{name} gave {leader.candidate} the highest win rate of {len(standings)} models: "
            f"{describe_rate(leader.rate)}, n = {leader.n:,}."
        )
    if leader is not None and len(results.judged) > 1:
        leads = sum(find_leading_candidate(aspect) == leader.candidate for aspect in results.judged)
        yield f"{leader.candidate} leads on {leads} of {len(results.judged)} aspects."
    if (share := headline.tally.inconsistent_share) is not None:
        yield f"{share:.0%} inconsistent across orders."


def describe_preference(leader: Standing) -> str:
    ties = f" and tied {leader.tied:,}" if leader.tied else ""
    rate = describe_rate(leader.rate)
    return (
        f"{leader.candidate} over {leader.versus} in {leader.won:,} of {leader.n:,} "
        f"comparison{'s' if leader.n > 1 else ''}{ties} ({f'win rate {rate}' if leader.tied else rate})"
    )


def describe_level(name: str, standings: tuple[Standing, ...]) -> str:
    if len(standings) != 1:
        return f"{name} gave no single model the highest win rate."
    (pair,) = standings
    return f"{name} was evenly split between {pair.candidate} and {pair.versus} (n = {pair.n:,})."


def describe_rate(rate: Estimate) -> str:
    """“57%, 95% CI 44–68”; without an interval the share alone."""
    assert rate.value is not None
    return f"{rate.value:.0%}" + (f", {format_ci(*rate.ci95)}" if rate.ci95 else "")


def is_undecided(rate: Estimate) -> bool:
    """Whether the interval of a win rate includes one half."""
    return rate.ci95 is not None and rate.ci95[0] <= 0.5 <= rate.ci95[1]


def find_leading_candidate(aspect: AspectResults) -> str | None:
    leader = find_leader(aspect.tally.standings)
    return leader.candidate if leader else None

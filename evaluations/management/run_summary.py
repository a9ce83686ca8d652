"""The one-line JSON summary of a run."""

from evaluations.domain.money import NANO_PER_USD
from evaluations.judges.runs.selectors import measure_run_progress
from evaluations.models.runs import Run


def summarize_run(run: Run) -> dict[str, object]:
    """The summary as JSON, calls by state first. Unknown costs are null."""
    progress = measure_run_progress(run)
    return progress.counts | {
        "run": run.pk,
        "judge": run.judge.name,
        "state": run.state,
        "reused": run.reused,
        "repaired": progress.repaired,
        "cost_usd": round_to_usd(progress.cost),
        "requests_of_unknown_cost": progress.unpriced,
        "budget_usd": round_to_usd(run.budget),
    }


def round_to_usd(nano: float | None) -> float | None:
    return None if nano is None else round(nano) / NANO_PER_USD

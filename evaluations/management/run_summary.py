"""The one-line JSON summary of a run."""

from evaluations.domain.money import NANO_PER_USD
from evaluations.judges.runs.selectors import measure_run_progress
from evaluations.models.runs import Run


def summarize_run(run: Run) -> dict[str, object]:
    """One line of JSON: calls by state first. What a run cost is null as long as nothing of it is known."""
    found = measure_run_progress(run)
    return found.counts | {
        "run": run.pk,
        "judge": run.judge.name,
        "state": run.state,
        "reused": run.reused,
        "repaired": found.repaired,
        "cost_usd": round_to_usd(found.cost),
        "requests_of_unknown_cost": found.unpriced,
        "budget_usd": round_to_usd(run.budget),
    }


def round_to_usd(nano: float | None) -> float | None:
    return None if nano is None else round(nano) / NANO_PER_USD

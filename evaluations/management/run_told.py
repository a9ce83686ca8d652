"""What the commands that start and change runs say of them."""

from typing import Any

from evaluations.domain import NANO
from evaluations.models import Run
from evaluations.services.judging.progressing import progress


def told(run: Run) -> dict[str, Any]:
    """One line of JSON: calls by state first. What a run cost is null as long as nothing of it is known."""
    found = progress(run)
    return found.counts | {
        "run": run.pk,
        "judge": run.judge.name,
        "state": run.state,
        "reused": run.reused,
        "repaired": found.repaired,
        "cost_usd": in_usd(found.cost),
        "requests_of_unknown_cost": found.unpriced,
        "budget_usd": in_usd(run.budget),
    }


def in_usd(nano: float | None) -> float | None:
    return None if nano is None else round(nano) / NANO

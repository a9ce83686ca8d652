"""``manage.py run_judge SLUG --judge NAME``"""

import json
import time
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.core.management.base import CommandError

from evaluations.comparisons.selectors import get_saved_filter
from evaluations.domain.filters import NamedFilter
from evaluations.domain.judges import ACTIVE_RUN_STATES, CallState, RunChannel, RunOrders, RunState
from evaluations.domain.money import parse_budget_usd
from evaluations.jobs.runner import work_on_due_jobs
from evaluations.judges.calls.batch_jobs import POLL_BATCH
from evaluations.judges.calls.lease_sweeper import return_expired_calls
from evaluations.judges.calls.live_worker import work_run_calls
from evaluations.judges.calls.worker_registry import registered_worker
from evaluations.judges.endpoints.outages import PROBE_ENDPOINT, describe_outage
from evaluations.judges.runs.estimates import estimate_run
from evaluations.judges.runs.selection import RunOptions
from evaluations.judges.runs.selectors import count_calls_by_state
from evaluations.judges.runs.services import check_run_options, start_panel
from evaluations.judges.selectors import judge_warnings
from evaluations.management.product_command import CommandOptions, ProductCommand, find_judges
from evaluations.management.run_summary import round_to_usd, summarize_run
from evaluations.models.jobs import Worker
from evaluations.models.judges import Endpoint, Judge
from evaluations.models.runs import Call, Run

POLL_SECONDS = 0.3


class Command(ProductCommand):
    help = (
        "Run one judge or a panel on an evaluation's comparisons or responses. Prints one line "
        "of JSON per run: calls by state and cost."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", help="the evaluation")
        parser.add_argument("--judge", required=True, action="append", metavar="NAME", help="repeat for a panel")
        parser.add_argument("--orders", default="both", choices=[str(value) for value in RunOrders])
        parser.add_argument("--samples", type=int, default=1, metavar="N", help="samples per comparison")
        parser.add_argument("--saved-filter", metavar="NAME", help="only comparisons that match this saved filter")
        parser.add_argument(
            "--limit", type=int, metavar="N", help="at most this many comparisons or responses, in review order"
        )
        parser.add_argument("--budget", metavar="USD", help="hard cap per run (needs a price)")
        parser.add_argument("--ask-failures-again", action="store_true", help="also retry unusable answers")
        parser.add_argument(
            "--retry", nargs="+", metavar="STATE", help="only calls in these states, such as unreadable or failed"
        )
        channels = [str(value) for value in RunChannel]
        parser.add_argument("--channel", default="live", choices=channels, help="batch: through the Batch API")
        parser.add_argument(
            "--estimate", action="store_true", help="print the estimate as JSON without starting anything"
        )
        parser.add_argument(
            "--wait", action="store_true", help="wait until the runs end; does the work here if no worker is running"
        )

    def handle(self, *args: object, slug: str, **options: Any) -> None:
        judges = find_judges(slug, options["judge"])
        name = options["saved_filter"]
        saved_filter = get_saved_filter(judges[0].evaluation, name).named if name else None
        run_options = run_options_from(options, saved_filter)
        for judge in judges:
            for warning in judge_warnings(judge):
                self.stderr.write(f"{judge.name}: {warning}")
        if options["estimate"]:
            self.stdout.write("\n".join(json.dumps(format_estimate(judge, run_options)) for judge in judges))
            return
        runs = start_panel(judges, user=None, **run_options)
        if options["wait"]:
            runs = wait_for_runs(runs, self.stderr.write)
        self.stdout.write("\n".join(json.dumps(summarize_run(run)) for run in runs))
        if reasons := [run.stop_reason for run in runs if run.stop_reason]:
            raise CommandError(" ".join(dict.fromkeys(reasons)))


def run_options_from(options: CommandOptions, saved_filter: NamedFilter | None) -> RunOptions:
    return RunOptions(
        orders=options["orders"],
        samples=options["samples"],
        limit=options["limit"],
        ask_failures_again=options["ask_failures_again"],
        only_states=options["retry"],
        channel=options["channel"],
        saved_filter=saved_filter,
        budget=None if options["budget"] is None else parse_budget_usd(options["budget"], "Budget"),
    )


def format_estimate(judge: Judge, options: RunOptions) -> dict[str, object]:
    """The estimate of a run as JSON; an unknown amount or time is null."""
    check_run_options(judge, **options)
    guess = estimate_run(judge, **options)
    spans = {key: getattr(guess, key) for key in ("requests", "tokens_in", "tokens_out")}
    return {
        "judge": judge.name,
        "calls": guess.calls,
        "cost_usd": guess.cost and {"low": round_to_usd(guess.cost.low), "high": round_to_usd(guess.cost.high)},
        "minutes": guess.minutes and asdict(guess.minutes),
        **{key: {"low": round(span.low), "high": round(span.high)} for key, span in spans.items()},
        "expected": asdict(guess.expected),
        "calls_so_far": count_calls_by_state(judge),
        "assumptions": [*guess.warnings, *guess.assumptions],
    }


def wait_for_runs(runs: Sequence[Run], report: Callable[[str], object]) -> list[Run]:
    """Wait until the runs have ended; where no worker is alive, do their work and their sweeping here.

    Goes through outages of endpoints, and reports each probe.
    """
    reported: set[tuple[int, datetime | None]] = set()
    while moving := [run for run in reload_runs(runs) if is_run_moving(run)]:
        if not Worker.objects.alive().exists():
            work_runs_here(moving)
        for endpoint in Endpoint.objects.filter(judges__runs__in=moving, down_since__isnull=False).distinct():
            if (endpoint.pk, endpoint.next_probe_at) not in reported:
                reported.add((endpoint.pk, endpoint.next_probe_at))
                report(describe_outage(endpoint))
        time.sleep(POLL_SECONDS)
    return reload_runs(runs)


def work_runs_here(runs: Sequence[Run]) -> None:
    """A stretch of work on each, as the worker that this process is meanwhile."""
    with registered_worker():
        return_expired_calls()
        for run in runs:
            work_run_calls(run.pk, hand_over=lambda: None)
        work_on_due_jobs(POLL_BATCH)
        work_on_due_jobs(PROBE_ENDPOINT)


def reload_runs(runs: Sequence[Run]) -> list[Run]:
    return list(Run.objects.select_related("judge").filter(pk__in=[run.pk for run in runs]).order_by("pk"))


def is_run_moving(run: Run) -> bool:
    paused_itself = run.state == RunState.PAUSED and bool(run.stop_reason)
    is_active = run.state in ACTIVE_RUN_STATES and not paused_itself
    return is_active or Call.all_rows.filter(run=run, state=CallState.RUNNING).exists()

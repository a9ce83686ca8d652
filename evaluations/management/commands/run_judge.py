"""``manage.py run_judge SLUG --judge NAME``"""

import json
import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evaluations.domain import ACTIVE_RUN_STATES, CallState, InputRefused, Orders, RunState
from evaluations.models import Call, Evaluation, Judge, Run, Worker
from evaluations.services.judging import answering, lapsing, running
from evaluations.tasks import nudge, work_run

NANO: int = 10**9
LOOK_AGAIN_SECONDS = 0.3


class Command(BaseCommand):
    help = (
        "Send a judge through an evaluation's comparisons; the last line is JSON: how many calls stand in which state."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", help="the evaluation")
        parser.add_argument("--judge", required=True, metavar="NAME")
        parser.add_argument("--orders", default="both", choices=[str(one) for one in Orders])
        parser.add_argument("--samples", type=int, default=1, metavar="N", help="ask each so often")
        parser.add_argument("--limit", type=int, metavar="N", help="only so many comparisons, those people meet first")
        parser.add_argument("--budget", type=float, metavar="USD", help="spend no more (needs a known price)")
        parser.add_argument("--ask-failures-again", action="store_true", help="also what was answered, but not usably")
        parser.add_argument("--wait", action="store_true", help="until it ends; works the calls here if no worker runs")

    def handle(self, *args: Any, slug: str, **options: Any) -> None:
        try:
            run = start(slug, options)
        except InputRefused as refused:
            raise CommandError(str(refused)) from refused
        if options["wait"]:
            run = see_through(run)
        self.stdout.write(json.dumps(told(run)))
        if run.state == RunState.STOPPED:
            raise CommandError(run.stop_reason)


def start(slug: str, options: dict[str, Any]) -> Run:
    evaluation = Evaluation.objects.filter(slug=slug).first()
    if evaluation is None:
        raise InputRefused(f"There is no evaluation at “{slug}”.")
    judge = Judge.objects.filter(evaluation=evaluation, name=options["judge"]).first()
    if judge is None:
        raise InputRefused(f"“{evaluation.name}” has no judge “{options['judge']}”.")
    run = running.start_run(
        judge,
        user=None,
        orders=options["orders"],
        samples=options["samples"],
        limit=options["limit"],
        budget=None if options["budget"] is None else round(options["budget"] * NANO),
        ask_failures_again=options["ask_failures_again"],
    )
    nudge(work_run, run.pk)
    return run


def see_through(run: Run) -> Run:
    """Wait until the run has ended and nothing of it is in flight.

    Where no worker is alive, do its work and its sweeping here.
    """
    while is_moving(run := Run.objects.get(pk=run.pk)):
        if not Worker.objects.alive().exists():
            lapsing.put_back_expired()
            answering.work(run.pk, hand_over=lambda: None)
        time.sleep(LOOK_AGAIN_SECONDS)
    return run


def is_moving(run: Run) -> bool:
    return run.state in ACTIVE_RUN_STATES or Call.objects.filter(run=run, state=CallState.RUNNING).exists()


def told(run: Run) -> dict[str, Any]:
    return running.counts_by_state(run) | {"run": run.pk, "state": run.state, "reused": run.reused}

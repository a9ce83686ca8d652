"""``manage.py change_run RUN --pause | --resume | --cancel | --budget USD``"""

import json
from argparse import ArgumentParser

from django.db import transaction

from evaluations.domain.errors import InputRefused
from evaluations.domain.money import parse_budget_usd
from evaluations.judges.runs.services import cancel_run, change_budget, pause_run, resume_run
from evaluations.management.product_command import CommandOptions, ProductCommand
from evaluations.management.run_summary import summarize_run
from evaluations.models.runs import Run

NO_BUDGET = "none"


class Command(ProductCommand):
    help = "Pause, resume or cancel a run, or change its budget. Prints the run as JSON."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", type=int, help="run number, as run_judge prints it")
        move = parser.add_mutually_exclusive_group()
        move.add_argument("--pause", action="store_true", help="send no more requests for now")
        move.add_argument(
            "--resume", action="store_true", help="continue a paused run, or a stopped one once the cause is fixed"
        )
        move.add_argument("--cancel", action="store_true", help="send no more requests")
        parser.add_argument("--budget", metavar="USD", help=f"hard cap; “{NO_BUDGET}” removes it")

    def handle(self, *args: object, **options: object) -> None:
        self.stdout.write(json.dumps(summarize_run(change_run(options))))


@transaction.atomic
def change_run(options: CommandOptions) -> Run:
    run = Run.objects.select_related("judge__endpoint", "evaluation").filter(pk=options["run"]).first()
    if run is None:
        raise InputRefused(f"There is no run {options['run']}.")
    if not any(options[option] for option in ("pause", "resume", "cancel", "budget")):
        raise InputRefused("Nothing to change. Use --pause, --resume, --cancel or --budget USD.")
    if options["budget"]:
        budget = options["budget"]
        change_budget(run, None if budget == NO_BUDGET else parse_budget_usd(budget, "Budget"), user=None)
    if options["pause"]:
        pause_run(run, user=None)
    if options["cancel"]:
        cancel_run(run, user=None)
    if options["resume"]:
        resume_run(run, user=None)
    return run

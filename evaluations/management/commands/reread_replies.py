"""``manage.py reread_replies SLUG --judge NAME``"""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evaluations.domain.errors import InputRefused
from evaluations.jobs.runner import finish_job
from evaluations.judges.calls.reply_reparse import REPARSE, begin_reparse
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Judge


class Command(BaseCommand):
    help = "Read a judge's stored replies again, here and to the end; nothing is asked. Prints what changed as JSON."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", help="the evaluation")
        parser.add_argument("--judge", required=True, metavar="NAME")

    def handle(self, *args: object, slug: str, **options: Any) -> None:
        try:
            judge = find_judge_by_name(slug, options["judge"])
            begun = begin_reparse(judge, user=None)
        except InputRefused as refused:
            raise CommandError(str(refused)) from refused
        finish_job(REPARSE, begun.pk)
        begun.refresh_from_db()
        self.stdout.write(json.dumps({"calls": begun.calls, "counts": begun.counts, "changes": begun.changes}))


def find_judge_by_name(slug: str, name: str) -> Judge:
    evaluation = Evaluation.objects.filter(slug=slug).first()
    if evaluation is None:
        raise InputRefused(f"There is no evaluation at “{slug}”.")
    judge = Judge.objects.filter(evaluation=evaluation, name=name).first()
    if judge is None:
        raise InputRefused(f"“{evaluation.name}” has no judge “{name}”.")
    return judge

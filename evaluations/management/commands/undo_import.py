"""``manage.py undo_import SLUG ID``"""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from evaluations.domain.files import ImportState
from evaluations.imports.lifecycle import UNDO_JOB
from evaluations.imports.undo import describe_later_duplicates, start_undo
from evaluations.jobs.runner import finish_job
from evaluations.management.product_command import ProductCommand, find_evaluation


class Command(ProductCommand):
    help = "Undo an import, unless its data was judged, reviewed, resolved, commented on or exported."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", help="URL name of the evaluation")
        parser.add_argument("id", type=int, help="ID of the import")

    def handle(self, *args: object, **options: Any) -> None:
        evaluation = find_evaluation(options["slug"])
        importing = evaluation.imports.filter(pk=options["id"]).first()
        if importing is None:
            raise CommandError(f"There is no import {options['id']} in “{evaluation.slug}”.")
        if importing.state != ImportState.UNDOING:  # else an interrupted one goes on
            start_undo(importing, user=None)
        finish_job(UNDO_JOB, importing.pk)
        importing.refresh_from_db()
        if importing.state == ImportState.DONE:
            raise CommandError(importing.reason)
        if importing.state != ImportState.UNDONE:
            raise CommandError(f"{importing.file_name} is being undone by a worker.")
        if note := describe_later_duplicates(importing):
            self.stdout.write(note)
        gone = importing.new_rows_in_words
        self.stdout.write(f"Undone: {importing.file_name}{f' (removed {gone})' if gone else ''}.")

"""What the commands that import a file have in common."""

from argparse import ArgumentParser
from typing import Any, TextIO

from django.core.management.base import CommandError

from evaluations.domain import FileFormat, ImportState, InputRefused, RaterKind, Reading
from evaluations.models import Evaluation, Import
from evaluations.services.importing.importing import begin, store
from evaluations.services.importing.previewing import preview
from evaluations.services.importing.sweeping import cancel, sweep
from evaluations.services.reviewing.tallying import imports_left_off, tally_import


def add_file_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("slug", help="the evaluation's address")
    parser.add_argument("file", help="JSONL, CSV or a JSON array, in UTF-8")
    parser.add_argument(
        "--format", default="auto", choices=[str(name) for name in FileFormat], help="auto looks at the columns"
    )
    parser.add_argument("--id-prefix", default="", help="goes before every query id")
    parser.add_argument("--map", nargs="+", action="extend", default=[], metavar="COLUMN=FIELD")
    parser.add_argument("--skip-bad", action="store_true", help="store the file without its bad rows")


def add_rater_arguments(parser: ArgumentParser, what: str) -> None:
    parser.add_argument("--rater", metavar="NAME", help=f"whose {what} they are, where the file names nobody")
    parser.add_argument("--rater-kind", choices=[str(kind) for kind in RaterKind])


def reading_from(options: dict[str, Any]) -> Reading:
    kind = options.get("rater_kind")
    return Reading(
        format=options["format"],
        id_prefix=options["id_prefix"],
        mapping=mapping_from(options["map"]),
        rater=options.get("rater") or "",
        rater_kind=RaterKind(kind) if kind else None,
        lower_is_better=options.get("lower_is_better", False),
    )


def mapping_from(pairs: list[str]) -> dict[str, str]:
    mapping = {}
    for pair in pairs:
        column, equals, field = pair.partition("=")
        if not (column and equals and field):
            raise CommandError(f"--map takes COLUMN=FIELD, not “{pair}”.")
        mapping[column] = field
    return mapping


def import_file(options: dict[str, Any], out: TextIO, *, brings: str, pair: str = "all") -> None:
    """Check a file, store it here and now, and tell in one line what came of it."""
    evaluation = Evaluation.objects.filter(slug=options["slug"]).first()
    if evaluation is None:
        raise CommandError(f"There is no evaluation at “{options['slug']}”.")
    try:
        with open(options["file"], "rb") as file:
            importing = preview(
                evaluation,
                file,
                file_name=options["file"],
                reading=reading_from(options),
                user=None,
                pair=pair,
                derive_pairs=options.get("derive_pairs"),
                brings=brings,
            )
        store_or_discard(importing, out, skip_bad=options["skip_bad"])
    except OSError as error:
        raise CommandError(f"{options['file']} cannot be read: {error.strerror}.") from error
    except InputRefused as refused:
        raise CommandError(str(refused)) from refused


def store_or_discard(importing: Import, out: TextIO, *, skip_bad: bool) -> None:
    for bad in importing.bad_rows:
        out.write(f"line {bad['line']}: {bad['reason']}\n")
    if importing.rows_bad > len(importing.bad_rows):
        out.write(f"… and {importing.rows_bad - len(importing.bad_rows):,} more\n")
    try:
        begin(importing, skip_bad=skip_bad, user=None)
    except InputRefused:
        cancel(importing, user=None)
        sweep(importing)
        raise
    store(importing)
    importing.refresh_from_db()
    if importing.state != ImportState.DONE:
        raise CommandError(importing.reason)
    for pk in (importing.pk, *imports_left_off(importing.evaluation)):
        tally_import(Import.objects.get(pk=pk))
    for told in (*importing.summary["warnings"], *importing.summary["notes"]):
        out.write(f"{told}\n")
    out.write(f"{summary_of(importing)}\n")


def summary_of(importing: Import) -> str:
    new = ", ".join(f"{what} {number:,}" for what, number in importing.summary["new"].items())
    return (
        f"{importing.file_name}: {importing.rows_read:,} rows read, {importing.rows_stored:,} stored"
        f"{f' ({new})' if new else ''}, {importing.rows_unchanged:,} unchanged, {importing.rows_bad:,} bad."
    )

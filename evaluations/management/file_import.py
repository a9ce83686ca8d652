"""The options and output that commands which import a file share."""

import shlex
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Final, TextIO

from django.core.management.base import CommandError

from evaluations.domain.choices import INCONSISTENT, Choice
from evaluations.domain.errors import ColumnsUnknown, InputRefused, NamesMissing
from evaluations.domain.files import FileFormat, ImportState, NewResponse, ReadOptions
from evaluations.domain.imports import ImportRequest
from evaluations.domain.judges import FAILURE_STATES
from evaluations.domain.pairing import parse_pairing
from evaluations.domain.roles import RaterKind
from evaluations.imports.columns.column_guess import (
    guess_columns,
    guess_row_kind,
    is_number_word,
    measure_column_match,
)
from evaluations.imports.columns.services import remember_import_mapping
from evaluations.imports.lifecycle import IMPORT_JOB, clean_up_import
from evaluations.imports.preview import preview_file
from evaluations.imports.services import discard_import, start_storing
from evaluations.imports.source_files import Sheet, open_import_path, read_sheet
from evaluations.jobs.runner import finish_job
from evaluations.management.product_command import CommandOptions, accept_negative_keys, find_evaluation
from evaluations.models.imports import Import
from evaluations.verdicts.label_updates import count_votes_left

CHOICE_WORDS: Final = (*map(str, Choice), INCONSISTENT, *map(str, FAILURE_STATES))


def add_file_arguments(parser: ArgumentParser) -> None:
    accept_negative_keys(parser)
    parser.add_argument("slug", help="URL name of the evaluation")
    parser.add_argument(
        "file",
        help="JSONL, JSON, CSV, TSV, Parquet or Arrow, plain or compressed (gzip, zstd, zip, tar), or a folder",
    )
    parser.add_argument(
        "--format", default="auto", choices=[str(name) for name in FileFormat], help="auto detects it from the columns"
    )
    parser.add_argument("--id-prefix", default="", help="prefix of every prompt ID")
    parser.add_argument(
        "--map",
        nargs="+",
        action="extend",
        default=[],
        metavar="COLUMN=FIELD",
        help="map a column: prompt=query",
    )
    parser.add_argument(
        "--set",
        nargs="+",
        action="extend",
        default=[],
        metavar="FIELD=VALUE",
        help="set a field for all rows: candidate_a=gpt-4; query_id=#text or #row if the file has no IDs",
    )
    parser.add_argument(
        "--choice",
        nargs="+",
        action="extend",
        default=[],
        metavar="WORD=CHOICE",
        help="the meaning of a value in the choice column: model_a=A",
    )
    parser.add_argument(
        "--remember", action="store_true", help="use this mapping for later files with the same columns"
    )
    parser.add_argument("--as-it-is", action="store_true", help="ignore the remembered column mapping")
    parser.add_argument("--skip-bad", action="store_true", help="import the valid rows only")
    parser.add_argument("--dry-run", action="store_true", help="preview without importing")


def add_response_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--candidate",
        metavar="NAME",
        help="the model of all responses; by default from the file's column, else from the file name",
    )
    parser.add_argument(
        "--new-response",
        choices=[str(option) for option in NewResponse if option != NewResponse.REFUSE],
        help="if a model already has a different response to the prompt: keep both, replace the existing one (only if "
        "unused), or skip the new one; by default the row is invalid",
    )


def add_rater_arguments(parser: ArgumentParser, what: str) -> None:
    parser.add_argument("--rater", metavar="NAME", help=f"rater of {what} without one in the file")
    parser.add_argument("--rater-kind", choices=[str(kind) for kind in RaterKind])


def parse_read_options(options: CommandOptions) -> ReadOptions:
    kind = options.get("rater_kind")
    return ReadOptions(
        format=options["format"],
        id_prefix=options["id_prefix"],
        mapping=parse_pairs(options["map"], "--map", "COLUMN=FIELD"),
        constants=parse_pairs(options["set"], "--set", "FIELD=VALUE"),
        choices=parse_choices(options["choice"]),
        as_it_is=options["as_it_is"],
        rater=options.get("rater") or "",
        rater_kind=RaterKind(kind) if kind else None,
        lower_is_better=options.get("lower_is_better", False),
        candidate=options.get("candidate") or "",
        new_response=NewResponse(options.get("new_response") or NewResponse.REFUSE),
    )


def parse_pairs(options: list[str], option: str, form: str) -> dict[str, str]:
    """Parse key=value pairs. A column that is named twice has both fields."""
    pairs: dict[str, str] = {}
    for pair in options:
        # Names of columns and labels may contain the sign; fields and choices do not.
        first, equals, second = pair.partition("=") if option == "--set" else pair.rpartition("=")
        if not (first and equals and second):
            raise CommandError(f"{option} takes {form}, not “{pair}”.")
        pairs[first] = f"{pairs[first]},{second}" if first in pairs and option == "--map" else second
    return pairs


def parse_choices(options: list[str]) -> dict[str, str]:
    choices: dict[str, str] = {}
    for word, choice in parse_pairs(options, "--choice", "WORD=CHOICE").items():
        if choice not in CHOICE_WORDS:
            raise CommandError(f"--choice {word}={choice}: a choice is one of {', '.join(CHOICE_WORDS)}.")
        if choices.setdefault(word.strip().lower(), choice) != choice:
            raise CommandError(f"--choice {word}={choice}: this word already means {choices[word.strip().lower()]}.")
    return choices


def import_file(options: CommandOptions, out: TextIO, *, brings: str, pair: str = "all") -> None:
    """Check a file, store it in this process, and print a summary."""
    evaluation = find_evaluation(options["slug"])
    try:
        with open_import_path(options["file"]) as (file, name):
            reading, pairing = parse_read_options(options), parse_pairing(pair)
            request = ImportRequest(reading, pairing, options.get("derive_pairs"), brings)
            importing = preview_file(evaluation, file, name, request, user=None)
        if options["remember"]:
            remember_import_mapping(importing)
        print_left_out(importing, out)
        if options["dry_run"]:
            print_summary(importing, out, "would be imported")
            discard_previewed_import(importing)
        else:
            store_or_discard(importing, out, skip_bad=options["skip_bad"])
    except NamesMissing:
        raise
    except ColumnsUnknown as unknown:
        raise CommandError(f"{unknown}{suggest_options(options)}") from unknown
    except OSError as error:
        raise CommandError(f"Cannot read {options['file']}: {error.strerror}.") from error


def suggest_options(options: CommandOptions) -> str:
    """The options that the file probably needs, ready to be pasted; empty if they cannot be guessed."""
    if options["format"] != FileFormat.AUTO or options["map"] or options["set"]:
        return ""
    try:
        with open_import_path(options["file"]) as (file, name):
            sheet = read_sheet(file, name)
    except InputRefused:
        return ""
    kind = guess_row_kind(sheet)
    if measure_column_match(sheet, kind) < 1:
        return ""
    guess = guess_columns(sheet, kind)
    fields: dict[str, list[str]] = {}
    for field, column in guess.columns.items():
        fields.setdefault(column, []).append(field)
    mapped = [shlex.quote(f"{column}={','.join(columns)}") for column, columns in fields.items()]
    whole = [shlex.quote(f"{field}={value}") for field, value in guess.constants.items()]
    likely_options = ["--format", kind, "--map", *mapped, *(["--set", *whole] if whole else [])]
    return " ".join([" Try:", *likely_options, *suggest_choices(sheet, guess.columns.get("choice"))])


def suggest_choices(sheet: Sheet, column: str | None) -> Iterator[str]:
    """The option for labels whose meaning a person must state."""
    if unknown := [word for word in sheet.words.get(column or "", ()) if is_number_word(word)]:
        yield from ("--choice", *(shlex.quote(f"{word}=CHOICE") for word in unknown))
        yield f"with {', '.join(map(str, Choice))} for each CHOICE."


def store_or_discard(importing: Import, out: TextIO, *, skip_bad: bool) -> None:
    try:
        start_storing(importing, skip_bad=skip_bad, user=None)
    except InputRefused:
        discard_previewed_import(importing)
        raise
    finish_job(IMPORT_JOB, importing.pk)
    importing.refresh_from_db()
    if importing.state != ImportState.DONE:
        raise CommandError(importing.reason)
    count_votes_left(importing.evaluation)
    print_summary(importing, out, "imported")


def discard_previewed_import(importing: Import) -> None:
    discard_import(importing, user=None)
    clean_up_import(importing)


def print_left_out(importing: Import, out: TextIO) -> None:
    """Print the models of the file, then bad rows and notices, before anything is stored."""
    if importing.models_in_words:
        out.write(f"{importing.models_in_words}\n")
    for bad in importing.bad_rows:
        out.write(f"line {bad['line']}: {bad['reason']}\n")
    if importing.rows_bad > len(importing.bad_rows):
        out.write(f"… and {importing.rows_bad - len(importing.bad_rows):,} more\n")
    for notice in importing.summary.notices:
        out.write(f"{notice}\n")


def print_summary(importing: Import, out: TextIO, stored: str) -> None:
    summary = importing.summary
    for sentence in (*summary.warnings, *summary.notes):
        out.write(f"{sentence}\n")
    out.write(f"{summarize_import(importing, stored)}\n")


def summarize_import(importing: Import, stored: str) -> str:
    new = importing.new_rows_in_words
    rows = "row" if importing.rows_read == 1 else "rows"
    skipped = f"{importing.rows_skipped:,} skipped, " if importing.rows_skipped else ""
    return (
        f"{importing.file_name}: {importing.rows_read:,} {rows} read, {importing.rows_stored:,} {stored}"
        f"{f' ({new})' if new else ''}, {importing.rows_unchanged:,} duplicates, {skipped}"
        f"{importing.rows_bad:,} invalid."
    )

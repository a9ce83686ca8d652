"""Previews, files or manifests of exports."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from time import monotonic

from django.db.models import QuerySet

from evaluations.domain.json_values import JsonDict
from evaluations.exports.first_row import FirstLine
from evaluations.exports.options import ExportRequest, complete_request, get_export_format
from evaluations.exports.writer import (
    count_export_subjects,
    filter_export_comparisons,
    load_export_participants,
    read_export_rows,
)
from evaluations.formats.export_format import ExportRow, ExportTally
from evaluations.formats.export_formats import EXPORT_FORMATS
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.exports import Export
from evaluations.models.users import User
from evaluations.visibility import reveal_comparisons, visible_comparisons


def build_manifest(export: Export) -> JsonDict:
    return {
        **export.manifest,
        "file": {"name": export.file_name, "sha256": export.sha256, "bytes": export.size_bytes, "rows": export.rows},
        "made": {
            "export": export.pk,
            "by": export.user.username if export.user else None,
            "began": export.created_at.isoformat(timespec="seconds"),
            "finished": export.finished_at.isoformat(timespec="seconds") if export.finished_at else None,
        },
    }


@dataclass(frozen=True)
class ExportPreview:
    """A preview of an export. ``whole``: whether all of it was counted. ``first_row``: as indented JSON."""

    comparisons: int
    tally: ExportTally
    whole: bool
    excluded: list[tuple[str, int]]
    first_row: str = ""


def list_exclusion_reasons(written_as: str, excluded: Mapping[str, int]) -> list[tuple[str, int]]:
    """Why rows were excluded, in the format's words, with counts. Unknown formats show the reason's key."""
    words = EXPORT_FORMATS[written_as].reasons if written_as in EXPORT_FORMATS else {}
    return [(words.get(reason, reason.replace("_", " ")), n) for reason, n in sorted(excluded.items())]


def preview_export(
    evaluation: Evaluation, written_as: str, request: ExportRequest, *, user: User, seconds: float
) -> ExportPreview:
    """Preview an export by running its writer for ``seconds`` after the first row, the only one that is kept.

    The user counts as having seen what others chose on the comparison of that row.
    """
    export_format = get_export_format(written_as)
    request = complete_request(evaluation, export_format, request)
    participants, tally = load_export_participants(evaluation, replace(request, anonymised=False)), ExportTally()
    chosen = filter_export_comparisons(evaluation, visible_comparisons(user, evaluation), request)
    is_whole, line, until = True, FirstLine(), 0.0
    shown: ExportRow = {}

    def read_until_deadline() -> Iterator[ExportRow]:
        nonlocal is_whole, shown, until
        for row in read_export_rows(export_format.needs, chosen, participants, request, tally):
            until = until or monotonic() + seconds  # from the first row on, which is always shown
            if monotonic() > until:
                is_whole = False
                tally.comparisons = max(0, tally.comparisons - 1)  # of scores none are counted
                return
            shown = shown if line.is_complete else row
            yield row

    blocks = export_format.write(read_until_deadline(), participants.list_names(), request.options, tally)
    for _ in line.watch(blocks) if export_format.ending == "jsonl" else blocks:
        pass
    first_row = line.format() if "candidate_a" in shown else ""
    if first_row:
        reveal_comparisons(user, evaluation, list(find_shown_comparisons(chosen, shown)))
    excluded = list_exclusion_reasons(written_as, tally.excluded)
    number = count_export_subjects(evaluation, export_format.needs, chosen, request)
    return ExportPreview(number, tally, is_whole, excluded, first_row)


def find_shown_comparisons(comparisons: "QuerySet[Comparison]", row: ExportRow) -> "QuerySet[Comparison]":
    return comparisons.filter(
        query__key=row["query_id"],
        response_a__candidate__name=row["candidate_a"],
        response_b__candidate__name=row["candidate_b"],
    )

"""Previews, files or manifests of exports."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from time import monotonic

from django.core.files import File
from django.db.models import QuerySet

from evaluations.domain.errors import InputRefused
from evaluations.domain.json_values import JsonDict
from evaluations.exports.options import ExportRequest, complete_request, get_export_format
from evaluations.exports.writer import filter_export_comparisons, load_export_participants, read_export_rows
from evaluations.formats.export_format import ExportRow, ExportTally
from evaluations.formats.export_formats import EXPORT_FORMATS
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.exports import Export


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


def get_manifest_name(export: Export) -> str:
    return f"{export.file_name}.manifest.json"


@dataclass(frozen=True)
class ExportPreview:
    """A preview of an export. ``whole``: whether all of it was counted."""

    comparisons: int
    tally: ExportTally
    whole: bool
    excluded: list[tuple[str, int]]


def list_exclusion_reasons(written_as: str, excluded: Mapping[str, int]) -> list[tuple[str, int]]:
    """Why rows were excluded, in the format's words, with counts. Unknown formats show the reason's key."""
    words = EXPORT_FORMATS[written_as].reasons if written_as in EXPORT_FORMATS else {}
    return [(words.get(reason, reason.replace("_", " ")), n) for reason, n in sorted(excluded.items())]


def preview_export(
    evaluation: Evaluation, written_as: str, wanted: ExportRequest, comparisons: "QuerySet[Comparison]", seconds: float
) -> ExportPreview:
    """Preview an export by running its writer for up to ``seconds`` without keeping the output."""
    leaving, until = get_export_format(written_as), monotonic() + seconds
    wanted = complete_request(evaluation, leaving, wanted)
    participants, tally = load_export_participants(evaluation, replace(wanted, anonymised=False)), ExportTally()
    chosen = filter_export_comparisons(evaluation, comparisons, wanted)
    whole = True

    def for_a_moment() -> Iterator[ExportRow]:
        nonlocal whole
        for row in read_export_rows(leaving.needs, chosen, participants, wanted, tally):
            if monotonic() > until:
                whole = False
                tally.comparisons = max(0, tally.comparisons - 1)  # of scores none are counted
                return
            yield row

    for _ in leaving.write(for_a_moment(), participants.names(), wanted.options, tally):
        pass
    return ExportPreview(chosen.count(), tally, whole, list_exclusion_reasons(written_as, tally.excluded))


def open_export_file(export: Export) -> "File[bytes]":
    if export.removed_at:
        raise InputRefused("The file of this export was removed; its record stays. Make a new export.")
    try:
        return export.file.open("rb")
    except (FileNotFoundError, ValueError):
        raise InputRefused("The file of this export is no longer in storage: make a new export.") from None


def get_export_content_type(export: Export) -> str:
    return get_export_format(export.format).content_type

"""Imports as the API shows them."""

from dataclasses import asdict

from evaluations.api.serializers import serialize_optional_person
from evaluations.domain.files import ImportState
from evaluations.domain.json_values import JsonDict
from evaluations.imports.lifecycle import BUSY_STATES
from evaluations.imports.schemas import ImportDetailOut, ImportOut, ImportProgressOut
from evaluations.imports.selectors import get_import_progress
from evaluations.models.imports import Import


def serialize_import(row: Import) -> ImportOut:
    return ImportOut(
        id=row.pk,
        file_name=row.file_name,
        sha256=row.sha256,
        format=row.format,
        state=ImportState(row.state),
        person=serialize_optional_person(row.user),
        rows_read=row.rows_read,
        rows_stored=row.rows_stored,
        rows_unchanged=row.rows_unchanged,
        rows_bad=row.rows_bad,
        rows_skipped=row.rows_skipped,
        reason=row.reason,
        created_at=row.created_at,
        finished_at=row.finished_at,
    )


def serialize_import_detail(row: Import) -> ImportDetailOut:
    how_far = get_import_progress(row) if row.state in BUSY_STATES else None
    return ImportDetailOut(
        **serialize_import(row).model_dump(),
        mapping=dict(row.options.request.reading.mapping),
        options=serialize_options(row),
        summary=serialize_summary(row) if row.is_checked else {},
        bad_rows=row.bad_rows,
        progress=ImportProgressOut(
            rows=how_far.position,
            of=how_far.total,
            rows_per_second=how_far.per_second,
            seconds_left=how_far.seconds_left,
        )
        if how_far
        else None,
    )


def serialize_options(row: Import) -> JsonDict:
    options = row.options
    request, reading = options.request, options.request.reading
    return {
        "id_prefix": reading.id_prefix,
        "rater": reading.rater,
        "rater_kind": reading.rater_kind,
        "lower_is_better": reading.lower_is_better,
        "candidate": reading.candidate,
        "new_response": reading.new_response,
        "constants": dict(reading.constants),
        "choices": dict(reading.choices),
        "pair": str(request.pairing),
        "derive_pairs": request.tie_margin,
        "brings": request.brings,
        "ranking": list(options.ranking),
        "remembered": options.is_remembered,
        "mapped": options.is_mapped,
        "skip_bad": row.skip_bad,
    }


def serialize_summary(row: Import) -> JsonDict:
    summary = row.summary
    return {
        "models": [{"name": model.name, **model.rows} for model in summary.models],
        "models_number": summary.models_number,
        "named_by": summary.named_by,
        "brings": row.brings,
        "pairs": summary.needs_pairing,
        "new": row.new_rows,
        "foreseen": summary.pairs_expected,
        "samples": [asdict(sample) for sample in summary.samples],
        "aspects": list(summary.aspects),
        "scales": {key: asdict(scale) for key, scale in summary.scales.items()},
        "warnings": list(summary.warnings),
        "notes": list(summary.notes),
        "notices": list(summary.notices),
    }

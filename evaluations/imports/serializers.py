"""Serializers of imports."""

from dataclasses import asdict

from evaluations.api.serializers import serialize_optional_user, serialize_row
from evaluations.domain.json_values import JsonDict
from evaluations.imports.lifecycle import BUSY_STATES, get_import_progress
from evaluations.imports.schemas import ImportDetailOut, ImportOut, ImportProgressOut
from evaluations.models.imports import Import


def serialize_import(row: Import) -> ImportOut:
    return serialize_row(ImportOut, row, created_by=serialize_optional_user(row.user))


def serialize_import_detail(row: Import) -> ImportDetailOut:
    progress = get_import_progress(row) if row.state in BUSY_STATES else None
    return ImportDetailOut(
        **serialize_import(row).model_dump(),
        mapping=dict(row.options.request.reading.mapping),
        options=serialize_options(row),
        summary=serialize_summary(row) if row.is_checked else {},
        bad_rows=row.bad_rows,
        progress=ImportProgressOut(
            rows=progress.position,
            of=progress.total,
            rows_per_second=progress.per_second,
            seconds_left=progress.seconds_left,
        )
        if progress
        else None,
    )


def serialize_options(row: Import) -> JsonDict:
    options = row.options
    request, reading = options.request, options.request.reading
    names = ("id_prefix", "rater", "rater_kind", "lower_is_better", "candidate", "new_response")
    return {
        **{name: getattr(reading, name) for name in names},
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

"""Imports as the API shows them."""

from django.shortcuts import get_object_or_404

from evaluations.access import Action, require_evaluation
from evaluations.api.serializers import serialize_optional_person
from evaluations.domain.files import ImportState
from evaluations.imports.lifecycle import BUSY_STATES
from evaluations.imports.schemas import ImportDetailOut, ImportOut, ImportProgressOut
from evaluations.imports.selectors import get_import_progress
from evaluations.models.imports import Import
from evaluations.web.requests import AuthenticatedRequest


def get_import_for_program(request: AuthenticatedRequest, slug: str, pk: int) -> Import:
    evaluation = require_evaluation(request.user, slug, Action.MANAGE)
    found = evaluation.imports.select_related("evaluation", "user")
    return get_object_or_404(found, pk=pk)


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
        mapping=row.mapping,
        options=row.options,
        summary=row.summary,
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

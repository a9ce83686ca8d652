"""Exports that requests name, or a 404, and responses with their files."""

from typing import Any

from django.core.files import File
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404

from evaluations.access import Action, action_for_export, require_evaluation
from evaluations.domain.errors import InputRefused
from evaluations.exports.options import get_export_format
from evaluations.models.exports import Export
from evaluations.visibility import record_download
from evaluations.web.file_responses import file_response
from evaluations.web.requests import AuthenticatedRequest


def get_export_or_404(
    request: AuthenticatedRequest, slug: str, pk: int, action: Action = Action.EXPORT, **columns: Any
) -> Export:
    evaluation = require_evaluation(request.user, slug, action)
    return get_object_or_404(evaluation.exports.select_related("user", "evaluation"), pk=pk, **columns)


def send_export_file(request: AuthenticatedRequest, export: Export) -> HttpResponseBase:
    """Respond with the file or a range of it, and record the download. Raises InputRefused if the file is gone."""
    require_evaluation(request.user, export.evaluation.slug, action_for_export(export.format))
    file = open_export_file(export)
    if request.method == "GET":
        record_download(request.user, export)
    return file_response(
        request,
        file,
        size=file.size,
        tag=export.sha256,
        name=export.file_name,
        content_type=get_export_format(export.format).content_type,
    )


def open_export_file(export: Export) -> "File[bytes]":
    if export.removed_at:
        raise InputRefused("The file of this export was deleted. Create a new export.")
    try:
        return export.file.open("rb")
    except (FileNotFoundError, ValueError):
        raise InputRefused("The file of this export is no longer in storage. Create a new export.") from None

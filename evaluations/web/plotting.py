"""Plots of a page: where their files are, and what is answered to whoever takes one."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from django.http import HttpResponse
from django.utils.http import content_disposition_header

from evaluations.services.reporting.plotting import PlotFile

FORMAT = "as"


def files_address(address: str, asked: Mapping[str, Sequence[str]]) -> str:
    """Where the files of a plot are, by what was asked of its page; the name of a format is to follow."""
    return f"{address}?{urlencode({**asked, FORMAT: ['']}, doseq=True)}"


def file_response(file: PlotFile) -> HttpResponse:
    disposition = content_disposition_header(True, file.name) or ""
    return HttpResponse(file.content, content_type=file.content_type, headers={"Content-Disposition": disposition})

"""Files that programs send, as a form or as the whole body."""

from typing import Final, cast

from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest

from evaluations.api.operations import BYTES_TYPE
from evaluations.api.problems import FieldError, Problem
from evaluations.domain.files import DEFAULT_FILE_NAME

FILE_SCHEMA: Final = {"type": "string", "format": "binary"}
FILE_NAME_PARAMETER: Final = {
    "name": "file_name",
    "in": "query",
    "required": False,
    "description": "of a raw body: what the file is called. The fields of the form may stand here, too",
    "schema": {"type": "string", "maxLength": 255},
}


def read_sent_file(request: HttpRequest) -> tuple["UploadedFile[bytes]", str]:
    """The file of the form, or the whole body, and what it is called."""
    is_raw = request.content_type == BYTES_TYPE
    file = (
        read_raw_body(request, request.GET.get("file_name", "")[:255] or DEFAULT_FILE_NAME)
        if is_raw
        else request.FILES.get("file")
    )
    if file is None:
        raise Problem("invalid", "There is no file in the form.", faults=[FieldError("form.file", "This is required.")])
    return cast("UploadedFile[bytes]", file), file.name or DEFAULT_FILE_NAME


def read_raw_body(request: HttpRequest, name: str) -> "UploadedFile[bytes]":
    file = getattr(request, "spooled", None)
    if file is None:
        raise Problem("invalid", "The body is empty.", faults=[FieldError("body", "Send the file as the body.")])
    file.seek(0, 2)
    size = file.tell()
    file.seek(0)
    return UploadedFile(file, name=name.replace("/", "_").replace("\\", "_"), size=size)

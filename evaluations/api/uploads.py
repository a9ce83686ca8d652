"""Files that programs send, as a form or as the whole body."""

from typing import Any, BinaryIO, Final, TypeVar, cast

from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest
from ninja import Schema
from pydantic import ValidationError

from evaluations.api.operations import BYTES_TYPE, FORM_TYPE
from evaluations.api.problems import FieldError, Problem
from evaluations.domain.files import DEFAULT_FILE_NAME
from evaluations.domain.json_values import JsonMapping
from evaluations.web.request_bodies import take_body_file

SentFields = TypeVar("SentFields", bound=Schema)
FILE_SCHEMA: Final = {"type": "string", "format": "binary"}
FILE_NAME_PARAMETER: Final = {
    "name": "file_name",
    "in": "query",
    "required": False,
    "description": "file name, for a raw body. The form fields may be sent here, too",
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
        raise Problem("invalid", "The form has no file.", faults=[FieldError("form.file", "This is required.")])
    return cast("UploadedFile[bytes]", file), file.name or DEFAULT_FILE_NAME


def read_sent_fields(request: HttpRequest, schema: type[SentFields]) -> SentFields:
    """The fields that were sent with a file: in the form, or for a raw body in the query."""
    source, fields = ("query", request.GET) if request.content_type == BYTES_TYPE else ("form", request.POST)
    sent = {name: value for name, value in fields.items() if value and name != "file_name"}
    try:
        return schema.model_validate(sent)
    except ValidationError as error:
        faults = [
            FieldError(".".join(map(str, (source, *fault["loc"]))), str(fault["msg"])) for fault in error.errors()
        ]
        raise Problem("invalid", f"{faults[0].field}: {faults[0].message}. Nothing was done.", faults=faults) from None


def describe_upload(schema: type[Schema] | None = None) -> dict[str, object]:
    """The OpenAPI description of an operation that takes a file, with fields of this schema."""
    described = schema.model_json_schema() if schema else {}
    fields = inline_definitions(described.get("properties", {}), described.get("$defs", {}))
    form = {"type": "object", "required": ["file"], "properties": {"file": FILE_SCHEMA, **fields}}
    content = {FORM_TYPE: {"schema": form}, BYTES_TYPE: {"schema": FILE_SCHEMA}}
    return {"parameters": [FILE_NAME_PARAMETER], "requestBody": {"required": True, "content": content}}


def inline_definitions(described: Any, definitions: JsonMapping) -> Any:
    """A JSON schema with the definitions in place of the references to them."""
    if isinstance(described, list):
        return [inline_definitions(part, definitions) for part in described]
    if not isinstance(described, dict):
        return described
    others = {name: inline_definitions(part, definitions) for name, part in described.items() if name != "$ref"}
    name = described.get("$ref", "").rpartition("/")[2]
    return {**definitions[name], **others} if name else others


def read_raw_body(request: HttpRequest, name: str) -> "UploadedFile[bytes]":
    file = getattr(request, "spooled", None)
    if file is None:
        raise Problem("invalid", "The body is empty.", faults=[FieldError("body", "Send the file as the body.")])
    file.seek(0, 2)
    size = file.tell()
    file.seek(0)
    name = name.replace("/", "_").replace("\\", "_")
    if (received := take_body_file(request)) is not None:
        return ReceivedFile(received, name=name, size=size)
    return UploadedFile(file, name=name, size=size)


class ReceivedFile(UploadedFile):  # type: ignore[type-arg]
    """A body that lies on disk already: storage takes the file itself instead of a copy."""

    def temporary_file_path(self) -> str:
        return str(cast(BinaryIO, self.file).name)

"""Shapes of the API for imports."""

from datetime import datetime

from ninja import Field, Schema

from evaluations.api.schemas import PersonOut, StrictIn
from evaluations.domain.files import ImportState
from evaluations.domain.json_values import JsonDict


class ImportProgressOut(Schema):
    rows: int
    of: int | None
    rows_per_second: float | None
    seconds_left: float | None


class ImportOut(Schema):
    id: int
    file_name: str
    sha256: str
    format: str
    state: ImportState
    person: PersonOut | None
    rows_read: int
    rows_stored: int
    rows_unchanged: int
    rows_bad: int
    rows_skipped: int = Field(description="left out by `new_response`: skip")
    reason: str
    created_at: datetime
    finished_at: datetime | None


class ImportPageOut(Schema):
    items: list[ImportOut]
    next: str | None


class ImportDetailOut(ImportOut):
    mapping: JsonDict
    options: JsonDict
    summary: JsonDict = Field(description="what storing it would do; empty until the file is checked")
    bad_rows: list[JsonDict] = Field(description="the first of them, by line")
    progress: ImportProgressOut | None


class StoreImportIn(StrictIn):
    skip_bad: bool = Field(False, description="leave out the bad rows instead of storing nothing")

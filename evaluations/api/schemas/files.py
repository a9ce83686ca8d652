from datetime import datetime
from typing import Annotated, Any

from ninja import Field, Schema

from evaluations.api.schemas.shared import Person, Sent
from evaluations.domain import ExportState, ImportState, LabelPolicy, SplitPart


class ImportProgress(Schema):
    rows: int
    of: int | None
    rows_per_second: float | None
    seconds_left: float | None


class ImportTold(Schema):
    id: int
    file_name: str
    sha256: str
    format: str
    state: ImportState
    person: Person | None
    rows_read: int
    rows_stored: int
    rows_unchanged: int
    rows_bad: int
    rows_skipped: int = Field(description="left out by `new_response`: skip")
    reason: str
    created_at: datetime
    finished_at: datetime | None


class ImportPage(Schema):
    items: list[ImportTold]
    next: str | None


class ImportWhole(ImportTold):
    mapping: dict[str, Any]
    options: dict[str, Any]
    summary: dict[str, Any] = Field(description="what storing it would do; empty until the file is checked")
    bad_rows: list[dict[str, Any]] = Field(description="the first of them, by line")
    progress: ImportProgress | None


class Storing(Sent):
    skip_bad: bool = Field(False, description="leave out the bad rows instead of storing nothing")


class ExportTold(Schema):
    id: int
    format: str
    file_name: str
    state: ExportState
    policy: LabelPolicy
    filters: dict[str, Any]
    options: dict[str, Any]
    rows: int | None
    bytes: int | None
    sha256: str
    counts: dict[str, Any]
    person: Person | None
    reached: int = Field(description="comparisons so far, of a backup rows")
    expected: int | None = Field(description="of how many, once that is known")
    reason: str
    created_at: datetime
    finished_at: datetime | None


class ExportPage(Schema):
    items: list[ExportTold]
    next: str | None


class FormatSetting(Schema):
    name: str
    values: list[str]
    initial: str
    of_candidates: bool = Field(description="whether it takes the name of one of the evaluation's candidates, too")


class FormatTold(Schema):
    name: str
    title: str
    ending: str
    wants_choice: bool = Field(description="whether an aspect or a combining rule has to be named")
    is_whole: bool = Field(description="everything as it stands: for owners alone, and without filters or options")
    settings: list[FormatSetting]


class FormatList(Schema):
    items: list[FormatTold]


class SplitWanted(Sent):
    seed: Annotated[str, Field(max_length=100)] = Field("", description="empty: the evaluation's own")
    train: Annotated[int, Field(ge=0, le=100)] = 80
    dev: Annotated[int, Field(ge=0, le=100)] = 10
    test: Annotated[int, Field(ge=0, le=100)] = 10


class ExportNew(Sent):
    format: Annotated[str, Field(max_length=40, examples=["jsonl"])]
    policy: LabelPolicy | None = None
    aspect: Annotated[str, Field(max_length=60)] = ""
    combine: Annotated[str, Field(max_length=200)] = ""
    settings: dict[Annotated[str, Field(max_length=60)], Annotated[str, Field(max_length=200)]] = Field(
        default_factory=dict
    )
    where: dict[Annotated[str, Field(max_length=200)], Annotated[str, Field(max_length=200)]] = Field(
        default_factory=dict, description="only comparisons with these values", examples=[{"category": "math"}]
    )
    slice: Annotated[str, Field(max_length=80)] = ""
    part: SplitPart | None = None
    split: SplitWanted | None = None
    anonymise: bool = False


class ManifestTold(Schema):
    manifest: dict[str, Any]

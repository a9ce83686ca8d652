"""The API shapes of exports."""

from datetime import datetime
from typing import Annotated

from ninja import Field, Schema

from evaluations.api.schemas import StrictIn, UserOut
from evaluations.domain.choices import LabelPolicy
from evaluations.domain.files import ExportState
from evaluations.domain.json_values import JsonDict
from evaluations.domain.splits import SplitPart


class ExportOut(Schema):
    id: int
    format: str
    file_name: str
    state: ExportState
    policy: LabelPolicy
    filters: JsonDict
    options: JsonDict
    rows: int | None
    bytes: int | None
    sha256: str
    counts: JsonDict
    created_by: UserOut | None
    reached: int = Field(description="comparisons so far; rows for a backup")
    expected: int | None = Field(description="total, once known")
    reason: str
    created_at: datetime
    finished_at: datetime | None


class ExportPage(Schema):
    items: list[ExportOut]
    next: str | None


class FormatSettingOut(Schema):
    name: str
    values: list[str]
    initial: str
    of_candidates: bool = Field(description="whether it also accepts the name of a candidate")


class ExportFormatOut(Schema):
    name: str
    title: str
    ending: str
    wants_choice: bool = Field(description="whether `aspect` or `combine` decides its preferences")
    is_whole: bool = Field(description="the whole evaluation, without filters or options; owners only")
    settings: list[FormatSettingOut]


class ExportFormatList(Schema):
    items: list[ExportFormatOut]


class SplitIn(StrictIn):
    seed: Annotated[str, Field(max_length=100)] = Field("", description="default: the evaluation's own")
    train: Annotated[int, Field(ge=0, le=100)] = 80
    dev: Annotated[int, Field(ge=0, le=100)] = 10
    test: Annotated[int, Field(ge=0, le=100)] = 10


class ExportIn(StrictIn):
    format: Annotated[str, Field(max_length=40, examples=["jsonl"])]
    policy: LabelPolicy | None = None
    aspect: Annotated[str, Field(max_length=60)] = ""
    combine: Annotated[str, Field(max_length=200)] = ""
    settings: dict[Annotated[str, Field(max_length=60)], Annotated[str, Field(max_length=200)]] = Field(
        default_factory=dict
    )
    where: dict[Annotated[str, Field(max_length=200)], Annotated[str, Field(max_length=200)]] = Field(
        default_factory=dict, description="export only comparisons with these values", examples=[{"category": "math"}]
    )
    saved_filter: Annotated[str, Field(max_length=80)] = ""
    part: SplitPart | None = None
    split: SplitIn | None = None
    anonymise: bool = False


class ManifestOut(Schema):
    manifest: JsonDict

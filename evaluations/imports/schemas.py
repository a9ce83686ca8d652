"""Shapes of the API for imports."""

from datetime import datetime
from typing import Annotated

from ninja import Field, Schema

from evaluations.api.schemas import NameText, PersonOut, StrictIn
from evaluations.domain.files import FileFormat, ImportState, NewResponse, ReadOptions
from evaluations.domain.imports import ImportRequest, parse_column_fields
from evaluations.domain.json_values import JsonDict
from evaluations.domain.pairing import MAX_PAIRS_PER_QUERY, PairingWay, make_pairing
from evaluations.domain.roles import RaterKind

PairsPerQuery = Annotated[int, Field(ge=1, le=MAX_PAIRS_PER_QUERY)]


class ImportIn(StrictIn):
    """The fields of an upload."""

    format: FileFormat = Field(FileFormat.AUTO, description="what is in it; `auto`: detected from the columns")
    id_prefix: str = Field("", max_length=100)
    candidate: NameText = Field(
        "",
        description="the model of every response, overriding the file's column; without it the column names the "
        "model, else the file's name does",
    )
    rater: NameText = ""
    rater_kind: RaterKind | None = None
    mapping: str = Field("", description="column=field, one a line")
    pair: PairingWay = Field(PairingWay.ALL, description="pairs made of responses: all, baseline, random or adjacent")
    baseline: NameText = ""
    pairs_each: PairsPerQuery | None = None
    new_response: NewResponse = Field(
        NewResponse.REFUSE,
        description="where a candidate has another response to a query already, and no column `sample` tells them "
        "apart: refuse the row, keep both, replace the other (only while nobody used it), or skip the row",
    )
    lower_is_better: bool = False
    derive_pairs: float | None = Field(None, ge=0)

    def to_request(self) -> ImportRequest:
        return ImportRequest(
            ReadOptions(
                format=self.format,
                id_prefix=self.id_prefix,
                mapping=parse_column_fields(self.mapping),
                rater=self.rater,
                rater_kind=self.rater_kind,
                lower_is_better=self.lower_is_better,
                candidate=self.candidate,
                new_response=self.new_response,
            ),
            make_pairing(self.pair, baseline=self.baseline, pairs_each=self.pairs_each),
            self.derive_pairs,
        )


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

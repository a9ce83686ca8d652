"""The fields that a row of a file may have, as a person is asked about them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from evaluations.domain.files import FileFormat

# What a query's id may be where no column holds one.
ROW_NUMBER: Final = "#row"
OF_TEXT: Final = "#text"
CANDIDATE: Final = "candidate"
# What is said of all rows of one file and of no other: a mapping that is remembered leaves its value out.
OF_ONE_FILE: Final = (CANDIDATE, "candidate_a", "candidate_b", "rater", "rater_kind")


@dataclass(frozen=True)
class FileField:
    """A field of a row. ``whole_file``: whether one value may stand for all rows."""

    name: str
    needed: bool = False
    whole_file: bool = False


QUERY: Final = (
    FileField("query_id", needed=True),
    FileField("query", needed=True),
    FileField("messages"),
    FileField("context"),
    FileField("reference"),
    FileField("category", whole_file=True),
    FileField("cluster"),
)
SAID: Final = (
    FileField("rater", whole_file=True),
    FileField("rater_kind", whole_file=True),
    FileField("aspect", whole_file=True),
)
BOTH: Final = (
    FileField("candidate_a", needed=True, whole_file=True),
    FileField("candidate_b", needed=True, whole_file=True),
)
ONE: Final = FileField(CANDIDATE, needed=True, whole_file=True)
FIELDS: Final[Mapping[str, tuple[FileField, ...]]] = {
    FileFormat.COMPARISONS: (
        *QUERY,
        BOTH[0],
        FileField("response_a", needed=True),
        BOTH[1],
        FileField("response_b", needed=True),
        FileField("choice"),
        *SAID,
        FileField("rationale"),
    ),
    FileFormat.RESPONSES: (
        *QUERY,
        FileField(CANDIDATE, whole_file=True),  # else it is the file's own name
        FileField("response", needed=True),
        FileField("sample"),
        FileField("value"),
        FileField("failure"),
        *SAID,
        FileField("rationale"),
    ),
    FileFormat.VERDICTS: (
        FileField("query_id", needed=True),
        *BOTH,
        FileField("choice", needed=True),
        *SAID,
        FileField("shown_swapped", whole_file=True),
        FileField("sample"),
        FileField("rationale"),
        FileField("note"),
        FileField("created_at"),
    ),
    FileFormat.SCORES: (
        FileField("query_id", needed=True),
        ONE,
        FileField("value", needed=True),
        FileField("failure"),
        *SAID,
        FileField("sample"),
        FileField("rationale"),
    ),
}

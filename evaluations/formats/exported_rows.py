"""The shape of an exported comparison: its material, with all verdicts, reviews and comments.

The material has the names of the columns of comparison files, so that an exported file can be imported again. Raters'
labels are under LABELS in JSON and in columns with one of PREFIXES in CSV; importing the file as comparisons skips
them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final, NotRequired, TypedDict

from evaluations.domain.texts import Message

LABELS: Final = ("gold", "judges", "labels", "people")
# Added with resolutions and reasons for skipping; older files have none of these.
DISCUSSION: Final = ("adjudications", "comments", "skipped")
SPLIT: Final = "split"  # the part that the export put it in
PREFIXES: Final = ("label:", "adjudication:", "gold:", "judge:", "person:")
# Labels in the comparisons of a Hugging Face dataset, where the query is the column “prompt”.
ON_THE_HUB: Final = ("choice", "labels", SPLIT)
NEUTRALISED: Final = "neutralised"
PACKED: Final = '[{"content": '  # how messages begin in a cell
# A spreadsheet takes a cell that begins so for a formula (or drops the blank and then does).
EXECUTED: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


ResponseText = str | Sequence[Message]


class ExportedLabel(TypedDict):
    """A label. ``choice`` is null where votes are split. ``by``: who resolved it, or the judges that chose it."""

    choice: str | None
    source: str
    n: int
    votes: Mapping[str, int]
    by: str | None


class ExportedAdjudication(TypedDict):
    """``in_bulk``: the majority was accepted for many comparisons at once."""

    choice: str
    category: str
    reason: str
    by: str
    at: str
    in_bulk: bool


class ExportedComment(TypedDict):
    """One contribution to the thread; ``aspect`` is null where it is about the comparison as a whole."""

    author: str
    aspect: str | None
    text: str
    at: str


class ExportedSkip(TypedDict):
    """A person skipped the comparison and has not reviewed it since. ``reason`` may be empty."""

    rater: str
    rubric: str | None
    reason: str
    at: str | None


class ExportedSpan(TypedDict):
    """A passage of a response that the person marked, in characters of the displayed turn."""

    response: str
    turn: int
    start: int
    end: int
    quote: str
    comment: str
    aspect: str | None


class ExportedPersonScores(TypedDict):
    """A person's scores; null where none was given or confirmed. ``lower_is_better``: of imported ones, where true."""

    first: dict[str, float | None]
    final: dict[str, float | None]
    margin: float
    lower_is_better: NotRequired[bool]


class ExportedPersonChoice(TypedDict):
    """``final`` is null while the person has not confirmed the first choice. ``reason``: why it differs from others'.

    ``scores``: present where the choice is derived from them.
    """

    first: str | None
    final: str | None
    note: str
    reason: str | None
    rationale: NotRequired[str]
    scores: NotRequired[ExportedPersonScores]


class ExportedReviewContext(TypedDict):
    """How the comparison was selected for the person, and what they saw before choosing; null where unknown."""

    picked_by: str | None
    round: str | None
    probability: float | None
    calibration: bool
    reveal: str | None
    judge_first: bool | None
    judge_shown: str | None
    awaits_judge: bool | None
    active_ms: int | None


class ExportedPerson(ExportedReviewContext):
    """One person's review of the comparison. ``blind`` is null where it is unknown."""

    rater: str
    rubric: str | None
    state: str
    blind: bool | None
    shown: str
    note: str
    is_example: NotRequired[bool]
    choices: dict[str, ExportedPersonChoice]
    spans: list[ExportedSpan]


class ExportedScores(TypedDict):
    """Mean scores of the two responses, from which the choice is derived: a tie within the margin."""

    A: float
    B: float
    margin: float
    lower_is_better: NotRequired[bool]


class ExportedJudgeChoice(TypedDict):
    """A judge's verdict on one aspect. ``choice`` is null where an order that was asked has no answer.

    ``orders``: the choices in each order shown, sample by sample; null for a sample without an answer before the last
    one. ``scores``: present where the choice is derived from scores of single responses. ``rationales`` and ``notes``:
    of imported verdicts, by the order shown, at the position of the choice.
    """

    choice: str | None
    inconsistent: bool
    orders: dict[str, list[str | None]]
    rationales: NotRequired[dict[str, list[str]]]
    notes: NotRequired[dict[str, list[str]]]
    scores: NotRequired[ExportedScores]


class ExportedJudgeName(TypedDict):
    """A judge's name; ``remark`` marks every judge that is no LLM."""

    judge: str
    kind: str
    model: str
    rubric: str | None
    remark: NotRequired[str]


class ExportedJudge(ExportedJudgeName):
    """A judge's verdicts. ``failures``: failed calls by state. ``rationales``: by order shown, or by response."""

    choices: dict[str, ExportedJudgeChoice]
    rationales: dict[str, list[str]]
    failures: dict[str, int]


class ExportedGold(TypedDict):
    rater: str
    choices: dict[str, str]


class ExportedMaterial(TypedDict):
    """A query of one turn is in ``query``, any other in ``messages``. ``split``: its part, where there is a split."""

    query_id: str
    cluster: str
    category: str
    query: str | None
    messages: Sequence[Message] | None
    context: str | None
    reference: str | None
    candidate_a: str
    response_a: str | Sequence[Message]
    candidate_b: str
    response_b: str | Sequence[Message]
    metadata: Mapping[str, Any]
    split: NotRequired[str]


MATERIAL: Final = tuple(name for name in ExportedMaterial.__annotations__ if name != SPLIT)


class LabelledRow(ExportedMaterial):
    labels: dict[str, ExportedLabel]


class ExportedRow(LabelledRow):
    adjudications: dict[str, ExportedAdjudication]
    comments: list[ExportedComment]
    gold: list[ExportedGold]
    judges: list[ExportedJudge]
    people: list[ExportedPerson]
    skipped: list[ExportedSkip]


@dataclass(frozen=True)
class ExportedRaters:
    """The names of the raters, and their aspects in page order. ``scored``: the people among them who gave scores."""

    aspects: Sequence[str]
    people: Sequence[str]
    judges: Sequence[str]
    gold: Sequence[str]
    scored: Set[str] = frozenset()


def prompt_messages(row: ExportedMaterial) -> Sequence[Message]:
    return row["messages"] or [{"role": "user", "content": row["query"] or ""}]


def response_messages(response: ResponseText) -> Sequence[Message]:
    return [{"role": "assistant", "content": response}] if isinstance(response, str) else response


def conversation_with_response(row: ExportedMaterial, response: ResponseText) -> list[Message]:
    return [*prompt_messages(row), *response_messages(response)]


def is_empty_response(response: ResponseText) -> bool:
    if isinstance(response, str):
        return not response.strip()
    return not any(turn["content"].strip() for turn in response if turn["role"] == "assistant")


def read_exported_material(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The material of a row of an exported file.

    A row of any other file is returned unchanged. An exported row has all of LABELS, or all of ON_THE_HUB and a prompt,
    or in CSV the column NEUTRALISED with the names of the cells that were given an apostrophe, one a line.
    """
    if NEUTRALISED in row:
        return material_from_cells(row, set(str(row[NEUTRALISED]).split("\n")))
    if all(name in row for name in LABELS):
        return unpack_metadata({name: row[name] for name in row if name not in (*LABELS, *DISCUSSION, SPLIT)})
    if all(name in row for name in (*ON_THE_HUB, "prompt", "candidate_a", "metadata")):
        material = {name: row[name] for name in row if name not in (*ON_THE_HUB, "prompt")}
        return unpack_metadata({**material, "messages": row["prompt"]})
    return row


def has_exported_labels(row: Mapping[str, Any]) -> bool:
    """Whether a row of an exported file has any labels of raters."""
    of_raters = {*LABELS, *DISCUSSION, *ON_THE_HUB} - {SPLIT}
    return any(value for name, value in row.items() if name in of_raters or name.startswith(PREFIXES))


def unpack_metadata(row: dict[str, Any]) -> dict[str, Any]:
    """The row with its metadata as an object, where it is a text as in Parquet."""
    if isinstance(row.get("metadata"), str):
        row["metadata"] = unpack_json(row["metadata"])
    return row


def unpack_json(text: str) -> Any:
    """The parsed JSON; a text that is not JSON, as after an edit, is returned."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def material_from_cells(row: Mapping[str, Any], marked: Set[str]) -> dict[str, Any]:
    cells = {name: str(cell)[1:] if name in marked else cell for name, cell in row.items()}
    for name in ("response_a", "response_b"):
        cells[name] = unpack_cell(cells.get(name))
    aside = (NEUTRALISED, *DISCUSSION, SPLIT)
    return {name: cell for name, cell in cells.items() if name not in aside and not name.startswith(PREFIXES)}


def pack_response(response: str | Sequence[Message]) -> str:
    """A response as a cell: its text, or its messages as JSON. A text that looks like those is packed too."""
    if not isinstance(response, str):
        return pack_cell(response)
    return pack_cell([{"role": "assistant", "content": response}]) if response.startswith(PACKED) else response


def unpack_cell(cell: Any) -> Any:
    return unpack_json(cell) if isinstance(cell, str) and cell.startswith(PACKED) else cell


def pack_cell(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)

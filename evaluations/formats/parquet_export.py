"""Exported comparisons as Parquet: typed, nested columns in row groups.

Messages are lists of structs, as `datasets`, pandas and polars read them; a response is always such a list. Mappings
whose keys are names (labels by aspect, a judge's choices) are lists of structs that include the name, because a struct
would have different columns in every evaluation. ``metadata`` is JSON in a text.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, chain
from typing import Any, Final

import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq

from evaluations.formats.export_format import ShapeCache
from evaluations.formats.exported_rows import ExportedJudge, ExportedRow, pack_cell, prompt_messages, response_messages
from evaluations.formats.jsonl_export import encode_line
from evaluations.formats.preferences import ExportCounts
from evaluations.formats.zip_stream import PendingBytes

TEXT: Final = pa.string()
TURN: Final = pa.struct({"role": TEXT, "content": TEXT})
TURNS: Final = pa.list_(TURN)
# Columns with minimum and maximum of each row group in the footer of a Parquet file. Those of long texts would be most
# of the footer, which the writer keeps in memory and every reader must read first.
RANGED: Final = ("query_id", "cluster", "category", "candidate_a", "candidate_b", "split")
FIRST_GROUP_ROWS: Final = 200  # small, so that a download starts at once
GROUP_ROWS: Final = 2_000
GROUP_CHARACTERS: Final = 32_000_000  # of responses in memory; where they are long a group has fewer rows
VOTES: Final = pa.list_(pa.struct({"choice": TEXT, "n": pa.int32()}))
ORDERS: Final = pa.list_(pa.struct({"shown": TEXT, "choices": pa.list_(TEXT)}))
WORDS: Final = pa.list_(pa.struct({"shown": TEXT, "texts": pa.list_(TEXT)}))
SCORES: Final = pa.struct({"A": pa.float64(), "B": pa.float64(), "margin": pa.float64(), "lower_is_better": pa.bool_()})
LABEL: Final = pa.struct({"aspect": TEXT, "choice": TEXT, "source": TEXT, "n": pa.int32(), "votes": VOTES, "by": TEXT})
ADJUDICATION: Final = pa.struct(
    dict.fromkeys(("aspect", "choice", "category", "reason", "by", "at"), TEXT) | {"in_bulk": pa.bool_()}
)
ADJUDICATIONS: Final = pa.list_(ADJUDICATION)
COMMENTS: Final = pa.list_(pa.struct({"author": TEXT, "aspect": TEXT, "text": TEXT, "at": TEXT}))
SKIPPED: Final = pa.list_(pa.struct({"rater": TEXT, "rubric": TEXT, "reason": TEXT, "at": TEXT}))
GOLD: Final = pa.list_(pa.struct({"rater": TEXT, "choices": pa.list_(pa.struct({"aspect": TEXT, "choice": TEXT}))}))

CHOICE: Final = pa.struct(
    {
        "aspect": TEXT,
        "choice": TEXT,
        "inconsistent": pa.bool_(),
        "orders": ORDERS,
        "scores": SCORES,
        "rationales": WORDS,
        "notes": WORDS,
    }
)

FAILURES: Final = pa.list_(pa.struct({"state": TEXT, "n": pa.int32()}))
INTRODUCED: Final = ("judge", "kind", "model", "rubric", "remark")

JUDGE: Final = pa.struct(
    {
        **dict.fromkeys(INTRODUCED, TEXT),
        "choices": pa.list_(CHOICE),
        "rationales": WORDS,
        "failures": FAILURES,
    }
)

PERSONS_SCORES: Final = pa.struct(
    {
        "first": pa.struct({"A": pa.float64(), "B": pa.float64()}),
        "final": pa.struct({"A": pa.float64(), "B": pa.float64()}),
        "margin": pa.float64(),
        "lower_is_better": pa.bool_(),
    }
)

PEOPLE: Final = pa.list_(
    pa.struct(
        {
            **dict.fromkeys(("rater", "rubric", "state", "shown", "note", "picked_by", "round", "reveal"), TEXT),
            "judge_shown": TEXT,
            "probability": pa.float64(),
            "active_ms": pa.int64(),
            **dict.fromkeys(("blind", "calibration", "judge_first", "awaits_judge", "is_example"), pa.bool_()),
            "choices": pa.list_(
                pa.struct(
                    {
                        **dict.fromkeys(("aspect", "first", "final", "note", "reason", "rationale"), TEXT),
                        "scores": PERSONS_SCORES,
                    }
                )
            ),
            "spans": pa.list_(
                pa.struct(
                    {
                        **dict.fromkeys(("response", "quote", "comment", "aspect"), TEXT),
                        **dict.fromkeys(("turn", "start", "end"), pa.int32()),
                    }
                )
            ),
        }
    )
)

SCHEMA: Final = pa.schema(
    {
        **dict.fromkeys(("query_id", "cluster", "category"), TEXT),
        "messages": TURNS,
        **dict.fromkeys(("context", "reference", "candidate_a"), TEXT),
        "response_a": TURNS,
        "candidate_b": TEXT,
        "response_b": TURNS,
        "metadata": TEXT,
        "split": TEXT,
        "labels": pa.list_(LABEL),
        "adjudications": ADJUDICATIONS,
        "comments": COMMENTS,
        "gold": GOLD,
        "judges": pa.list_(JUDGE),
        "people": PEOPLE,
        "skipped": SKIPPED,
    }
)

NAMED: Final = ("query_id", "cluster", "category", "context", "reference", "candidate_a", "candidate_b")

# Columns of people: filled in few rows, and deeply nested. pyarrow reads them faster from JSON than from lists.
BY_PEOPLE: Final = pa.schema(
    [SCHEMA.field(name) for name in ("adjudications", "comments", "gold", "people", "skipped")]
)


def open_parquet_writer(sink: Any, schema: pa.Schema) -> pq.ParquetWriter:
    """``sink``: a path or a file of pyarrow."""
    ranged = [name for name in RANGED if name in schema.names]
    return pq.ParquetWriter(sink, schema, compression="zstd", write_statistics=ranged)


def text_array(values: Iterable[str | None]) -> pa.Array:
    return pa.array(values, TEXT)


def list_array(rows: Sequence[Sequence[Any]], column: Callable[[list[Any]], pa.Array]) -> pa.Array:
    """An array of lists. ``column`` converts the values of all lists at once."""
    offsets = pa.array([0, *accumulate(map(len, rows))], pa.int32())
    return pa.ListArray.from_arrays(offsets, column(list(chain.from_iterable(rows))))


def struct_array(kind: pa.StructType, columns: Mapping[str, pa.Array]) -> pa.Array:
    return pa.StructArray.from_arrays([columns[field.name] for field in kind], fields=list(kind))


def conversation_array(rows: Sequence[Sequence[Mapping[str, Any]]]) -> pa.Array:
    """An array of conversations, each a list of turns with role and content."""
    return list_array(rows, turn_array)


def turn_array(turns: Sequence[Mapping[str, Any]]) -> pa.Array:
    return struct_array(TURN, {name: text_array([turn[name] for turn in turns]) for name in ("role", "content")})


def shared_array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """An array of values of which many are the same object; each is converted once."""
    distinct = {id(value): value for value in values}
    place = {number: index for index, number in enumerate(distinct)}
    made = pa.array(distinct.values(), kind)
    return made.take(pa.array([place[id(value)] for value in values], pa.int32()))


label_array = partial(shared_array, kind=LABEL)
choice_array = partial(shared_array, kind=CHOICE)


def parquet_bytes(rows: Iterable[ExportedRow], tally: ExportCounts) -> Iterator[bytes]:
    """The file, one row group at a time."""
    sink, tables = PendingBytes(), ExportedTables()
    with open_parquet_writer(pa.PythonFile(sink, mode="w"), SCHEMA) as writer:
        for group in row_groups(rows):
            writer.write_table(tables.table_of(group))
            tally.rows += len(group)
            yield sink.take()
    yield sink.take()


def row_groups(rows: Iterable[ExportedRow]) -> Iterator[list[ExportedRow]]:
    group: list[ExportedRow] = []
    characters, most = 0, FIRST_GROUP_ROWS
    for row in rows:
        group.append(row)
        characters += len(row["response_a"]) + len(row["response_b"]) + 1_000 * len(row["judges"])
        if len(group) == most or characters > GROUP_CHARACTERS:
            yield group
            group, characters, most = [], 0, GROUP_ROWS
    if group:
        yield group


class ExportedTables:
    """Rows in the shape of SCHEMA."""

    def __init__(self) -> None:
        self.labels, self.choices = ShapeCache(label_entry), ShapeCache(judge_choice_entry)

    def table_of(self, group: Sequence[ExportedRow]) -> pa.Table:
        columns = {
            **{name: text_array([row[name] for row in group]) for name in NAMED},
            "messages": conversation_array([prompt_messages(row) for row in group]),
            "response_a": conversation_array([response_messages(row["response_a"]) for row in group]),
            "response_b": conversation_array([response_messages(row["response_b"]) for row in group]),
            "metadata": text_array([pack_cell(row["metadata"]) if row["metadata"] else None for row in group]),
            "split": text_array([row.get("split") for row in group]),
            "labels": list_array([named_entries(row["labels"], self.labels) for row in group], label_array),
            "judges": list_array([row["judges"] for row in group], self.judge_column),
            **people_columns(group),
        }
        return pa.table([columns[field.name] for field in SCHEMA], schema=SCHEMA)

    def judge_column(self, judges: Sequence[ExportedJudge]) -> pa.Array:
        return struct_array(
            JUDGE,
            {
                **{name: text_array([judge.get(name) for judge in judges]) for name in INTRODUCED},  # type: ignore[misc]
                "choices": list_array(
                    [named_entries(judge["choices"], self.choices) for judge in judges], choice_array
                ),
                "rationales": list_array(
                    [sorted(judge["rationales"].items()) for judge in judges], texts_by_order_array
                ),
                "failures": pa.array(
                    [key_value_entries(judge["failures"], "state", "n") for judge in judges], FAILURES
                ),
            },
        )


def named_entries(by_aspect: Mapping[str, Any], shapes: ShapeCache[dict[str, Any]]) -> list[dict[str, Any]]:
    return [shapes.get(by_aspect[aspect], aspect) for aspect in sorted(by_aspect)]


def texts_by_order_array(texts_by_order: Sequence[tuple[str, Sequence[str]]]) -> pa.Array:
    shown, texts = [order for order, _ in texts_by_order], [words for _, words in texts_by_order]
    return struct_array(WORDS.value_type, {"shown": text_array(shown), "texts": list_array(texts, text_array)})


def people_columns(group: Sequence[ExportedRow]) -> dict[str, pa.Array]:
    text = b"".join([encode_line(people_entry(row)) for row in group])
    parsing = pj.ParseOptions(explicit_schema=BY_PEOPLE, unexpected_field_behavior="ignore")
    reading = pj.ReadOptions(use_threads=False, block_size=len(text) + 1)
    table = pj.read_json(pa.BufferReader(text), reading, parsing)
    return {name: table.column(name) for name in BY_PEOPLE.names}


def people_entry(row: ExportedRow) -> dict[str, Any]:
    return {
        "adjudications": aspect_entries(row["adjudications"]),
        "comments": row["comments"],
        "gold": [{**gold, "choices": key_value_entries(gold["choices"], "aspect", "choice")} for gold in row["gold"]],
        "people": [{**person, "choices": aspect_entries(person["choices"])} for person in row["people"]],
        "skipped": row["skipped"],
    }


def label_entry(label: Any, aspect: str) -> dict[str, Any]:
    return {"aspect": aspect, **label, "votes": key_value_entries(label["votes"], "choice", "n")}


def judge_choice_entry(choice: Any, aspect: str) -> dict[str, Any]:
    return {
        "aspect": aspect,
        **choice,
        "orders": key_value_entries(choice["orders"], "shown", "choices"),
        "rationales": key_value_entries(choice.get("rationales", {}), "shown", "texts"),
        "notes": key_value_entries(choice.get("notes", {}), "shown", "texts"),
    }


def aspect_entries(by_aspect: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"aspect": aspect, **fields} for aspect, fields in sorted(by_aspect.items())]


def key_value_entries(mapping: Mapping[str, Any], key: str, value: str) -> list[dict[str, Any]]:
    return [{key: name, value: item} for name, item in sorted(mapping.items())]

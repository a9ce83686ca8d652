"""Exported comparisons as Parquet: typed columns, nested where a comparison has several of something, row groups.

Messages are lists of structs, as `datasets`, pandas and polars read them; a response is always such a list. What has
names of its own for keys (labels by aspect, a judge's choices) is a list of structs with the name in each, because
a struct would have other columns in every study. ``metadata`` is JSON in a text.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.json as pj

from evaluations.formats.arrow_columns import TEXT, TURNS, lists, parquet_writer, shared, structs, texts, turns
from evaluations.formats.exported import ExportedRow, Judge, packed
from evaluations.formats.jsonl_out import encoded
from evaluations.formats.layouts import prompt_of, turns_of
from evaluations.formats.preferred import Account
from evaluations.formats.shaped import Shaped

FIRST_GROUP_ROWS: Final = 200  # so that whoever downloads it sees at once that it comes
GROUP_ROWS: Final = 2_000
GROUP_CHARACTERS: Final = 32_000_000  # of responses in memory; where they are long a group has fewer rows
VOTES: Final = pa.list_(pa.struct({"choice": TEXT, "n": pa.int32()}))
ORDERS: Final = pa.list_(pa.struct({"shown": TEXT, "choices": pa.list_(TEXT)}))
WORDS: Final = pa.list_(pa.struct({"shown": TEXT, "texts": pa.list_(TEXT)}))
SCORES: Final = pa.struct({"A": pa.float64(), "B": pa.float64(), "margin": pa.float64(), "lower_is_better": pa.bool_()})
LABEL: Final = pa.struct({"aspect": TEXT, "choice": TEXT, "source": TEXT, "n": pa.int32(), "votes": VOTES, "by": TEXT})
ADJUDICATIONS: Final = pa.list_(pa.struct({"aspect": TEXT, "choice": TEXT, "reason": TEXT, "by": TEXT, "at": TEXT}))
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
# What people said: in few rows, and nested deeply. pyarrow reads it from JSON faster than from lists and dicts.
BY_PEOPLE: Final = pa.schema(
    [SCHEMA.field(name) for name in ("adjudications", "comments", "gold", "people", "skipped")]
)


class Sink:
    """Takes what the writer writes and gives it away again."""

    closed = False

    def __init__(self) -> None:
        self.waiting = bytearray()

    def write(self, block: bytes) -> int:
        self.waiting += block
        return len(block)

    def flush(self) -> None:
        """Nothing is kept back."""

    def close(self) -> None:
        """What waits is taken afterwards."""

    def taken(self) -> bytes:
        block = bytes(self.waiting)
        self.waiting.clear()
        return block


def lines(rows: Iterable[ExportedRow], tally: Account) -> Iterator[bytes]:
    """A row group at a time: none of it is held longer."""
    sink, tables = Sink(), Tables()
    with parquet_writer(pa.PythonFile(sink, mode="w"), SCHEMA) as writer:
        for group in groups(rows):
            writer.write_table(tables.table_of(group))
            tally.rows += len(group)
            yield sink.taken()
    yield sink.taken()


def groups(rows: Iterable[ExportedRow]) -> Iterator[list[ExportedRow]]:
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


class Tables:
    """Rows in the shape of SCHEMA."""

    def __init__(self) -> None:
        self.labels, self.choices = Shaped(label), Shaped(judges_choice)

    def table_of(self, group: Sequence[ExportedRow]) -> pa.Table:
        columns = {
            **{name: texts([row[name] for row in group]) for name in NAMED},
            "messages": turns([prompt_of(row) for row in group]),
            "response_a": turns([turns_of(row["response_a"]) for row in group]),
            "response_b": turns([turns_of(row["response_b"]) for row in group]),
            "metadata": texts([packed(row["metadata"]) if row["metadata"] else None for row in group]),
            "split": texts([row.get("split") for row in group]),
            "labels": lists([by_name(row["labels"], self.labels) for row in group], label_column),
            "judges": lists([row["judges"] for row in group], self.judge_column),
            **by_people(group),
        }
        return pa.table([columns[field.name] for field in SCHEMA], schema=SCHEMA)

    def judge_column(self, judges: Sequence[Judge]) -> pa.Array:
        return structs(
            JUDGE,
            {
                **{name: texts([judge.get(name) for judge in judges]) for name in INTRODUCED},  # type: ignore[misc]
                "choices": lists([by_name(judge["choices"], self.choices) for judge in judges], choice_column),
                "rationales": lists([sorted(judge["rationales"].items()) for judge in judges], words_column),
                "failures": pa.array([pairs(judge["failures"], "state", "n") for judge in judges], FAILURES),
            },
        )


def by_name(told: Mapping[str, Any], shapes: Shaped[dict[str, Any]]) -> list[dict[str, Any]]:
    return [shapes.of(told[aspect], aspect) for aspect in sorted(told)]


def label_column(labels: Sequence[dict[str, Any]]) -> pa.Array:
    return shared(labels, LABEL)


def choice_column(choices: Sequence[dict[str, Any]]) -> pa.Array:
    return shared(choices, CHOICE)


def words_column(told: Sequence[tuple[str, Sequence[str]]]) -> pa.Array:
    shown, said = [one for one, _ in told], [words for _, words in told]
    return structs(WORDS.value_type, {"shown": texts(shown), "texts": lists(said, texts)})


def by_people(group: Sequence[ExportedRow]) -> dict[str, pa.Array]:
    text = b"".join([encoded(said_by_people(row)) for row in group])
    parsing = pj.ParseOptions(explicit_schema=BY_PEOPLE, unexpected_field_behavior="ignore")
    reading = pj.ReadOptions(use_threads=False, block_size=len(text) + 1)
    table = pj.read_json(pa.BufferReader(text), reading, parsing)
    return {name: table.column(name) for name in BY_PEOPLE.names}


def said_by_people(row: ExportedRow) -> dict[str, Any]:
    return {
        "adjudications": by_aspect(row["adjudications"]),
        "comments": row["comments"],
        "gold": [{**one, "choices": pairs(one["choices"], "aspect", "choice")} for one in row["gold"]],
        "people": [{**person, "choices": by_aspect(person["choices"])} for person in row["people"]],
        "skipped": row["skipped"],
    }


def label(told: Any, aspect: str) -> dict[str, Any]:
    return {"aspect": aspect, **told, "votes": pairs(told["votes"], "choice", "n")}


def judges_choice(told: Any, aspect: str) -> dict[str, Any]:
    return {
        "aspect": aspect,
        **told,
        "orders": pairs(told["orders"], "shown", "choices"),
        "rationales": pairs(told.get("rationales", {}), "shown", "texts"),
        "notes": pairs(told.get("notes", {}), "shown", "texts"),
    }


def by_aspect(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"aspect": aspect, **one} for aspect, one in sorted(told.items())]


def pairs(told: Mapping[str, Any], key: str, value: str) -> list[dict[str, Any]]:
    return [{key: name, value: one} for name, one in sorted(told.items())]

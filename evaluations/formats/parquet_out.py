"""Exported comparisons as Parquet: typed columns, nested where a comparison has several of something, row groups.

Messages are lists of structs, as `datasets`, pandas and polars read them; a response is always such a list. What has
names of its own for keys (labels by aspect, a judge's choices) is a list of structs with the name in each, because
a struct would have other columns in every study. ``metadata`` is JSON in a text.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq

from evaluations.formats.exported import ExportedRow, Raters
from evaluations.formats.jsonl_out import encoded
from evaluations.formats.leaving import Leaving, Needs, Options, Rows, Tally

GROUP_ROWS: Final = 2_000
SHAPES: Final = 50_000
GROUP_CHARACTERS: Final = 32_000_000  # of responses in memory; where they are long a group has fewer rows
TEXT: Final = pa.string()
MESSAGES: Final = pa.list_(pa.struct({"role": TEXT, "content": TEXT}))
VOTES: Final = pa.list_(pa.struct({"choice": TEXT, "n": pa.int32()}))
ORDERS: Final = pa.list_(pa.struct({"shown": TEXT, "choices": pa.list_(TEXT)}))
WORDS: Final = pa.list_(pa.struct({"shown": TEXT, "texts": pa.list_(TEXT)}))
SCORES: Final = pa.struct({"A": pa.float64(), "B": pa.float64(), "margin": pa.float64(), "lower_is_better": pa.bool_()})
LABELS: Final = pa.list_(
    pa.struct({"aspect": TEXT, "choice": TEXT, "source": TEXT, "n": pa.int32(), "votes": VOTES, "by": TEXT})
)
ADJUDICATIONS: Final = pa.list_(pa.struct({"aspect": TEXT, "choice": TEXT, "reason": TEXT, "by": TEXT, "at": TEXT}))
COMMENTS: Final = pa.list_(pa.struct({"author": TEXT, "aspect": TEXT, "text": TEXT, "at": TEXT}))
SKIPPED: Final = pa.list_(pa.struct({"rater": TEXT, "rubric": TEXT, "reason": TEXT, "at": TEXT}))
GOLD: Final = pa.list_(pa.struct({"rater": TEXT, "choices": pa.list_(pa.struct({"aspect": TEXT, "choice": TEXT}))}))
JUDGES: Final = pa.list_(
    pa.struct(
        {
            "judge": TEXT,
            "kind": TEXT,
            "model": TEXT,
            "rubric": TEXT,
            "remark": TEXT,
            "choices": pa.list_(
                pa.struct(
                    {
                        "aspect": TEXT,
                        "choice": TEXT,
                        "inconsistent": pa.bool_(),
                        "orders": ORDERS,
                        "scores": SCORES,
                        "rationales": WORDS,
                    }
                )
            ),
            "rationales": WORDS,
            "failures": pa.list_(pa.struct({"state": TEXT, "n": pa.int32()})),
        }
    )
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
        "messages": MESSAGES,
        **dict.fromkeys(("context", "reference", "candidate_a"), TEXT),
        "response_a": MESSAGES,
        "candidate_b": TEXT,
        "response_b": MESSAGES,
        "metadata": TEXT,
        "split": TEXT,
        "labels": LABELS,
        "adjudications": ADJUDICATIONS,
        "comments": COMMENTS,
        "gold": GOLD,
        "judges": JUDGES,
        "people": PEOPLE,
        "skipped": SKIPPED,
    }
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


def lines(rows: Iterable[ExportedRow], tally: Tally) -> Iterator[bytes]:
    """A row group at a time: none of it is held longer."""
    sink = Sink()
    with pq.ParquetWriter(pa.PythonFile(sink, mode="w"), SCHEMA, compression="zstd") as writer:
        for group in groups(rows):
            writer.write_table(table_of(group))
            tally.rows += len(group)
            yield sink.taken()
    yield sink.taken()


def table_of(group: list[dict[str, Any]]) -> pa.Table:
    """By way of JSON, which pyarrow reads three times as fast as Python's own lists and dicts."""
    text = b"".join(map(encoded, group))
    parsing = pj.ParseOptions(explicit_schema=SCHEMA, unexpected_field_behavior="ignore")
    reading = pj.ReadOptions(use_threads=False, block_size=len(text) + 1)
    return pj.read_json(pa.BufferReader(text), reading, parsing)


def groups(rows: Iterable[ExportedRow]) -> Iterator[list[dict[str, Any]]]:
    group: list[dict[str, Any]] = []
    characters = 0
    labels, choices = Shapes(label), Shapes(judges_choice)
    for row in rows:
        group.append(reshaped(row, labels, choices))
        characters += len(row["response_a"]) + len(row["response_b"]) + 1_000 * len(row["judges"])
        if len(group) == GROUP_ROWS or characters > GROUP_CHARACTERS:
            yield group
            group, characters = [], 0
    if group:
        yield group


class Shapes:
    """What labels and choices become in a list: the same object is reshaped once, for the engine shares equal ones."""

    def __init__(self, reshape: Callable[[str, Any], dict[str, Any]]) -> None:
        self.reshape = reshape
        self.known: dict[int, tuple[Any, dict[str, Any]]] = {}

    def of(self, told: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [self.one(aspect, told[aspect]) for aspect in sorted(told)]

    def one(self, aspect: str, told: Any) -> dict[str, Any]:
        # What is known is held, so that no other object can come to stand under its number.
        held = self.known.get(id(told))
        if held is not None:
            return held[1]
        made = {"aspect": aspect, **self.reshape(aspect, told)}
        if len(self.known) < SHAPES:
            self.known[id(told)] = told, made
        return made


def reshaped(row: ExportedRow, labels: Shapes, choices: Shapes) -> dict[str, Any]:
    """The row in the shape of SCHEMA."""
    return {
        **row,
        "messages": row["messages"] or [{"role": "user", "content": row["query"]}],
        "response_a": turns(row["response_a"]),
        "response_b": turns(row["response_b"]),
        "metadata": json.dumps(row["metadata"], ensure_ascii=False, sort_keys=True) if row["metadata"] else None,
        "labels": labels.of(row["labels"]),
        "adjudications": by_aspect(row["adjudications"]),
        "gold": [{**one, "choices": pairs(one["choices"], "aspect", "choice")} for one in row["gold"]],
        "judges": [
            {
                **judge,
                "choices": choices.of(judge["choices"]),
                "rationales": pairs(judge["rationales"], "shown", "texts"),
                "failures": pairs(judge["failures"], "state", "n"),
            }
            for judge in row["judges"]
        ],
        "people": [{**person, "choices": by_aspect(person["choices"])} for person in row["people"]],
    }


def label(aspect: str, told: Any) -> dict[str, Any]:
    return {**told, "votes": pairs(told["votes"], "choice", "n")}


def judges_choice(aspect: str, told: Any) -> dict[str, Any]:
    return {
        **told,
        "orders": pairs(told["orders"], "shown", "choices"),
        "rationales": pairs(told.get("rationales", {}), "shown", "texts"),
    }


def turns(response: Any) -> Any:
    return [{"role": "assistant", "content": response}] if isinstance(response, str) else response


def by_aspect(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"aspect": aspect, **one} for aspect, one in sorted(told.items())]


def pairs(told: Mapping[str, Any], key: str, value: str) -> list[dict[str, Any]]:
    return [{key: name, value: one} for name, one in sorted(told.items())]


def written(rows: Rows, raters: Raters, options: Options, tally: Tally) -> Iterator[bytes]:
    return lines(cast("Iterable[ExportedRow]", rows), tally)


FORMAT: Final = Leaving(
    name="parquet",
    title="Parquet",
    purpose="everything in typed columns, for pandas, polars and datasets",
    ending="parquet",
    content_type="application/vnd.apache.parquet",
    write=written,
    needs=Needs.EVERYTHING,
)

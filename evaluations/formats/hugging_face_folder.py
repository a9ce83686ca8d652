"""A folder that ``datasets.load_dataset`` reads: preferences and comparisons as Parquet, with a card, as a ZIP."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from evaluations.domain import Deciding, NoPreference
from evaluations.formats.arrow_columns import parquet_writer
from evaluations.formats.card import Config, Facts, card
from evaluations.formats.dpo_out import note, record
from evaluations.formats.exported import LabelledRow
from evaluations.formats.jsonl_out import encode
from evaluations.formats.layouts import Layout, prompt_of, turns_of
from evaluations.formats.preferred import Account, LeftOut, decided, preference, split_of
from evaluations.formats.zipped import zipped

ROWS_A_GROUP: Final = 2_000
SPLITS: Final = {"train": "train", "dev": "validation", "test": "test"}
TURNS: Final = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
SHARED: Final = [
    ("query_id", pa.string()),
    ("cluster", pa.string()),
    ("category", pa.string()),
    ("context", pa.string()),
    ("reference", pa.string()),
]
PREFERENCES: Final = pa.schema(
    [
        ("prompt", TURNS),
        ("chosen", TURNS),
        ("rejected", TURNS),
        ("chosen_model", pa.string()),
        ("rejected_model", pa.string()),
        *SHARED,
        ("label_by", pa.string()),
        ("label_source", pa.string()),
        ("votes", pa.int64()),
        ("agreement", pa.float64()),
        ("split", pa.string()),
    ]
)
LABELS: Final = pa.list_(
    pa.struct(
        [
            ("aspect", pa.string()),
            ("choice", pa.string()),
            ("source", pa.string()),
            ("n", pa.int64()),
            ("by", pa.string()),
        ]
    )
)
COMPARISONS: Final = pa.schema(
    [
        ("prompt", TURNS),
        ("candidate_a", pa.string()),
        ("response_a", TURNS),
        ("candidate_b", pa.string()),
        ("response_b", TURNS),
        *SHARED,
        ("metadata", pa.string()),
        ("choice", pa.string()),
        ("labels", LABELS),
        ("split", pa.string()),
    ]
)
ABOUT: Final = {
    "preferences": "`prompt`, `chosen` and `rejected` as chat messages, for comparisons that prefer one response",
    "comparisons": "every comparison with the labels of all aspects, ties and two bad responses included",
}


def lines(
    rows: Iterable[LabelledRow],
    aspects: Sequence[str],
    how: Deciding,
    account: Account,
    told: Callable[[], Facts],
    manifest: Callable[[], Mapping[str, Any]],
) -> Iterator[bytes]:
    """The ZIP. Nothing of it is sent before the last comparison: the card that goes first counts them.

    ``told`` and ``manifest`` are asked when the last row has been read. Rows lie in a temporary folder until then.
    """
    with TemporaryDirectory(prefix="judgeweb-export-") as folder:
        written = {
            "preferences": Tables(Path(folder), "preferences", PREFERENCES),
            "comparisons": Tables(Path(folder), "comparisons", COMPARISONS),
        }
        with ExitStack() as stack:
            for tables in written.values():
                stack.callback(tables.close)
            for row in rows:
                add(row, aspects, how, account, written)
        configs = [Config(name, ABOUT[name], one.files(), features(one.schema)) for name, one in written.items()]
        # A table without rows has no files, and is no part of the folder: the library fails on it.
        filled = [config for config in configs if config.rows]
        yield from zipped(
            [
                ("README.md", card(told(), how, filled, account).encode()),
                ("manifest.json", as_document(manifest())),
                *((path, Path(folder) / path) for config in filled for path, _ in config.files.values()),
            ]
        )


def as_document(told: Mapping[str, Any]) -> bytes:
    return (json.dumps(told, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()


def add(
    row: LabelledRow, aspects: Sequence[str], how: Deciding, account: Account, written: Mapping[str, "Tables"]
) -> None:
    one = decided(row, how, aspects)
    choice = None if isinstance(one, NoPreference) else str(one.choice)
    split = SPLITS.get(split_of(row) or "train", "train")
    written["comparisons"].add(split, comparison(row, choice))
    found = one if isinstance(one, NoPreference) else preference(one)
    if isinstance(found, (NoPreference, LeftOut)):
        account.excluded[found] += 1
        return
    account.rows += 1
    note(found, account)
    told = record(found, Layout.CHAT)
    written["preferences"].add(
        split,
        {**told, "chosen": turns_of(found.chosen), "rejected": turns_of(found.rejected)},
    )


def comparison(row: LabelledRow, choice: str | None) -> dict[str, Any]:
    return {
        "prompt": prompt_of(row),
        "candidate_a": row["candidate_a"],
        "response_a": turns_of(row["response_a"]),
        "candidate_b": row["candidate_b"],
        "response_b": turns_of(row["response_b"]),
        **{name: row[name] for name, _ in SHARED},  # type: ignore[literal-required]
        "metadata": encode(row["metadata"]),
        "choice": choice,
        "labels": [{"aspect": aspect, **label} for aspect, label in sorted(row["labels"].items())],
        "split": split_of(row),
    }


class Tables:
    """A Parquet file for each split, of which a group of rows is in memory."""

    def __init__(self, folder: Path, name: str, schema: pa.Schema) -> None:
        self.folder, self.name, self.schema = folder, name, schema
        self.rows: Counter[str] = Counter()
        self._waiting: dict[str, list[dict[str, Any]]] = {}
        self._writers: dict[str, pq.ParquetWriter] = {}
        (folder / name).mkdir()

    def add(self, split: str, row: dict[str, Any]) -> None:
        waiting = self._waiting.setdefault(split, [])
        waiting.append(row)
        self.rows[split] += 1
        if len(waiting) == ROWS_A_GROUP:
            self._write(split)

    def _write(self, split: str) -> None:
        if split not in self._writers:
            path = self.folder / self._path(split)
            self._writers[split] = parquet_writer(path, self.schema)
        self._writers[split].write_table(pa.Table.from_pylist(self._waiting.pop(split, []), schema=self.schema))

    def close(self) -> None:
        for split in [one for one in SPLITS.values() if self._waiting.get(one)]:
            self._write(split)
        for writer in self._writers.values():
            writer.close()

    def _path(self, split: str) -> str:
        return f"{self.name}/{split}.parquet"

    def files(self) -> dict[str, tuple[str, int]]:
        """Split → path in the folder and rows, in the order of splits."""
        return {one: (self._path(one), self.rows[one]) for one in SPLITS.values() if one in self._writers}


def features(schema: pa.Schema) -> list[str]:
    """The columns as a card names them."""
    return [line for field in schema for line in feature(field.name, field.type)]


def feature(name: str, kind: pa.DataType) -> list[str]:
    if not pa.types.is_list(kind):
        return [f"- name: {name}", f"  dtype: {kind if kind != pa.float64() else 'float64'}"]
    inner = [line for field in kind.value_type for line in feature(field.name, field.type)]
    return [f"- name: {name}", "  list:", *(f"  {line}" for line in inner)]

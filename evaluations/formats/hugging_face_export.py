"""A dataset folder with a card and Parquet files, as a ZIP, for the Hugging Face hub."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from evaluations.domain.preferences import NoPreference, PreferenceRule
from evaluations.domain.scratch_folders import open_scratch_folder
from evaluations.formats.dataset_card import CardConfig, dataset_card, yaml_name
from evaluations.formats.export_format import ExportOptions, encode_manifest
from evaluations.formats.exported_rows import LabelledRow, prompt_messages, response_messages
from evaluations.formats.jsonl_export import fast_encode
from evaluations.formats.parquet_export import TEXT, TURNS, open_parquet_writer
from evaluations.formats.preferences import (
    ExclusionReason,
    ExportCounts,
    decide_comparison,
    preferred_response,
)
from evaluations.formats.trainer_exports import Layout, count_dpo_warnings, dpo_record
from evaluations.formats.zip_stream import stream_zip

ROWS_A_GROUP: Final = 2_000
SPLITS: Final = {"train": "train", "dev": "validation", "test": "test"}
SHARED: Final = ("query_id", "cluster", "category", "context", "reference")

PREFERENCES: Final = pa.schema(
    {
        **dict.fromkeys(("prompt", "chosen", "rejected"), TURNS),
        **dict.fromkeys(("chosen_model", "rejected_model", *SHARED, "label_by", "label_source"), TEXT),
        "votes": pa.int64(),
        "agreement": pa.float64(),
        "split": TEXT,
    }
)

LABELS: Final = pa.list_(
    pa.struct({**dict.fromkeys(("aspect", "choice", "source"), TEXT), "n": pa.int64(), "by": TEXT})
)

COMPARISONS: Final = pa.schema(
    {
        "prompt": TURNS,
        "candidate_a": TEXT,
        "response_a": TURNS,
        "candidate_b": TEXT,
        "response_b": TURNS,
        **dict.fromkeys((*SHARED, "metadata", "choice"), TEXT),
        "labels": LABELS,
        "split": TEXT,
    }
)

ABOUT: Final = {
    "preferences": "`prompt`, `chosen` and `rejected` as chat messages, for comparisons that prefer one response",
    "comparisons": "every comparison with the labels of all aspects, ties and two bad responses included",
}


def dataset_folder_zip(
    rows: Iterable[LabelledRow],
    aspects: Sequence[str],
    rule: PreferenceRule,
    counts: ExportCounts,
    options: ExportOptions,
) -> Iterator[bytes]:
    """The ZIP, sent after the last comparison, because the card that comes first has counts of all of them.

    Rows are kept in a temporary folder until then.
    """
    with open_scratch_folder(options.scratch, "dataset-") as folder:
        written = {
            "preferences": SplitTables(folder, "preferences", PREFERENCES, options.require_room),
            "comparisons": SplitTables(folder, "comparisons", COMPARISONS, options.require_room),
        }
        with ExitStack() as stack:
            for tables in written.values():
                stack.callback(tables.close)
            for row in rows:
                add_to_dataset(row, aspects, rule, counts, written)
        configs = [
            CardConfig(name, ABOUT[name], tables.files(), list(card_features(tables.schema)))
            for name, tables in written.items()
        ]
        # A table without rows is left out: the library fails on tables without files.
        filled = [config for config in configs if config.rows]
        yield from stream_zip(
            [
                ("README.md", dataset_card(options.facts(), rule, filled, counts).encode()),
                ("manifest.json", encode_manifest(options.manifest())),
                *((path, folder / path) for config in filled for path, _ in config.files.values()),
            ]
        )


def add_to_dataset(
    row: LabelledRow,
    aspects: Sequence[str],
    rule: PreferenceRule,
    counts: ExportCounts,
    written: Mapping[str, "SplitTables"],
) -> None:
    decided = decide_comparison(row, rule, aspects)
    choice = None if isinstance(decided, NoPreference) else str(decided.choice)
    split = SPLITS.get(row.get("split") or "train", "train")
    written["comparisons"].add(split, comparison_record(row, choice))
    preference = decided if isinstance(decided, NoPreference) else preferred_response(decided)
    if isinstance(preference, (NoPreference, ExclusionReason)):
        counts.excluded[preference] += 1
        return
    counts.rows += 1
    count_dpo_warnings(preference, counts)
    record = dpo_record(preference, Layout.CHAT)
    written["preferences"].add(
        split,
        {**record, "chosen": response_messages(preference.chosen), "rejected": response_messages(preference.rejected)},
    )


def comparison_record(row: LabelledRow, choice: str | None) -> dict[str, Any]:
    return {
        "prompt": prompt_messages(row),
        "candidate_a": row["candidate_a"],
        "response_a": response_messages(row["response_a"]),
        "candidate_b": row["candidate_b"],
        "response_b": response_messages(row["response_b"]),
        **{name: row[name] for name in SHARED},
        "metadata": fast_encode(row["metadata"]),
        "choice": choice,
        "labels": [{"aspect": aspect, **label} for aspect, label in sorted(row["labels"].items())],
        "split": row.get("split"),
    }


class SplitTables:
    """A Parquet file for each split, written in groups of rows; one group of each is in memory."""

    def __init__(self, folder: Path, name: str, schema: pa.Schema, require_room: Callable[[int], None]) -> None:
        self.folder, self.name, self.schema, self.require_room = folder, name, schema, require_room
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
        table = pa.Table.from_pylist(self._waiting.pop(split, []), schema=self.schema)
        self.require_room(table.nbytes)
        if split not in self._writers:
            path = self.folder / self._path(split)
            self._writers[split] = open_parquet_writer(path, self.schema)
        self._writers[split].write_table(table)

    def close(self) -> None:
        for split in [split for split in SPLITS.values() if self._waiting.get(split)]:
            self._write(split)
        for writer in self._writers.values():
            writer.close()

    def _path(self, split: str) -> str:
        return f"{self.name}/{split}.parquet"

    def files(self) -> dict[str, tuple[str, int]]:
        """Split → path in the folder and rows, in the order of splits."""
        return {split: (self._path(split), self.rows[split]) for split in SPLITS.values() if split in self._writers}


def card_features(fields: Iterable[pa.Field]) -> Iterator[str]:
    """Fields of a schema or of a struct as lines of YAML."""
    for field in fields:
        yield f"- name: {yaml_name(field.name)}"
        if pa.types.is_list(field.type):
            yield "  list:"
            yield from (f"  {line}" for line in card_features(field.type.value_type))
        else:
            yield f"  dtype: {field.type if field.type != pa.float64() else 'float64'}"

"""Exported comparisons as Parquet: the same rows as JSONL, in typed columns."""

from collections.abc import Iterable, Iterator
from typing import Final, cast

from evaluations.formats.exported import ExportedRow, Raters
from evaluations.formats.leaving import Leaving, Needs, Options, Rows, Tally


def written(rows: Rows, raters: Raters, options: Options, tally: Tally) -> Iterator[bytes]:
    from evaluations.formats import parquet_table  # noqa: PLC0415 - pyarrow, for whoever writes Parquet

    return parquet_table.lines(cast("Iterable[ExportedRow]", rows), tally)


FORMAT: Final = Leaving(
    name="parquet",
    title="Parquet",
    purpose="everything in typed columns, for pandas, polars and datasets",
    ending="parquet",
    content_type="application/vnd.apache.parquet",
    write=written,
    needs=Needs.EVERYTHING,
)

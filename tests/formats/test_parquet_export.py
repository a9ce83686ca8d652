"""What stands at the end of a Parquet file: enough to look for a query, and no texts."""

import io

import pyarrow.parquet as pq

from evaluations.formats.export_format import ExportTally
from evaluations.formats.parquet_export import RANGED, parquet_bytes
from tests.formats.exported_rows import exported_row


def test_its_end_holds_ranges_of_keys_and_no_texts() -> None:
    said = "a response that is not repeated"
    rows = [exported_row(query_id=key, response_a=said, reference=said) for key in ("q1", "q3", "q2")]
    written = b"".join(parquet_bytes(rows, ExportTally()))
    end = written[-8 - int.from_bytes(written[-8:-4], "little") : -8]
    assert b"alpha" in end
    assert said.encode() not in end
    group = pq.ParquetFile(io.BytesIO(written)).metadata.row_group(0)
    columns = {group.column(at).path_in_schema: group.column(at).statistics for at in range(group.num_columns)}
    assert {path for path, told in columns.items() if told} == set(RANGED)
    assert (columns["query_id"].min, columns["query_id"].max) == ("q1", "q3")

"""A table of a report as CSV."""

import csv
import io

import pytest

from evaluations.formats.csv_export import table_as_csv


def test_numbers_stay_numbers_and_what_is_missing_is_empty() -> None:
    file = table_as_csv(("label", "value", "low"), [("gpt", -0.5, None), ("a,b", 2 / 3, 1)])
    assert file == b'label,value,low\r\ngpt,-0.5,\r\n"a,b",0.6666666666666666,1\r\n'


@pytest.mark.parametrize("word", ["=cmd|' /C calc'!A0", "+1", "-1", "@sum", "\tx", "＝1"])
def test_words_that_a_spreadsheet_would_execute_are_harmless(word: str) -> None:
    (head, row) = csv.reader(io.StringIO(table_as_csv((word,), [(word,)]).decode(), newline=""))
    assert head == row == [f"'{word}"]

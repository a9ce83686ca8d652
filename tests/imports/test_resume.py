"""An import that is put down and taken up again goes on in the file where it stopped."""

import gc
from collections.abc import Iterator

import pytest

from evaluations.domain.errors import InputRefused
from evaluations.domain.files import BadRow, ImportState
from evaluations.imports import storage
from evaluations.imports.lifecycle import continue_import, sweep_imports
from evaluations.imports.row_resolver import batch_entries
from evaluations.imports.services import discard_import, start_storing
from evaluations.imports.source_files import read_import_rows
from evaluations.imports.storage import KEPT_OPEN
from evaluations.models.comparisons import Comparison
from evaluations.models.imports import Import
from evaluations.models.transactions import MIN_BULK_ROWS, TRANSACTION_SECONDS
from evaluations.models.verdicts import Verdict
from tests.factories.evaluations import make_evaluation
from tests.factories.imports import comparison_row, encode_jsonl, import_rows, preview_rows, verdict_row

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for database in MIN_BULK_ROWS:
        monkeypatch.setitem(MIN_BULK_ROWS, database, 64)
        monkeypatch.setitem(TRANSACTION_SECONDS, database, 0.0)
    yield
    while KEPT_OPEN:
        KEPT_OPEN.pop().close()


@pytest.fixture
def records_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The line of every record whose meaning was asked for."""
    lines: list[int] = []
    original = read_import_rows

    def told(*args: object) -> object:
        contents = original(*args)  # type: ignore[arg-type]

        def noted() -> Iterator[object]:
            for entry in contents.entries:
                lines.append(entry.line)
                yield entry

        return type(contents)(contents.format, noted())  # type: ignore[arg-type]

    monkeypatch.setattr(storage, "read_import_rows", told)
    return lines


def begun(*rows: dict[str, object]) -> Import:
    importing = preview_rows(make_evaluation(), encode_jsonl(rows))
    start_storing(importing, skip_bad=False, user=None)
    return importing


def test_one_process_reads_each_line_once_however_often_it_stops(records_read: list[int]) -> None:
    importing = begun(*(comparison_row(f"q{number}") for number in range(70)))
    while continue_import(importing, seconds=0):
        pass
    assert records_read == list(range(1, 71))
    assert Comparison.objects.count() == 70
    assert KEPT_OPEN == []


def test_another_process_reads_up_to_the_place_and_stores_the_rest(records_read: list[int]) -> None:
    importing = begun(*(comparison_row(f"q{number}") for number in range(40)))
    assert continue_import(importing, seconds=0)
    KEPT_OPEN.pop().close()  # as a worker that was killed between two turns leaves it
    while continue_import(importing, seconds=0):
        pass
    assert records_read[:2] == [1, 2]
    assert records_read.count(1) == 2
    assert Comparison.objects.count() == 40


def test_a_file_left_open_by_another_import_is_not_read_on() -> None:
    first = begun(*(comparison_row(f"q{number}", query="First?") for number in range(40)))
    assert continue_import(first, seconds=0)
    second = begun(*(comparison_row(f"q{number}", query="Second?") for number in range(40)))
    while continue_import(second, seconds=0):
        pass
    assert set(Comparison.objects.values_list("query__text", flat=True)) == {"Second?"}
    while continue_import(first, seconds=0):
        pass
    first.refresh_from_db()
    assert (first.state, first.rows_stored) == (ImportState.DONE, 40)


def test_samples_go_on_counting_where_the_file_was_left() -> None:
    evaluation = make_evaluation()
    import_rows(evaluation, *(comparison_row(f"q{number}") for number in range(70)))
    importing = preview_rows(evaluation, encode_jsonl([verdict_row(f"q{number % 70}") for number in range(210)]))
    start_storing(importing, skip_bad=False, user=None)
    while continue_import(importing, seconds=0):
        pass
    assert list(
        Verdict.objects.filter(comparison__query__key="q3").order_by("pk").values_list("sample", flat=True)
    ) == [
        0,
        1,
        2,
    ]


def test_what_was_cancelled_while_its_file_is_open_leaves_nothing_and_starts_anew() -> None:
    importing = begun(*(comparison_row(f"q{number}") for number in range(40)))
    assert continue_import(importing, seconds=0)
    discard_import(importing, user=None)
    sweep_imports()
    assert not Comparison.all_rows.exists()
    again = preview_rows(importing.evaluation, encode_jsonl([comparison_row(f"q{number}") for number in range(40)]))
    start_storing(again, skip_bad=False, user=None)
    while continue_import(again, seconds=0):
        pass
    assert Comparison.objects.count() == 40


def test_the_collector_of_garbage_is_on_again_after_a_batch_that_breaks_off() -> None:
    def breaks_off() -> Iterator[BadRow]:
        assert not gc.isenabled()
        yield BadRow(1, "odd")
        raise InputRefused("The file breaks off.")

    assert gc.isenabled()
    batches = batch_entries(breaks_off(), weight_limit=1)
    assert next(batches) == [BadRow(1, "odd")]
    assert gc.isenabled()
    with pytest.raises(InputRefused):
        next(batches)
    assert gc.isenabled()

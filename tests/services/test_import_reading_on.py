"""An import that is put down and taken up again goes on in the file where it stopped."""

import gc
from collections.abc import Iterator

import pytest

from evaluations.domain import BadRow, ImportState, InputRefused
from evaluations.formats.reading import read_rows
from evaluations.models import Comparison, Import, Verdict
from evaluations.services.importing import importing as storing
from evaluations.services.importing.importing import begin, store
from evaluations.services.importing.resolving import in_batches
from evaluations.services.importing.sweeping import LEAST_AT_ONCE, SECONDS, cancel, sweep_imports
from tests.importing import bring, check, comparison, jsonl, verdict
from tests.making import make_evaluation

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for database in LEAST_AT_ONCE:
        monkeypatch.setitem(LEAST_AT_ONCE, database, 64)
        monkeypatch.setitem(SECONDS, database, 0.0)
    yield
    while storing.LEFT_OPEN:
        storing.LEFT_OPEN.pop().close()


@pytest.fixture
def records_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The line of every record whose meaning was asked for."""
    lines: list[int] = []
    original = read_rows

    def told(*args: object) -> object:
        contents = original(*args)  # type: ignore[arg-type]

        def noted() -> Iterator[object]:
            for entry in contents.entries:
                lines.append(entry.line)
                yield entry

        return type(contents)(contents.format, noted())  # type: ignore[arg-type]

    monkeypatch.setattr(storing, "read_rows", told)
    return lines


def begun(*rows: dict[str, object]) -> Import:
    importing = check(make_evaluation(), jsonl(rows))
    begin(importing, skip_bad=False, user=None)
    return importing


def test_one_process_reads_each_line_once_however_often_it_stops(records_read: list[int]) -> None:
    importing = begun(*(comparison(f"q{number}") for number in range(70)))
    while store(importing, seconds=0):
        pass
    assert records_read == list(range(1, 71))
    assert Comparison.objects.count() == 70
    assert storing.LEFT_OPEN == []


def test_another_process_reads_up_to_the_place_and_stores_the_rest(records_read: list[int]) -> None:
    importing = begun(*(comparison(f"q{number}") for number in range(40)))
    assert store(importing, seconds=0)
    storing.LEFT_OPEN.pop().close()  # as a worker that was killed between two turns leaves it
    while store(importing, seconds=0):
        pass
    assert records_read[:2] == [1, 2]
    assert records_read.count(1) == 2
    assert Comparison.objects.count() == 40


def test_a_file_left_open_by_another_import_is_not_read_on() -> None:
    first = begun(*(comparison(f"q{number}", query="First?") for number in range(40)))
    assert store(first, seconds=0)
    second = begun(*(comparison(f"q{number}", query="Second?") for number in range(40)))
    while store(second, seconds=0):
        pass
    assert set(Comparison.objects.values_list("query__text", flat=True)) == {"Second?"}
    while store(first, seconds=0):
        pass
    first.refresh_from_db()
    assert (first.state, first.rows_stored) == (ImportState.DONE, 40)


def test_samples_go_on_counting_where_the_file_was_left() -> None:
    evaluation = make_evaluation()
    bring(evaluation, *(comparison(f"q{number}") for number in range(70)))
    importing = check(evaluation, jsonl([verdict(f"q{number % 70}") for number in range(210)]))
    begin(importing, skip_bad=False, user=None)
    while store(importing, seconds=0):
        pass
    assert list(
        Verdict.objects.filter(comparison__query__key="q3").order_by("pk").values_list("sample", flat=True)
    ) == [
        0,
        1,
        2,
    ]


def test_what_was_cancelled_while_its_file_is_open_leaves_nothing_and_starts_anew() -> None:
    importing = begun(*(comparison(f"q{number}") for number in range(40)))
    assert store(importing, seconds=0)
    cancel(importing, user=None)
    sweep_imports()
    assert not Comparison.all_rows.exists()
    again = check(importing.evaluation, jsonl([comparison(f"q{number}") for number in range(40)]))
    begin(again, skip_bad=False, user=None)
    while store(again, seconds=0):
        pass
    assert Comparison.objects.count() == 40


def test_the_collector_of_garbage_is_on_again_after_a_batch_that_breaks_off() -> None:
    def breaks_off() -> Iterator[BadRow]:
        assert not gc.isenabled()
        yield BadRow(1, "odd")
        raise InputRefused("The file breaks off.")

    assert gc.isenabled()
    batches = in_batches(breaks_off(), most=1)
    assert next(batches) == [BadRow(1, "odd")]
    assert gc.isenabled()
    with pytest.raises(InputRefused):
        next(batches)
    assert gc.isenabled()

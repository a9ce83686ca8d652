import os
import time
from typing import Any

import numpy as np
import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evaluations.domain.texts import Markup
from evaluations.models.comparisons import Candidate, Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.verdicts import array_files, comparison_arrays
from evaluations.verdicts.comparison_arrays import (
    ComparisonTable,
    build_items,
    get_comparison_file,
    get_comparison_table,
    index_report_comparisons,
    save_comparison_table,
)
from evaluations.verdicts.judge_arrays import ComparisonPositions
from tests.factories.evaluations import make_evaluation
from tests.factories.imports import comparison_row, import_rows

pytestmark = pytest.mark.django_db


def test_no_category_is_lost_however_many_there_are() -> None:
    evaluation = make_evaluation()
    import_rows(
        evaluation,
        *(comparison_row(f"q{number}", category=f"c{number:03}") for number in range(230)),
        comparison_row("none"),
    )
    found = get_comparison_table(evaluation)
    assert len(found.categories) == 230
    assert sorted(found.rows["category"].tolist()) == [-1, *range(230)]


def test_every_comparison_has_its_cluster_category_sides_lengths_and_markup_in_its_place() -> None:
    evaluation = make_evaluation()
    first = {"cluster": "same", "category": "math", "response_a": "- a list", "response_b": "four"}
    import_rows(
        evaluation,
        comparison_row("q1", **first),
        comparison_row("q2", cluster="same"),
        comparison_row(
            "q3", category="code", candidate_a="zeta", response_a="", candidate_b="beta", response_b="Other."
        ),
    )
    Candidate.objects.filter(name="beta").update(family="B")
    known = get_comparison_table(evaluation)
    ids = sorted(Comparison.objects.values_list("pk", flat=True))
    assert known.rows["comparison"].tolist() == ids
    assert len(build_items(evaluation, known, ComparisonPositions(np.array([ids[0], ids[2]])))) == 2
    found = build_items(evaluation, known, index_report_comparisons(known, None))
    assert found.cluster[0] == found.cluster[1] != found.cluster[2]
    assert len(set(found.query.tolist())) == 3
    assert found.categories == ("code", "math")
    assert found.category.tolist() == [1, -1, 0]
    assert (found.candidates, found.families) == (("alpha", "beta", "zeta"), ("", "B", ""))
    # A is the candidate whose name sorts first: in the third row the two were turned round.
    assert (found.candidate_a.tolist(), found.candidate_b.tolist()) == ([0, 0, 1], [1, 1, 2])
    assert found.characters_a.tolist()[::2] == [len("- a list"), len("Other.")]
    assert found.characters_b.tolist()[::2] == [len("four"), 0]
    assert found.markup_a.tolist() == [Markup.LIST, 0, 0]
    assert found.markup_b.tolist() == [0, 0, 0]


def files(evaluation: Evaluation, pattern: str = "comparisons-{}-*") -> list[str]:
    return sorted(file.name for file in settings.CACHE_DIR.glob(pattern.format(evaluation.pk)))


@pytest.fixture
def compared(evaluation: Evaluation) -> Evaluation:
    for left in settings.CACHE_DIR.glob("comparisons-*"):  # by tests before, whose rows had the same numbers
        left.unlink()
    import_rows(evaluation, comparison_row("q1", category="math"))
    return evaluation


def test_it_is_read_once_until_comparisons_come_in(compared: Evaluation) -> None:
    get_comparison_table(compared)
    with CaptureQueriesContext(connection) as queries:
        assert len(get_comparison_table(compared).rows) == 1
    assert len(queries) == 1  # when comparisons last came in
    # Whoever holds the compared as it was before finds what has come in all the same.
    import_rows(compared, comparison_row("q2"))
    assert len(get_comparison_table(compared).rows) == 2
    assert len(files(compared)) == 1


def during_reading(monkeypatch: pytest.MonkeyPatch, also: Any) -> None:
    """Do this once, after the comparisons were read and before they are kept."""
    read = comparison_arrays.read_comparison_table

    def read_known(evaluation: Evaluation) -> ComparisonTable:
        known = read(evaluation)
        monkeypatch.setattr(comparison_arrays, "read_comparison_table", read)
        also(known)
        return known

    monkeypatch.setattr(comparison_arrays, "read_comparison_table", read_known)


def test_two_who_read_it_at_once_both_have_it(compared: Evaluation, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = get_comparison_file(compared)
    assert kept is not None
    during_reading(monkeypatch, lambda known: save_comparison_table(kept, known))
    assert len(get_comparison_table(compared).rows) == 1
    assert files(compared) == [kept.name]


def test_a_file_that_is_taken_away_before_it_is_opened_is_read_anew(
    compared: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    get_comparison_table(compared)
    load = comparison_arrays.load_comparison_table

    def taken_away(kept: Any) -> ComparisonTable:
        kept.unlink()
        return load(kept)

    monkeypatch.setattr(comparison_arrays, "load_comparison_table", taken_away)
    assert len(get_comparison_table(compared).rows) == 1


def test_what_comes_in_while_it_is_read_is_not_kept_as_what_was_there_before(
    compared: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    during_reading(monkeypatch, lambda _: import_rows(compared, comparison_row("q2")))
    get_comparison_table(compared)
    assert files(compared) == []
    assert len(get_comparison_table(compared).rows) == 2


def test_a_slow_reader_of_an_earlier_state_takes_no_newer_file_away(compared: Evaluation) -> None:
    earlier = get_comparison_file(compared)
    assert earlier is not None
    import_rows(compared, comparison_row("q2"))
    later = get_comparison_table(compared)
    save_comparison_table(earlier, later)
    assert len(files(compared)) == 2
    save_comparison_table(get_comparison_file(compared) or earlier, later)
    assert len(files(compared)) == 1


def test_rows_keep_the_categories_that_they_were_read_with(compared: Evaluation) -> None:
    get_comparison_table(compared)
    known = get_comparison_table(compared)
    import_rows(compared, comparison_row("q2", category="art"))
    found = build_items(compared, known, index_report_comparisons(known, None))
    assert (found.categories, found.category.tolist()) == (("math",), [0])
    known = get_comparison_table(compared)
    found = build_items(compared, known, index_report_comparisons(known, None))
    assert (found.categories, found.category.tolist()) == (("art", "math"), [1, 0])


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"no such file"])
def test_a_file_that_cannot_be_read_is_none(compared: Evaluation, content: bytes) -> None:
    get_comparison_table(compared)
    kept = get_comparison_file(compared)
    assert kept is not None
    kept.write_bytes(content)
    assert len(get_comparison_table(compared).rows) == 1
    assert len(comparison_arrays.load_comparison_table(kept).rows) == 1


def test_a_file_of_another_version_of_the_program_is_none(
    compared: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = get_comparison_file(compared)
    assert kept is not None
    monkeypatch.setattr(array_files, "VERSION", "another version")
    assert get_comparison_file(compared) != kept
    monkeypatch.undo()
    np.save(kept, np.zeros(7))
    assert len(get_comparison_table(compared).rows) == 1
    np.save(kept, get_comparison_table(compared).rows)  # as it was kept without its categories
    assert get_comparison_table(compared).categories == ("math",)


def test_what_a_killed_process_left_half_written_is_swept(compared: Evaluation) -> None:
    old, new = (settings.CACHE_DIR / name for name in ("old.part", "new.part"))
    for part in (old, new):
        part.touch()
    os.utime(old, (time.time() - 7200,) * 2)
    get_comparison_table(compared)
    assert (old.exists(), new.exists()) == (False, True)
    new.unlink()

import os
import time
from typing import Any

import numpy as np
import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evaluations.domain import Markup
from evaluations.models import Candidate, Comparison, Evaluation
from evaluations.services.reporting import items, keeping
from evaluations.services.reporting.items import items_of, keep, known_comparisons, places_of
from evaluations.services.reporting.unpacking import Places
from tests.importing import bring, comparison
from tests.making import make_evaluation

pytestmark = pytest.mark.django_db


def test_no_category_is_lost_however_many_there_are() -> None:
    evaluation = make_evaluation()
    bring(
        evaluation, *(comparison(f"q{number}", category=f"c{number:03}") for number in range(230)), comparison("none")
    )
    found = known_comparisons(evaluation)
    assert len(found.categories) == 230
    assert sorted(found.rows["category"].tolist()) == [-1, *range(230)]


def test_every_comparison_has_its_cluster_category_sides_lengths_and_markup_in_its_place() -> None:
    evaluation = make_evaluation()
    first = {"cluster": "same", "category": "math", "response_a": "- a list", "response_b": "four"}
    bring(
        evaluation,
        comparison("q1", **first),
        comparison("q2", cluster="same"),
        comparison("q3", category="code", candidate_a="zeta", response_a="", candidate_b="beta", response_b="Other."),
    )
    Candidate.objects.filter(name="beta").update(family="B")
    known = known_comparisons(evaluation)
    ids = sorted(Comparison.objects.values_list("pk", flat=True))
    assert known.rows["comparison"].tolist() == ids
    assert len(items_of(evaluation, known, Places(np.array([ids[0], ids[2]])))) == 2
    found = items_of(evaluation, known, places_of(known, None))
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
def evaluation() -> Evaluation:
    for left in settings.CACHE_DIR.glob("comparisons-*"):  # by tests before, whose rows had the same numbers
        left.unlink()
    evaluation = make_evaluation()
    bring(evaluation, comparison("q1", category="math"))
    return evaluation


def test_it_is_read_once_until_comparisons_come_in(evaluation: Evaluation) -> None:
    known_comparisons(evaluation)
    with CaptureQueriesContext(connection) as queries:
        assert len(known_comparisons(evaluation).rows) == 1
    assert len(queries) == 1  # when comparisons last came in
    # Whoever holds the evaluation as it was before finds what has come in all the same.
    bring(evaluation, comparison("q2"))
    assert len(known_comparisons(evaluation).rows) == 2
    assert len(files(evaluation)) == 1


def during_reading(monkeypatch: pytest.MonkeyPatch, also: Any) -> None:
    """Do this once, after the comparisons were read and before they are kept."""
    read = items.read_known

    def read_known(evaluation: Evaluation) -> items.KnownComparisons:
        known = read(evaluation)
        monkeypatch.setattr(items, "read_known", read)
        also(known)
        return known

    monkeypatch.setattr(items, "read_known", read_known)


def test_two_who_read_it_at_once_both_have_it(evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = items.file_of(evaluation)
    assert kept is not None
    during_reading(monkeypatch, lambda known: keep(kept, known))
    assert len(known_comparisons(evaluation).rows) == 1
    assert files(evaluation) == [kept.name]


def test_a_file_that_is_taken_away_before_it_is_opened_is_read_anew(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    known_comparisons(evaluation)
    load = items.load

    def taken_away(kept: Any) -> items.KnownComparisons:
        kept.unlink()
        return load(kept)

    monkeypatch.setattr(items, "load", taken_away)
    assert len(known_comparisons(evaluation).rows) == 1


def test_what_comes_in_while_it_is_read_is_not_kept_as_what_was_there_before(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    during_reading(monkeypatch, lambda _: bring(evaluation, comparison("q2")))
    known_comparisons(evaluation)
    assert files(evaluation) == []
    assert len(known_comparisons(evaluation).rows) == 2


def test_a_slow_reader_of_an_earlier_state_takes_no_newer_file_away(evaluation: Evaluation) -> None:
    earlier = items.file_of(evaluation)
    assert earlier is not None
    bring(evaluation, comparison("q2"))
    later = known_comparisons(evaluation)
    keep(earlier, later)
    assert len(files(evaluation)) == 2
    keep(items.file_of(evaluation) or earlier, later)
    assert len(files(evaluation)) == 1


def test_rows_keep_the_categories_that_they_were_read_with(evaluation: Evaluation) -> None:
    known_comparisons(evaluation)
    known = known_comparisons(evaluation)
    bring(evaluation, comparison("q2", category="art"))
    found = items_of(evaluation, known, places_of(known, None))
    assert (found.categories, found.category.tolist()) == (("math",), [0])
    known = known_comparisons(evaluation)
    found = items_of(evaluation, known, places_of(known, None))
    assert (found.categories, found.category.tolist()) == (("art", "math"), [1, 0])


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"no such file"])
def test_a_file_that_cannot_be_read_is_none(evaluation: Evaluation, content: bytes) -> None:
    known_comparisons(evaluation)
    kept = items.file_of(evaluation)
    assert kept is not None
    kept.write_bytes(content)
    assert len(known_comparisons(evaluation).rows) == 1
    assert len(items.load(kept).rows) == 1


def test_a_file_of_another_version_of_the_program_is_none(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = items.file_of(evaluation)
    assert kept is not None
    monkeypatch.setattr(keeping, "VERSION", "another version")
    assert items.file_of(evaluation) != kept
    monkeypatch.undo()
    np.save(kept, np.zeros(7))
    assert len(known_comparisons(evaluation).rows) == 1
    np.save(kept, known_comparisons(evaluation).rows)  # as it was kept without its categories
    assert known_comparisons(evaluation).categories == ("math",)


def test_what_a_killed_process_left_half_written_is_swept(evaluation: Evaluation) -> None:
    old, new = (settings.CACHE_DIR / name for name in ("old.part", "new.part"))
    for part in (old, new):
        part.touch()
    os.utime(old, (time.time() - 7200,) * 2)
    known_comparisons(evaluation)
    assert (old.exists(), new.exists()) == (False, True)
    new.unlink()

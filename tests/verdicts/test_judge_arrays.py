"""What judges said, from a file as long as they say no more."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from evaluations.models.judges import Rater
from evaluations.verdicts import judge_arrays
from evaluations.verdicts.judge_arrays import ComparisonPositions, JudgeArrays, read_judge_arrays
from tests.factories.evaluations import make_comparison
from tests.factories.verdicts import ALL_A, ALL_B, make_judge_verdicts

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

LONG_AGO = timezone.now() - timedelta(hours=1)


@pytest.fixture(autouse=True)
def keeps(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder of the test's own, however few comparisons there are."""
    settings.CACHE_DIR = tmp_path
    monkeypatch.setattr(judge_arrays, "MAX_LOOKUPS", 0)


@pytest.fixture
def judge(evaluation: Evaluation) -> Rater:
    """It said A in both orders of one comparison and B of another, an hour ago; one call failed."""
    make_judge_verdicts(make_comparison(evaluation), as_stored=ALL_A, swapped=ALL_A)
    rater = make_judge_verdicts(make_comparison(evaluation), as_stored=ALL_B, swapped="unreadable")
    return said_at(rater, LONG_AGO)


def said_at(rater: Rater, moment: Any) -> Rater:
    rater.verdicts_changed_at = moment
    rater.save()
    return rater


def read(judge: Rater) -> tuple[JudgeArrays, bool]:
    """What it said, and whether its votes were read from the database."""
    places = ComparisonPositions(np.array(sorted(Comparison.objects.values_list("pk", flat=True))))
    with CaptureQueriesContext(connection) as queries:
        found = read_judge_arrays([Rater.objects.get(pk=judge.pk)], places)[judge.pk]
    return found, any('SELECT "evaluations_packedvotes"."comparison_id"' in query["sql"] for query in queries)


def choices(arrays: JudgeArrays) -> list[tuple[int, list[int], list[int]]]:
    answers = arrays.verdicts(0).answers
    return [(one.shown, one.item.tolist(), one.choice.tolist()) for one in answers]


def test_what_a_judge_said_is_read_once_until_it_says_more(evaluation: Evaluation, judge: Rater) -> None:
    (first, from_database), (second, again) = read(judge), read(judge)
    assert (from_database, again) == (True, False)
    assert choices(first) == choices(second) == [(0, [0, 1], [0, 1]), (1, [0], [0])]
    assert len(first.state) == len(second.state) == 1
    make_judge_verdicts(make_comparison(evaluation), as_stored=ALL_B)
    said_at(judge, LONG_AGO + timedelta(minutes=1))
    third, once_more = read(judge)
    assert once_more
    assert choices(third) == [(0, [0, 1, 2], [0, 1, 1]), (1, [0], [0])]


def test_it_is_read_as_it_is_where_the_file_is_cut_short(judge: Rater, tmp_path: Path) -> None:
    read(judge)
    (file,) = tmp_path.glob("choices-*")
    file.write_bytes(file.read_bytes()[:100])
    found, from_database = read(judge)
    assert from_database
    assert len(choices(found)) == 2


def test_without_room_for_a_file_it_is_read_each_time(judge: Rater, tmp_path: Path, settings: Any) -> None:
    (tmp_path / "taken").touch()
    settings.CACHE_DIR = tmp_path / "taken"  # no folder can be made there
    assert [read(judge)[1] for _ in range(2)] == [True, True]


def test_of_a_judge_that_may_be_speaking_still_nothing_is_kept(judge: Rater, tmp_path: Path) -> None:
    said_at(judge, timezone.now())
    read(judge)
    assert list(tmp_path.glob("choices-*")) == []


def test_it_is_read_again_once_an_import_is_done(evaluation: Evaluation, judge: Rater, tmp_path: Path) -> None:
    importing = Import.objects.create(evaluation=evaluation, state="storing")
    read(judge)
    assert not read(judge)[1]
    Import.objects.filter(pk=importing.pk).update(state="done")
    assert read(judge)[1]  # what it brought may be among it
    assert not read(judge)[1]
    assert len(list(tmp_path.glob("choices-*"))) == 1

"""Texts as HTML: made once, found again, and never the reason that a page fails."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from unittest import mock

import pytest
from django.db import DatabaseError, OperationalError, connection
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoAssertNumQueries

from evaluations import tasks
from evaluations.domain import ImportState
from evaluations.models import Comparison, Evaluation, Import, QueueItem, Rendering
from evaluations.rendering.markdown import RENDERER, rendered
from evaluations.services.reviewing import typesetting
from evaluations.services.reviewing.typesetting import SHORTEST_KEPT, html_of, key_of, texts_of
from tests.making import make_comparison, make_evaluation

pytestmark = pytest.mark.django_db

LONG = "A *long* text. " * SHORTEST_KEPT
OTHER = "Another **long** text. " * SHORTEST_KEPT


@pytest.fixture
def untouched() -> Iterator[mock.Mock]:
    """The renderer, watched."""
    with mock.patch.object(typesetting, "rendered", wraps=rendered) as renderer:
        yield renderer


def test_every_text_has_its_html() -> None:
    assert html_of([LONG, "*a*", ""]) == {LONG: rendered(LONG), "*a*": rendered("*a*"), "": ""}


def test_html_is_safe_as_it_is() -> None:
    assert all(hasattr(html, "__html__") for html in html_of([LONG, "*a*"]).values())


def test_a_text_is_rendered_once(untouched: mock.Mock) -> None:
    first = html_of([LONG, LONG])
    second = html_of([LONG])
    assert first == second
    assert untouched.call_count == 1


def test_equal_texts_share_one_row() -> None:
    html_of([LONG])
    html_of([LONG, OTHER])
    assert sorted(Rendering.objects.values_list("sha256", flat=True)) == sorted([key_of(LONG), key_of(OTHER)])


def test_a_page_of_known_texts_takes_one_query(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    html_of([LONG, OTHER])
    with django_assert_num_queries(1):
        html_of([LONG, OTHER, "short"])


def test_a_page_of_short_texts_asks_and_keeps_nothing(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(0):
        html_of(["x" * (SHORTEST_KEPT - 1), "short"])


def test_new_texts_are_kept_by_one_statement() -> None:
    with CaptureQueriesContext(
        connection,
    ) as queries:
        html_of([LONG, OTHER])
    assert len([query for query in queries if query["sql"].startswith("INSERT")]) == 1


def test_what_an_older_renderer_made_is_made_again() -> None:
    Rendering.objects.create(sha256=key_of(LONG), renderer=RENDERER - 1, html="old")
    assert html_of([LONG])[LONG] == rendered(LONG)
    assert Rendering.objects.filter(sha256=key_of(LONG), renderer=RENDERER).exists()


def test_what_another_page_kept_meanwhile_stays() -> None:
    typesetting.keep({key_of(LONG): "first"})
    typesetting.keep({key_of(LONG): "second", key_of(OTHER): "other"})
    assert Rendering.objects.get(sha256=key_of(LONG)).html == "first"
    assert Rendering.objects.get(sha256=key_of(OTHER)).html == "other"


@pytest.mark.parametrize("fault", [OperationalError("database or disk is full"), DatabaseError("read-only")])
def test_a_page_is_shown_where_its_texts_cannot_be_kept(fault: Exception) -> None:
    with mock.patch.object(typesetting, "keep", side_effect=fault):
        assert html_of([LONG]) == {LONG: rendered(LONG)}
    assert not Rendering.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "sqlite", reason="elsewhere writers do not wait for one another")
def test_a_page_does_not_wait_for_a_writer_that_holds_the_database() -> None:
    with closing(sqlite3.connect(connection.settings_dict["NAME"])) as other:
        other.execute("BEGIN IMMEDIATE")
        assert html_of([LONG]) == {LONG: rendered(LONG)}
        other.rollback()
    assert not Rendering.objects.exists()
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout")
        assert cursor.fetchone()[0] > typesetting.PATIENCE_MS


def test_half_a_character_neither_stops_a_page_nor_is_taken_for_another_text() -> None:
    ones, others = LONG + "\ud800", LONG + "\ud801"
    assert html_of([ones, others]) == {ones: rendered(ones), others: rendered(others)}
    assert key_of(ones) != key_of(others)


def test_the_texts_of_a_comparison_are_those_of_its_query_and_both_responses() -> None:
    comparison = make_comparison(make_evaluation(), query="Why?", response_a="So.", response_b="Thus.", context="Ctx")
    assert list(texts_of(comparison)) == ["Why?", "So.", "Thus.", "Ctx"]


# ---- ahead of the reviewers -----------------------------------------------------------------


@pytest.fixture
def evaluation() -> Evaluation:
    return make_evaluation()


def comparisons(evaluation: Evaluation, *shuffles: int) -> list[Comparison]:
    made = []
    for shuffle in shuffles:
        comparison = make_comparison(evaluation, response_a=f"{LONG} {shuffle}", response_b=f"{OTHER} {shuffle}")
        Comparison.objects.filter(pk=comparison.pk).update(shuffle=shuffle)
        made.append(comparison)
    return made


def is_ready(comparison: Comparison) -> bool:
    keys = {key_of(text) for text in texts_of(comparison) if len(text) >= SHORTEST_KEPT}
    return Rendering.objects.filter(renderer=RENDERER, sha256__in=keys).count() == len(keys)


def test_what_people_meet_first_is_rendered_ahead(evaluation: Evaluation) -> None:
    third, first, second = comparisons(evaluation, 3, 1, 2)
    assert typesetting.prepare(evaluation, limit=2) is False
    assert [is_ready(one) for one in (first, second, third)] == [True, True, False]


def test_what_has_its_reviews_is_not_rendered_ahead(evaluation: Evaluation) -> None:
    full, waiting = comparisons(evaluation, 1, 2)
    version = evaluation.review_rubric
    assert version is not None
    QueueItem.objects.create(rubric_version=version, comparison=full, position=1, wanted=1, taken=1)
    QueueItem.objects.create(rubric_version=version, comparison=waiting, position=2, wanted=1, taken=0)
    typesetting.prepare(evaluation, limit=1)
    assert [is_ready(one) for one in (full, waiting)] == [False, True]


def test_what_was_rendered_ahead_is_not_rendered_again(evaluation: Evaluation, untouched: mock.Mock) -> None:
    (comparison,) = comparisons(evaluation, 1)
    typesetting.prepare(evaluation)
    count = untouched.call_count
    typesetting.prepare(evaluation)
    html_of([text for text in texts_of(comparison) if len(text) >= SHORTEST_KEPT])
    assert untouched.call_count == count == 2


def test_it_stops_when_its_time_is_up_and_goes_on_where_it_stopped(evaluation: Evaluation) -> None:
    made = comparisons(evaluation, *range(typesetting.AT_ONCE + 1))
    assert typesetting.prepare(evaluation, seconds=0) is True
    assert not Rendering.objects.exists()
    with mock.patch.object(typesetting, "time_is_up", side_effect=[False, True]):
        assert typesetting.prepare(evaluation) is True
    assert sum(map(is_ready, made)) == typesetting.AT_ONCE
    assert typesetting.prepare(evaluation) is False
    assert all(map(is_ready, made))


def test_an_import_that_is_done_has_its_texts_rendered(evaluation: Evaluation) -> None:
    (comparison,) = comparisons(evaluation, 1)
    done = Import.objects.create(evaluation=evaluation, sha256="0", format="jsonl", state=ImportState.DONE)
    with mock.patch.object(tasks, "nudge") as nudge:
        tasks.store_import(done.pk)
    nudge.assert_any_call(tasks.render_ahead, evaluation.pk)
    tasks.render_ahead(evaluation.pk)
    assert is_ready(comparison)


def test_a_sweep_removes_some_of_what_older_renderers_made(monkeypatch: pytest.MonkeyPatch) -> None:
    html_of([LONG])
    for number in range(3):
        Rendering.objects.create(sha256=str(number), renderer=RENDERER - 1, html="old")
    monkeypatch.setattr(typesetting, "DROPPED_AT_ONCE", 2)
    assert [typesetting.drop_outdated() for _ in range(3)] == [2, 1, 0]
    assert list(Rendering.objects.values_list("sha256", flat=True)) == [key_of(LONG)]

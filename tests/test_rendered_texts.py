"""Texts as HTML: made once, found again, and never the reason that a page fails."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from unittest import mock

import pytest
from django.db import DatabaseError, OperationalError, connection
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoAssertNumQueries

from evaluations import rendered_texts
from evaluations.domain.files import ImportState
from evaluations.imports.lifecycle import enqueue_follow_ups
from evaluations.jobs.queue import enqueue_job
from evaluations.models.comparisons import Comparison, Rendering
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from evaluations.models.queues import QueueItem
from evaluations.rendered_texts import (
    COMPARISONS_PER_TRANSACTION,
    MAX_WRITE_WAIT_MS,
    MIN_STORED_CHARACTERS,
    delete_outdated_renderings,
    get_rendering_key,
    iter_comparison_texts,
    render_next_comparisons,
    render_texts,
)
from evaluations.rendering.markdown import RENDERER, render_markdown
from tests.factories.evaluations import make_comparison, make_evaluation
from tests.helpers.job_work import kill_worker_at, work_once

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

LONG = "A *long* text. " * MIN_STORED_CHARACTERS
OTHER = "Another **long** text. " * MIN_STORED_CHARACTERS


@pytest.fixture
def untouched() -> Iterator[mock.Mock]:
    """The renderer, watched."""
    with mock.patch.object(rendered_texts, "render_markdown", wraps=render_markdown) as renderer:
        yield renderer


def test_every_text_has_its_html() -> None:
    assert render_texts([LONG, "*a*", ""]) == {LONG: render_markdown(LONG), "*a*": render_markdown("*a*"), "": ""}


def test_html_is_safe_as_it_is() -> None:
    assert all(hasattr(html, "__html__") for html in render_texts([LONG, "*a*"]).values())


def test_a_text_is_rendered_once(untouched: mock.Mock) -> None:
    first = render_texts([LONG, LONG])
    second = render_texts([LONG])
    assert first == second
    assert untouched.call_count == 1


def test_equal_texts_share_one_row() -> None:
    render_texts([LONG])
    render_texts([LONG, OTHER])
    assert sorted(Rendering.objects.values_list("sha256", flat=True)) == sorted(
        [get_rendering_key(LONG), get_rendering_key(OTHER)]
    )


def test_a_page_of_known_texts_takes_one_query(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    render_texts([LONG, OTHER])
    with django_assert_num_queries(1):
        render_texts([LONG, OTHER, "short"])


def test_a_page_of_short_texts_asks_and_keeps_nothing(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(0):
        render_texts(["x" * (MIN_STORED_CHARACTERS - 1), "short"])


def test_new_texts_are_kept_by_one_statement() -> None:
    with CaptureQueriesContext(
        connection,
    ) as queries:
        render_texts([LONG, OTHER])
    assert len([query for query in queries if query["sql"].startswith("INSERT")]) == 1


def test_what_an_older_renderer_made_is_made_again() -> None:
    Rendering.objects.create(sha256=get_rendering_key(LONG), renderer=RENDERER - 1, html="old")
    assert render_texts([LONG])[LONG] == render_markdown(LONG)
    assert Rendering.objects.filter(sha256=get_rendering_key(LONG), renderer=RENDERER).exists()


def test_what_another_page_kept_meanwhile_stays() -> None:
    rendered_texts.store_renderings({get_rendering_key(LONG): "first"})
    rendered_texts.store_renderings({get_rendering_key(LONG): "second", get_rendering_key(OTHER): "other"})
    assert Rendering.objects.get(sha256=get_rendering_key(LONG)).html == "first"
    assert Rendering.objects.get(sha256=get_rendering_key(OTHER)).html == "other"


@pytest.mark.parametrize("fault", [OperationalError("database or disk is full"), DatabaseError("read-only")])
def test_a_page_is_shown_where_its_texts_cannot_be_kept(fault: Exception) -> None:
    with mock.patch.object(rendered_texts, "store_renderings", side_effect=fault):
        assert render_texts([LONG]) == {LONG: render_markdown(LONG)}
    assert not Rendering.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "sqlite", reason="elsewhere writers do not wait for one another")
def test_a_page_does_not_wait_for_a_writer_that_holds_the_database() -> None:
    with closing(sqlite3.connect(connection.settings_dict["NAME"])) as other:
        other.execute("BEGIN IMMEDIATE")
        assert render_texts([LONG]) == {LONG: render_markdown(LONG)}
        other.rollback()
    assert not Rendering.objects.exists()
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout")
        assert cursor.fetchone()[0] > MAX_WRITE_WAIT_MS


def test_half_a_character_neither_stops_a_page_nor_is_taken_for_another_text() -> None:
    ones, others = LONG + "\ud800", LONG + "\ud801"
    assert render_texts([ones, others]) == {ones: render_markdown(ones), others: render_markdown(others)}
    assert get_rendering_key(ones) != get_rendering_key(others)


def test_the_texts_of_a_comparison_are_those_of_its_query_and_both_responses() -> None:
    comparison = make_comparison(make_evaluation(), query="Why?", response_a="So.", response_b="Thus.", context="Ctx")
    assert list(iter_comparison_texts(comparison)) == ["Why?", "So.", "Thus.", "Ctx"]


# ---- ahead of the reviewers -----------------------------------------------------------------


def comparisons(evaluation: Evaluation, *random_orders: int) -> list[Comparison]:
    made = []
    for random_order in random_orders:
        comparison = make_comparison(
            evaluation, response_a=f"{LONG} {random_order}", response_b=f"{OTHER} {random_order}"
        )
        Comparison.objects.filter(pk=comparison.pk).update(random_order=random_order)
        made.append(comparison)
    return made


def is_ready(comparison: Comparison) -> bool:
    keys = {get_rendering_key(text) for text in iter_comparison_texts(comparison) if len(text) >= MIN_STORED_CHARACTERS}
    return Rendering.objects.filter(renderer=RENDERER, sha256__in=keys).count() == len(keys)


def test_what_people_meet_first_is_rendered_ahead(evaluation: Evaluation) -> None:
    third, first, second = comparisons(evaluation, 3, 1, 2)
    assert render_next_comparisons(evaluation, limit=2) is True
    assert [is_ready(one) for one in (first, second, third)] == [True, True, False]


def test_what_has_its_reviews_is_not_rendered_ahead(evaluation: Evaluation) -> None:
    full, waiting = comparisons(evaluation, 1, 2)
    version = evaluation.review_rubric
    assert version is not None
    QueueItem.objects.create(rubric_version=version, comparison=full, position=1, wanted=1, taken=1)
    QueueItem.objects.create(rubric_version=version, comparison=waiting, position=2, wanted=1, taken=0)
    render_next_comparisons(evaluation, limit=1)
    assert [is_ready(one) for one in (full, waiting)] == [False, True]


def test_what_was_rendered_ahead_is_not_rendered_again(evaluation: Evaluation, untouched: mock.Mock) -> None:
    (comparison,) = comparisons(evaluation, 1)
    render_next_comparisons(evaluation)
    count = untouched.call_count
    render_next_comparisons(evaluation)
    render_texts([text for text in iter_comparison_texts(comparison) if len(text) >= MIN_STORED_CHARACTERS])
    assert untouched.call_count == count == 2


def test_it_stops_when_its_time_is_up_and_goes_on_where_it_stopped(evaluation: Evaluation) -> None:
    made = comparisons(evaluation, *range(COMPARISONS_PER_TRANSACTION + 1))
    enqueue_job("render_ahead", evaluation.pk, evaluation=evaluation)
    assert work_once("render_ahead", evaluation.pk, seconds=0)
    assert not Rendering.objects.exists()
    with mock.patch.object(rendered_texts, "is_time_up", side_effect=[False, True]):
        assert work_once("render_ahead", evaluation.pk)
    assert sum(map(is_ready, made)) == COMPARISONS_PER_TRANSACTION
    kill_worker_at("render_ahead", evaluation.pk)
    assert not work_once("render_ahead", evaluation.pk)
    assert all(map(is_ready, made))


def test_an_import_that_is_done_has_its_texts_rendered(evaluation: Evaluation) -> None:
    (comparison,) = comparisons(evaluation, 1)
    done = Import.objects.create(evaluation=evaluation, sha256="0", format="jsonl", state=ImportState.DONE)
    enqueue_follow_ups(done)
    assert not work_once("render_ahead", evaluation.pk)
    assert is_ready(comparison)


def test_a_sweep_removes_some_of_what_older_renderers_made(monkeypatch: pytest.MonkeyPatch) -> None:
    render_texts([LONG])
    for number in range(3):
        Rendering.objects.create(sha256=str(number), renderer=RENDERER - 1, html="old")
    monkeypatch.setattr(rendered_texts, "RENDERINGS_DELETED_PER_SWEEP", 2)
    assert [delete_outdated_renderings() for _ in range(3)] == [2, 1, 0]
    assert list(Rendering.objects.values_list("sha256", flat=True)) == [get_rendering_key(LONG)]

"""Searching: the same words are found on both databases, and nothing that is typed is an error."""

import pytest
from django.core.management import call_command
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluations.comparisons.search import services as search_services
from evaluations.comparisons.search.services import (
    build_documents,
    is_index_behind,
    schedule_indexing,
)
from evaluations.domain.errors import InputRefused
from evaluations.domain.files import ImportState
from evaluations.domain.filters import ComparisonFilter
from evaluations.domain.search import make_search_excerpt, parse_search_text, split_words
from evaluations.jobs.queue import enqueue_job
from evaluations.models import transactions
from evaluations.models.comparison_filter import filter_evaluation
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.imports import Import
from evaluations.models.search_index import search_first_ids
from tests.factories.evaluations import make_comparison
from tests.factories.verdicts import make_import
from tests.helpers.job_work import job_about, kill_worker_at, work_all, work_once
from tests.helpers.postgres_statistics import empty, expected_rows

pytestmark = pytest.mark.django_db


def found(evaluation: Evaluation, text: str) -> list[Comparison]:
    return list(filter_evaluation(evaluation, ComparisonFilter(text=text)).order_by("pk"))


@pytest.fixture
def cat(evaluation: Evaluation) -> Comparison:
    make_comparison(evaluation, query="Who was Ada?", response_a="A writer.", response_b="I do not know.")
    return make_comparison(
        evaluation,
        query="Translate: le Café français (def parse_json(x): return x) 東京都 100%",
        response_a="The ＣＯＦＦＥＥ is French.",
        response_b="It’s “coffee-house”.",
        context="A menu in Paris",
        reference="The French café",
    )


@pytest.mark.parametrize(
    "text",
    [
        "translate",
        "TRANSLATE coffee",
        "cafe",
        "CAFÉ",
        '"coffee house"',
        "coffee-house",
        "parse_json",
        "menu reference french -writer".replace("reference ", ""),
        "東京",
        "京都",
        '"is french"',
        "100%",
        "“the french”",
        "it's",
    ],
)
def test_what_stands_in_any_of_its_texts_is_found(evaluation: Evaluation, cat: Comparison, text: str) -> None:
    assert found(evaluation, text) == [cat]


@pytest.mark.parametrize(
    "text", ["translator", '"french the"', "translate -coffee", "coffee house -french", "都東", '"100 the"', "OR AND"]
)
def test_what_does_not_stand_there_is_not_found(evaluation: Evaluation, cat: Comparison, text: str) -> None:
    assert found(evaluation, text) == []


HOSTILE = st.text(st.sampled_from("a b\"'-*():&|!<>^{}[]~\\%_,.;:@ NEAR OR AND NOT É東\u200d\ue000𝒜²½"), max_size=24)


@given(HOSTILE | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=24))
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nothing_that_is_typed_is_an_error_of_the_database(evaluation: Evaluation, text: str) -> None:
    try:
        parse_search_text(text)
    except InputRefused:
        return
    assert found(evaluation, text) == []


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_a_text_is_found_by_its_own_words_in_their_order(text: str) -> None:
    words = split_words(text)
    if not words or len(words) > 20:
        return
    hit = make_search_excerpt(text, parse_search_text('"' + text.replace('"', " ") + '"'), around=10_000)
    assert "".join(stretch.text for stretch in hit) in ("", text)


def test_texts_of_ascii_alone_are_cut_like_all_others() -> None:
    ascii_signs = "".join(map(chr, range(128)))
    for text in (ascii_signs, "Parse_JSON(x1)\tand/or  9.5%", "b" * 70 + " c", "", " _ "):
        assert split_words(text) == split_words(text + " ä")[:-1]
    assert split_words("Parse_JSON(x1)") == ["parse", "json", "x1"]


def test_hits_are_marked_where_they_stand() -> None:
    pieces = make_search_excerpt("The café: a CAFE in Paris", parse_search_text("cafe paris"))
    assert [(one.text, one.is_hit) for one in pieces] == [
        ("The ", False),
        ("café", True),
        (": a ", False),
        ("CAFE", True),
        (" in ", False),
        ("Paris", True),
    ]


def test_the_words_of_a_comparison_do_not_say_which_response_is_stored_as_a(evaluation: Evaluation) -> None:
    texts = ("Rain in spring.", "Snow in winter.")
    one = make_comparison(evaluation, query="When?", response_a=texts[0], response_b=texts[1])
    other = make_comparison(evaluation, key="again", query="When?", response_a=texts[1], response_b=texts[0])
    told = build_documents(Comparison.objects.filter(pk__in=[one.pk, other.pk]))
    assert told[one.pk] == told[other.pk]


# ---- catching up


def test_an_import_is_read_after_it_is_done_and_an_unfinished_one_never(
    evaluation: Evaluation, cat: Comparison
) -> None:
    brought = make_import(evaluation, "storing")
    late = make_comparison(evaluation)
    Comparison.all_rows.filter(pk=late.pk).update(source_import=brought)
    assert not is_index_behind(evaluation)
    Import.objects.filter(pk=brought.pk).update(state="done")
    enqueue_job("index_import", brought.pk, evaluation=evaluation)
    assert is_index_behind(evaluation)
    work_all("index_import")
    assert not is_index_behind(evaluation)
    assert job_about("index_import", brought.pk).position == late.pk
    assert Event.objects.filter(verb="made searchable").count() == 1
    assert found(evaluation, "translate") == [cat]


def test_reading_goes_on_where_a_killed_worker_stood(
    evaluation: Evaluation, cat: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(transactions.COMPARISONS_INDEXED_AT_ONCE, connection.vendor, 1)
    schedule_indexing(evaluation)
    assert work_once("index_evaluation", evaluation.pk, seconds=0)
    kill_worker_at("index_evaluation", evaluation.pk)
    assert is_index_behind(evaluation)
    assert not work_once("index_evaluation", evaluation.pk)
    assert not work_once("index_evaluation", evaluation.pk)
    assert found(evaluation, "translate") == [cat]
    assert Event.objects.filter(verb="made searchable").count() == 1


def test_what_came_past_every_service_is_read_when_that_is_asked_for(evaluation: Evaluation, cat: Comparison) -> None:
    schedule_indexing(evaluation)
    assert is_index_behind(evaluation)
    work_all("index_evaluation")
    assert found(evaluation, "translate") == [cat]


@pytest.mark.parametrize(("stored", "looks"), [(5, 0), (1_000, 1)])
def test_the_database_looks_anew_how_common_words_are_after_a_large_import(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch, stored: int, looks: int
) -> None:
    asked: list[None] = []
    monkeypatch.setattr(search_services, "refresh_search_statistics", lambda: asked.append(None))
    brought = make_import(evaluation)
    Import.objects.filter(pk=brought.pk).update(rows_stored=stored, state=ImportState.DONE)
    make_comparison(evaluation, source_import=brought)
    enqueue_job("index_import", brought.pk, evaluation=evaluation)
    work_all("index_import")
    assert not is_index_behind(evaluation)
    assert len(asked) == looks


@pytest.mark.django_db(transaction=True)
def test_words_go_with_all_else_where_the_database_is_emptied(cat: Comparison) -> None:
    """Numbers begin anew then: on SQLite the next comparison was found by the words of the one that had its number."""
    assert search_first_ids(parse_search_text("translate"), 10) == [cat.pk]
    call_command("flush", interactive=False)
    assert search_first_ids(parse_search_text("translate"), 10) == []


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite plans by its indexes alone")
def test_postgresql_knows_how_many_documents_there_are(evaluation: Evaluation, cat: Comparison) -> None:
    empty("evaluations_words")
    schedule_indexing(evaluation)
    work_all("index_evaluation")
    assert not is_index_behind(evaluation)
    assert expected_rows("evaluations_words") == Comparison.objects.count() == 2

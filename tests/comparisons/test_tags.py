"""Tags: put to some with a way back, or to all that a filter means, block by block."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evaluations.comparisons import services as comparisons_services
from evaluations.comparisons.services import (
    change_tag_name,
    delete_unused_tag,
    get_tag,
    start_tag_job,
    tag_comparisons,
    undo_tagging,
    untag_comparisons,
)
from evaluations.domain.errors import InputRefused
from evaluations.domain.filters import ComparisonFilter
from evaluations.domain.jobs import JobState
from evaluations.models.comparisons import Comparison, Tag, TagChange, Tagging
from evaluations.models.evaluations import Evaluation, Event
from tests.factories.evaluations import make_comparison, make_evaluation
from tests.helpers.job_work import job_about, kill_worker_at, work_once

pytestmark = pytest.mark.django_db


@pytest.fixture
def three(evaluation: Evaluation) -> list[int]:
    return [make_comparison(evaluation, category=name).pk for name in ("math", "math", "poems")]


def tagged(name: str = "hard") -> list[int]:
    found = Tagging.objects.filter(tag__name=name).order_by("comparison")
    return list(found.values_list("comparison_id", flat=True))


def test_a_step_is_undone_for_exactly_those_that_it_changed(evaluation: Evaluation, three: list[int]) -> None:
    tag_comparisons(evaluation, three[:1], "hard", user=None)
    second = tag_comparisons(evaluation, three, " hard ", user=None)
    assert (tagged(), second.comparisons) == (three, three[1:])
    undo_tagging(evaluation, second.pk, user=None)
    assert tagged() == three[:1]
    with pytest.raises(InputRefused, match="already undone"):
        undo_tagging(evaluation, second.pk, user=None)


def test_taking_a_tag_away_can_be_undone_too(evaluation: Evaluation, three: list[int]) -> None:
    tag_comparisons(evaluation, three, "hard", user=None)
    step = untag_comparisons(evaluation, three[:2], "hard", user=None)
    assert tagged() == three[2:]
    undo_tagging(evaluation, step.pk, user=None)
    assert tagged() == three


def test_a_step_can_be_undone_after_its_tag_was_renamed_and_after_it_was_deleted(
    evaluation: Evaluation, three: list[int]
) -> None:
    tag_comparisons(evaluation, three, "hard", user=None)
    change_tag_name(Tag.objects.get(), "difficult", user=None)
    step = untag_comparisons(evaluation, three, "difficult", user=None)
    delete_unused_tag(Tag.objects.get(), user=None)
    undo_tagging(evaluation, step.pk, user=None)
    assert tagged("difficult") == three


def test_comparisons_of_another_evaluation_are_left_alone(evaluation: Evaluation, three: list[int]) -> None:
    other = make_comparison(make_evaluation())
    assert tag_comparisons(evaluation, [other.pk], "hard", user=None).changed == 0
    with pytest.raises(InputRefused, match="does not exist"):
        undo_tagging(other.evaluation, TagChange.objects.latest("pk").pk, user=None)


def test_all_that_match_are_tagged_block_by_block_and_none_that_comes_later(
    evaluation: Evaluation, three: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparisons_services, "TAGGED_PER_TRANSACTION", 1)
    work = start_tag_job(evaluation, [ComparisonFilter(category="math")], "hard", removes=False, user=None)
    make_comparison(evaluation, category="math")
    assert work_once("tag", work.pk, seconds=0)
    assert tagged() == three[:1]
    assert not work_once("tag", work.pk)
    assert tagged() == three[:2]
    assert Event.objects.latest("pk").after["number"] == 2
    away = start_tag_job(evaluation, [ComparisonFilter(tags=("hard",))], "hard", removes=True, user=None)
    work_once("tag", away.pk)
    assert tagged() == []


def test_each_block_looks_through_a_piece_and_not_through_everything(
    evaluation: Evaluation, three: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparisons_services, "TAG_BLOCK", 1)
    make_comparison(evaluation, category="math")
    tag_comparisons(evaluation, [three[0]], "old", user=None)
    work = start_tag_job(
        evaluation, [ComparisonFilter(category="math", tags=("old",))], "hard", removes=False, user=None
    )
    with CaptureQueriesContext(connection) as asked:
        work_once("tag", work.pk)
    assert tagged() == three[:1]
    looked_up = [one["sql"] for one in asked if "IN (SELECT" in one["sql"] and "tagging" in one["sql"]]
    assert len(looked_up) == 4  # one comparison each
    assert all(re.search(r'\."comparison_id" > \d+ .*\."comparison_id" <= \d+', sql) for sql in looked_up)


def test_work_on_what_is_rare_finds_it_past_many_pieces(
    evaluation: Evaluation, three: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparisons_services, "TAG_BLOCK", 1)
    for category, found in (("poems", three[2:]), ("nowhere", [])):
        work = start_tag_job(evaluation, [ComparisonFilter(category=category)], category, removes=False, user=None)
        assert not work_once("tag", work.pk)
        work.refresh_from_db()
        position = job_about("tag", work.pk).position
        assert (tagged(category), position, work.changed) == (found, three[-1], len(found))


def test_work_whose_filter_names_what_is_gone_ends_and_says_why(evaluation: Evaluation, three: list[int]) -> None:
    Tag.objects.create(evaluation=evaluation, name="old")
    work = start_tag_job(evaluation, [ComparisonFilter(tags=("old",))], "hard", removes=False, user=None)
    change_tag_name(get_tag(evaluation, "old"), "new", user=None)
    assert not work_once("tag", work.pk)
    job = job_about("tag", work.pk)
    assert (job.state, job.reason) == (JobState.FAILED, "There is no tag “old” here.")


def test_work_whose_worker_was_killed_goes_on_where_it_stood(
    evaluation: Evaluation, three: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparisons_services, "TAGGED_PER_TRANSACTION", 1)
    work = start_tag_job(evaluation, [], "hard", removes=False, user=None)
    assert work_once("tag", work.pk, seconds=0)
    kill_worker_at("tag", work.pk)
    assert job_about("tag", work.pk).position == three[0]
    assert not work_once("tag", work.pk)
    assert not work_once("tag", work.pk)
    assert tagged() == three
    assert Event.objects.filter(verb="tagged").count() == 1
    assert Event.objects.latest("pk").after["number"] == 3


def test_a_tag_is_deleted_only_when_nothing_has_it(evaluation: Evaluation, three: list[int]) -> None:
    tag_comparisons(evaluation, three, "hard", user=None)
    with pytest.raises(InputRefused, match="Remove it from them first"):
        delete_unused_tag(get_tag(evaluation, "hard"), user=None)
    untag_comparisons(evaluation, three, "hard", user=None)
    delete_unused_tag(get_tag(evaluation, "hard"), user=None)
    assert not Tag.objects.exists()


@pytest.mark.parametrize("name", ["", " ", "x" * 61, "a\x00b", "a\nb"])
def test_a_name_that_is_no_word_is_refused(evaluation: Evaluation, three: list[int], name: str) -> None:
    with pytest.raises(InputRefused):
        tag_comparisons(evaluation, three, name, user=None)
    assert Comparison.objects.count() == 3

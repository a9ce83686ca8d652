"""The page of a report: served as it was last made while something changes, never to anyone who may not see it."""

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F
from django.db.models.functions import Now
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evaluations.domain.jobs import JobState
from evaluations.domain.judges import RunState
from evaluations.domain.roles import Role
from evaluations.domain.splits import SplitPart
from evaluations.evaluation_settings.services import change_evaluation
from evaluations.jobs.runner import work_on_due_jobs
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation, JudgeComparisonLook
from evaluations.models.jobs import Job
from evaluations.models.reports import ServedReport
from evaluations.models.runs import Run
from evaluations.models.users import User
from evaluations.models.verdicts import Disclosure
from evaluations.reports import served_reports
from evaluations.reports.page_body import render_report
from evaluations.reports.served_reports import REFRESH_REPORT
from evaluations.reviews.services import save_first_choices
from tests.factories.evaluations import make_comparison, make_human, make_member
from tests.factories.verdicts import ALL_A, ALL_B, make_judge_verdicts, make_review
from tests.helpers.page_text import html_of

pytestmark = pytest.mark.django_db

BEING_COUNTED = "Newer verdicts are being added"


@pytest.fixture(autouse=True)
def served_however_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_reports, "MIN_SERVED_COMPARISONS", 1)


@pytest.fixture
def studied(evaluation: Evaluation) -> Evaluation:
    """Three comparisons on which a judge and one person chose A; another two without any choice."""
    ann = make_human(evaluation, "ann")
    for _ in range(3):
        comparison = make_comparison(evaluation)
        make_judge_verdicts(comparison, as_stored=ALL_A)
        make_review(ann, comparison, ALL_A)
    make_comparison(evaluation), make_comparison(evaluation)
    return evaluation


def read_page(person: User, query: str = "") -> str:
    browser = Client()
    browser.force_login(person)
    page = html_of(browser.get(reverse("report_part", args=["study", "agreement"]) + query))
    return page[page.index("<main") : page.index("</main>")]  # the rest has a token of each page


def review_next(person: User) -> None:
    """A review that others have not seen yet, of the first comparison that this person has not reviewed."""
    free = Comparison.objects.exclude(reviews__rater__user=person)
    comparison = free.select_related("evaluation__review_rubric__rubric").order_by("-pk")[0]
    save_first_choices(person, comparison, choices=ALL_B, version=0)


def make_older(seconds: float) -> None:
    ServedReport.objects.update(made_at=Now() - timedelta(seconds=seconds))


def refresh() -> None:
    work_on_due_jobs(REFRESH_REPORT)


def test_an_unchanged_report_is_served_as_it_is_with_few_queries(viewer: User, studied: Evaluation) -> None:
    made = read_page(viewer)
    browser = Client()
    browser.force_login(viewer)
    with CaptureQueriesContext(connection) as captured:
        assert made in html_of(browser.get(reverse("report_part", args=["study", "agreement"])))
    assert len(captured) <= 12, captured.captured_queries
    assert BEING_COUNTED not in made
    assert not Job.objects.filter(kind=REFRESH_REPORT).exists()


def test_a_changed_report_is_served_with_its_time_until_a_newer_one_is_made(
    owner: User, reviewer: User, studied: Evaluation
) -> None:
    before = read_page(owner)
    review_next(reviewer)
    make_older(6)
    served = read_page(owner)
    at = ServedReport.objects.get().made_at
    assert f">{at:%H:%M:%S}</time>." in served
    assert BEING_COUNTED in served
    refresh()
    after = read_page(owner)
    assert BEING_COUNTED not in after
    assert after != before
    ServedReport.objects.all().delete()
    assert read_page(owner) == after  # which is what is made anew


def test_a_report_that_other_templates_rendered_is_not_served_as_the_present_one(
    owner: User, studied: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_page(owner)
    monkeypatch.setattr(served_reports, "TEMPLATES_VERSION", "those of the next release")
    assert BEING_COUNTED in read_page(owner)
    make_older(61)
    assert BEING_COUNTED not in read_page(owner)


def test_the_first_report_and_one_that_is_too_old_are_made_in_the_request(
    owner: User, reviewer: User, studied: Evaluation
) -> None:
    assert BEING_COUNTED not in read_page(owner)
    review_next(reviewer)
    make_older(61)
    assert BEING_COUNTED not in read_page(owner)


def test_during_a_run_a_report_is_made_again_by_one_job_and_only_while_somebody_looks(
    owner: User, studied: Evaluation
) -> None:
    Run.objects.update(state=RunState.RUNNING)
    read_page(owner)
    assert BEING_COUNTED in read_page(owner)  # it may have changed: only its time says what it is
    assert not Job.objects.filter(kind=REFRESH_REPORT).exists()  # it is a moment old
    make_older(6)
    read_page(owner), read_page(owner)
    made_at = ServedReport.objects.get().made_at
    assert Job.objects.filter(kind=REFRESH_REPORT).count() == 1
    refresh()
    assert ServedReport.objects.get().made_at > made_at
    ServedReport.objects.update(asked_at=Now() - timedelta(seconds=31))
    make_older(6)
    made_at = ServedReport.objects.get().made_at
    Job.objects.update(state="waiting")
    refresh()
    assert ServedReport.objects.get().made_at == made_at
    Run.objects.update(state=RunState.DONE)
    Job.objects.all().delete()  # without the rest after the last
    read_page(owner)
    refresh()
    assert BEING_COUNTED not in read_page(owner)


def test_a_report_that_takes_long_is_made_again_less_often(owner: User, studied: Evaluation) -> None:
    """Nine tenths of a worker's time stay for judging; after half a minute it is made again at any rate."""
    Run.objects.update(state=RunState.RUNNING)
    read_page(owner)
    for took, rests in ((1, 9), (3, 27), (60, 30)):
        make_older(6)
        Job.objects.all().delete()
        read_page(owner)
        refresh()
        finished_at = Now() - timedelta(seconds=rests - 2)
        Job.objects.update(begun_at=finished_at - timedelta(seconds=took), finished_at=finished_at)
        make_older(6)
        read_page(owner)
        assert Job.objects.get().state == JobState.DONE, took
        Job.objects.update(
            begun_at=F("begun_at") - timedelta(seconds=3), finished_at=F("finished_at") - timedelta(seconds=3)
        )
        read_page(owner)
        assert Job.objects.get().state == JobState.WAITING, took


def test_a_change_while_it_is_made_leaves_it_with_its_time(
    owner: User, reviewer: User, studied: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def review_meanwhile(*arguments: object) -> str:
        monkeypatch.undo()
        review_next(reviewer)
        return render_report(*arguments)  # type: ignore[arg-type]

    read_page(owner)
    review_next(owner)
    make_older(6)
    read_page(owner)
    monkeypatch.setattr(served_reports, "render_report", review_meanwhile)
    refresh()
    assert BEING_COUNTED in read_page(owner)


def test_a_reviewer_never_gets_what_was_served_to_a_manager(manager: User, reviewer: User, studied: Evaluation) -> None:
    """Before and after own reviews: their report is on the comparisons that they have reviewed, made for them alone."""
    everything = read_page(manager)
    assert "ann" in everything
    of_reviewer = read_page(reviewer)
    assert "ann" not in of_reviewer
    review_next(reviewer)
    assert "over the 1 comparison that you have reviewed" in read_page(reviewer)
    assert {row.role for row in ServedReport.objects.all()} == {Role.MANAGER}


def test_roles_that_see_everything_have_pages_of_their_own(manager: User, viewer: User, studied: Evaluation) -> None:
    """A manager who also reviews is told so where a report gives choices away; the links differ as well."""
    read_page(manager), read_page(viewer)
    assert {row.role for row in ServedReport.objects.all()} == {Role.MANAGER, Role.VIEWER}


def test_who_is_served_a_small_report_is_on_record_as_who_had_it_made(
    owner: User, manager: User, studied: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As shipped none is served that gives single choices away: each request makes its own record."""
    monkeypatch.undo()
    second = make_member(studied, Role.MANAGER)
    for person in (owner, manager, second):
        read_page(person)
        assert Disclosure.objects.filter(user=person).count() == 3
    assert not ServedReport.objects.exists()


def test_a_report_on_the_test_part_is_never_made_but_for_those_who_ask(owner: User, studied: Evaluation) -> None:
    read_page(owner, "?part=test")
    looks = JudgeComparisonLook.objects.count()
    assert not ServedReport.objects.filter(query__contains=SplitPart.TEST).exists()
    change_evaluation(studied, {"name": "Other"}, user=None)
    refresh()
    assert JudgeComparisonLook.objects.count() == looks


def test_made_up_queries_keep_a_hundred_reports(
    owner: User, studied: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_reports, "MAX_KEPT", 2)
    for number in range(4):
        read_page(owner, f"?made={number}")
    assert ServedReport.objects.count() == 2

"""The tiles with results on an overview, and who sees which."""

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from evaluations.domain.choices import Choice
from evaluations.domain.roles import Role
from evaluations.evaluation_settings.services import change_evaluation
from evaluations.jobs.runner import work_on_due_jobs
from evaluations.models.evaluations import Evaluation
from evaluations.models.jobs import Job
from evaluations.models.judges import Rater
from evaluations.models.results import OverviewResults
from evaluations.models.users import User
from evaluations.models.verdicts import Disclosure
from evaluations.overview import stored_results
from evaluations.overview.results import (
    Figure,
    ModelWinRate,
    Results,
    WinnerResult,
    compute_results,
    load_results,
    write_results,
)
from evaluations.overview.stored_results import COMPUTE_RESULTS
from tests.factories.evaluations import make_comparison, make_human, make_member
from tests.factories.verdicts import ALL_A, ALL_B, make_judge_verdicts, make_review
from tests.helpers.page_text import html_of

pytestmark = pytest.mark.django_db


def read_tiles(user: User) -> str:
    browser = Client()
    browser.force_login(user)
    return html_of(browser.get(reverse("evaluation_results", args=["study"])))


def read_page(user: User) -> str:
    browser = Client()
    browser.force_login(user)
    page = html_of(browser.get(reverse("evaluation", args=["study"])))
    return page[page.index("<main") : page.index("</main>")]


def review_comparisons(evaluation: Evaluation, rater: Rater, number: int, *, judged: bool = False) -> None:
    """Two of three times the reviewer prefers A, and so does the judge every time."""
    for index in range(number):
        comparison = make_comparison(evaluation)
        if judged:
            make_judge_verdicts(comparison, as_stored=ALL_A, swapped=ALL_A, kind="llm", judge="gpt")
        make_review(rater, comparison, ALL_B if index % 3 == 2 else ALL_A)


@pytest.fixture
def studied(evaluation: Evaluation) -> Evaluation:
    review_comparisons(evaluation, make_human(evaluation, "ann"), 12, judged=True)
    return evaluation


def test_few_reviews_leave_the_win_rate_to_the_judge_and_the_tile_says_so(studied: Evaluation, owner: User) -> None:
    text = read_tiles(owner)
    assert "the judge gpt: reviewers covered 12 comparisons" in text
    assert "n = 12" in text


def test_enough_reviews_decide_the_win_rate_themselves(evaluation: Evaluation, owner: User) -> None:
    """Of 30 reviews 20 are for A: 67%."""
    review_comparisons(evaluation, make_human(evaluation, "ann"), 30, judged=True)
    results = compute_results(evaluation, None)
    assert results is not None
    assert results.winner is not None
    assert results.winner.judge == ""
    assert results.winner.leader.rate.n == 30
    assert results.winner.leader.rate.value == pytest.approx(2 / 3)
    assert "from reviewers’ votes" in read_tiles(owner)


def test_the_judge_is_compared_with_reviewers(studied: Evaluation) -> None:
    """The judge always says A, the only reviewer on 8 of 12: they agree on 67%, and nobody on more."""
    results = compute_results(studied, None)
    assert results is not None
    assert results.agreement is not None
    assert results.agreement.judge_name == "gpt"
    assert results.agreement.judge is not None
    assert results.agreement.judge.value == pytest.approx(8 / 12)
    assert results.agreement.reviewers is None


def test_two_reviews_of_each_bring_the_agreement_of_reviewers(studied: Evaluation) -> None:
    """Ben says A throughout, as the judge does: against Ann both reach 8 of 12, and Ann reaches 8 of 12 against Ben.

    The judge reaches 12 of 12 against Ben: (8 + 12) / 24.
    """
    ben = make_human(studied, "ben")
    for comparison in studied.comparisons.all():
        make_review(ben, comparison, ALL_A)
    results = compute_results(studied, None)
    assert results is not None
    assert results.agreement is not None
    assert results.agreement.is_leave_one_out
    assert results.agreement.judge is not None
    assert results.agreement.judge.value == pytest.approx(20 / 24)
    assert results.agreement.reviewers is not None
    assert results.agreement.reviewers.value == pytest.approx(16 / 24)


def test_a_baseline_is_no_judge_of_an_overview(evaluation: Evaluation) -> None:
    ann = make_human(evaluation, "ann")
    for _ in range(12):
        comparison = make_comparison(evaluation)
        make_judge_verdicts(comparison, as_stored=ALL_A)
        make_review(ann, comparison, ALL_A)
    results = compute_results(evaluation, None)
    assert results is not None
    assert results.winner is not None
    assert results.winner.judge == ""
    assert results.agreement is None


def test_results_are_what_they_were_when_they_are_read_again(studied: Evaluation) -> None:
    results = compute_results(studied, None)
    assert load_results(write_results(results)) == results
    assert load_results(write_results(None)) is None


@pytest.mark.parametrize(
    ("low", "high", "is_significant"), [(0.52, 0.7, True), (0.48, 0.7, False), (None, None, False)]
)
def test_one_of_two_models_wins_only_where_its_interval_leaves_half(
    low: float | None, high: float | None, is_significant: bool
) -> None:
    models = (ModelWinRate("x", Figure(0.6, 50, low, high)), ModelWinRate("y", Figure(0.4, 50)))
    assert WinnerResult(models, "", 50).is_significant is is_significant


def test_of_three_models_no_interval_tells_the_winner() -> None:
    models = tuple(
        ModelWinRate(name, Figure(value, 50, 0.6, 0.8)) for name, value in (("x", 0.7), ("y", 0.5), ("z", 0.3))
    )
    assert not WinnerResult(models, "", 50).is_significant


def test_a_figure_is_written_with_its_interval_and_n() -> None:
    assert Figure(0.42, 1200, 0.36, 0.48).text == "42% (95% CI 36–48), n\u00a0=\u00a01,200"
    assert Figure(0.42, 12, why="Too few clusters for a CI (12 < 40).").text == "42%, n\u00a0=\u00a012"


# ---- who sees what


def test_a_reviewer_sees_progress_only_before_their_reviews_are_complete(studied: Evaluation) -> None:
    reviewer = make_member(studied, Role.REVIEWER, "rose")
    review_comparisons(studied, make_human_of(studied, reviewer), 1)
    text = read_page(reviewer)
    assert "Results appear here once your reviews are complete" in text
    assert "Who wins" not in text
    assert "Open disagreements" not in text
    assert "gpt" not in text
    browser = Client()
    browser.force_login(reviewer)
    assert browser.get(reverse("evaluation_results", args=["study"])).status_code == 204
    assert "67%" not in html_of(browser.get(reverse("evaluations")))


def make_human_of(evaluation: Evaluation, user: User) -> Rater:
    return make_human(evaluation, user.username) if not user.raters.exists() else user.raters.get(evaluation=evaluation)


def review_everything(evaluation: Evaluation, user: User) -> None:
    rater = Rater.objects.get_or_create(
        evaluation=evaluation, user=user, defaults={"kind": "human", "name": user.username}
    )[0]
    for comparison in evaluation.comparisons.all():
        make_review(rater, comparison, {"factuality": Choice.B})


def test_a_reviewer_who_is_done_sees_results_on_what_they_reviewed(studied: Evaluation) -> None:
    reviewer = make_member(studied, Role.REVIEWER, "rose")
    review_everything(studied, reviewer)
    assert "Who wins" in read_tiles(reviewer)
    assert "On the comparisons you reviewed." in read_tiles(reviewer)
    assert [row.user for row in OverviewResults.objects.all()] == [reviewer]


def test_judges_that_are_never_revealed_are_in_no_results_of_a_reviewer(studied: Evaluation) -> None:
    reviewer = make_member(studied, Role.REVIEWER, "rose")
    review_everything(studied, reviewer)
    assert "gpt" in read_tiles(reviewer)
    change_evaluation(studied, {"reveal": "never"}, user=None)
    assert "gpt" not in read_tiles(reviewer)
    assert "gpt" not in read_page(reviewer)


def test_results_on_few_comparisons_wait_for_a_click_and_reveal_nothing(evaluation: Evaluation, owner: User) -> None:
    review_comparisons(evaluation, make_human(evaluation, "ann"), 10, judged=True)
    text = read_page(owner)
    assert "results give away single choices" in text
    assert "Who wins" not in text
    assert not Disclosure.objects.exists()
    viewer = make_member(evaluation, Role.VIEWER)
    assert "Who wins" in read_page(viewer)


# ---- stored results


def test_a_page_shows_stored_results_and_a_change_has_them_computed_again(studied: Evaluation, owner: User) -> None:
    assert "Not computed yet: computing…" in read_page(owner)
    read_tiles(owner)
    page = read_page(owner)
    assert "Not computed yet" not in page
    assert "n = 12" in page
    make_older()
    review_comparisons(studied, make_human(studied, "ben"), 1, judged=True)
    assert "n = 13" in read_tiles(owner)


def make_older() -> None:
    OverviewResults.objects.update(computed_at=timezone.now() - timedelta(minutes=5))


def test_unchanged_results_are_not_computed_again(
    studied: Evaluation, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_tiles(owner)
    monkeypatch.setattr(stored_results, "compute_results", lambda *_: pytest.fail("computed again"))
    make_older()
    text = read_tiles(owner)
    assert "hx-get" not in text
    assert "As of" not in text


def test_results_of_many_comparisons_are_computed_by_a_worker(
    studied: Evaluation, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_results, "MIN_SERVED_COMPARISONS", 12)
    first = read_tiles(owner)
    assert "Not computed yet: computing…" in first
    assert 'hx-trigger="every 2s"' in first
    read_tiles(owner)
    assert Job.objects.filter(kind=COMPUTE_RESULTS).count() == 1
    work_on_due_jobs(COMPUTE_RESULTS)
    text = read_tiles(owner)
    assert "n = 12" in text
    assert "hx-get" not in text
    make_older()
    review_comparisons(studied, make_human(studied, "ben"), 1, judged=True)
    stale = read_tiles(owner)
    assert "n = 12" in stale
    assert "As of" in stale
    assert 'hx-trigger="every 10s"' in stale


def test_the_list_has_progress_winner_agreement_and_next_step(studied: Evaluation, owner: User) -> None:
    read_tiles(owner)
    browser = Client()
    browser.force_login(owner)
    text = html_of(browser.get(reverse("evaluations")))
    assert "12 of 12" in text
    assert "67% / –" in text


def test_results_without_any_verdict_are_none(evaluation: Evaluation) -> None:
    make_comparison(evaluation)
    assert compute_results(evaluation, None) is None
    assert Results("Overall", 0, None, None) == load_results(write_results(Results("Overall", 0, None, None)))

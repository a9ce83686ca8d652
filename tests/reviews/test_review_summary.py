"""The end of a session: pace and agreement, the time left, and the names of the models by the evaluation's setting."""

from collections.abc import Iterable

import pytest
from django.test import Client
from django.urls import reverse

from evaluations.comparisons.manual_comparisons import ManualComparison, add_comparison
from evaluations.domain.choices import Choice
from evaluations.domain.reviews import NameReveal, ReviewState
from evaluations.evaluation_settings.services import change_evaluation
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import get_or_create_rater
from evaluations.models.users import User
from evaluations.models.verdicts import Disclosure, Review
from evaluations.reviews.selectors import ReviewProgress, describe_minutes_left, estimate_minutes_left
from evaluations.reviews.summary import Agreement, build_review_summary
from evaluations.verdicts.votes import update_labels
from evaluations.visibility import can_see_names
from tests.factories.evaluations import make_comparison, make_human
from tests.factories.review_page import get_review_page, make_judged_comparison, review_url
from tests.factories.verdicts import make_review
from tests.helpers.api_client import ApiClient, token_for
from tests.helpers.page_text import html_of

pytestmark = pytest.mark.django_db


def chosen(**choices: str) -> dict[str, Choice]:
    return {key: Choice(choice) for key, choice in choices.items()}


@pytest.mark.usefixtures("judge_shown")
def test_the_summary_counts_first_choices_aspect_by_aspect(reviewer: User, evaluation: Evaluation) -> None:
    """The judge says A everywhere, and a tie on depth where it is torn; the other reviewer agrees once of two."""
    comparison, unfinished = make_judged_comparison(evaluation), make_judged_comparison(evaluation)
    mine, other = get_or_create_rater(reviewer, evaluation), make_human(evaluation)
    make_review(mine, comparison, chosen(clarity="A", depth="B"), final=chosen(clarity="B"), active_ms=61_000)
    make_review(other, comparison, chosen(clarity="A", depth="A"))
    make_review(other, unfinished, chosen(clarity="B"))
    make_review(mine, unfinished, chosen(clarity="A"), confirmed=False)
    summary = build_review_summary(reviewer, evaluation, mine)
    assert (summary.reviewed, summary.judge_name, summary.time_in_words) == (1, "longest wins", "1 min 1 s")
    assert summary.judge == Agreement(1, 2)
    assert summary.others == Agreement(1, 2)
    assert summary.others.percent == 50


@pytest.mark.usefixtures("judge_shown")
def test_the_summary_counts_as_having_seen_the_choices_of_others(
    browser: Client, reviewer: User, evaluation: Evaluation
) -> None:
    """Otherwise an undone review could be made anew with them in mind."""
    reviewed, unseen = make_judged_comparison(evaluation), make_judged_comparison(evaluation)
    rater = get_or_create_rater(reviewer, evaluation)
    make_review(rater, reviewed, chosen(clarity="B"), blind=True)
    page = html_of(browser.get(reverse("review_summary", args=[evaluation.slug])))
    assert "0%, n = 1" in page
    assert list(Disclosure.objects.values_list("comparison", flat=True)) == [reviewed.pk]
    assert unseen.pk != reviewed.pk


def test_a_judge_that_is_never_revealed_is_not_in_the_summary(reviewer: User, evaluation: Evaluation) -> None:
    comparison = make_judged_comparison(evaluation)
    change_evaluation(evaluation, {"reveal": "never"}, user=None)
    rater = get_or_create_rater(reviewer, evaluation)
    make_review(rater, comparison, chosen(clarity="A"))
    summary = build_review_summary(reviewer, evaluation, rater)
    assert (summary.judge_name, summary.judge) == ("", Agreement(0, 0))


# ---- the time left


def reviews(times: Iterable[int]) -> list[Review]:
    return [Review(state=ReviewState.FINAL, active_ms=ms) for ms in times]


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ((60_000, 60_000), ""),
        ((30_000, 150_000, 0, 60_000), "about 25 min left"),
        ((900, 900, 900), "less than a minute left"),
        ((600_000,) * 3, "about 4 h left"),
    ],
)
def test_the_time_left_is_the_median_of_the_last_reviews_for_each_comparison_left(
    times: tuple[int, ...], words: str
) -> None:
    """25 of 40 are left."""
    minutes = estimate_minutes_left(reviews(times), ReviewProgress(total=40, done=12, skipped=3))
    assert describe_minutes_left(minutes) == words


def test_nothing_left_takes_no_time() -> None:
    assert estimate_minutes_left(reviews([60_000] * 5), ReviewProgress(3, 3, 0)) is None


# ---- the names of the models


@pytest.mark.parametrize(
    ("setting", "before_the_last", "after_the_last"),
    [(NameReveal.NEVER, False, False), (NameReveal.AFTER_LAST, False, True), (NameReveal.AFTER_SAVE, True, True)],
)
def test_reviewers_see_names_when_the_evaluation_says_so(
    browser: Client,
    reviewer: User,
    evaluation: Evaluation,
    setting: NameReveal,
    before_the_last: bool,
    after_the_last: bool,
) -> None:
    change_evaluation(evaluation, {"name_reveal": setting}, user=None)
    first, last = (make_comparison(evaluation, candidates=("gpt-secret", "llama-secret")) for _ in range(2))
    rater = get_or_create_rater(reviewer, evaluation)
    make_review(rater, first, chosen(clarity="A"))
    for is_seen in (before_the_last, after_the_last):
        for name in ("review_comparison", "comparison"):
            html = html_of(browser.get(review_url(name, first)))
            assert ("gpt-secret" in html, "llama-secret" in html) == (is_seen, is_seen)
        listed = html_of(browser.get(reverse("comparisons", args=[evaluation.slug])))
        assert ("gpt-secret" in listed) == is_seen
        if not Review.objects.filter(rater=rater, comparison=last).exists():
            make_review(rater, last, chosen(clarity="A"))


@pytest.mark.parametrize(
    ("setting", "is_named"),
    [(NameReveal.NEVER, False), (NameReveal.AFTER_LAST, False), (NameReveal.AFTER_SAVE, True)],
)
def test_disagreements_name_models_by_the_same_setting(
    browser: Client, reviewer: User, evaluation: Evaluation, setting: NameReveal, is_named: bool
) -> None:
    change_evaluation(evaluation, {"name_reveal": setting}, user=None)
    make_comparison(evaluation)
    written = ManualComparison("Why?", "gpt-secret", "Because.", "llama-secret", "So.")
    comparison = add_comparison(evaluation, written, user=None)
    make_review(get_or_create_rater(reviewer, evaluation), comparison, chosen(clarity="A"))
    make_review(make_human(evaluation), comparison, chosen(clarity="B"))
    update_labels([comparison.pk])
    in_api = ApiClient(token_for(reviewer)).get(f"/evaluations/{evaluation.slug}/disagreements")
    [row] = in_api.json()["items"]
    named = ("gpt-secret", "llama-secret") if is_named else (None, None)
    assert (row["candidate_a"], row["candidate_b"]) == named
    listed = html_of(browser.get(reverse("disagreements", args=[evaluation.slug])))
    assert review_url("disagreement", comparison) in listed
    detail = html_of(browser.get(review_url("disagreement", comparison)))
    for html in (listed, detail):
        assert ("gpt-secret" in html, "llama-secret" in html) == (is_named, is_named)


def test_before_the_first_save_no_setting_names_a_model(browser: Client, evaluation: Evaluation) -> None:
    change_evaluation(evaluation, {"name_reveal": NameReveal.AFTER_SAVE}, user=None)
    comparison = make_comparison(evaluation, candidates=("gpt-secret", "llama-secret"))
    assert "secret" not in get_review_page(browser, comparison)


def test_who_sees_all_sees_the_names(owner: User, evaluation: Evaluation) -> None:
    change_evaluation(evaluation, {"name_reveal": NameReveal.NEVER}, user=None)
    assert can_see_names(owner, evaluation)

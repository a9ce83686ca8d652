"""Reviews by a rubric that asks for scores."""

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from evaluations.domain.choices import ShownOrder, Stage
from evaluations.domain.rubrics import AspectSpec, RubricKind, RubricOrigin, RubricSpec
from evaluations.evaluation_settings.services import change_evaluation
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User
from evaluations.models.verdicts import Review
from evaluations.reviews.selectors import get_order_shown
from evaluations.rubrics.services import add_rubric
from tests.factories.evaluations import make_comparison
from tests.factories.review_page import get_review_page, review_url
from tests.factories.verdicts import make_judge_score, make_scoring_judge
from tests.helpers.page_text import html_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("judge_shown"), pytest.mark.any_database]


def ask_for_scores(evaluation: Evaluation, **scale: Any) -> None:
    """The rubric in force asks for scores of clarity, from 1 to 5 in whole steps."""
    asked = AspectSpec("clarity", "Clarity", "", **{"scale_min": 1, "scale_max": 5, "scale_step": 1, **scale})
    spec = RubricSpec(RubricKind.POINTWISE, "Rate.", (asked,), ("clarity",))
    version = add_rubric(evaluation, name="scores", spec=spec, origin=RubricOrigin.OWN, user=None)
    change_evaluation(evaluation, {"review_rubric": version}, user=None)


def test_the_whole_way_with_scores_works_with_plain_forms(
    browser: Client, reviewer: User, evaluation: Evaluation
) -> None:
    """The judge gave the left response 5 and the right one 2; the person 2 and 4, then 4 and 3."""
    ask_for_scores(evaluation, scale_labels={"5": "plain as day"})
    scorer = make_scoring_judge(evaluation, aspect="clarity")
    change_evaluation(evaluation, {"shown_judge": scorer.judge}, user=None)
    comparison = make_comparison(evaluation)
    sides = [comparison.response_a, comparison.response_b]
    left, right = sides if get_order_shown(reviewer, comparison) == ShownOrder.AS_STORED else sides[::-1]
    make_judge_score(scorer, left, 5, aspect="clarity", rationale="Because.")
    make_judge_score(scorer, right, 2, aspect="clarity")
    page = get_review_page(browser, comparison)
    assert "plain as day" in page
    assert "Because." not in page
    assert page.count('<div class="scale ') == 2
    given = {"version": "0", "left_clarity": "2", "right_clarity": "4"}
    revealed = html_of(browser.post(review_url("review_save", comparison), given, follow=True))
    assert "Judge <b>A</b>" in revealed
    assert "5 to 2, derived from scores, margin 0.0" in revealed
    assert "differs" in revealed
    assert re.search(r'name="left_clarity" value="2" data-side="left" required checked', revealed)
    final = {"version": "1", "left_clarity": "4", "right_clarity": "3", "reason_clarity": "my_mistake"}
    done = html_of(browser.post(review_url("review_confirm", comparison), final, follow=True))
    assert 'data-first="B" data-final="A"' in done
    assert "2 to 4: B" in done
    assert "4 to 3: A" in done
    assert "my mistake" in done
    assert dict(Review.objects.get().scores.filter(stage=Stage.FINAL).values_list("response_id", "value")) == {
        left.pk: 4.0,
        right.pk: 3.0,
    }


def test_a_scale_of_many_values_is_a_field_with_its_ends_and_step(browser: Client, evaluation: Evaluation) -> None:
    ask_for_scores(evaluation, scale_min=0, scale_max=10, scale_step=0.5)
    html = get_review_page(browser, make_comparison(evaluation))
    assert re.search(r'type="number" name="right_clarity"[^>]* min="0" max="10" step="0.5" required', html)


def test_a_score_off_the_scale_is_refused_and_stays_in_its_field(browser: Client, evaluation: Evaluation) -> None:
    ask_for_scores(evaluation, scale_min=0, scale_max=10, scale_step=0.5)
    comparison = make_comparison(evaluation)
    given = {"version": "0", "left_clarity": "3.25", "right_clarity": "4"}
    response = browser.post(review_url("review_save", comparison), given)
    html = html_of(response)
    assert response.status_code == 422
    assert "The score for Clarity must be a number from 0 to 10 in steps of 0.5, not 3.25" in html
    assert re.search(r'name="left_clarity" value="3.25"', html)
    words = browser.post(review_url("review_save", comparison), {**given, "left_clarity": "three"})
    assert "score of A for Clarity" in html_of(words)


def test_a_pointwise_rubric_leads_to_a_page_with_scales(browser: Client, evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    ask_for_scores(evaluation)
    assert browser.get(reverse("review", args=[evaluation.slug]))["Location"] == review_url(
        "review_comparison", comparison
    )
    assert (
        len(re.findall(r'<input type="radio" name="(?:left|right)_clarity"', get_review_page(browser, comparison)))
        == 10
    )

"""Sending one judge or a panel through the comparisons, knowing beforehand what it takes."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evaluations.domain.roles import Role
from evaluations.domain.rubrics import AspectSpec, RubricKind, RubricOrigin, RubricSpec
from evaluations.jobs.nudges import WorkerTask
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Judge, Price
from evaluations.models.runs import Run
from evaluations.models.users import User
from evaluations.rubrics.services import add_rubric
from tests.factories.evaluations import make_comparison, make_member, make_user
from tests.factories.judges import make_baseline_judge, make_llm_judge, make_rubric_without_query
from tests.helpers.browser_client import sign_in_client
from tests.helpers.job_work import Nudges
from tests.helpers.page_text import html_of
from tests.helpers.work_sessions import CLOSED_ADDRESS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]


@pytest.fixture(autouse=True)
def two_comparisons(evaluation: Evaluation) -> None:
    for _ in range(2):
        make_comparison(evaluation)


def address() -> str:
    return reverse("run_new", args=["study"])


def page(user: User, **chosen: Any) -> str:
    answer = sign_in_client(user).get(address(), chosen)
    assert answer.status_code == 200
    return html_of(answer)


def fragment(user: User, **chosen: Any) -> str:
    return html_of(sign_in_client(user).get(address(), chosen, headers={"HX-Request": "true"}))


def post(user: User, **chosen: Any) -> Any:
    return sign_in_client(user).post(address(), {"orders": "both", "samples": 1} | chosen)


def scoring(evaluation: Evaluation) -> Judge:
    aspect = AspectSpec("overall", "Overall", "How good it is.", scale_min=1, scale_max=5, scale_step=1)
    spec = RubricSpec(RubricKind.POINTWISE, "Rate it.", (aspect,), ("overall",))
    version = add_rubric(evaluation, name="rating", spec=spec, origin=RubricOrigin.OWN, user=None)
    return make_llm_judge(evaluation, CLOSED_ADDRESS, name="scorer", version=version)


def price(judge: Judge) -> None:
    assert judge.endpoint is not None
    dollar = 10**9
    Price.objects.create(
        endpoint=judge.endpoint, model=judge.model, tokens_in=dollar, tokens_cached=dollar, tokens_out=4 * dollar
    )


def test_a_panel_makes_one_run_for_each_judge_and_they_stand_together(
    owner: User, evaluation: Evaluation, nudges: Nudges
) -> None:
    judges = [make_llm_judge(evaluation, CLOSED_ADDRESS, name=name, model=name) for name in ("one", "two")]
    answer = post(owner, judge=[judge.pk for judge in judges], limit=1)
    assert answer["Location"] == reverse("runs", args=["study"])
    one, two = Run.objects.order_by("pk")
    assert one.batch == two.batch
    assert {one.judge, two.judge} == set(judges)
    assert sorted(nudges) == [(WorkerTask.WORK_RUN, (one.pk,)), (WorkerTask.WORK_RUN, (two.pk,))]


def test_what_one_of_a_panel_cannot_do_starts_none_of_them(owner: User, evaluation: Evaluation) -> None:
    judges = [make_llm_judge(evaluation, CLOSED_ADDRESS), make_baseline_judge(evaluation)]
    answer = post(owner, judge=[judge.pk for judge in judges], samples=2)
    assert answer.status_code == 422
    assert "the same answer 2 times" in html_of(answer)
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ({"judge": []}, "Choose at least one judge."),
        ({"judge": [10**9]}, "Choose other judges."),
        ({"budget": "lots"}, "an amount in USD"),
        ({"budget": "2"}, "No price is set"),
        ({"limit": "0"}, "greater than or equal to 1"),
    ],
)
def test_what_cannot_be_is_refused_on_the_form_with_what_was_chosen(
    owner: User, evaluation: Evaluation, chosen: dict[str, Any], sentence: str
) -> None:
    judge = make_llm_judge(evaluation, CLOSED_ADDRESS)
    answer = post(owner, **{"judge": judge.pk, "orders": "swapped"} | chosen)
    assert answer.status_code == 422
    text = html_of(answer)
    assert sentence in text
    assert '<option value="swapped" selected>' in text
    assert not Run.objects.exists()


def test_a_budget_becomes_the_runs(owner: User, evaluation: Evaluation) -> None:
    judge = make_llm_judge(evaluation, CLOSED_ADDRESS, max_tokens=100)
    price(judge)
    assert post(owner, judge=judge.pk, budget="2.50").status_code == 302
    assert Run.objects.get().budget == 2_500_000_000


def test_the_batch_api_is_offered_where_a_model_is_asked(owner: User, evaluation: Evaluation) -> None:
    baseline = make_baseline_judge(evaluation)
    assert "Batch API" not in page(owner, judge=baseline.pk)
    judge = make_llm_judge(evaluation, CLOSED_ADDRESS)
    assert "about half the price" in page(owner, judge=judge.pk)
    assert "up to a day" in fragment(owner, judge=judge.pk, channel="batch")
    refused = post(owner, judge=baseline.pk, channel="batch")
    assert refused.status_code == 422
    assert "is rule-based and makes no requests" in html_of(refused)
    assert post(owner, judge=judge.pk, channel="batch").status_code == 302
    assert Run.objects.get().channel == "batch"


def test_the_estimate_names_calls_tokens_money_and_time_and_what_they_rest_on(
    owner: User, evaluation: Evaluation
) -> None:
    judge = make_llm_judge(evaluation, CLOSED_ADDRESS, max_tokens=100)
    shown = page(owner, judge=judge.pk)
    for told in (">4</strong> calls on 2 comparisons", "input tokens", "output tokens", "time", "Assumptions"):
        assert told in shown
    assert "price unknown" in shown
    assert "A site administrator can add the price" in shown
    price(judge)
    # 4 calls of at most 100 tokens out at 4 USD a million come to at most 0.0016 USD for the replies.
    assert "<dt>cost</dt><dd>$0.0" in page(owner, judge=judge.pk)


def test_an_administrator_is_led_to_the_price_that_is_missing(evaluation: Evaluation) -> None:
    judge = make_llm_judge(evaluation, CLOSED_ADDRESS)
    administrator = make_member(evaluation, Role.OWNER, "root")
    User.objects.filter(pk=administrator.pk).update(is_superuser=True)
    assert reverse("endpoint", args=[judge.endpoint_id]) in page(administrator, judge=judge.pk)


def test_a_panels_estimate_is_summed_and_one_unknown_price_makes_it_unknown(
    owner: User, evaluation: Evaluation
) -> None:
    one, two = (make_llm_judge(evaluation, CLOSED_ADDRESS, name=name, model=name) for name in ("one", "two"))
    price(one)
    both = {"judge": [one.pk, two.pk]}
    shown = fragment(owner, **both)
    assert "<html" not in shown
    assert "Total</strong> 8 calls, cost unknown" in shown
    price(two)
    assert "cost unknown" not in fragment(owner, **both)
    assert "Total" not in fragment(owner, judge=one.pk)
    assert "Choose at least one judge" in fragment(owner, orders="both")


def test_the_estimate_is_the_same_by_button_and_by_fragment(owner: User, evaluation: Evaluation) -> None:
    judge = make_llm_judge(evaluation, CLOSED_ADDRESS)
    chosen = {"judge": judge.pk, "orders": "random", "limit": "1", "samples": "3"}
    part = fragment(owner, **chosen)
    assert ">3</strong> calls on 1 comparison" in part
    whole = page(owner, **chosen)
    assert " ".join(part.split()) in " ".join(whole.split())
    assert f'value="{judge.pk}" checked' in whole


def test_fields_that_are_no_numbers_yet_are_estimated_with_their_defaults(owner: User, evaluation: Evaluation) -> None:
    judge = make_llm_judge(evaluation, CLOSED_ADDRESS)
    assert ">4</strong> calls" in fragment(owner, judge=judge.pk, orders="sideways", limit="-", samples="x")


def test_a_judge_that_scores_is_asked_about_responses(owner: User, evaluation: Evaluation) -> None:
    judge = scoring(evaluation)
    shown = page(owner, judge=judge.pk)
    assert ">4</strong> calls on 4 responses" in shown
    assert "data-pointwise" in shown
    assert post(owner, judge=judge.pk).status_code == 302


def test_many_judges_and_comparisons_cost_no_more_queries(owner: User, evaluation: Evaluation) -> None:
    judge = make_llm_judge(evaluation, CLOSED_ADDRESS)
    client = sign_in_client(owner)

    def queries() -> int:
        client.get(address(), {"judge": judge.pk})
        with CaptureQueriesContext(connection) as captured:
            assert client.get(address(), {"judge": judge.pk}).status_code == 200
        return len(captured)

    few = queries()
    for number in range(5):
        make_llm_judge(evaluation, f"http://127.0.0.1:{9000 + number}/v1", name=f"judge {number}", model=f"m{number}")
        make_comparison(evaluation)
    assert queries() == few


def test_only_those_who_manage_start_runs(evaluation: Evaluation) -> None:
    for role in (Role.REVIEWER, Role.VIEWER, Role.ADJUDICATOR):
        assert sign_in_client(make_member(evaluation, role)).get(address()).status_code == 403
    assert sign_in_client(make_user()).get(address()).status_code == 404


def test_what_a_pasted_prompt_leaves_out_is_shown_before_the_run_which_may_start(
    owner: User, evaluation: Evaluation
) -> None:
    judge = make_llm_judge(evaluation, CLOSED_ADDRESS, version=make_rubric_without_query(evaluation))
    assert "The rubric has no placeholder for the prompt." in fragment(owner, judge=judge.pk)
    assert post(owner, judge=judge.pk).status_code == 302
    other = make_llm_judge(evaluation, CLOSED_ADDRESS, name="other")
    assert "no placeholder" not in fragment(owner, judge=other.pk)

"""A judge's page: what it is, what exactly it is sent, and one question put to it to try it."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evaluations.domain.judges import CallState, RunState
from evaluations.domain.roles import Role
from evaluations.jobs.nudges import WorkerTask
from evaluations.judges.endpoints.price_settings import PriceSettings, set_price
from evaluations.models.comparisons import Candidate, Comparison, Query, Response
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Judge
from evaluations.models.runs import Call, Run
from evaluations.models.users import User
from evaluations.rubrics.services import create_builtin_rubric
from evaluations.visibility import has_seen_verdicts
from tests.factories.evaluations import make_comparison, make_evaluation, make_member, make_user
from tests.factories.judges import make_baseline_judge, make_llm_judge, run_judge_here, work_run_here
from tests.helpers.job_work import Nudges
from tests.helpers.llm_server import answer_broken, fail_with, llm_server
from tests.helpers.work_sessions import CLOSED_ADDRESS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]


@pytest.fixture(autouse=True)
def three_comparisons(evaluation: Evaluation, owner_signed_in: Client) -> None:
    for number in range(3):
        make_comparison(evaluation, key=f"q{number}", query=f"Question {number}?")


def page(client: Client, judge: Judge, name: str = "judge", **parameters: Any) -> str:
    answer = client.get(reverse(name, args=[judge.evaluation.slug, judge.pk]), parameters)
    assert answer.status_code in (200, 286), answer.status_code
    return answer.content.decode()


def tried(client: Client, judge: Judge, **fields: Any) -> Run:
    """The run that a try starts, worked off."""
    answer = client.post(reverse("judge_test", args=["study", judge.pk]), fields)
    run = Run.objects.latest("pk")
    assert answer["Location"].endswith(f"run={run.pk}#try")
    return work_run_here(run)


# ---- what it is sent


def test_every_setting_stands_on_the_page(client: Client, evaluation: Evaluation) -> None:
    judge = make_llm_judge(
        evaluation,
        CLOSED_ADDRESS,
        mode="json_object",
        max_tokens=1500,
        reasoning_effort="low",
        logprobs=True,
        repairs=False,
    )
    shown = page(client, judge)
    for words in ("JSON without a schema", "1,500", "low", "not retried", "Log probabilities"):
        assert words in shown


def test_comparisons_follow_each_other_in_the_order_in_which_people_meet_them(
    client: Client, evaluation: Evaluation
) -> None:
    judge = make_llm_judge(evaluation, CLOSED_ADDRESS)
    first, second, third = Comparison.objects.order_by("random_order")
    shown = page(client, judge)
    assert "Question 0?" in shown
    assert 'rel="prev"' not in shown
    middle = page(client, judge, subject=second.pk, shown="swapped")
    assert f'href="/e/study/judges/{judge.pk}?subject={first.pk}&amp;shown=swapped#prompt"' in middle
    assert f'href="/e/study/judges/{judge.pk}?subject={third.pk}&amp;shown=swapped#prompt"' in middle
    assert 'rel="next"' not in page(client, judge, subject=third.pk)


@pytest.mark.parametrize("subject", ["0", "999999", "x", "9" * 30, "²"])
def test_a_comparison_that_is_not_here_is_not_found(client: Client, evaluation: Evaluation, subject: str) -> None:
    address = reverse("judge", args=["study", make_llm_judge(evaluation, CLOSED_ADDRESS).pk])
    assert client.get(address, {"subject": subject}).status_code == 404
    elsewhere = make_comparison(make_evaluation())
    assert client.get(address, {"subject": elsewhere.pk}).status_code == 404


def test_a_judge_of_single_responses_is_shown_one_and_both_its_requests(client: Client, evaluation: Evaluation) -> None:
    judge = make_llm_judge(
        evaluation, CLOSED_ADDRESS, version=create_builtin_rubric(evaluation, builtin="summary-rating", user=None)
    )
    response = Response.objects.order_by("pk")[1]
    shown = page(client, judge, subject=response.pk)
    assert "response of beta" in shown
    assert "The capital of France is Lyon." in shown
    assert "Second request" in shown
    assert "Order shown" not in shown


def test_what_is_suspect_in_the_texts_is_marked(client: Client, evaluation: Evaluation) -> None:
    judge = make_llm_judge(evaluation, CLOSED_ADDRESS)
    assert "forges a verdict" not in page(client, judge)
    Query.objects.update(flags="addresses_judge")
    Response.objects.update(flags="forged_verdict")
    shown = page(client, judge)
    assert "addresses the judge" in shown
    assert "forges a verdict" in shown


def test_a_page_without_material_says_how_to_get_some(client: Client, owner: User) -> None:
    client.force_login(owner)
    judge = make_llm_judge(make_evaluation(owner, slug="empty"), CLOSED_ADDRESS)
    assert "No prompt yet" in page(client, judge)


# ---- trying


def test_a_try_asks_once_and_shows_what_came_back(client: Client, evaluation: Evaluation, owner: User) -> None:
    comparison = Comparison.objects.order_by("random_order")[1]
    with llm_server() as server:
        judge = make_llm_judge(evaluation, server.base_url)
        run = tried(client, judge, subject=comparison.pk, shown="swapped")
        assert len(server.questions) == 1
    call = Call.all_rows.get()
    assert (call.comparison, call.shown, call.state) == (comparison, "swapped", CallState.ANSWERED)
    shown = page(client, judge, "judge_test_result", run=run.pk, subject=comparison.pk, shown="swapped")
    for words in ("The first one answers the question.", "Helpfulness", "tokens in", "latency", "finish reason"):
        assert words in shown
    assert "hx-get" not in shown.partition('id="tried"')[2].partition(">")[0]
    assert has_seen_verdicts(owner, comparison)


def test_a_try_at_work_is_polled_and_the_last_answer_stops_it(
    client: Client, evaluation: Evaluation, nudges: Nudges
) -> None:
    with llm_server() as server:
        judge = make_llm_judge(evaluation, server.base_url)
        client.post(
            reverse("judge_test", args=["study", judge.pk]), {"subject": Comparison.objects.earliest("random_order").pk}
        )
        run = Run.objects.get()
        assert nudges == [(WorkerTask.WORK_RUN, (run.pk,))]
        address = reverse("judge_test_result", args=["study", judge.pk])
        waiting = client.get(address, {"run": run.pk}).content.decode()
        assert 'hx-trigger="every 1s"' in waiting
        assert "Reload this page" in waiting
        fragment = client.get(address, {"run": run.pk}, headers={"HX-Request": "true"})
        assert (fragment.status_code, "<html" in fragment.content.decode()) == (200, False)
        work_run_here(run)
    last = client.get(address, {"run": run.pk}, headers={"HX-Request": "true"})
    assert last.status_code == 286
    assert "The first one answers the question." in last.content.decode()


def test_both_requests_of_two_steps_are_shown(client: Client, evaluation: Evaluation) -> None:
    with llm_server() as server:
        version = create_builtin_rubric(evaluation, builtin="summary-rating", user=None)
        judge = make_llm_judge(evaluation, server.base_url, version=version)
        run = tried(client, judge, subject=Response.objects.earliest("pk").pk)
    shown = page(client, judge, "judge_test_result", run=run.pk)
    assert "Verdict (step 2)" in shown
    assert Call.all_rows.get().response == Response.objects.earliest("pk")


def test_a_reply_that_cannot_be_read_is_shown_and_can_be_asked_again(client: Client, evaluation: Evaluation) -> None:
    comparison = Comparison.objects.order_by("random_order")[0]
    with llm_server(answer_broken) as server:
        judge = make_llm_judge(evaluation, server.base_url, repairs=False)
        run = tried(client, judge, subject=comparison.pk)
        assert "is broken" in page(client, judge, "judge_test_result", run=run.pk)
        before = page(client, judge)
        assert "Test again" in before
        assert "costs another request" in before
        tried(client, judge, subject=comparison.pk)
        assert len(server.questions) == 2


def test_what_was_answered_is_never_bought_again(client: Client, evaluation: Evaluation) -> None:
    comparison = Comparison.objects.order_by("random_order")[0]
    with llm_server() as server:
        judge = make_llm_judge(evaluation, server.base_url)
        tried(client, judge, subject=comparison.pk)
        shown = page(client, judge)
        assert "see the answer" in shown
        assert "Test on this" not in shown
        again = tried(client, judge, subject=comparison.pk)
        assert len(server.questions) == 1
    assert "Answered before, at no cost now" in page(client, judge, "judge_test_result", run=again.pk)


def test_a_server_that_refuses_everything_says_so_on_the_page(client: Client, evaluation: Evaluation) -> None:
    with llm_server(fail_with(401)) as server:
        judge = make_llm_judge(evaluation, server.base_url)
        run = tried(client, judge, subject=Comparison.objects.earliest("random_order").pk)
    assert run.state == RunState.STOPPED
    assert "requires an API key (401)" in page(client, judge, "judge_test_result", run=run.pk)


def test_what_it_may_cost_stands_beside_the_button(client: Client, owner: User, evaluation: Evaluation) -> None:
    judge = make_llm_judge(evaluation, CLOSED_ADDRESS)
    assert "price unknown" in page(client, judge)
    assert judge.endpoint is not None
    set_price(judge.endpoint, PriceSettings(model=judge.model, tokens_in="1", tokens_out="4"), user=owner)
    assert "$0.0" in page(client, judge).partition('id="try"')[2]


def test_a_try_does_not_choose_the_judge_that_reviewers_see(client: Client, evaluation: Evaluation) -> None:
    with llm_server() as server:
        tried(
            client, make_llm_judge(evaluation, server.base_url), subject=Comparison.objects.earliest("random_order").pk
        )
    evaluation.refresh_from_db()
    assert evaluation.shown_judge is None


# ---- who may


def test_a_reviewer_reads_the_prompt_of_made_up_texts_and_sees_nothing_of_any_answer(
    client: Client, evaluation: Evaluation
) -> None:
    with llm_server() as server:
        judge = make_llm_judge(evaluation, server.base_url)
        run = tried(client, judge, subject=Comparison.objects.order_by("random_order")[0].pk)
    client.force_login(make_member(evaluation, Role.REVIEWER))
    shown = page(client, judge)
    assert "[[begin response A " in shown
    assert "Shown with a made-up example" in shown
    assert "try-heading" not in shown
    assert client.get(reverse("judge_test_result", args=["study", judge.pk]), {"run": run.pk}).status_code == 403
    assert client.post(reverse("judge_test", args=["study", judge.pk])).status_code == 403


@pytest.mark.parametrize("builtin", ["six-aspect", "summary-rating"])
def test_a_reviewer_learns_of_no_text_whether_it_is_a_or_whose_it_is(
    client: Client, evaluation: Evaluation, builtin: str
) -> None:
    version = create_builtin_rubric(evaluation, builtin=builtin, name="another", user=None)
    judge = make_llm_judge(evaluation, CLOSED_ADDRESS, version=version)
    subject = Response.objects.latest("pk") if judge.is_pointwise else Comparison.objects.latest("pk")
    client.force_login(make_member(evaluation, Role.REVIEWER))
    for shown in ("as_stored", "swapped"):
        text = page(client, judge, subject=subject.pk, shown=shown)
        assert "When does the office open" in text
        assert "At nine." in text
        assert not [one for one in Query.objects.all() if one.text in text]
        assert not [one for one in Candidate.objects.all() if one.name in text]
    client.force_login(make_member(evaluation, Role.VIEWER))
    assert subject.query.text in page(client, judge, subject=subject.pk)


def test_a_run_of_another_judge_or_of_many_calls_is_no_try(client: Client, evaluation: Evaluation) -> None:
    judge = make_llm_judge(evaluation, CLOSED_ADDRESS)
    other = run_judge_here(make_baseline_judge(evaluation))
    address = reverse("judge_test_result", args=["study", judge.pk])
    assert client.get(address, {"run": other.pk}).status_code == 404
    assert (
        client.get(reverse("judge_test_result", args=["study", other.judge_id]), {"run": other.pk}).status_code == 404
    )
    assert client.get(address, {"run": "x"}).status_code == 404
    assert client.post(reverse("judge_test", args=["study", judge.pk]), {"subject": "0"}).status_code == 404
    client.force_login(make_user())
    assert client.get(address, {"run": other.pk}).status_code == 404
    assert client.post(reverse("judge_test", args=["study", judge.pk])).status_code == 404


def test_the_page_costs_the_same_however_many_comparisons_there_are(client: Client, evaluation: Evaluation) -> None:
    judge = make_llm_judge(evaluation, CLOSED_ADDRESS)
    second = Comparison.objects.order_by("random_order")[1]

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            page(client, judge, subject=second.pk)
        return len(captured)

    queries()  # the frozen rubric is read once by a process
    few = queries()
    for _ in range(5):
        make_comparison(evaluation)
    assert queries() == few

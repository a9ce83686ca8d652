"""One run: watched, held, let go on, bounded and ended from its page."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evaluations.domain.judges import CallState, RunState
from evaluations.domain.roles import Role
from evaluations.jobs.nudges import WorkerTask
from evaluations.judges.runs.planner import plan_run_calls
from evaluations.judges.runs.services import cancel_run, pause_run, start_run
from evaluations.judges.runs.transitions import stop_run
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.judges import Price
from evaluations.models.runs import Attempt, Batch, Call, Run
from evaluations.models.users import User
from tests.factories.evaluations import make_comparison, make_evaluation, make_member, make_user
from tests.factories.judges import make_baseline_judge, make_llm_judge, run_judge_here
from tests.helpers.browser_client import sign_in_client
from tests.helpers.job_work import Nudges
from tests.helpers.llm_server import llm_server
from tests.helpers.page_text import html_of
from tests.helpers.work_sessions import CLOSED_ADDRESS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]

DOLLAR = 10**9
POSTS = ("run_pause", "run_resume", "run_budget", "run_cancel")


@pytest.fixture(autouse=True)
def two_comparisons(evaluation: Evaluation) -> None:
    for _ in range(2):
        make_comparison(evaluation)


@pytest.fixture
def run(evaluation: Evaluation) -> Run:
    """Planned, not worked, with a price and a bound on replies: it can have a budget."""
    judge = make_llm_judge(evaluation, CLOSED_ADDRESS, max_tokens=100)
    assert judge.endpoint is not None
    Price.objects.create(endpoint=judge.endpoint, model=judge.model, tokens_in=1, tokens_cached=1, tokens_out=1)
    run = start_run(judge, user=None)
    plan_run_calls(run.pk, until=float("inf"))
    return Run.objects.get(pk=run.pk)


def post(user: User, name: str, run: Run, **fields: Any) -> Any:
    return sign_in_client(user).post(reverse(name, args=["study", run.pk]), fields)


def page(user: User, run: Run) -> str:
    answer = sign_in_client(user).get(reverse("run", args=["study", run.pk]))
    assert answer.status_code == 200
    return html_of(answer)


def state(run: Run, **columns: Any) -> str:
    if columns:
        Run.objects.filter(pk=run.pk).update(**columns)
    return Run.objects.get(pk=run.pk).state


def test_a_run_is_paused_and_goes_on_and_a_worker_is_told(owner: User, run: Run, nudges: Nudges) -> None:
    nudges.clear()  # what began the run
    assert post(owner, "run_pause", run).status_code == 302
    assert state(run) == RunState.PAUSED
    shown = page(owner, run)
    assert "Paused. Answers in flight are still stored." in shown
    assert ">Resume</button>" in shown
    assert ">Pause</button>" not in shown
    assert nudges == []
    assert post(owner, "run_resume", run).status_code == 302
    assert state(run) == RunState.RUNNING
    assert nudges == [(WorkerTask.WORK_RUN, (run.pk,))]
    assert [event.verb for event in Event.objects.filter(object_type="run").order_by("pk")][-2:] == [
        "paused",
        "resumed",
    ]


@pytest.mark.parametrize(
    ("name", "standing", "sentence"),
    [
        ("run_pause", RunState.PAUSED, "cannot be paused"),
        ("run_pause", RunState.DONE, "cannot be paused"),
        ("run_resume", RunState.RUNNING, "cannot be resumed"),
        ("run_resume", RunState.DONE, "cannot be resumed"),
        ("run_cancel", RunState.DONE, "cannot be cancelled"),
        ("run_cancel", RunState.CANCELLED, "cannot be cancelled"),
        ("run_budget", RunState.DONE, "budget cannot be changed"),
    ],
)
def test_what_cannot_be_done_now_is_said_on_the_page(
    owner: User, run: Run, name: str, standing: RunState, sentence: str
) -> None:
    state(run, state=standing)
    answer = post(owner, name, run, **({"budget": "2"} if name == "run_budget" else {}))
    assert answer.status_code == 422
    assert html_of(answer).count(sentence) == 1
    assert state(run) == standing


def test_the_budget_is_raised_and_taken_away(owner: User, run: Run) -> None:
    assert post(owner, "run_budget", run, budget="2.50").status_code == 302
    assert Run.objects.get(pk=run.pk).budget == 2_500_000_000
    assert 'value="2.50"' in page(owner, run)
    assert post(owner, "run_budget", run, budget="").status_code == 302
    assert Run.objects.get(pk=run.pk).budget is None


@pytest.mark.parametrize(
    ("budget", "sentence"), [("much", "an amount in USD"), ("0", "more than USD 0"), ("1", "at least")]
)
def test_a_budget_that_cannot_be_is_refused_in_one_sentence(owner: User, run: Run, budget: str, sentence: str) -> None:
    Run.objects.filter(pk=run.pk).update(spent=3 * DOLLAR)
    answer = post(owner, "run_budget", run, budget=budget)
    assert answer.status_code == 422
    assert sentence in html_of(answer)
    assert Run.objects.get(pk=run.pk).budget is None


def test_a_run_that_was_stopped_says_why_and_goes_on_with_a_larger_budget(
    owner: User, run: Run, nudges: Nudges
) -> None:
    nudges.clear()  # what began the run
    state(run, budget=DOLLAR, spent=DOLLAR)
    stop_run(run, "The budget is used up.")
    shown = page(owner, run)
    assert "The budget is used up." in shown
    assert 'name="budget"' in shown
    assert "4 calls pending" in " ".join(shown.split())
    assert post(owner, "run_resume", run, budget="2").status_code == 302
    run.refresh_from_db()
    assert (run.state, run.budget, run.stop_reason) == (RunState.RUNNING, 2 * DOLLAR, "")
    assert nudges == [(WorkerTask.WORK_RUN, (run.pk,))]


def test_a_stopped_run_without_a_budget_is_simply_resumed(owner: User, run: Run) -> None:
    stop_run(run, "The server wants a key (401).")
    shown = page(owner, run)
    assert 'name="budget"' not in shown
    assert ">Resume</button>" in shown
    endpoint = reverse("endpoint", args=[run.judge.endpoint_id])
    assert endpoint not in shown
    User.objects.filter(pk=owner.pk).update(is_superuser=True)
    assert endpoint in page(owner, run)
    assert post(owner, "run_resume", run).status_code == 302
    assert state(run) == RunState.RUNNING


def test_every_count_leads_to_the_calls_that_it_counts(owner: User, run: Run) -> None:
    first, second, third, _ = Call.objects.order_by("pk")
    for call, how in ((first, "unreadable"), (second, "too_long"), (third, "answered")):
        Call.objects.filter(pk=call.pk).update(state=how, repaired=how == "answered")
    shown = page(owner, run)
    calls = reverse("run_calls", args=["study", run.pk])
    for kind in ("pending", "unreadable", "too_long", "answered", "repaired"):
        assert f"{calls}?state={kind}" in shown


def test_what_was_spent_stands_beside_the_budget_and_the_unknown_is_not_nothing(owner: User, run: Run) -> None:
    state(run, budget=5 * DOLLAR, spent=1_230_000_000, reserved=400_000_000)
    call = Call.objects.order_by("pk")[0]
    Attempt.objects.create(call=call, run=run, number=1, outcome="answered", http_status=200, cost=1, latency_ms=1)
    shown = page(owner, run)
    assert "$1.23 of $5.00" in shown
    assert "$0.40" in shown
    Attempt.objects.create(call=call, run=run, number=2, outcome="answered", http_status=200, latency_ms=1)
    assert "$1.23 plus 1 answer of unknown cost of $5.00" in page(owner, run)
    Attempt.objects.filter(number=1).delete()
    assert "<dd>unknown of $5.00</dd>" in page(owner, run)


def test_a_run_through_the_batch_api_shows_its_batches_and_is_looked_at_less_often(owner: User, run: Run) -> None:
    state(run, channel="batch")
    said = {"remote_state": "in_progress", "calls_sent": 4}
    Batch.objects.create(run=run, state="submitted", **said)
    Batch.objects.create(run=run, state="failed", error="The server lost the file.")
    shown = page(owner, run)
    assert "Batch of 4 calls" in shown
    assert "provider status: in_progress" in shown
    assert "The server lost the file." in shown
    assert 'hx-trigger="every 10s"' in shown


def test_a_page_that_polls_is_loaded_again_when_someone_else_holds_the_run(owner: User, run: Run) -> None:
    client, address = sign_in_client(owner), reverse("run_progress", args=["study", run.pk])
    assert "HX-Refresh" not in client.get(address).headers
    pause_run(run, user=None)
    assert client.get(address).headers["HX-Refresh"] == "true"
    assert f"{address}?paused" in page(owner, run)
    assert "HX-Refresh" not in client.get(f"{address}?paused").headers


def test_what_polls_brings_is_part_of_the_page(owner: User, run: Run) -> None:
    moving = html_of(sign_in_client(owner).get(reverse("run_progress", args=["study", run.pk])))
    part = moving[: moving.index("<span id=")].strip()
    squeezed = " ".join(page(owner, run).split())
    assert " ".join(part.split()) in squeezed


def test_answers_on_their_way_are_followed_after_the_end(owner: User, run: Run) -> None:
    Call.objects.filter(pk=Call.objects.order_by("pk")[0].pk).update(state=CallState.RUNNING)
    cancel_run(run, user=None)
    assert 'hx-trigger="every 2s"' in page(owner, run)
    Call.objects.update(state=CallState.ANSWERED)
    last = sign_in_client(owner).get(reverse("run_progress", args=["study", run.pk]))
    assert last.status_code == 286
    for part in ("verdict", "actions", "reparse", "budget", "lead"):
        assert f'id="run-{part}"' in html_of(last)
    assert 'name="budget"' not in html_of(last)


def test_a_reviewer_sees_how_far_it_is_and_changes_nothing(evaluation: Evaluation, run: Run) -> None:
    reviewer = make_member(evaluation, Role.REVIEWER)
    shown = page(reviewer, run)
    assert "0 / 4" in shown
    for secret in ("/calls", "Pause", "Cancel", "Budget", "Run again"):
        assert secret not in shown
    for name in POSTS:
        assert post(reviewer, name, run).status_code == 403
        assert post(make_user(), name, run).status_code == 404
    assert state(run) == RunState.RUNNING


def test_no_run_of_another_evaluation_is_changed_through_ones_own(owner: User, evaluation: Evaluation) -> None:
    other = make_evaluation(slug="other")
    make_comparison(other)
    foreign = start_run(make_baseline_judge(other), user=None)
    for name in POSTS:
        assert post(owner, name, foreign).status_code == 404
    assert state(foreign) == RunState.PLANNING


def test_a_run_of_many_calls_costs_no_more_queries(owner: User, evaluation: Evaluation) -> None:
    with llm_server() as server:
        small = run_judge_here(make_llm_judge(evaluation, server.base_url))
        for _ in range(8):
            make_comparison(evaluation)
        large = run_judge_here(make_llm_judge(evaluation, server.base_url, name="again", model="other"))
    client = sign_in_client(owner)

    def queries(run: Run) -> int:
        with CaptureQueriesContext(connection) as captured:
            assert client.get(reverse("run", args=["study", run.pk])).status_code == 200
        return len(captured)

    for run in (small, large):
        queries(run)  # the first look at the results counts them
    assert queries(small) == queries(large)

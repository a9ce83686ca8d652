"""How a run starts, is planned, and ends."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from evaluations.domain.choices import ShownOrder
from evaluations.domain.errors import InputRefused
from evaluations.domain.judges import AttemptStep, CallState, RunOrders, RunState
from evaluations.judge_prompts.builtin_rubrics import SUMMARY_RATING_NAME
from evaluations.judges.calls.claims import claim_calls
from evaluations.judges.calls.work_session import begin_work_session
from evaluations.judges.endpoints.price_settings import PriceSettings, set_price
from evaluations.judges.runs import planner
from evaluations.judges.runs.planner import cancel_waiting_calls, plan_next_calls, plan_run_calls
from evaluations.judges.runs.selection import draw_orders
from evaluations.judges.runs.selectors import count_calls_by_state
from evaluations.judges.runs.services import cancel_run, change_budget, pause_run, resume_run, start_panel, start_run
from evaluations.judges.runs.transitions import finish_run, stop_run
from evaluations.llm.retry_policy import RetryPolicy
from evaluations.models.comparisons import Query, Response
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.judges import Judge
from evaluations.models.runs import Call, Run
from evaluations.rubrics.services import create_builtin_rubric
from tests.factories.evaluations import make_comparison, make_evaluation, make_response, make_user
from tests.factories.judges import make_baseline_judge, make_llm_judge, run_judge_here, work_run_here
from tests.helpers.llm_server import answer_well, fail_with, llm_server
from tests.helpers.work_sessions import expect_calls

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def five_comparisons(evaluation: Evaluation) -> None:
    for number in range(5):
        make_comparison(evaluation, response_a="long " * number, response_b="short")


@pytest.fixture
def judge(evaluation: Evaluation) -> Judge:
    return make_llm_judge(evaluation, "http://127.0.0.1:9/v1")


def planned(judge: Judge, **options: object) -> Run:
    """A run whose calls are made and not worked."""
    run = start_run(judge, user=None, **options)  # type: ignore[arg-type]
    plan_run_calls(run.pk, until=float("inf"))
    return Run.objects.get(pk=run.pk)


def settle(run: Run, state: CallState, number: int = 1000) -> None:
    ids = list(Call.objects.filter(run=run, state=CallState.PENDING).order_by("pk").values_list("pk", flat=True))
    Call.objects.filter(pk__in=ids[:number]).update(state=state)


def test_every_comparison_is_asked_in_both_orders_unless_one_is_wanted(judge: Judge) -> None:
    run = planned(judge)
    assert (run.state, run.planned, run.reused) == (RunState.RUNNING, 10, 0)
    shown = Call.objects.filter(run=run).values_list("comparison_id", "shown")
    assert len(set(shown)) == 10
    assert {order for _, order in shown} == {ShownOrder.AS_STORED, ShownOrder.SWAPPED}


@pytest.mark.parametrize(("orders", "shown"), [("as-stored", ShownOrder.AS_STORED), ("swapped", ShownOrder.SWAPPED)])
def test_one_order_makes_one_call_a_comparison(judge: Judge, orders: str, shown: ShownOrder) -> None:
    run = planned(judge, orders=orders)
    assert list(Call.objects.filter(run=run).values_list("shown", flat=True)) == [shown] * 5


def test_a_random_order_is_drawn_per_comparison_and_is_the_same_every_time() -> None:
    drawn = [draw_orders(pk, RunOrders.RANDOM, 0) for pk in range(1000)]
    assert drawn == [draw_orders(pk, RunOrders.RANDOM, 0) for pk in range(1000)]
    assert drawn != [draw_orders(pk, RunOrders.RANDOM, 1) for pk in range(1000)]
    assert all(len(orders) == 1 for orders in drawn)
    # 1,000 fair draws: 450 to 550 with more than 99.8 % probability, and fixed by the seed.
    assert 450 < drawn.count((ShownOrder.SWAPPED,)) < 550


def test_samples_are_calls_of_their_own(judge: Judge) -> None:
    run = planned(judge, samples=3, limit=2)
    assert run.planned == 2 * 2 * 3
    assert set(Call.objects.filter(run=run).values_list("sample", flat=True)) == {0, 1, 2}


def test_a_limit_takes_the_comparisons_that_people_meet_first(evaluation: Evaluation, judge: Judge) -> None:
    run = planned(judge, limit=2)
    first = evaluation.comparisons.order_by("random_order").values_list("pk", flat=True)[:2]
    assert set(Call.objects.filter(run=run).values_list("comparison_id", flat=True)) == set(first)


def test_planning_goes_on_where_it_stood_when_a_worker_died(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "SHORT_TRANSACTION_ROWS", 4)
    run = start_run(judge, user=None)
    assert plan_next_calls(run.pk)
    assert Call.objects.filter(run=run).count() == 4
    assert Run.objects.get(pk=run.pk).state == RunState.PLANNING
    plan_run_calls(run.pk, until=float("inf"))
    run.refresh_from_db()
    assert (run.state, run.planned, Call.objects.filter(run=run).count()) == (RunState.RUNNING, 10, 10)


def test_what_was_answered_is_counted_and_never_asked_again(judge: Judge) -> None:
    first = planned(judge)
    settle(first, CallState.ANSWERED, 4)
    cancel_run(first, user=None)
    second = planned(judge)
    assert (second.planned, second.reused) == (6, 4)
    assert Call.objects.filter(run=second, state=CallState.PENDING).count() == 6
    assert Call.objects.filter(run=first, state=CallState.ANSWERED).count() == 4


def test_calls_that_another_active_run_holds_stay_with_it(judge: Judge) -> None:
    first, second = planned(judge), planned(judge)
    assert (second.planned, second.reused) == (0, 0)
    assert Call.objects.filter(run=first).count() == 10


def test_unusable_replies_are_asked_again_only_if_that_is_wanted(judge: Judge) -> None:
    first = planned(judge)
    settle(first, CallState.FAILED, 1)
    settle(first, CallState.UNREADABLE, 2)
    settle(first, CallState.ANSWERED)
    assert finish_run(first)
    expected = expect_calls(judge, orders=RunOrders.BOTH)
    assert (expected.comparisons, expected.to_ask, expected.reused, expected.left) == (5, 1, 7, 2)
    assert planned(judge).planned == 1
    cancel_run(Run.objects.latest("pk"), user=None)
    assert planned(judge, ask_failures_again=True).planned == 3


def test_a_run_that_finds_everything_answered_is_done_at_once(evaluation: Evaluation) -> None:
    judge = make_baseline_judge(evaluation)
    assert run_judge_here(judge).state == RunState.DONE
    again = run_judge_here(judge)
    assert (again.state, again.planned, again.reused) == (RunState.DONE, 0, 10)


def test_every_run_of_a_judge_draws_the_same_orders(evaluation: Evaluation, judge: Judge) -> None:
    first = planned(judge, orders="random", limit=3)
    settle(first, CallState.ANSWERED)
    finish_run(first)
    assert first.seed
    expected = expect_calls(judge, orders="random")
    assert (expected.to_ask, expected.reused) == (2, 3)
    second = planned(judge, orders="random")
    assert (second.seed, second.planned, second.reused) == (first.seed, 2, 3)
    other = make_llm_judge(evaluation, "http://127.0.0.1:9/v1", name="other", temperature=0.5)
    assert planned(other).seed != first.seed


def test_a_retry_takes_only_calls_in_the_chosen_states_as_they_were_asked(judge: Judge) -> None:
    first = planned(judge, samples=2, limit=2)
    settle(first, CallState.UNREADABLE, 3)
    settle(first, CallState.REFUSED, 2)
    settle(first, CallState.ANSWERED)
    finish_run(first)
    expected = expect_calls(judge, only_states=["unreadable"])
    assert (expected.to_ask, expected.reused, expected.left) == (3, 0, 0)
    second = planned(judge, only_states=["unreadable"])
    assert (second.state, second.planned, second.reused) == (RunState.RUNNING, 3, 0)
    assert Call.objects.filter(run=second, state=CallState.PENDING).count() == 3
    assert Call.objects.filter(run=first, state=CallState.REFUSED).count() == 2
    # They are that run's now, and no other's.
    assert expect_calls(judge, only_states=["refused", "unreadable"]).to_ask == 2
    with pytest.raises(InputRefused, match="“judge” has no unreadable or failed calls to retry"):
        start_run(judge, user=None, only_states=["unreadable", "failed"])


def test_a_retry_is_planned_in_parts_too(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    first = planned(judge)
    settle(first, CallState.TRUNCATED)
    finish_run(first)
    monkeypatch.setattr(planner, "SHORT_TRANSACTION_ROWS", 4)
    second = planned(judge, only_states=["truncated"])
    assert (second.state, second.planned) == (RunState.RUNNING, 10)


def test_a_retry_within_a_limit_takes_the_comparisons_that_people_meet_first(
    evaluation: Evaluation, judge: Judge
) -> None:
    settle(first := planned(judge), CallState.UNREADABLE)
    finish_run(first)
    second = planned(judge, only_states=["unreadable"], limit=1)
    met_first = evaluation.comparisons.order_by("random_order").values_list("pk", flat=True)[0]
    assert set(Call.objects.filter(run=second).values_list("comparison_id", flat=True)) == {met_first}


def test_an_unusable_conversation_begins_anew_and_a_bought_step_is_kept(judge: Judge) -> None:
    first = planned(judge)
    unusable, waiting = Call.objects.filter(run=first).order_by("pk")[:2]
    settle(first, CallState.ANSWERED)
    Call.objects.filter(pk=unusable.pk).update(state=CallState.UNREADABLE, step=AttemptStep.REPAIR, repaired=True)
    Call.objects.filter(pk=waiting.pk).update(state=CallState.PENDING, step=AttemptStep.SCORE)
    cancel_run(first, user=None)
    planned(judge, ask_failures_again=True)
    steps = Call.objects.filter(state=CallState.PENDING).order_by("pk").values_list("pk", "step", "repaired")
    assert list(steps) == [(unusable.pk, "ask", False), (waiting.pk, "score", False)]


def test_a_trial_asks_about_one_comparison_and_decides_nothing_else(evaluation: Evaluation, judge: Judge) -> None:
    chosen = evaluation.comparisons.order_by("random_order")[3]
    run = planned(judge, comparison=chosen, orders="swapped")
    assert list(Call.all_rows.values_list("comparison_id", "shown", "run")) == [(chosen.pk, "swapped", run.pk)]
    assert expect_calls(judge, comparison=chosen).comparisons == 1
    evaluation.refresh_from_db()
    assert evaluation.shown_judge is None
    with pytest.raises(InputRefused, match="Choose a comparison of its evaluation"):
        start_run(judge, user=None, comparison=make_comparison(make_evaluation()))
    with pytest.raises(InputRefused, match="Choose a comparison of its evaluation"):
        start_run(judge, user=None, response=chosen.response_a)


@pytest.fixture
def pointwise(evaluation: Evaluation) -> Judge:
    return make_llm_judge(
        evaluation,
        "http://127.0.0.1:9/v1",
        name="rater",
        version=create_builtin_rubric(evaluation, builtin=SUMMARY_RATING_NAME, user=None),
    )


def test_a_pointwise_judge_is_sent_through_responses(evaluation: Evaluation, pointwise: Judge) -> None:
    run = planned(pointwise, samples=2)
    calls = Call.objects.filter(run=run, comparison=None).order_by("pk").values_list("response_id", "shown", "sample")
    ids = Response.objects.filter(query__evaluation=evaluation).order_by("query", "pk").values_list("pk", flat=True)
    assert list(calls) == [(pk, "as_stored", sample) for pk in ids for sample in (0, 1)]
    assert (run.orders, run.planned) == (RunOrders.AS_STORED, 20)
    evaluation.refresh_from_db()
    assert evaluation.shown_judge is None


def test_a_pointwise_run_is_limited_planned_in_parts_counted_and_reused(
    evaluation: Evaluation, pointwise: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "SHORT_TRANSACTION_ROWS", 2)
    first = planned(pointwise, limit=5)
    assert first.planned == 5
    settle(first, CallState.ANSWERED)
    finish_run(first)
    expected = expect_calls(pointwise)
    assert (expected.comparisons, expected.to_ask, expected.reused) == (10, 5, 5)
    second = planned(pointwise)
    assert (second.planned, second.reused) == (5, 5)
    one = Response.objects.filter(query__evaluation=evaluation).latest("pk")
    assert expect_calls(pointwise, response=one).in_other_runs == 1
    with pytest.raises(InputRefused, match="Choose a response of its evaluation"):
        start_run(pointwise, user=None, comparison=evaluation.comparisons.all()[0])
    with pytest.raises(InputRefused, match="Choose a response of its evaluation"):
        start_run(pointwise, user=None, comparison=evaluation.comparisons.all()[0], response=Response.objects.all()[0])


def test_a_panel_shares_a_batch_and_starts_whole_or_not_at_all(evaluation: Evaluation, judge: Judge) -> None:
    baseline = make_baseline_judge(evaluation)
    runs = start_panel([judge, baseline], user=None, orders="swapped")
    assert [run.judge for run in runs] == [judge, baseline]
    assert runs[0].batch == runs[1].batch
    assert runs[0].batch != start_run(judge, user=None).batch
    count = Run.objects.count()
    with pytest.raises(InputRefused, match="makes no requests"):
        start_panel([judge, baseline], user=None, channel="batch")
    with pytest.raises(InputRefused, match="at least one judge"):
        start_panel([], user=None)
    assert Run.objects.count() == count


def test_calls_of_another_active_run_are_neither_asked_nor_counted_as_to_be_asked(judge: Judge) -> None:
    planned(judge, limit=2)
    expected = expect_calls(judge)
    assert (expected.to_ask, expected.in_other_runs) == (6, 4)
    assert planned(judge).planned == 6


# ---- pausing and going on ------------------------------------------------------------------


def test_a_paused_run_is_asked_nothing_until_it_is_resumed(judge: Judge) -> None:
    run = planned(judge)
    session = begin_work_session(run.pk, RetryPolicy())
    assert session is not None
    pause_run(run, user=None)
    assert run.state == RunState.PAUSED
    assert not claim_calls(session, 5).calls
    assert begin_work_session(run.pk, RetryPolicy()) is None
    resume_run(run, user=None)
    assert len(claim_calls(session, 5).calls) == 5


def test_as_long_as_answers_are_on_their_way_a_paused_run_is_looked_at_again_soon(judge: Judge) -> None:
    run = planned(judge)
    session = begin_work_session(run.pk, RetryPolicy())
    assert session is not None
    claimed = len(claim_calls(session, 4, 0).calls)
    pause_run(run, user=None)
    assert claim_calls(session, 4, claimed).wait == 1
    assert claim_calls(session, 4, 0).wait is None
    cancel_run(run, user=None)
    assert claim_calls(session, 4, claimed).wait is None


def test_a_run_paused_while_it_is_planned_goes_on_being_planned(judge: Judge) -> None:
    run = start_run(judge, user=None)
    pause_run(run, user=None)
    plan_run_calls(run.pk, until=float("inf"))
    assert not Call.objects.exists()
    resume_run(run, user=None)
    assert run.state == RunState.PLANNING
    plan_run_calls(run.pk, until=float("inf"))
    assert Call.objects.filter(run=run).count() == 10


def test_a_stopped_run_goes_on_once_its_cause_is_mended(evaluation: Evaluation) -> None:
    with llm_server(fail_with(401)) as server:
        judge = make_llm_judge(evaluation, server.base_url)
        run = run_judge_here(judge)
        assert run.state == RunState.STOPPED
        assert run.stop_reason
        server.script = answer_well
        resume_run(run, user=None)
        assert (run.state, run.stop_reason, run.finished_at) == (RunState.RUNNING, "", None)
        assert work_run_here(run).state == RunState.DONE
    assert count_calls_by_state(run)["answered"] == 10


def test_a_stopped_run_whose_calls_another_has_taken_is_not_resumed(judge: Judge) -> None:
    first = planned(judge)
    stop_run(first, "The key is wrong.")
    planned(judge)
    with pytest.raises(InputRefused, match="This run has no pending calls"):
        resume_run(first, user=None)


def test_what_waited_for_a_server_is_asked_at_once_after_a_resume(judge: Judge) -> None:
    run = planned(judge)
    Call.objects.filter(run=run).update(not_before=timezone.now() + timedelta(hours=1))
    pause_run(run, user=None)
    resume_run(run, user=None)
    session = begin_work_session(run.pk, RetryPolicy())
    assert session is not None
    assert len(claim_calls(session, 3).calls) == 3


@pytest.mark.parametrize(
    ("state", "change", "problem"),
    [
        (RunState.DONE, pause_run, "cannot be paused: it is already done"),
        (RunState.PAUSED, pause_run, "cannot be paused: it is already paused"),
        (RunState.STOPPED, pause_run, "cannot be paused: it is already stopped"),
        (RunState.RUNNING, resume_run, "cannot be resumed: it is running"),
        (RunState.PLANNING, resume_run, "cannot be resumed: it is being planned"),
        (RunState.CANCELLED, resume_run, "cannot be resumed: it is already cancelled"),
        (RunState.DONE, cancel_run, "cannot be cancelled: it is already done"),
        (RunState.CANCELLED, cancel_run, "cannot be cancelled: it is already cancelled"),
    ],
)
def test_what_cannot_be_done_with_a_run_is_said_in_one_sentence(
    judge: Judge, state: RunState, change: Callable[..., None], problem: str
) -> None:
    run = planned(judge)
    Run.objects.filter(pk=run.pk).update(state=state)
    count = Event.objects.count()
    with pytest.raises(InputRefused, match=problem):
        change(run, user=None)
    assert Run.objects.get(pk=run.pk).state == state
    assert Event.objects.count() == count


def test_a_stopped_run_can_be_cancelled_so_that_nothing_of_it_waits(judge: Judge) -> None:
    run = planned(judge)
    stop_run(run, "The key is wrong.")
    cancel_run(run, user=None)
    cancel_waiting_calls()
    assert count_calls_by_state(run)["cancelled"] == 10
    assert Run.objects.get(pk=run.pk).stop_reason == "The key is wrong."


def test_pausing_resuming_and_budgets_are_on_the_record(priced: Judge) -> None:
    user = make_user()
    run = start_run(priced, user=user, budget=10**9)
    pause_run(run, user=user)
    change_budget(run, None, user=user)
    resume_run(run, user=user, budget=2 * 10**9)
    events = Event.objects.filter(object_type="run").order_by("pk")
    assert [event.verb for event in events] == ["started", "paused", "changed budget", "changed budget", "resumed"]
    assert events[0].after["budget_usd"] == "1.00"
    assert (events[2].before, events[2].after) == ({"budget_usd": "1.00"}, {"budget_usd": None})
    assert (events[3].before, events[3].after) == ({"budget_usd": None}, {"budget_usd": "2.00"})
    assert {event.user for event in events} == {user}


# ---- budgets -------------------------------------------------------------------------------


@pytest.fixture
def priced(evaluation: Evaluation) -> Judge:
    judge = make_llm_judge(evaluation, "http://127.0.0.1:9/v1", name="priced", max_tokens=100)
    assert judge.endpoint is not None
    set_price(judge.endpoint, PriceSettings(model=judge.model, tokens_in="1", tokens_out="2"), user=None)
    return judge


def test_a_budget_needs_a_known_price_and_a_bound_on_replies(evaluation: Evaluation, priced: Judge) -> None:
    assert start_run(priced, user=None, budget=10**9).budget == 10**9
    boundless = make_llm_judge(evaluation, "http://127.0.0.1:9/v1", name="boundless")
    with pytest.raises(InputRefused, match=r"a budget cannot be guaranteed. Create a judge with max tokens"):
        start_run(boundless, user=None, budget=10**9)
    with pytest.raises(InputRefused, match="more than USD 0"):
        start_run(priced, user=None, budget=0)


def test_a_budget_is_not_set_below_what_is_gone(priced: Judge) -> None:
    run = start_run(priced, user=None, budget=10**9)
    Run.objects.filter(pk=run.pk).update(spent=200_000_000, reserved=50_000_000)
    with pytest.raises(InputRefused, match=r"already spent or reserved USD 0\.25"):
        change_budget(run, 249_999_999, user=None)
    change_budget(run, 250_000_000, user=None)
    assert Run.objects.get(pk=run.pk).budget == 250_000_000
    Run.objects.filter(pk=run.pk).update(state=RunState.DONE)
    with pytest.raises(InputRefused, match="this run is already done"):
        change_budget(run, 10**9, user=None)


def test_the_first_judge_that_is_run_is_the_one_reviewers_are_shown(evaluation: Evaluation, judge: Judge) -> None:
    planned(judge)
    planned(make_baseline_judge(evaluation))
    evaluation.refresh_from_db()
    assert evaluation.shown_judge == judge


def test_starting_cancelling_and_ending_are_on_the_record(evaluation: Evaluation, judge: Judge) -> None:
    user = make_user()
    run = start_run(judge, user=user)
    cancel_run(run, user=user)
    with pytest.raises(InputRefused, match="already cancelled"):
        cancel_run(run, user=user)
    done = run_judge_here(make_baseline_judge(evaluation))
    events = Event.objects.filter(object_type="run").order_by("pk").values_list("verb", "object_id", "user")
    assert list(events) == [
        ("started", run.pk, user.pk),
        ("cancelled", run.pk, user.pk),
        ("started", done.pk, None),
        ("finished", done.pk, None),
    ]


def test_after_a_cancel_nothing_is_asked_and_what_waited_says_so(judge: Judge) -> None:
    run = planned(judge)
    session = begin_work_session(run.pk, RetryPolicy())
    assert session is not None
    cancel_run(run, user=None)
    assert not claim_calls(session, 5).calls
    cancel_waiting_calls()
    assert count_calls_by_state(run)["cancelled"] == 10
    assert work_run_here(run).state == RunState.CANCELLED


@pytest.mark.database
def test_cancelling_calls_locks_them_in_the_order_of_planning(judge: Judge) -> None:
    """In any other order it and the planning of the next run wait for each other: PostgreSQL ends one of them."""
    run = planned(judge)
    cancel_run(run, user=None)
    with CaptureQueriesContext(connection) as captured:
        cancel_waiting_calls()
    locking = [query["sql"] for query in captured if 'FOR UPDATE OF "evaluations_call"' in query["sql"]]
    if connection.features.has_select_for_update:
        assert locking
        assert all("ORDER BY 1 ASC" in sql for sql in locking), locking  # by the only column read, the id
    updates = [query["sql"] for query in captured if query["sql"].startswith('UPDATE "evaluations_call"')]
    assert updates
    assert not any("evaluations_run" in sql for sql in updates)  # the rows are chosen, and locked, before
    assert count_calls_by_state(run)["cancelled"] == 10


def test_a_run_cancelled_while_it_is_planned_makes_no_more_calls(judge: Judge) -> None:
    run = start_run(judge, user=None)
    cancel_run(run, user=None)
    plan_run_calls(run.pk, until=float("inf"))
    assert not Call.objects.exists()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"samples": 0}, "from 1 to 100"),
        ({"limit": 0}, "at least 1"),
        ({"orders": "sideways"}, "Orders must be one of"),
        ({"budget": 5}, "No price is set"),
        ({"channel": "pigeon"}, "Channel must be one of: live, batch"),
        ({"only_states": ["answered"]}, "“answered” calls cannot be retried"),
    ],
)
def test_an_impossible_run_is_refused(judge: Judge, options: dict[str, object], problem: str) -> None:
    with pytest.raises(InputRefused, match=problem):
        start_run(judge, user=None, **options)  # type: ignore[arg-type]


def test_a_seed_makes_samples_differ_at_temperature_zero(evaluation: Evaluation) -> None:
    seeded = make_llm_judge(evaluation, "http://127.0.0.1:9/v1", temperature=0.0, seed=7)
    assert planned(seeded, samples=2).planned == 20


def test_samples_that_would_all_be_the_same_are_refused(evaluation: Evaluation) -> None:
    cold = make_llm_judge(evaluation, "http://127.0.0.1:9/v1", temperature=0.0)
    for judge in (cold, make_baseline_judge(evaluation)):
        with pytest.raises(InputRefused, match="the same answer 2 times"):
            start_run(judge, user=None, samples=2)


def test_a_run_over_nothing_is_refused() -> None:
    with pytest.raises(InputRefused, match="Import comparisons first"):
        start_run(make_baseline_judge(make_evaluation()), user=None)


def test_queries_without_responses_and_queries_with_many_are_passed_in_parts(
    evaluation: Evaluation, pointwise: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "SHORT_TRANSACTION_ROWS", 3)
    query = evaluation.comparisons.order_by("pk")[0].query
    for number in range(7):
        make_response(query, f"more {number}", "text")
    for number in range(8):
        Query.objects.create(
            evaluation=evaluation, key=f"empty {number}", cluster="c", messages=[], sha256="0", metadata={}
        )
    last = make_comparison(evaluation)
    run = planned(pointwise)
    asked = list(Call.objects.filter(run=run).order_by("pk").values_list("response_id", flat=True))
    ordered = Response.objects.filter(query__evaluation=evaluation).order_by("query", "pk")
    assert asked == list(ordered.values_list("pk", flat=True))
    assert asked[-1] == last.response_b_id


def test_a_budget_stops_the_run_and_a_higher_one_lets_it_go_on(evaluation: Evaluation) -> None:
    with llm_server() as server:
        judge = make_llm_judge(evaluation, server.base_url, name="bounded", max_tokens=100)
        assert judge.endpoint is not None
        set_price(judge.endpoint, PriceSettings(model=judge.model, tokens_in="1", tokens_out="1"), user=None)
        # A request costs 533,000 nano-USD and might cost several times that: a few fit.
        run = run_judge_here(judge, budget=4_000_000)
        assert run.state == RunState.STOPPED
        assert "budget" in run.stop_reason
        assert 0 < run.spent <= 4_000_000
        assert run.reserved == 0
        answered = count_calls_by_state(run)["answered"]
        assert 0 < answered < 10
        resume_run(run, user=None, budget=10**9)
        assert work_run_here(run).state == RunState.DONE
    assert count_calls_by_state(run)["answered"] == 10
    assert len(server.questions) == 10

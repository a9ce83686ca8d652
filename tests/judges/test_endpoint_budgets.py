"""Budgets of grants and days, and the totals of what was spent."""

import importlib
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.apps import apps
from django.db import connection, connections
from django.db.models import Count, F, Sum
from django.db.models.functions import TruncDate
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from evaluations.domain.errors import InputRefused
from evaluations.domain.judges import AttemptOutcome, CallState, RequestShape, RunChannel, RunState
from evaluations.judges.calls.claims import claim_calls, return_calls
from evaluations.judges.calls.lease_sweeper import find_idle_runs, return_expired_calls
from evaluations.judges.calls.outcome_store import store_outcomes
from evaluations.judges.calls.work_session import WorkSession
from evaluations.judges.endpoints.grants import find_account_of_today, grant_endpoint
from evaluations.judges.endpoints.services import change_endpoint, read_stored_settings
from evaluations.judges.endpoints.sql import utc_date
from evaluations.judges.runs.services import change_budget, resume_run, start_run
from evaluations.models.clock import read_clock
from evaluations.models.endpoint_grants import EndpointAccount, EndpointGrant, EndpointSpending
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Endpoint, Judge
from evaluations.models.runs import Attempt, Call, Run
from tests.factories.evaluations import make_comparison, make_evaluation, make_user
from tests.factories.judges import make_llm_judge, work_run_here
from tests.helpers.llm_server import llm_server
from tests.helpers.page_text import html_of
from tests.helpers.work_sessions import (
    CLOSED_ADDRESS,
    answered_outcome,
    claim_session_calls,
    expire_leases,
    make_calls_due,
    set_judge_price,
    start_run_session,
    start_work_session,
    waiting_outcome,
)

pytestmark = pytest.mark.django_db(transaction=True)

LARGE = 10**15


def make_priced_judge(evaluation: Evaluation, name: str = "judge", comparisons: int = 6, **settings: Any) -> Judge:
    for number in range(comparisons):
        make_comparison(evaluation, response_a=f"{name} {number}")
    judge = make_llm_judge(
        evaluation, CLOSED_ADDRESS, name=name, mode="json_schema", max_tokens=100, **{"model": name, **settings}
    )
    set_judge_price(judge)
    return judge


@pytest.fixture
def judge(evaluation: Evaluation) -> Judge:
    return make_priced_judge(evaluation)


def endpoint_of(judge: Judge) -> Endpoint:
    assert judge.endpoint is not None
    return Endpoint.objects.get(pk=judge.endpoint.pk)


def set_grant_budget(judge: Judge, budget: int | None) -> None:
    grant_endpoint(endpoint_of(judge), judge.evaluation, budget=budget, user=None)


def set_daily_budget(judge: Judge, budget: int | None) -> None:
    endpoint = endpoint_of(judge)
    settings = read_stored_settings(endpoint)
    change_endpoint(endpoint, type(settings)(**{**vars(settings), "daily_budget": budget}), user=None)


def cost_of_one(judge: Judge) -> int:
    """What one call keeps back."""
    session = start_run_session(judge, limit=1, orders="as-stored")
    (claimed,) = claim_session_calls(session)
    return_calls([claimed])
    return claimed.reserved


Setter = Callable[[Judge, int | None], None]
SETTERS: list[Setter] = [set_grant_budget, set_daily_budget]


# ---- what a budget allows ----------------------------------------------------------------------


@pytest.mark.parametrize("set_budget", SETTERS)
def test_runs_together_keep_back_no_more_than_the_budget(evaluation: Evaluation, set_budget: Setter) -> None:
    judges = [make_priced_judge(evaluation, name) for name in ("one", "two")]
    one = cost_of_one(judges[0])
    sessions = [start_run_session(judge) for judge in judges]
    set_budget(judges[0], 5 * one + one // 2)
    claimed = [claim_session_calls(session, 4) for session in sessions]
    assert sum(call.reserved for calls in claimed for call in calls) <= 5 * one + one // 2
    assert len(claimed[0]) == 4
    assert 1 <= len(claimed[1]) < 4


def test_the_daily_budget_bounds_all_evaluations_together_and_a_grant_only_its_own() -> None:
    judges = [make_priced_judge(make_evaluation()) for _ in range(2)]
    one = cost_of_one(judges[0])
    sessions = [start_run_session(judge) for judge in judges]
    set_grant_budget(judges[0], 2 * one)
    assert len(claim_session_calls(sessions[0], 4)) == 2
    assert len(claim_session_calls(sessions[1], 4)) == 4
    set_daily_budget(judges[0], 7 * one)
    assert len(claim_session_calls(sessions[1], 4)) == 1


def test_a_used_up_grant_stops_the_run_with_one_sentence_and_a_larger_one_lets_it_be_resumed(judge: Judge) -> None:
    session = start_run_session(judge)
    set_grant_budget(judge, 1)
    assert claim_calls(session, 4).wait is None
    run = Run.objects.get()
    assert run.state == RunState.STOPPED
    assert run.stop_reason.startswith("This evaluation’s budget at the endpoint is used up: USD 0.00 of 0.000000001")
    set_grant_budget(judge, LARGE)
    resume_run(run, user=None)
    assert claim_session_calls(start_work_session(run))


def test_a_used_up_grant_waits_while_requests_in_flight_may_return_some(judge: Judge) -> None:
    session = start_run_session(judge)
    one = claim_session_calls(session, 1)
    set_grant_budget(judge, one[0].reserved + 500)
    assert claim_calls(session, 4).wait == pytest.approx(0.2)
    store_outcomes(session, [answered_outcome(session, one[0], tokens_in=1, tokens_out=1)])
    assert claim_session_calls(session, 4)


def test_a_used_up_day_pauses_the_endpoint_until_the_next_utc_day_and_runs_go_on_by_themselves(judge: Judge) -> None:
    session = start_run_session(judge)
    set_daily_budget(judge, 1)
    assert claim_calls(session, 4).wait is None
    endpoint = endpoint_of(judge)
    tomorrow = timezone.now().astimezone(UTC).date() + timedelta(days=1)
    assert endpoint.paused_until == datetime.combine(tomorrow, datetime.min.time(), UTC)
    assert endpoint.pause_reason.startswith("The daily budget is used up")
    assert (Run.objects.get().state, find_idle_runs()) == (RunState.RUNNING, [])
    Endpoint.objects.update(paused_until=timezone.now())
    assert find_idle_runs() == [session.run.pk]


def test_a_larger_daily_budget_ends_the_pause(judge: Judge) -> None:
    session = start_run_session(judge)
    set_daily_budget(judge, 1)
    claim_calls(session, 4)
    set_daily_budget(judge, LARGE)
    assert endpoint_of(judge).paused_until is None
    assert claim_session_calls(session, 4)


def test_what_was_spent_yesterday_leaves_today_free_but_what_is_in_flight_does_not(judge: Judge) -> None:
    session = start_run_session(judge)
    first = claim_session_calls(session, 2)
    one = first[0].reserved
    store_outcomes(session, [answered_outcome(session, first[0], tokens_in=50, tokens_out=50)])
    EndpointAccount.objects.update(day=F("day") - timedelta(days=1))
    set_daily_budget(judge, 3 * one)
    assert len(claim_session_calls(session, 8)) == 2  # the third is in flight since yesterday
    account = EndpointAccount.objects.get()
    assert (account.spent, account.reserved, account.day) == (0, 3 * one, timezone.now().astimezone(UTC).date())


@pytest.mark.parametrize("set_budget", SETTERS)
@pytest.mark.parametrize("channel", [RunChannel.LIVE, RunChannel.BATCH])
def test_no_run_starts_under_a_budget_without_a_price(
    evaluation: Evaluation, set_budget: Setter, channel: RunChannel
) -> None:
    make_comparison(evaluation)
    judge = make_llm_judge(evaluation, CLOSED_ADDRESS, max_tokens=100)
    set_budget(judge, LARGE)
    with pytest.raises(InputRefused, match=r"^No price is set for “test-model” at .* so a budget cannot be guaranteed"):
        start_run(Judge.objects.get(), user=None, channel=channel)


@pytest.mark.parametrize("set_budget", SETTERS)
def test_a_run_without_a_price_stops_once_there_is_a_budget(evaluation: Evaluation, set_budget: Setter) -> None:
    make_comparison(evaluation)
    judge = make_llm_judge(evaluation, CLOSED_ADDRESS, mode="json_schema")
    session = start_run_session(judge)
    set_budget(judge, LARGE)
    assert not claim_session_calls(session)
    assert Run.objects.get().stop_reason.startswith("The budget cannot be guaranteed")


def test_a_budget_that_is_set_during_a_session_counts_in_the_next_claim(evaluation: Evaluation) -> None:
    make_comparison(evaluation)
    judge = make_llm_judge(evaluation, CLOSED_ADDRESS, mode="json_schema", max_tokens=100)
    set_judge_price(judge)
    session = start_run_session(judge)
    change_budget(session.run, LARGE, user=None)
    judge.endpoint.prices.all().delete()  # type: ignore[union-attr]
    session.price = None
    assert not claim_session_calls(session)
    assert Run.objects.get().state == RunState.STOPPED


def test_a_grant_below_what_is_spent_is_refused(judge: Judge) -> None:
    session = start_run_session(judge)
    (claimed,) = claim_session_calls(session, 1)
    with pytest.raises(InputRefused, match="are spent or in flight here already"):
        set_grant_budget(judge, claimed.reserved - 1)
    set_grant_budget(judge, claimed.reserved)


@pytest.mark.parametrize("set_budget", SETTERS)
def test_calls_that_are_given_back_return_their_budget(judge: Judge, set_budget: Setter) -> None:
    session = start_run_session(judge)
    set_budget(judge, LARGE)
    return_calls(claim_session_calls(session))
    assert (EndpointGrant.objects.get().reserved, EndpointAccount.objects.get().reserved) == (0, 0)


def test_a_batch_file_is_paid_from_the_grant(judge: Judge) -> None:
    Judge.objects.update(request_shape=RequestShape().as_json())
    with llm_server() as server:
        Endpoint.objects.update(base_url=server.base_url)
        one = cost_of_one(judge)
        run = start_run(Judge.objects.get(), user=None, channel=RunChannel.BATCH)
        set_grant_budget(judge, 3 * one)
        work_run_here(run)
    sent = Call.objects.filter(state=CallState.RUNNING)
    assert 0 < sent.aggregate(Sum("reserved"))["reserved__sum"] == EndpointGrant.objects.get().reserved <= 3 * one


def test_an_expired_lease_is_charged_once_and_its_late_answer_corrects_the_day_it_was_lost_on(judge: Judge) -> None:
    session = start_run_session(judge)
    (claimed,) = claim_session_calls(session, 1)
    expire_leases(claimed)
    return_expired_calls()
    assert_accounts_match()
    assert EndpointGrant.objects.get().spent == claimed.reserved
    Attempt.objects.update(created_at=F("created_at") - timedelta(days=1))
    EndpointSpending.objects.update(day=F("day") - timedelta(days=1))
    EndpointAccount.objects.update(day=F("day") - timedelta(days=1))
    store_outcomes(session, [answered_outcome(session, claimed, tokens_in=7, tokens_out=3)])
    assert_accounts_match()
    assert EndpointGrant.objects.get().spent == 37
    assert list(EndpointSpending.objects.order_by("day").values_list("requests", "cost", "max_cost")) == [
        (1, 0, 0),
        (1, 37, 0),
    ]
    # Yesterday's budget covered it.
    assert find_account_of_today(endpoint_of(judge)).spent == 0


# ---- totals ------------------------------------------------------------------------------------


def assert_accounts_match() -> None:
    """Totals and accounts are what a recount of runs, calls and attempts gives."""
    days = Attempt.objects.order_by().annotate(day=TruncDate("created_at", tzinfo=UTC))
    groups = days.values_list("run__judge__endpoint", "run__evaluation", "day")
    counted = groups.annotate(Count("pk"), *(Sum(name) for name in ("tokens_in", "tokens_out", "cost", "max_cost")))
    stored = EndpointSpending.objects.values_list(
        *("endpoint", "evaluation", "day", "requests", "tokens_in", "tokens_out", "cost", "max_cost")
    )
    assert sorted(stored) == sorted(tuple(part or 0 for part in row) for row in counted)
    for grant in EndpointGrant.objects.all():
        runs = Run.objects.filter(judge__endpoint=grant.endpoint, evaluation=grant.evaluation)
        spent, reserved = runs.aggregate(a=Sum("spent"), b=Sum("reserved")).values()
        assert (grant.spent, grant.reserved) == (spent or 0, reserved or 0)
        held = Call.all_rows.filter(judge__endpoint=grant.endpoint, judge__evaluation=grant.evaluation)
        assert grant.reserved == (held.aggregate(a=Sum("reserved"))["a"] or 0)
    for account in EndpointAccount.objects.all():
        grants = EndpointGrant.objects.filter(endpoint=account.endpoint)
        assert account.reserved == grants.aggregate(a=Sum("reserved"))["a"]


@pytest.mark.parametrize("seed", range(3))
def test_totals_are_those_of_the_attempts_under_many_workers_and_no_budget_is_exceeded(seed: int) -> None:
    evaluations = [make_evaluation() for _ in range(2)]
    judges = [make_priced_judge(one, name, comparisons=8) for one in evaluations for name in ("a", "b")]
    one = cost_of_one(judges[0])
    runs = [start_run_session(judge).run for judge in judges]
    set_grant_budget(judges[0], 12 * one)
    set_daily_budget(judges[0], 30 * one)

    def work(number: int) -> int:
        chance = random.Random(f"{seed} {number}")
        try:
            return sum(work_once(chance, start_work_session(runs[(number + turn) % len(runs)])) for turn in range(8))
        finally:
            connections.close_all()

    def work_once(chance: random.Random, session: WorkSession) -> int:
        claimed = claim_session_calls(session, chance.randint(1, 4))
        grant = EndpointGrant.objects.get(evaluation=session.run.evaluation)
        account = EndpointAccount.objects.get()
        assert grant.budget is None or grant.spent + grant.reserved <= grant.budget
        assert account.spent + account.reserved <= 30 * one
        given_back, sent = claimed[:1] if chance.random() < 0.3 else [], claimed
        if given_back:
            return_calls(given_back)
            sent = claimed[1:]
        outcomes = [
            waiting_outcome(call, 0.0)
            if chance.random() < 0.2
            else answered_outcome(session, call, tokens_in=chance.randint(1, 50), tokens_out=chance.randint(1, 99))
            for call in sent
        ]
        if outcomes:
            store_outcomes(session, outcomes)
        return len(outcomes)

    Run.objects.filter(pk__in=[run.pk for run in runs]).update(state=RunState.RUNNING)
    with ThreadPoolExecutor(4) as threads:
        stored = sum(threads.map(work, range(4)))
    assert stored == Attempt.objects.count() > 0
    assert_accounts_match()


def test_the_upgrade_grants_what_judges_use_and_sums_up_what_was_spent(judge: Judge) -> None:
    session = start_run_session(judge)
    first, second, third, *_ = claim_session_calls(session)
    store_outcomes(session, [answered_outcome(session, first, tokens_in=50, tokens_out=50)])
    store_outcomes(session, [answered_outcome(session, second, tokens_in=70, tokens_out=30)])
    Attempt.objects.filter(call=first.call_id).update(created_at=timezone.now() - timedelta(days=3))
    expire_leases(third)
    return_expired_calls()
    make_llm_judge(make_evaluation(), CLOSED_ADDRESS)
    for model in (EndpointGrant, EndpointAccount, EndpointSpending):
        model.objects.all().delete()
    importlib.import_module("evaluations.migrations.0005_endpoint_grants").open_accounts(apps, None)
    assert_accounts_match()
    assert EndpointGrant.objects.filter(is_active=True, budget__isnull=True).count() == 2
    assert EndpointAccount.objects.get().spent == 370 + third.reserved


def test_totals_survive_the_deletion_of_endpoint_and_evaluation() -> None:
    endpoint = Endpoint.objects.create(name="gone", base_url="http://10.0.0.9/v1")
    evaluation = Evaluation.objects.create(slug="old", name="Old")
    columns = {"endpoint_name": "gone", "evaluation_name": "Old", "day": date(2026, 1, 1), "cost": 5}
    EndpointSpending.objects.create(endpoint=endpoint, evaluation=evaluation, **columns)
    EndpointGrant.objects.create(endpoint=endpoint, evaluation=evaluation)
    EndpointAccount.objects.create(endpoint=endpoint)
    endpoint.delete()
    evaluation.delete()
    kept = EndpointSpending.objects.get()
    assert (kept.endpoint, kept.evaluation, kept.endpoint_name, kept.evaluation_name) == (None, None, "gone", "Old")
    assert not EndpointGrant.objects.exists()


def test_requests_of_a_run_are_shown_on_the_page_of_the_endpoint(client: Client, judge: Judge) -> None:
    session = start_run_session(judge)
    (claimed, *_) = claim_session_calls(session)
    store_outcomes(session, [answered_outcome(session, claimed, tokens_in=1_234, tokens_out=56_789)])
    client.force_login(make_user("root", is_superuser=True))
    page = html_of(client.get(reverse("endpoint", args=[judge.endpoint_id])))
    assert "1,234" in page
    assert "56,789" in page


def test_a_request_without_a_price_is_counted_at_no_cost(evaluation: Evaluation) -> None:
    make_comparison(evaluation)
    session = start_run_session(make_llm_judge(evaluation, CLOSED_ADDRESS, mode="json_schema"))
    claimed = claim_session_calls(session)
    store_outcomes(session, [answered_outcome(session, claimed[0], tokens_in=7, tokens_out=3)])
    make_calls_due()
    store_outcomes(session, [waiting_outcome(claimed[1], 1.0)])
    (spending,) = EndpointSpending.objects.all()
    assert (spending.requests, spending.tokens_in, spending.cost, spending.max_cost) == (2, 7, 0, 0)
    assert Attempt.objects.filter(outcome=AttemptOutcome.RETRY).count() == 1


# ---- clocks --------------------------------------------------------------------------------------


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has the clock of the process")
@pytest.mark.parametrize("off", [timedelta(days=-2), timedelta(days=2)], ids=["behind", "ahead"])
def test_a_lost_request_has_the_databases_time(judge: Judge, off: timedelta, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a server may still be at it, and on which day it is charged, does not depend on the sweeper's clock."""
    session = start_run_session(judge)
    claimed = claim_session_calls(session, 2)
    before = read_clock()
    monkeypatch.setattr("django.utils.timezone.now", lambda: before + off)
    return_calls(claimed[:1])
    expire_leases(claimed[1])
    assert return_expired_calls() == 1
    lost = Attempt.objects.get(outcome=AttemptOutcome.LOST)
    assert before <= lost.created_at <= read_clock()
    assert EndpointSpending.objects.get().day == utc_date(before)


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has the clock of the process")
def test_what_is_given_back_leaves_the_day_of_the_account_as_it_is(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that is ahead the account would begin the next day, and the day's budget anew."""
    session = start_run_session(judge)
    claimed = claim_session_calls(session, 2)
    today = read_clock()
    assert EndpointAccount.objects.get().day == utc_date(today)
    monkeypatch.setattr("django.utils.timezone.now", lambda: today + timedelta(days=1))
    return_calls(claimed)
    account = EndpointAccount.objects.get()
    assert (account.day, account.reserved) == (utc_date(today), 0)

"""How a run starts, is planned, and ends."""

import pytest

from evaluations.domain import CallState, InputRefused, Orders, RunState, Shown
from evaluations.judge.retrying import Patience
from evaluations.models import Call, Evaluation, Event, Judge, Run
from evaluations.services.judging import claiming, running, selecting, working
from tests.judges import make_baseline, make_judge, run_through, work_off
from tests.making import make_comparison, make_evaluation, make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def evaluation() -> Evaluation:
    evaluation = make_evaluation()
    for number in range(5):
        make_comparison(evaluation, response_a="long " * number, response_b="short")
    return evaluation


@pytest.fixture
def judge(evaluation: Evaluation) -> Judge:
    return make_judge(evaluation, "http://127.0.0.1:9/v1")


def planned(judge: Judge, **options: object) -> Run:
    """A run whose calls are made and not worked."""
    run = running.start_run(judge, user=None, **options)  # type: ignore[arg-type]
    running.plan(run.pk, until=float("inf"))
    return Run.objects.get(pk=run.pk)


def settle(run: Run, state: CallState, number: int = 1000) -> None:
    ids = list(Call.objects.filter(run=run, state=CallState.PENDING).order_by("pk").values_list("pk", flat=True))
    Call.objects.filter(pk__in=ids[:number]).update(state=state)


def test_every_comparison_is_asked_in_both_orders_unless_one_is_wanted(judge: Judge) -> None:
    run = planned(judge)
    assert (run.state, run.planned, run.reused) == (RunState.RUNNING, 10, 0)
    shown = Call.objects.filter(run=run).values_list("comparison_id", "shown")
    assert len(set(shown)) == 10
    assert {order for _, order in shown} == {Shown.AS_STORED, Shown.SWAPPED}


@pytest.mark.parametrize(("orders", "shown"), [("as-stored", Shown.AS_STORED), ("swapped", Shown.SWAPPED)])
def test_one_order_makes_one_call_a_comparison(judge: Judge, orders: str, shown: Shown) -> None:
    run = planned(judge, orders=orders)
    assert list(Call.objects.filter(run=run).values_list("shown", flat=True)) == [shown] * 5


def test_a_random_order_is_drawn_per_comparison_and_is_the_same_every_time() -> None:
    drawn = [selecting.orders_for(pk, Orders.RANDOM, 0) for pk in range(1000)]
    assert drawn == [selecting.orders_for(pk, Orders.RANDOM, 0) for pk in range(1000)]
    assert drawn != [selecting.orders_for(pk, Orders.RANDOM, 1) for pk in range(1000)]
    assert all(len(orders) == 1 for orders in drawn)
    # 1,000 fair draws: 450 to 550 with more than 99.8 % probability, and fixed by the seed.
    assert 450 < drawn.count((Shown.SWAPPED,)) < 550


def test_samples_are_calls_of_their_own(judge: Judge) -> None:
    run = planned(judge, samples=3, limit=2)
    assert run.planned == 2 * 2 * 3
    assert set(Call.objects.filter(run=run).values_list("sample", flat=True)) == {0, 1, 2}


def test_a_limit_takes_the_comparisons_that_people_meet_first(evaluation: Evaluation, judge: Judge) -> None:
    run = planned(judge, limit=2)
    first = evaluation.comparisons.order_by("shuffle").values_list("pk", flat=True)[:2]
    assert set(Call.objects.filter(run=run).values_list("comparison_id", flat=True)) == set(first)


def test_planning_goes_on_where_it_stood_when_a_worker_died(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "ROWS_AT_ONCE", 4)
    run = running.start_run(judge, user=None)
    assert running.plan_some(run.pk)
    assert Call.objects.filter(run=run).count() == 4
    assert Run.objects.get(pk=run.pk).state == RunState.PLANNING
    running.plan(run.pk, until=float("inf"))
    run.refresh_from_db()
    assert (run.state, run.planned, Call.objects.filter(run=run).count()) == (RunState.RUNNING, 10, 10)


def test_what_was_answered_is_counted_and_never_asked_again(judge: Judge) -> None:
    first = planned(judge)
    settle(first, CallState.ANSWERED, 4)
    running.cancel(first, user=None)
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
    assert running.finish(first)
    expected = selecting.expected(judge, orders=Orders.BOTH)
    assert (expected.comparisons, expected.to_ask, expected.reused, expected.left) == (5, 1, 7, 2)
    assert planned(judge).planned == 1
    running.cancel(Run.objects.latest("pk"), user=None)
    assert planned(judge, ask_failures_again=True).planned == 3


def test_a_run_that_finds_everything_answered_is_done_at_once(evaluation: Evaluation) -> None:
    judge = make_baseline(evaluation)
    assert run_through(judge).state == RunState.DONE
    again = run_through(judge)
    assert (again.state, again.planned, again.reused) == (RunState.DONE, 0, 10)


def test_the_first_judge_that_is_run_is_the_one_reviewers_are_shown(evaluation: Evaluation, judge: Judge) -> None:
    planned(judge)
    planned(make_baseline(evaluation))
    evaluation.refresh_from_db()
    assert evaluation.shown_judge == judge


def test_starting_cancelling_and_ending_are_on_the_record(evaluation: Evaluation, judge: Judge) -> None:
    user = make_user()
    run = running.start_run(judge, user=user)
    running.cancel(run, user=user)
    with pytest.raises(InputRefused, match="cancelled already"):
        running.cancel(run, user=user)
    done = run_through(make_baseline(evaluation))
    events = Event.objects.filter(object_type="run").order_by("pk").values_list("verb", "object_id", "user")
    assert list(events) == [
        ("started", run.pk, user.pk),
        ("cancelled", run.pk, user.pk),
        ("started", done.pk, None),
        ("finished", done.pk, None),
    ]


def test_after_a_cancel_nothing_is_asked_and_what_waited_says_so(judge: Judge) -> None:
    run = planned(judge)
    bout = working.begin(run.pk, Patience())
    assert bout is not None
    running.cancel(run, user=None)
    assert not claiming.claim(bout, 5, 0).questions
    running.cancel_waiting_calls()
    assert running.counts_by_state(run)["cancelled"] == 10
    assert work_off(run).state == RunState.CANCELLED


def test_a_run_cancelled_while_it_is_planned_makes_no_more_calls(judge: Judge) -> None:
    run = running.start_run(judge, user=None)
    running.cancel(run, user=None)
    running.plan(run.pk, until=float("inf"))
    assert not Call.objects.exists()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"samples": 0}, "from 1 to 100"),
        ({"limit": 0}, "at least 1"),
        ({"orders": "sideways"}, "Orders are one of"),
        ({"budget": 5}, "No price is known"),
    ],
)
def test_an_impossible_run_is_refused(judge: Judge, options: dict[str, object], problem: str) -> None:
    with pytest.raises(InputRefused, match=problem):
        running.start_run(judge, user=None, **options)  # type: ignore[arg-type]


def test_samples_that_would_all_be_the_same_are_refused(evaluation: Evaluation) -> None:
    cold = make_judge(evaluation, "http://127.0.0.1:9/v1", temperature=0.0)
    for judge in (cold, make_baseline(evaluation)):
        with pytest.raises(InputRefused, match="the same answer 2 times"):
            running.start_run(judge, user=None, samples=2)


def test_a_run_over_nothing_is_refused() -> None:
    with pytest.raises(InputRefused, match="import comparisons first"):
        running.start_run(make_baseline(make_evaluation()), user=None)

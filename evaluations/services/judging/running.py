"""A judge sent through a selection: how a run starts, is planned, is paused and goes on, and ends."""

import secrets
import time
import uuid
from collections.abc import Sequence
from typing import Any, Final, Unpack

from django.db import transaction
from django.db.models import Count, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from evaluations.domain import (
    ACTIVE_RUN_STATES,
    OPEN_CALL_STATES,
    AskingMode,
    AttemptStep,
    CallState,
    Channel,
    InputRefused,
    JudgeKind,
    RunState,
    Shown,
    exact_usd,
)
from evaluations.judge.checking import refuse_unresolved
from evaluations.judge.replying import wants_two_steps
from evaluations.models import Call, Judge, Rater, Run, User
from evaluations.models.many import insert_many
from evaluations.services import balloting
from evaluations.services.judging import budgeting
from evaluations.services.judging.pricing import bound_of_reply, keep_list_price, price_for
from evaluations.services.judging.selecting import (
    KEPT_FAILURES,
    Selection,
    SelectionOptions,
    Subject,
    calls_to_retry,
    orders_for,
    refuse_archived,
    refuse_impossible,
    rows_after,
    seed_of,
    selection,
    selection_of,
    subjects,
)
from evaluations.services.pacing import ROWS_AT_ONCE, paced, time_is_up
from evaluations.services.preparing.preparing import change_evaluation
from evaluations.services.recording import record

# Calls that a new run takes over: nothing usable came back, and nobody decided to leave it so.
TAKEN_OVER: Final = (*OPEN_CALL_STATES, CallState.CANCELLED, CallState.FAILED)
ENDABLE: Final = (*ACTIVE_RUN_STATES, RunState.STOPPED)


# ---- starting ------------------------------------------------------------------------------


def start_run(
    judge: Judge,
    *,
    user: User | None,
    budget: int | None = None,
    batch: uuid.UUID | None = None,
    channel: str = Channel.LIVE,
    **options: Unpack[SelectionOptions],
) -> Run:
    """A run that a worker will plan and work. The first pairwise judge that is run is shown to reviewers.

    ``batch`` is shared by the runs of a panel; ``budget`` is in nano-USD.
    """
    wanted = checked(judge, budget=budget, channel=channel, **options)
    with transaction.atomic():
        # Locked, so that two first runs do not draw a seed each, and nobody archives it meanwhile.
        refuse_archived(Judge.objects.select_for_update().get(pk=judge.pk))
        keep_list_price(judge.endpoint, judge.model, user=user)
        seed = seed_of(judge)
        run = Run.objects.create(
            evaluation=judge.evaluation,
            judge=judge,
            user=user,
            batch=batch or uuid.uuid4(),
            channel=channel,
            orders=wanted.orders,
            samples=wanted.samples,
            seed=secrets.randbelow(2**53) if seed is None else seed,
            budget=budget,
            filters=wanted.filters(),
        )
        record("started", run, user=user, evaluation=judge.evaluation, after=started_with(run))
        show_to_reviewers(wanted, user)
    return run


def start_panel(judges: Sequence[Judge], *, user: User | None, **options: Any) -> list[Run]:
    """One run for each of these judges, told apart from others by one batch; all start, or none.

    Options are those of start_run; a budget is each run's own.
    """
    if not judges:
        raise InputRefused("Choose at least one judge.")
    if len({judge.pk for judge in judges}) < len(judges):
        raise InputRefused("A judge sits on a panel once: name each of them one time.")
    batch = uuid.uuid4()
    with transaction.atomic():
        return [start_run(judge, user=user, batch=batch, **options) for judge in judges]


def checked(
    judge: Judge, *, budget: int | None = None, channel: str = Channel.LIVE, **options: Unpack[SelectionOptions]
) -> Selection:
    """The selection of a run that may start; InputRefused with the first thing that stands in its way."""
    wanted = selection(judge, **options)
    refuse_impossible(wanted)
    refuse_channel(judge, channel)
    refuse_budget(judge, budget)
    if judge.kind == JudgeKind.LLM and judge.rubric_version:  # stored before its style was known, or from an archive
        refuse_unresolved(judge.rubric_version.spec())
    return wanted


def started_with(run: Run) -> dict[str, Any]:
    said = {"judge": run.judge.name, "orders": str(run.orders), "samples": run.samples, **run.filters}
    if run.budget is not None:
        said["budget_usd"] = exact_usd(run.budget)
    return said | ({"channel": str(run.channel)} if run.channel != Channel.LIVE else {})


def show_to_reviewers(wanted: Selection, user: User | None) -> None:
    """The first judge sent through comparisons; a trial on one of them decides nothing."""
    evaluation = wanted.judge.evaluation
    if evaluation.shown_judge_id is None and wanted.column == "comparison" and not wanted.is_one:
        change_evaluation(evaluation, {"shown_judge": wanted.judge}, user=user)


def refuse_channel(judge: Judge, channel: str) -> None:
    if channel not in set(Channel):
        raise InputRefused(f"Requests travel in one of these ways: {', '.join(Channel)}.")
    if channel == Channel.BATCH and judge.kind != JudgeKind.LLM:
        raise InputRefused(f"“{judge.name}” makes no requests: the Batch API is for models.")
    if channel == Channel.BATCH and judge.one_aspect_per_call:
        raise InputRefused(
            f"“{judge.name}” asks for one aspect per call, and the Batch API may take a day for each: send its "
            "requests one by one."
        )


def refuse_budget(judge: Judge, budget: int | None) -> None:
    """A budget that is sure to hold needs a price, and a bound on what one reply can cost."""
    if budget is None:
        return
    if budget <= 0:
        raise InputRefused("A budget is more than 0 USD.")
    if judge.kind != JudgeKind.LLM:
        return
    price = price_for(judge)
    if price is None:
        raise InputRefused(
            f"No price is known for “{judge.model}” at “{judge.endpoint}”, so no budget can be guaranteed: set its "
            "price, or leave the budget out."
        )
    if bound_of_reply(judge, price) is None:
        raise InputRefused(
            f"“{judge.name}” may reply at any length, so no budget can be guaranteed: create a judge with a limit of "
            f"tokens, enter the longest reply of “{judge.model}” with its price, or leave the budget out."
        )


# ---- planning ------------------------------------------------------------------------------


def plan(run_id: int, *, until: float) -> None:
    """Make or take over the run's calls, in short transactions, from where it stood when a worker died."""
    while not time_is_up(until):
        with paced():
            if not plan_some(run_id):
                return


@transaction.atomic
def plan_some(run_id: int) -> bool:
    """The next calls; False once there are none left and the run is at work."""
    related = "judge__rubric_version__rubric"
    run = Run.objects.select_for_update(of=("self",)).select_related(related).get(pk=run_id)
    if run.state != RunState.PLANNING:
        return False
    # Two runs of one judge plan one after the other: a call belongs to one of them.
    Judge.objects.select_for_update().get(pk=run.judge_id)
    wanted = selection_of(run)
    if not (plan_retry(run, wanted) if wanted.only_states else plan_calls(run, wanted)):
        Run.objects.filter(pk=run_id).update(state=RunState.RUNNING, started_at=Now())
        return False
    run.save(update_fields=["planned", "reused", "filters"])
    return True


def plan_retry(run: Run, wanted: Selection) -> bool:
    """The next of the calls to be asked again; the place is kept on the run. False after the last."""
    after = run.filters.get("after", 0)
    again = calls_to_retry(wanted).filter(pk__gt=after).select_for_update(of=("self",))
    calls = list(again.order_by("pk")[:ROWS_AT_ONCE])
    if calls:
        take_over(run, calls)
        run.planned += len(calls)
        run.filters |= {"after": calls[-1].pk}
    return bool(calls)


def plan_calls(run: Run, wanted: Selection) -> bool:
    """New calls for what was never asked; what waits or failed elsewhere becomes this run's."""
    ids = next_to_plan(run, wanted)
    asked = list(subjects(ids, run.orders, run.samples, run.seed))
    known = calls_of(run, f"{wanted.column}_id", ids)
    new = [subject for subject in asked if subject not in known]
    make_calls(run, wanted, new)
    held = [known[subject] for subject in asked if subject in known]
    if not wanted.is_one:
        count_tests([call for call in held if call.is_test])
    taken = [call for call in held if may_take_over(run, call)]
    take_over(run, taken)
    run.planned += len(new) + len(taken)
    run.reused += sum(call.state == CallState.ANSWERED for call in held)
    return bool(ids)


def calls_of(run: Run, column: str, ids: Sequence[int]) -> dict[Subject, Call]:
    """What this judge was asked about these, with as much of each call as taking it over needs.

    Locked: an answer that came between this look and the taking over would be bought again.
    """
    mine = Call.all_rows.filter(**{"judge": run.judge_id, f"{column}__in": ids})
    found = mine.select_related("run").select_for_update(of=("self",)).order_by("pk")
    needed = found.only(column, "shown", "sample", "state", "is_test", "reserved", "run__state")
    return {(getattr(call, column), Shown(call.shown), call.sample): call for call in needed}


# Columns that have no default of the database's own are named, empty ones too.
CALL_COLUMNS: Final = (
    *("created_at", "judge_id", "run_id", "state", "step", "repaired", "reserved"),
    *("prompt_sha256", "reuse_key", "error", "rationale", "is_test"),
)


def make_calls(run: Run, wanted: Selection, new: Sequence[Subject]) -> None:
    column, texts = f"{wanted.column}_id", [""] * 4
    same = (timezone.now(), run.judge_id, run.pk, CallState.PENDING.value, AttemptStep.ASK.value, False, 0, *texts)
    same = (*same, wanted.is_one)
    rows = [(*same, pk, shown.value, sample) for pk, shown, sample in new]
    insert_many(Call, (*CALL_COLUMNS, column, "shown", "sample"), rows)


def count_tests(calls: Sequence[Call]) -> None:
    """A run has selected what these test calls asked: from now on they count as its other calls do."""
    if not calls:
        return
    tests = Call.all_rows.filter(pk__in=[call.pk for call in calls])
    tests.update(is_test=False)
    balloting.keep_calls(tests)
    note_endings(tests)


def next_to_plan(run: Run, wanted: Selection) -> list[int]:
    """The next comparisons or responses; the place is kept on the run."""
    done = run.filters.get("done", 0)
    most = max(1, ROWS_AT_ONCE // (len(orders_for(0, run.orders, 0)) * run.samples))
    if wanted.limit is not None:
        most = min(most, wanted.limit - done)
    rows = rows_after(wanted, run.filters.get("after"), most)
    if rows:
        run.filters |= {"after": list(rows[-1]), "done": done + len(rows)}
    return [row[-1] for row in rows]


def may_take_over(run: Run, call: Call) -> bool:
    states = TAKEN_OVER + (KEPT_FAILURES if run.filters.get("ask_failures_again") else ())
    return call.state in states and (call.run is None or call.run.state not in ACTIVE_RUN_STATES)


def take_over(run: Run, calls: Sequence[Call]) -> None:
    """Make them this run's. What was bought of a conversation is kept, unless it ended unusably.

    A call that another run still has in flight keeps its lease: its answer is on the way, and this
    run pays for it. Where its budget does not hold that, the call stays where it is. The evaluation
    that the first of two steps gave is kept whatever became of the second, unless the call is suspect.
    """
    flying = budgeting.move_reserved((call for call in calls if call.state == CallState.RUNNING), run)
    fresh = [call.pk for call in calls if call.state in KEPT_FAILURES]
    waiting = [call.pk for call in calls if call.state not in (CallState.RUNNING, *KEPT_FAILURES)]
    anew = {"run": run, "state": CallState.PENDING, "error": "", "lease": None, "lease_until": None, "not_before": None}
    Call.all_rows.filter(pk__in=[call.pk for call in flying]).update(run=run)
    Call.all_rows.filter(pk__in=waiting).update(**anew, batch=None)
    if not fresh:
        return
    asked_anew = Call.all_rows.filter(pk__in=fresh)
    asked_anew.update(**anew, batch=None, repaired=False, copied_from=None)
    # The evaluation itself may have been dictated: a suspect conversation begins again.
    suspect = [call.pk for call in calls if call.state == CallState.SUSPECT]
    asked_anew.filter(pk__in=suspect).update(step=AttemptStep.ASK)
    asked_anew.exclude(step=AttemptStep.ASK).update(step=first_unbought_step(run.judge))


def first_unbought_step(judge: Judge) -> AttemptStep:
    """Where the conversation of a call that is past its first request is taken up again."""
    assert judge.rubric_version is not None
    two_steps = judge.mode == AskingMode.TWO_STEP or wants_two_steps(judge.rubric_version.spec())
    return AttemptStep.SCORE if two_steps else AttemptStep.ASK


# ---- pausing and going on ------------------------------------------------------------------


def pause(run: Run, *, user: User | None) -> None:
    """Nothing more is asked until it is resumed; what is in flight is still stored."""
    move(run, (RunState.PLANNING, RunState.RUNNING), RunState.PAUSED, "paused", user)


@transaction.atomic
def resume(run: Run, *, user: User | None, budget: int | None = None) -> None:
    """Go on with a paused run, or with a stopped one once its cause is mended; with a new budget if given."""
    if budget is not None:
        change_budget(run, budget, user=user)
    row = Run.objects.select_for_update(of=("self",)).select_related("judge").get(pk=run.pk)
    refuse_archived(row.judge)
    waiting = Call.all_rows.filter(run=row, state__in=OPEN_CALL_STATES)
    if row.state == RunState.STOPPED and not waiting.exists():
        raise InputRefused("Nothing of this run is left to ask: start a new one.")
    state = RunState.RUNNING if row.started_at else RunState.PLANNING
    move(run, (RunState.PAUSED, RunState.STOPPED), state, "resumed", user)
    # What waited for a server that was away is asked now that someone says it is back.
    waiting.filter(not_before__gt=Now()).update(not_before=None)


def open_runs() -> QuerySet[Run]:
    """Runs of all evaluations that are not over, for site administrators."""
    return Run.objects.filter(state__in=ENDABLE).select_related("evaluation", "judge__endpoint", "user")


def cancel(run: Run, *, user: User | None) -> None:
    """Nothing more is asked from now on; what is in flight is still stored."""
    move(run, ENDABLE, RunState.CANCELLED, "cancelled", user)


@transaction.atomic
def move(run: Run, states: Sequence[RunState], to: RunState, verb: str, user: User | None) -> None:
    """Take the run from one of these states to another, as of now; claims look at the state each time."""
    columns = {"state": to, "finished_at": Now() if to == RunState.CANCELLED else None}
    if to in ACTIVE_RUN_STATES and to != RunState.PAUSED:
        columns["resumed_at"] = Now()
    changed = Run.objects.filter(pk=run.pk, state__in=states)
    if not changed.update(**columns, **({} if to == RunState.CANCELLED else {"stop_reason": ""})):
        run.refresh_from_db(fields=["state"])
        raise InputRefused(f"This run cannot be {verb}: it is {state_in_words(run)}.")
    record(verb, run, user=user, evaluation=run.evaluation)
    run.refresh_from_db(fields=["state", "stop_reason", "finished_at"])


def state_in_words(run: Run) -> str:
    """Its state as a sentence puts it."""
    words = {RunState.PLANNING: "being planned", RunState.RUNNING: "running", RunState.PAUSED: "paused already"}
    return words.get(RunState(run.state), f"{run.state} already")


@transaction.atomic
def change_budget(run: Run, budget: int | None, *, user: User | None) -> None:
    """Another bound on what the run may spend, in nano-USD; None takes it away."""
    refuse_budget(run.judge, budget)
    row = Run.objects.select_for_update().get(pk=run.pk)
    if row.state not in ENDABLE:
        raise InputRefused(f"The budget cannot be changed: this run is {state_in_words(row)}.")
    gone = row.spent + row.reserved
    if budget is not None and budget < gone:
        raise InputRefused(f"USD {exact_usd(gone)} of this run are spent or in flight already: give it at least that.")
    Run.objects.filter(pk=run.pk).update(budget=budget)
    run.budget = budget
    before, after = ({"budget_usd": None if nano is None else exact_usd(nano)} for nano in (row.budget, budget))
    record("changed budget", run, user=user, evaluation=run.evaluation, before=before, after=after)


# ---- ending --------------------------------------------------------------------------------


@transaction.atomic
def pause_for(run: Run, reason: str) -> None:
    """Pause a run at work by itself; the first reason stays."""
    changed = Run.objects.filter(pk=run.pk, state=RunState.RUNNING).update(state=RunState.PAUSED, stop_reason=reason)
    if changed:
        record("paused", run, user=None, evaluation=run.evaluation, after={"reason": reason})


@transaction.atomic
def stop(run: Run, reason: str) -> None:
    """End a run that cannot go on before a person mends something; the first reason stays."""
    changed = Run.objects.filter(pk=run.pk, state__in=ACTIVE_RUN_STATES).update(
        state=RunState.STOPPED, stop_reason=reason, finished_at=Now()
    )
    if changed:
        record("stopped", run, user=None, evaluation=run.evaluation, after={"reason": reason})


@transaction.atomic
def finish(run: Run) -> bool:
    """End the run if every call of it has its outcome."""
    still_open = Call.all_rows.filter(run=run, state__in=OPEN_CALL_STATES)
    if still_open.exists():
        return False
    changed = Run.objects.filter(pk=run.pk, state=RunState.RUNNING).update(state=RunState.DONE, finished_at=Now())
    if changed:
        record("finished", run, user=None, evaluation=run.evaluation, after=counts_by_state(run))
    return bool(changed)


def cancel_waiting_calls(*, seconds: float | None = None) -> None:
    """What waited in a cancelled run says so, in short transactions, for so long or until all of it does."""
    until = None if seconds is None else time.monotonic() + seconds
    waiting = Call.all_rows.filter(run__state=RunState.CANCELLED, state=CallState.PENDING)
    while not time_is_up(until) and (ids := list(waiting.values_list("pk", flat=True)[:ROWS_AT_ONCE])):
        with paced(), transaction.atomic():
            # Asked again inside: a new run may have taken the call over meanwhile.
            waiting.filter(pk__in=ids).update(state=CallState.CANCELLED)
            note_endings(Call.all_rows.filter(pk__in=ids))


def note_endings(calls: QuerySet[Call]) -> None:
    """Reports on their judges are no longer what they were: these ended without a verdict. Locked in order."""
    for judge in sorted(calls.order_by().values_list("judge", flat=True).distinct()):
        Rater.objects.filter(judge=judge).update(verdicts_changed_at=timezone.now())


def counts_by_state(run: Run) -> dict[str, int]:
    """State → calls of this run, in the order in which a call passes through them; none left out for being 0."""
    found = dict(Call.all_rows.filter(run=run).order_by().values_list("state").annotate(Count("pk")))
    return {state.value: found.get(state.value, 0) for state in CallState}

"""When and how often: ids in, one service call. The rows are the truth; a message is a nudge."""

import threading
import time
from contextlib import AbstractContextManager
from typing import Any, Final

from celery import current_app, shared_task
from celery.contrib.django.task import DjangoTask
from django.conf import settings
from django.db import transaction

from evaluations.domain import ImportState, RunState
from evaluations.models import Evaluation, Export, Import, Run, Worker
from evaluations.services import import_undo, repeating
from evaluations.services.crashed_jobs import SET_ASIDE, Stretch, forget_deaths, watched
from evaluations.services.exporting import lasting
from evaluations.services.importing import fetching, importing, indexing, sweeping
from evaluations.services.judging import finding, lapsing, rereading, running, sharing
from evaluations.services.judging.attending import own_name
from evaluations.services.notifying import delivering, telling
from evaluations.services.preparing import tagging
from evaluations.services.reviewing import filling, holding, releasing, tallying, typesetting

STORE_SECONDS = 20
SWEEP_SECONDS = 10
BROKER_SECONDS: Final = 5
PLACES_AT_ONCE: Final = 500

# A message that comes to a process which is at that run already goes on to another, so often.
PASSED_ON_AT_MOST: Final = 4

# What stands for the webhooks where tasks come to runs, which count from 1.
HOOKS: Final = 0

# Which task of this process is at which run: a second message for a run adds nothing to it.
AT_WORK: dict[int, object] = {}
AT_WORK_LOCK = threading.Lock()


def nudge(task: "DjangoTask[..., None]", *ids: int, **options: Any) -> None:
    """Send the message once the rows are committed. One that cannot be sent is logged: the sweep sends another."""

    def send() -> None:
        task.apply_async(ids, **options)

    transaction.on_commit(send, robust=True)


def come_to(run_id: int, comer: object) -> bool:
    """Whether the comer is now the one at this run."""
    with AT_WORK_LOCK:
        return AT_WORK.setdefault(run_id, comer) is comer


def leave(run_id: int, comer: object) -> None:
    with AT_WORK_LOCK:
        if AT_WORK.get(run_id) is comer:
            del AT_WORK[run_id]


def at_work_on(kind: str, subject: int) -> AbstractContextManager[Stretch | None]:
    return watched(kind, subject, own_name())


@shared_task(base=DjangoTask)
def work_run(run_id: int, passed_on: int = 0) -> None:
    """Work a run's calls for half a minute; a successor goes on while this one drains.

    A process that is at this run already passes the message on: it may be meant for another.
    """
    from evaluations.services.judging import answering  # noqa: PLC0415 - openai takes half a second to import, on every start

    me = object()

    def hand_over() -> None:
        leave(run_id, me)
        nudge(work_run, run_id)

    if come_to(run_id, me):
        try:
            plan_run(run_id)
            answering.work(run_id, hand_over=hand_over)
        finally:
            leave(run_id, me)
    elif passed_on < PASSED_ON_AT_MOST and Worker.objects.alive().count() > 1:
        nudge(work_run, run_id, passed_on + 1, countdown=0, expires=SWEEP_SECONDS)


def plan_run(run_id: int) -> None:
    """Plan the run for a while where it is not planned; its calls have leases of their own."""
    run = Run.objects.filter(pk=run_id, state=RunState.PLANNING).first()
    if run is None:
        return
    with at_work_on("plan_run", run_id) as stretch:
        if stretch:
            running.plan(run_id, until=time.monotonic() + STORE_SECONDS)
            stretch.goes_on = Run.objects.filter(pk=run_id, state=RunState.PLANNING).exists()
        else:
            running.stop(run, SET_ASIDE)
            forget_deaths("plan_run", run_id)  # the run says so itself, and may be resumed


@shared_task(base=DjangoTask)
def look_after_batch(batch_id: int) -> None:
    """See how far a batch is, and store its answers once its server has ended it."""
    from evaluations.services.judging import batching  # noqa: PLC0415 - openai once more

    with at_work_on("look_after_batch", batch_id) as stretch:
        if stretch:
            batching.look_after(batch_id)


@shared_task(base=DjangoTask)
def store_import(import_id: int) -> None:
    """Check, store or undo a file, or count the votes in it, for a while; a successor goes on where this one stops."""
    with at_work_on("store_import", import_id) as stretch:
        if stretch is None:
            return
        row = Import.objects.get(pk=import_id)
        if row.state == ImportState.UNDOING:
            more = import_undo.go_on(row, seconds=STORE_SECONDS)
        else:
            more = importing.go_on(row, seconds=STORE_SECONDS) or tallying.tally_import(row, seconds=STORE_SECONDS)
        stretch.goes_on = more
    if more:
        nudge(store_import, import_id)
    elif row.state == ImportState.DONE:
        nudge(fill_queue, row.evaluation_id)
        nudge(render_ahead, row.evaluation_id)
        nudge(read_texts)


@shared_task(base=DjangoTask)
def write_export(export_id: int) -> None:
    """Write a long export. Where this process is told to leave, another begins it again."""
    if lasting.go_on(Export.objects.get(pk=export_id)):
        nudge(write_export, export_id)


@shared_task(base=DjangoTask)
def fill_queue(evaluation_id: int) -> None:
    """Make places for the comparisons that came in, before the first reviewer waits for it."""
    with at_work_on("fill_queue", evaluation_id) as stretch:
        if stretch:
            filling.ready(Evaluation.objects.get(pk=evaluation_id))


@shared_task(base=DjangoTask)
def render_ahead(evaluation_id: int) -> None:
    """Render what reviewers meet first, so that the first to open it need not wait; pages render the rest."""
    with at_work_on("render_ahead", evaluation_id) as stretch:
        if stretch and typesetting.prepare(Evaluation.objects.get(pk=evaluation_id), seconds=STORE_SECONDS):
            stretch.goes_on = True
            nudge(render_ahead, evaluation_id)


@shared_task(base=DjangoTask)
def read_texts() -> None:
    """Read stored texts for searching for a while; a successor goes on where this one stops."""
    with at_work_on("read_texts", 0) as stretch:
        if stretch and indexing.catch_up(seconds=STORE_SECONDS):
            stretch.goes_on = True
            nudge(read_texts)


@shared_task(base=DjangoTask)
def tag_all(work_id: int) -> None:
    """Put a tag on what a filter means, or take it away, for a while; a successor goes on where this one stops."""
    with at_work_on("tag_all", work_id) as stretch:
        if stretch and tagging.go_on(work_id, seconds=STORE_SECONDS):
            stretch.goes_on = True
            nudge(tag_all, work_id)


@shared_task(base=DjangoTask)
def reread_replies(judge_id: int) -> None:
    """Read a judge's stored replies again for a while; a successor goes on where this one stops."""
    with at_work_on("reread_replies", judge_id) as stretch:
        if stretch and rereading.go_on(judge_id, seconds=STORE_SECONDS):
            stretch.goes_on = True
            nudge(reread_replies, judge_id)


@shared_task(base=DjangoTask)
def deliver_hooks() -> None:
    """Send the messages that are due for a while; a successor goes on where this one stops.

    One task of a process at a time: receivers that hang must not take all its threads.
    """
    me = object()
    if come_to(HOOKS, me):
        try:
            more = delivering.deliver_due(seconds=STORE_SECONDS)
        finally:
            leave(HOOKS, me)
        if more:
            nudge(deliver_hooks)


@shared_task(base=DjangoTask)
def check_endpoint(handshake_id: int) -> None:
    """Test an endpoint for a page: keys are set where workers run."""
    from evaluations.services.judging import handshake  # noqa: PLC0415 - openai once more

    handshake.go_on(handshake_id)


@shared_task(base=DjangoTask)
def look_for_local_server() -> None:
    finding.find_local_server(settings.OLLAMA_URL)


def reach_broker() -> None:
    """Raise what the broker says where it does not answer within some seconds."""
    with current_app.connection_for_write() as broker:
        broker.ensure_connection(max_retries=1, timeout=BROKER_SECONDS)


@shared_task(base=DjangoTask)
def sweep() -> None:
    """Put back what a killed worker held, end what has ended, and wake what waits."""
    lapsing.put_back_expired()
    holding.put_back_lapsed(PLACES_AT_ONCE)
    releasing.release(PLACES_AT_ONCE)
    running.cancel_waiting_calls(seconds=SWEEP_SECONDS)
    lapsing.finish_ended_runs()
    for run_id in lapsing.runs_to_nudge():
        nudge(work_run, run_id, expires=SWEEP_SECONDS)
    for run_id in lapsing.runs_to_join():
        for _ in range(sharing.idle_workers()):
            nudge(work_run, run_id, expires=SWEEP_SECONDS)
    for batch_id in lapsing.batches_to_nudge():
        nudge(look_after_batch, batch_id, expires=SWEEP_SECONDS)
    for judge_id in rereading.judges_left_off():
        nudge(reread_replies, judge_id)
    for import_id in (*sweeping.sweep_imports(seconds=SWEEP_SECONDS), *tallying.imports_left_off()):
        nudge(store_import, import_id)
    if indexing.unread():
        nudge(read_texts, expires=SWEEP_SECONDS)
    for work_id in tagging.works_left():
        nudge(tag_all, work_id, expires=SWEEP_SECONDS)
    for export_id in lasting.sweep_exports():
        nudge(write_export, export_id, expires=SWEEP_SECONDS)
    typesetting.drop_outdated()
    fetching.remove_what_was_left_behind()
    repeating.drop_old()
    telling.tell_noted()
    delivering.drop_old()
    if delivering.is_any_due():
        nudge(deliver_hooks, expires=SWEEP_SECONDS)

"""Runs of judges with their calls and attempts."""

from functools import cache
from typing import Final

from django.db import models
from django.db.models import BooleanField, F, Func, Q
from django.db.models.functions import Now

from evaluations.domain.choices import ShownOrder
from evaluations.domain.judges import (
    FAILURE_STATES,
    AttemptOutcome,
    AttemptStep,
    BatchState,
    CallState,
    RunChannel,
    RunOrders,
    RunState,
)
from evaluations.models.base import (
    ArchivableQuerySet,
    Row,
    enum_choices,
    enum_constraint,
    exactly_one_of,
    not_null_index,
)
from evaluations.models.comparisons import Comparison, Response
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import FinishedManager, Import, ImportedRow
from evaluations.models.judges import Judge
from evaluations.models.users import User


class RunQuerySet(ArchivableQuerySet["Run"]):
    def with_ready_endpoint(self) -> "RunQuerySet":
        """Those whose endpoint takes requests now: it is neither paused nor waited for after an outage."""
        paused = Q(judge__endpoint__paused_until__gt=Now())
        return self.exclude(paused | Q(judge__endpoint__down_since__isnull=False))


class Run(Row):
    evaluation = models.ForeignKey(Evaluation, on_delete=models.PROTECT, related_name="runs")
    judge = models.ForeignKey(Judge, on_delete=models.PROTECT, related_name="runs")
    user = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="runs")
    batch = models.UUIDField()
    state = models.CharField(max_length=10, default=RunState.PLANNING.value, choices=enum_choices(RunState))
    channel = models.CharField(max_length=5, default=RunChannel.LIVE.value, choices=enum_choices(RunChannel))
    orders = models.CharField(max_length=10, default=RunOrders.BOTH.value, choices=enum_choices(RunOrders))
    samples = models.PositiveSmallIntegerField(default=1)
    seed = models.BigIntegerField(default=0)
    filters = models.JSONField(default=dict)
    planned = models.PositiveBigIntegerField(default=0)
    reused = models.PositiveBigIntegerField(default=0)
    budget = models.BigIntegerField(null=True)
    spent = models.BigIntegerField(default=0)
    reserved = models.BigIntegerField(default=0)
    stop_reason = models.TextField(blank=True)
    # Failures before it do not pause the run again.
    resumed_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    # An archived run is off the list of runs; its verdicts count as before.
    archived_at = models.DateTimeField(null=True)

    objects = RunQuerySet.as_manager()

    class Meta:
        constraints = [
            enum_constraint("state", RunState, "run_state"),
            enum_constraint("orders", RunOrders, "run_orders"),
            enum_constraint("channel", RunChannel, "run_channel"),
            models.CheckConstraint(condition=Q(samples__gte=1), name="run_samples"),
        ]
        indexes = [models.Index(fields=["evaluation", "-id"], name="run_newest")]

    @property
    def is_at_work(self) -> bool:
        """Whether workers process it: it is neither paused nor ended."""
        return self.state in (RunState.PLANNING, RunState.RUNNING)


class Batch(Row):
    """Many requests of one run, sent as one file and answered as one within a day or so."""

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="batches")
    state = models.CharField(max_length=10, default=BatchState.SENDING.value, choices=enum_choices(BatchState))
    remote_id = models.CharField(max_length=200, blank=True)
    remote_state = models.CharField(max_length=40, blank=True)
    output_file = models.CharField(max_length=200, blank=True)
    error_file = models.CharField(max_length=200, blank=True)
    calls_sent = models.PositiveIntegerField(default=0)
    calls_answered = models.PositiveIntegerField(default=0)
    error = models.TextField(blank=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "batches"
        constraints = [enum_constraint("state", BatchState, "batch_state")]


FAILED_STATES: Final = [state.value for state in FAILURE_STATES]


class CallQuerySet(models.QuerySet["Call"]):
    def failed(self) -> "CallQuerySet":
        """The calls that ended without an answer. The literal condition lets the partial index be used."""
        words = ", ".join(f"'{state}'" for state in FAILED_STATES)
        return self.filter(Func(F("state"), template=f"%(expressions)s IN ({words})", output_field=BooleanField()))


class CountedCallManager(FinishedManager["Call"]):
    """Hides test calls too: no number, label or export counts them; `all_rows` has them."""

    def filter_rows(self, rows: models.QuerySet["Call"]) -> models.QuerySet["Call"]:
        return super().filter_rows(rows).filter(is_test=False)


class Call(Row):
    """One question put to a judge: unique per judge, subject in one order, and sample."""

    judge = models.ForeignKey(Judge, on_delete=models.PROTECT, related_name="calls")
    comparison = models.ForeignKey(
        Comparison, on_delete=models.PROTECT, null=True, related_name="calls", db_index=False
    )
    response = models.ForeignKey(Response, on_delete=models.PROTECT, null=True, related_name="calls", db_index=False)
    shown = models.CharField(max_length=10, default=ShownOrder.AS_STORED.value, choices=enum_choices(ShownOrder))
    sample = models.PositiveSmallIntegerField(default=0)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, null=True, related_name="calls", db_index=False)
    source_import = models.ForeignKey(Import, on_delete=models.PROTECT, null=True, related_name="calls", db_index=False)
    state = models.CharField(max_length=10, default=CallState.PENDING.value, choices=enum_choices(CallState))
    step = models.CharField(max_length=8, default=AttemptStep.ASK.value, choices=enum_choices(AttemptStep))
    # Made to test the judge on one comparison or response, which no run has selected so far.
    is_test = models.BooleanField(default=False)
    repaired = models.BooleanField(default=False)
    batch = models.ForeignKey(Batch, on_delete=models.PROTECT, null=True, related_name="calls", db_index=False)
    # Nano-USD that its run keeps back for the request in flight.
    reserved = models.BigIntegerField(default=0)
    prompt_sha256 = models.CharField(max_length=64, blank=True)
    # Endpoint, model, settings, messages and sample: equal keys have equal answers, bought once.
    reuse_key = models.CharField(max_length=64, blank=True)
    copied_from = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="copies", db_index=False)
    lease = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    not_before = models.DateTimeField(null=True)
    error = models.TextField(blank=True)
    rationale = models.TextField(blank=True)
    # The person who decided that the verdict of a suspect call counts.
    confirmed_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+", db_index=False)
    confirmed_at = models.DateTimeField(null=True)

    objects = CountedCallManager()
    all_rows = CallQuerySet.as_manager()

    class Meta:
        constraints = [
            enum_constraint("state", CallState, "call_state"),
            enum_constraint("shown", ShownOrder, "call_shown"),
            enum_constraint("step", AttemptStep, "call_step"),
            models.CheckConstraint(condition=exactly_one_of("comparison", "response"), name="call_one_subject"),
            models.CheckConstraint(
                condition=Q(confirmed_by__isnull=True, confirmed_at__isnull=True)
                | Q(confirmed_by__isnull=False, confirmed_at__isnull=False),
                name="call_confirmed",
            ),
            models.UniqueConstraint(
                fields=["judge", "comparison", "shown", "sample"],
                condition=Q(comparison__isnull=False),
                name="call_of_comparison",
            ),
            models.UniqueConstraint(
                fields=["judge", "response", "sample"], condition=Q(response__isnull=False), name="call_of_response"
            ),
        ]
        # A call is written several times, and each time into all of these: where a column is mostly empty
        # only what is filled is indexed, and no index begins as another does.
        indexes = [
            *(not_null_index(column, "call") for column in ("comparison", "response")),
            *(not_null_index(column, "call") for column in ("source_import", "batch", "copied_from")),
            # In the order of claims, so that the next few are found without sorting all that wait.
            models.Index(fields=["run", "state", "id"], name="call_of_run"),
            models.Index(fields=["lease_until"], condition=Q(lease_until__isnull=False), name="call_leased"),
            models.Index(fields=["reuse_key"], condition=~Q(reuse_key=""), name="call_reuse"),
            models.Index(fields=["judge"], condition=Q(repaired=True), name="call_repaired"),
            models.Index(fields=["judge"], condition=Q(state__in=FAILED_STATES), name="call_failed"),
            models.Index(fields=["judge"], condition=Q(is_test=True), name="call_test"),
        ]

    @property
    def is_confirmable(self) -> bool:
        """Whether it is suspect and its reply is stored: an imported failure has none."""
        return self.state == CallState.SUSPECT and self.source_import_id is None


@cache  # each query of verdicts asks for it
def test_call_condition() -> Q:
    """The condition that a verdict, score or packed vote came from a test call."""
    return Q(call__in=Call.all_rows.filter(is_test=True))


class CountedManager(FinishedManager[ImportedRow]):
    """Hides the verdicts and scores of test calls, too."""

    def filter_rows(self, rows: models.QuerySet[ImportedRow]) -> models.QuerySet[ImportedRow]:
        return super().filter_rows(rows).exclude(test_call_condition())


class Attempt(Row):
    """One request of a Call. Append-only, and the only place where money is counted."""

    call = models.ForeignKey(Call, on_delete=models.PROTECT, related_name="attempts", db_index=False)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="attempts")
    batch = models.ForeignKey(Batch, on_delete=models.PROTECT, null=True, related_name="attempts", db_index=False)
    # The claim that it was sent under: with its call it names the request, so that none is written twice.
    lease = models.UUIDField(null=True)
    number = models.PositiveSmallIntegerField()
    step = models.CharField(max_length=8, default=AttemptStep.ASK.value, choices=enum_choices(AttemptStep))
    outcome = models.CharField(max_length=10, choices=enum_choices(AttemptOutcome))
    http_status = models.PositiveSmallIntegerField(null=True)
    raw = models.TextField(blank=True)
    finish_reason = models.CharField(max_length=40, blank=True)
    model_returned = models.CharField(max_length=200, blank=True)
    tokens_in = models.PositiveIntegerField(null=True)
    tokens_out = models.PositiveIntegerField(null=True)
    tokens_cached = models.PositiveIntegerField(null=True)
    # Of `tokens_out`, those of the reasoning.
    tokens_reasoning = models.PositiveIntegerField(null=True)
    cost = models.BigIntegerField(null=True)
    # For an unknown cost: its upper bound, which its run counts as spent.
    max_cost = models.BigIntegerField(null=True)
    latency_ms = models.PositiveIntegerField()
    logprobs = models.JSONField(null=True)
    # The model's reasoning, where its server separates it from the reply; never parsed for a verdict.
    reasoning = models.TextField(blank=True)
    # With one aspect per call, the aspect; else empty.
    aspect = models.CharField(max_length=80, blank=True)
    error = models.TextField(blank=True)

    class Meta:
        indexes = [
            not_null_index("batch", "attempt"),
            models.Index(fields=["created_at"], condition=Q(outcome=AttemptOutcome.LOST.value), name="attempt_lost"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["call", "number"], name="attempt_number"),
            enum_constraint("step", AttemptStep, "attempt_step"),
            enum_constraint("outcome", AttemptOutcome, "attempt_outcome"),
        ]

    @property
    def is_answered(self) -> bool:
        return self.outcome != AttemptOutcome.LOST

    @property
    def may_have_cost(self) -> bool:
        """Servers charge nothing for a request that they refuse."""
        return self.http_status is None or self.http_status < 400


class Reparse(Row):
    """The stored replies of a judge, parsed again. ``calls``: their number; ``counts``: calls by their new state.

    ``changes``: how often each choice became another. The job has its progress.
    """

    judge = models.ForeignKey(Judge, on_delete=models.PROTECT, related_name="reparses")
    user = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="reparses")
    calls = models.PositiveIntegerField()
    counts = models.JSONField(default=dict)
    changes = models.JSONField(default=dict)

"""A test call: a run of one call on one comparison or response."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from django.db.models import Q, QuerySet

from evaluations.domain.choices import ShownOrder
from evaluations.domain.judges import ACTIVE_RUN_STATES, CallState, RunOrders
from evaluations.judges.runs.selection import SelectionOptions
from evaluations.models.comparisons import Comparison, Response
from evaluations.models.judges import Judge
from evaluations.models.runs import Attempt, Call, Run
from evaluations.models.verdicts import Score, Verdict

JudgeTestSubject = Comparison | Response
WITH_TEXTS = ("query", "response_a", "response_b")


def find_test_subject(judge: Judge, pk: int | None) -> JudgeTestSubject | None:
    """The comparison or response with this id that the judge can be tested on; the first one by default."""
    if judge.is_pointwise:
        responses = list_testable_responses(judge).select_related("query", "candidate")
        return responses.filter(pk=pk).first() if pk else responses.order_by("pk").first()
    comparisons = list_testable_comparisons(judge).select_related(*WITH_TEXTS)
    return comparisons.filter(pk=pk).first() if pk else comparisons.order_by("random_order", "pk").first()


def list_testable_comparisons(judge: Judge) -> "QuerySet[Comparison]":
    return Comparison.objects.filter(evaluation=judge.evaluation_id)


def list_testable_responses(judge: Judge) -> "QuerySet[Response]":
    return Response.objects.filter(query__evaluation=judge.evaluation_id)


def find_neighbouring_subject_ids(judge: Judge, subject: JudgeTestSubject) -> tuple[int | None, int | None]:
    """The ids before and after the subject, in review order."""
    if isinstance(subject, Response):
        ids = list_testable_responses(judge).values_list("pk", flat=True)
        earlier, later = ids.filter(pk__lt=subject.pk), ids.filter(pk__gt=subject.pk)
        return earlier.order_by("-pk").first(), later.order_by("pk").first()
    comparison_ids, place = list_testable_comparisons(judge).values_list("pk", flat=True), subject.random_order
    before = comparison_ids.filter(Q(random_order__lt=place) | Q(random_order=place, pk__lt=subject.pk))
    after = comparison_ids.filter(Q(random_order__gt=place) | Q(random_order=place, pk__gt=subject.pk))
    return before.order_by("-random_order", "-pk").first(), after.order_by("random_order", "pk").first()


def single_call_selection(subject: JudgeTestSubject, shown: ShownOrder) -> SelectionOptions:
    """The options of a run of one call, which repeats it if it failed before."""
    if isinstance(subject, Response):
        return {"response": subject, "ask_failures_again": True}
    orders = RunOrders.SWAPPED if shown == ShownOrder.SWAPPED else RunOrders.AS_STORED
    return {"comparison": subject, "orders": orders, "ask_failures_again": True}


def find_call_about(judge: Judge, subject: JudgeTestSubject, shown: ShownOrder) -> Call | None:
    """The judge's call on this subject in this order, if it exists."""
    calls = Call.all_rows.filter(judge=judge, sample=0).select_related("run", "judge__evaluation")
    if isinstance(subject, Response):
        return calls.filter(response=subject).first()
    return calls.filter(comparison=subject, shown=shown).first()


@dataclass(frozen=True)
class JudgeTestCall:
    """A run of one call, with its present result."""

    run: Run
    call: Call | None

    @property
    def is_moving(self) -> bool:
        """Whether more may come, also from requests in flight of a cancelled or stopped run."""
        is_asking = self.call is not None and self.call.state == CallState.RUNNING
        return self.run.state in ACTIVE_RUN_STATES or is_asking

    @cached_property
    def attempts(self) -> Sequence[Attempt]:
        """The call's requests; of a copied answer, those of its source."""
        if self.call is None:
            return ()
        paid = self.call.copied_from_id or self.call.pk
        return list(Attempt.objects.filter(call=paid).select_related("run").order_by("number"))

    @property
    def was_asked_before(self) -> bool:
        """Whether another run paid for the answer."""
        return bool(self.attempts) and all(attempt.run_id != self.run.pk for attempt in self.attempts)

    @cached_property
    def verdicts(self) -> Sequence[Verdict]:
        return (
            list(Verdict.all_rows.filter(call=self.call).select_related("aspect").order_by("pk")) if self.call else ()
        )

    @cached_property
    def scores(self) -> Sequence[Score]:
        return list(Score.all_rows.filter(call=self.call).select_related("aspect").order_by("pk")) if self.call else ()


def find_test_call(run: Run) -> JudgeTestCall | None:
    """The result of a test run; None for any other run."""
    subject = find_test_subject(run.judge, run.filters.get("response") or run.filters.get("comparison") or -1)
    if subject is None:
        return None
    shown = ShownOrder.SWAPPED if run.orders == RunOrders.SWAPPED else ShownOrder.AS_STORED
    return JudgeTestCall(run, find_call_about(run.judge, subject, shown))

"""One question put to a judge to try it: what it may be about, and what came of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from django.db.models import Q, QuerySet

from evaluations.domain import ACTIVE_RUN_STATES, CallState, Orders, Shown
from evaluations.models import Attempt, Call, Comparison, Judge, Response, Run, Score, Verdict
from evaluations.services.judging.selecting import SelectionOptions

Subject = Comparison | Response
WITH_TEXTS = ("query", "response_a", "response_b")


# ---- what it may be about ------------------------------------------------------------------


def subject_of(judge: Judge, pk: int | None) -> Subject | None:
    """The comparison or response of this number that the judge can be asked about; without one the first."""
    if judge.is_pointwise:
        responses = responses_of(judge).select_related("query", "candidate")
        return responses.filter(pk=pk).first() if pk else responses.order_by("pk").first()
    comparisons = comparisons_of(judge).select_related(*WITH_TEXTS)
    return comparisons.filter(pk=pk).first() if pk else comparisons.order_by("shuffle", "pk").first()


def comparisons_of(judge: Judge) -> "QuerySet[Comparison]":
    comparisons: QuerySet[Comparison] = Comparison.objects.filter(evaluation=judge.evaluation_id)
    return comparisons


def responses_of(judge: Judge) -> "QuerySet[Response]":
    responses: QuerySet[Response] = Response.objects.filter(query__evaluation=judge.evaluation_id)
    return responses


def neighbours(judge: Judge, subject: Subject) -> tuple[int | None, int | None]:
    """The numbers of the one before and the one after, in the order in which people meet them."""
    if isinstance(subject, Response):
        return beside_response(judge, subject)
    pks, shuffle, pk = comparisons_of(judge).values_list("pk", flat=True), subject.shuffle, subject.pk
    before = pks.filter(Q(shuffle__lt=shuffle) | Q(shuffle=shuffle, pk__lt=pk))
    after = pks.filter(Q(shuffle__gt=shuffle) | Q(shuffle=shuffle, pk__gt=pk))
    return before.order_by("-shuffle", "-pk").first(), after.order_by("shuffle", "pk").first()


def beside_response(judge: Judge, response: Response) -> tuple[int | None, int | None]:
    pks = responses_of(judge).values_list("pk", flat=True)
    before, after = pks.filter(pk__lt=response.pk), pks.filter(pk__gt=response.pk)
    return before.order_by("-pk").first(), after.order_by("pk").first()


def only_this(subject: Subject, shown: Shown) -> SelectionOptions:
    """The selection of one call: this subject, in this order, asked again where that was in vain before."""
    if isinstance(subject, Response):
        return {"response": subject, "ask_failures_again": True}
    orders = Orders.SWAPPED if shown == Shown.SWAPPED else Orders.AS_STORED
    return {"comparison": subject, "orders": orders, "ask_failures_again": True}


def call_about(judge: Judge, subject: Subject, shown: Shown) -> Call | None:
    """The call that asked this judge just that, if it was ever planned."""
    calls = Call.all_rows.filter(judge=judge, sample=0).select_related("run")
    if isinstance(subject, Response):
        return calls.filter(response=subject).first()
    return calls.filter(comparison=subject, shown=shown).first()


# ---- what came of it -----------------------------------------------------------------------


@dataclass(frozen=True)
class Trial:
    """A run of one call, as it stands."""

    run: Run
    call: Call | None

    @property
    def is_moving(self) -> bool:
        """Whether more may come: also what a cancelled or stopped run still has in flight."""
        is_asking = self.call is not None and self.call.state == CallState.RUNNING
        return self.run.state in ACTIVE_RUN_STATES or is_asking

    @cached_property
    def attempts(self) -> Sequence[Attempt]:
        """Its requests; of an answer that was copied, those that were paid for."""
        if self.call is None:
            return ()
        paid = self.call.copied_from_id or self.call.pk
        return list(Attempt.objects.filter(call=paid).select_related("run").order_by("number"))

    @property
    def was_asked_before(self) -> bool:
        """Whether it has an answer for which this run did not pay."""
        return bool(self.attempts) and all(attempt.run_id != self.run.pk for attempt in self.attempts)

    @cached_property
    def verdicts(self) -> Sequence[Verdict]:
        return (
            list(Verdict.all_rows.filter(call=self.call).select_related("aspect").order_by("pk")) if self.call else ()
        )

    @cached_property
    def scores(self) -> Sequence[Score]:
        return list(Score.all_rows.filter(call=self.call).select_related("aspect").order_by("pk")) if self.call else ()


def trial_of(run: Run) -> Trial | None:
    """What came of a run that asks about one comparison or response; None for any other run."""
    subject = subject_of(run.judge, run.filters.get("response") or run.filters.get("comparison") or -1)
    if subject is None:
        return None
    shown = Shown.SWAPPED if run.orders == Orders.SWAPPED else Shown.AS_STORED
    return Trial(run, call_about(run.judge, subject, shown))

"""An evaluation with a row of every kind, marked by one number."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from django.apps import apps
from django.core.files.base import ContentFile
from django.db.models import Model
from django.utils import timezone

from evaluations.domain.choices import Choice, LabelSource, ShownOrder, Stage
from evaluations.domain.files import ExportState, ImportState
from evaluations.domain.judges import CallState, JudgeKind, RunState
from evaluations.domain.reports import ReportPart
from evaluations.domain.reviews import AssignmentState, ScreeningChoice, SelectionMethod
from evaluations.domain.roles import Role
from evaluations.domain.security import SecurityEventKind
from evaluations.models.comparisons import (
    Candidate,
    Comparison,
    Query,
    Rendering,
    Response,
    SavedFilter,
    Tag,
    TagChange,
    Tagging,
)
from evaluations.models.endpoint_grants import EndpointAccount, EndpointGrant, EndpointSpending
from evaluations.models.evaluations import EarlierGuidelines, Evaluation, Event, JudgeComparisonLook
from evaluations.models.exports import Export, ReviewerPseudonym
from evaluations.models.imports import ColumnMapping, Import
from evaluations.models.jobs import CallTotal, CallTotalCursor, Job, Lease, Worker
from evaluations.models.judges import Endpoint, EndpointCheck, Judge, LocalServer, Price, Rater
from evaluations.models.progress import ComparisonProgress, ProgressCounters, VerdictChange
from evaluations.models.queues import Assignment, DefaultQueue, Queue, QueueItem, QueueProgress, QueueSlot
from evaluations.models.reports import ServedReport
from evaluations.models.results import OverviewResults
from evaluations.models.rubrics import Aspect, Rubric, RubricAspect, RubricVersion
from evaluations.models.runs import Attempt, Batch, Call, Reparse, Run
from evaluations.models.sign_ins import SecurityEvent
from evaluations.models.users import ApiToken, IdempotencyRecord, Invitation, JoinLink, Membership, SignInLink, User
from evaluations.models.verdicts import (
    Adjudication,
    Comment,
    Disclosure,
    Label,
    Mention,
    PackedVotes,
    Review,
    Score,
    Span,
    Verdict,
)
from evaluations.models.webhooks import Delivery, DeliveryAttempt, OutboxEntry, Webhook


@dataclass(frozen=True)
class FullEvaluation:
    """``outside``: words that no stranger may see. ``hidden``: those that no reviewer may, before saving."""

    evaluation: Evaluation
    owner: User
    hidden: tuple[str, ...]

    @property
    def number(self) -> int:
        return self.evaluation.pk

    @property
    def outside(self) -> tuple[str, ...]:
        return (*self.hidden, f"name-{self.number}", f"query-{self.number}", f"slug-{self.number}")


def make_full_evaluation(number: int) -> FullEvaluation:
    owner = User.objects.create_user(f"owner-{number}")
    evaluation = Evaluation.objects.create(pk=number, slug=f"slug-{number}", name=f"name-{number}")
    Membership.objects.create(pk=number, evaluation=evaluation, user=owner, role=Role.OWNER)
    comparison, bringing = make_material(evaluation)
    version, aspect = make_rubric(evaluation)
    judge = make_verdicts(comparison, version, aspect, bringing)
    now = timezone.now()
    bars = {"bar_bias": 0.15, "bars_changed_at": now, "results_seen_at": now}
    Evaluation.objects.filter(pk=number).update(review_rubric=version, shown_judge=judge, **bars)
    screened = {"screening_choice": ScreeningChoice.KEEP, "screening_chosen_at": now, "screening_chosen_by": owner}
    Rater.objects.filter(evaluation=evaluation, kind="human").update(**screened)
    make_records(evaluation, owner)
    make_queue(comparison, version)
    make_discussion(comparison, aspect, owner)
    Disclosure.objects.create(pk=number, evaluation=evaluation, user=owner, comparison=comparison)
    tag = Tag.objects.create(pk=number, evaluation=evaluation, name=f"tag-{number}")
    Tagging.objects.create(pk=number, tag=tag, comparison=comparison)
    TagChange.objects.create(pk=number, evaluation=evaluation, tag=tag)
    ColumnMapping.objects.create(
        pk=number,
        evaluation=evaluation,
        signature="s",
        columns=["prompt"],
        format="comparisons",
        mapped_at=timezone.now(),
    )
    SavedFilter.objects.create(pk=number, evaluation=evaluation, name=f"filter-{number}", filter={"tag": [tag.name]})
    evaluation.refresh_from_db()
    words: tuple[str, ...] = ("alpha", "beta", "rationale", "note", "reply", "error", "file", "event", "person")
    words += ("comment", "settled")
    words = (*words, "tag", "filter", "hook", "delivery", "try")
    return FullEvaluation(evaluation, owner, tuple(f"{word}-{number}" for word in words))


def make_material(evaluation: Evaluation) -> tuple[Comparison, Import]:
    number = evaluation.pk
    bringing = Import.objects.create(
        pk=number,
        evaluation=evaluation,
        file_name=f"file-{number}.jsonl",
        sha256="0" * 64,
        format="comparisons",
        state=ImportState.DONE,
        bad_rows=[{"line": 17, "reason": f"unknown candidate alpha-{number}"}],
    )
    messages = [{"role": "user", "content": f"query-{number}"}]
    query = Query.objects.create(
        pk=number, evaluation=evaluation, key="q1", cluster="q1", messages=messages, text=f"query-{number}", sha256="q"
    )
    sides = [
        Response.objects.create(
            pk=number + place,
            query=query,
            candidate=Candidate.objects.create(pk=number + place, evaluation=evaluation, name=f"{name}-{number}"),
            messages=[{"role": "assistant", "content": f"Response {place}."}],
            sha256=str(place),
            characters=11,
        )
        for place, name in enumerate(("alpha", "beta"))
    ]
    comparison = Comparison.objects.create(
        pk=number,
        evaluation=evaluation,
        query=query,
        response_a=sides[0],
        response_b=sides[1],
        origin="by_hand",
        random_order=number,
    )
    return comparison, bringing


def make_rubric(evaluation: Evaluation) -> tuple[RubricVersion, Aspect]:
    number = evaluation.pk
    rubric = Rubric.objects.create(pk=number, evaluation=evaluation, name="rubric")
    version = RubricVersion.objects.create(pk=number, rubric=rubric, number=1, instructions="Compare.", sha256="0" * 64)
    aspect = Aspect.objects.create(pk=number, evaluation=evaluation, key="clarity", name="Clarity")
    RubricAspect.objects.create(pk=number, version=version, aspect=aspect, position=0, output_position=0)
    return version, aspect


def make_verdicts(comparison: Comparison, version: RubricVersion, aspect: Aspect, bringing: Import) -> Judge:
    number, evaluation = comparison.pk, comparison.evaluation
    endpoint = Endpoint.objects.create(pk=number, name=f"endpoint-{number}", base_url="http://127.0.0.1:1/v1")
    EndpointGrant.objects.create(pk=number, endpoint=endpoint, evaluation=evaluation)
    EndpointAccount.objects.create(pk=number, endpoint=endpoint)
    names = {"endpoint_name": endpoint.name, "evaluation_name": evaluation.name}
    EndpointSpending.objects.create(
        pk=number, endpoint=endpoint, evaluation=evaluation, day=timezone.now().date(), requests=1, **names
    )
    judge = Judge.objects.create(
        pk=number,
        evaluation=evaluation,
        name="judge",
        kind=JudgeKind.LLM,
        rubric_version=version,
        endpoint=endpoint,
        model="model",
        fingerprint=str(number),
    )
    run = Run.objects.create(pk=number, evaluation=evaluation, judge=judge, batch=uuid.uuid4(), state=RunState.DONE)
    machine = Rater.objects.create(pk=number, evaluation=evaluation, kind="judge", name="judge", judge=judge)
    call = Call.objects.create(
        pk=number,
        judge=judge,
        comparison=comparison,
        run=run,
        state=CallState.ANSWERED,
        rationale=f"rationale-{number}",
    )
    failed = Call.objects.create(
        pk=number + 1,
        judge=judge,
        comparison=comparison,
        run=run,
        shown=ShownOrder.SWAPPED,
        sample=1,
        state=CallState.UNREADABLE,
        error=f"error-{number}",
    )
    for place, asked_call in enumerate((call, failed)):
        Attempt.objects.create(
            pk=number + place,
            call=asked_call,
            run=run,
            number=1,
            outcome=asked_call.state,
            raw=f"reply-{number}",
            error=asked_call.error,
            latency_ms=1,
        )
    person = Rater.objects.create(pk=number + 1, evaluation=evaluation, kind="human", name=f"person-{number}")
    review = Review.objects.create(
        pk=number,
        rater=person,
        comparison=comparison,
        rubric_version=version,
        shown=ShownOrder.AS_STORED,
        state="final",
        note=f"note-{number}",
    )
    columns = {"comparison": comparison, "aspect": aspect, "choice": Choice.A, "shown": ShownOrder.AS_STORED}
    Verdict.objects.create(pk=number, rater=machine, call=call, **columns)
    for place, stage in enumerate(Stage, start=1):
        Verdict.objects.create(
            pk=number + place, rater=person, review=review, stage=stage, note=f"note-{number}", **columns
        )
    PackedVotes.objects.create(pk=number, rater=machine, comparison=comparison, call=call, shown=0, first_choices=1)
    Score.objects.create(
        pk=number,
        rater=person,
        response=comparison.response_a,
        aspect=aspect,
        value=3,
        source_import=bringing,
        rationale=f"rationale-{number}",
    )
    return judge


def make_queue(comparison: Comparison, version: RubricVersion) -> None:
    number = comparison.pk
    item = QueueItem.objects.create(
        pk=number, rubric_version=version, comparison=comparison, position=number, wanted=1, taken=1
    )
    about = {"selection_method": SelectionMethod.RANDOM, "probability": 1.0}
    queue = Queue.objects.create(
        pk=number,
        evaluation=comparison.evaluation,
        rubric_version=version,
        name=f"queue-{number}",
        strategy=SelectionMethod.RANDOM,
        population=1,
    )
    slot = QueueSlot.objects.create(pk=number, queue=queue, item=item, position=1, **about)
    DefaultQueue.objects.create(pk=number, rubric_version=version, items=1)
    person = Rater.objects.get(pk=number + 1)
    QueueProgress.objects.create(pk=number, rater=person, rubric_version=version, reached=number, done=1)
    Assignment.objects.create(pk=number, item=item, rater=person, slot=slot, state=AssignmentState.DONE, **about)
    Review.objects.filter(pk=number).update(queue=queue, **about)


def make_discussion(comparison: Comparison, aspect: Aspect, owner: User) -> None:
    number = comparison.pk
    Span.objects.create(
        pk=number,
        review_id=number,
        response=comparison.response_a,
        start=0,
        end=8,
        quote="Response",
        comment=f"comment-{number}",
    )
    comment = Comment.objects.create(
        pk=number, comparison=comparison, aspect=aspect, user=owner, text=f"comment-{number}"
    )
    Mention.objects.create(pk=number, comment=comment, user=owner)
    Adjudication.objects.create(
        pk=number, comparison=comparison, aspect=aspect, user=owner, choice=Choice.A, reason=f"settled-{number}"
    )
    Label.objects.create(
        pk=number,
        comparison=comparison,
        aspect=aspect,
        choice=Choice.A,
        source=LabelSource.ADJUDICATED,
        votes=1,
        unanimous=True,
    )
    Rendering.objects.create(pk=number, sha256=f"{number:064}", renderer=1, html=f"<p>query-{number}</p>")


def make_records(evaluation: Evaluation, owner: User) -> None:
    number = evaluation.pk
    # In bulk, because an Event with a number counts as written already.
    values = {"x": f"event-{number}"}
    Event.objects.bulk_create(
        [Event(pk=number, evaluation=evaluation, user=owner, verb="did", object_type="run", after=values)]
    )
    hook = Webhook.objects.create(
        pk=number,
        evaluation=evaluation,
        user=owner,
        url=f"https://example.org/hook-{number}",
        kinds="run.finished",
        secret="whsec_AAAA",
    )
    OutboxEntry.objects.create(pk=number, webhook=hook, kind="test", subject=number)
    delivery = Delivery.objects.create(
        pk=number, webhook=hook, kind="test", subject=number, body=f"delivery-{number}", not_before=timezone.now()
    )
    DeliveryAttempt.objects.create(pk=number, delivery=delivery, number=1, error=f"try-{number}", milliseconds=1)
    ReviewerPseudonym.objects.create(pk=number, evaluation=evaluation, user=owner, number=1)
    EarlierGuidelines.objects.create(pk=number, evaluation=evaluation, user=owner, text=f"guidelines-{number}")
    JudgeComparisonLook.objects.create(pk=number, evaluation=evaluation, number=1, results_sha256=str(number))
    Export.objects.create(
        pk=number,
        evaluation=evaluation,
        format="jsonl",
        label_policy="people",
        state=ExportState.DONE,
        rows=1,
        sha256="0" * 64,
        finished_at=timezone.now(),
        file=ContentFile(f"rationale-{number}\n".encode(), name=f"file-{number}.jsonl"),
    )
    Invitation.objects.create(
        pk=number, evaluation=evaluation, username=f"person-{number}", name_key=f"person-{number}", role=Role.VIEWER
    )
    JoinLink.objects.create(
        pk=number,
        evaluation=evaluation,
        role=Role.VIEWER,
        token_sha256=f"{number:064}",
        created_by=owner,
        expires_at=timezone.now(),
        max_uses=1,
    )
    SecurityEvent.objects.create(pk=number, kind=SecurityEventKind.SIGNED_IN, user=owner)
    SignInLink.objects.create(pk=number, user=owner, token_sha256=f"{number:064}", expires_at=timezone.now())
    token = ApiToken.objects.create(
        pk=number,
        user=owner,
        name=f"token-{number}",
        prefix="jw_",
        token_sha256=f"{number:064}",
        scopes="read",
        expires_at=timezone.now(),
    )
    IdempotencyRecord.objects.create(pk=number, token=token, key="key", request_sha256=f"{number:064}", body="kept")
    now = timezone.now()
    Worker.objects.create(
        pk=number, name=f"worker-{number}", host="here", pid=1, version="1", started_at=now, seen_at=now
    )
    Job.objects.create(pk=number, kind="export", subject=number, evaluation=evaluation, reason=f"reason {number}")
    Lease.objects.create(pk=number, name=f"lease-{number}", until=now)
    ComparisonProgress.objects.create(
        comparison_id=number, evaluation=evaluation, is_judged=True, is_reviewed=True, reviews=1
    )
    ProgressCounters.objects.create(evaluation=evaluation, comparisons=1, judged=1, reviewed=1, reviews=1)
    VerdictChange.objects.create(pk=number, evaluation=evaluation, rater_id=number, comparison_id=number)
    ServedReport.objects.create(
        pk=number,
        evaluation=evaluation,
        key=str(number),
        part=ReportPart.AGREEMENT,
        role=Role.OWNER,
        body=b"",
        made_at=now,
        asked_at=now,
    )
    OverviewResults.objects.create(pk=number, evaluation=evaluation, results=None, computed_at=now)
    CallTotal.objects.create(pk=number, outcome=str(number))
    CallTotalCursor.objects.create(pk=number, attempt=number)
    Price.objects.create(
        pk=number, endpoint_id=number, model=f"model-{number}", tokens_in=1, tokens_cached=1, tokens_out=1
    )
    LocalServer.objects.create(
        pk=number, base_url=f"http://127.0.0.1:{11434 + number % 50_000}/v1", kind="ollama", seen_at=now
    )
    EndpointCheck.objects.create(pk=number, endpoint_id=number, model=f"model-{number}", checked_at=now)
    Reparse.objects.create(pk=number, judge_id=number, calls=number)
    Batch.objects.create(pk=number, run_id=number, error=f"batch error {number}")


def every_row() -> Iterator[tuple[type[Model], list[dict[str, object]]]]:
    """All rows of all tables of ours, as they stand, those of unfinished imports included."""
    for model in apps.get_app_config("evaluations").get_models():
        yield model, list(model._base_manager.order_by("pk").values())

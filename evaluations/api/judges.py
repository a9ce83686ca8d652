"""Judges: a rubric version, an endpoint, a model and settings, frozen together; what they are sent, and one try."""

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Field, Query, Schema

from evaluations import access
from evaluations.access import Action
from evaluations.api.admission import person
from evaluations.api.forms import checked
from evaluations.api.operations import Operations
from evaluations.api.paging import Paging, page_of
from evaluations.api.runs import call_whole, comparisons_of
from evaluations.api.runs import told as run_told
from evaluations.api.schemas.judging import (
    JudgeNew,
    JudgePage,
    JudgeTold,
    JudgeWhole,
    PromptTold,
    RunTold,
    TrialTold,
    Trying,
)
from evaluations.api.schemas.shared import NothingSent
from evaluations.api.telling import messages_told
from evaluations.domain import JudgeKind, Scope, Shown
from evaluations.forms.judge_new import JudgeForm
from evaluations.models import Evaluation, Judge, Run
from evaluations.services.judging import archive
from evaluations.services.judging.drafting import preview_of_made_up
from evaluations.services.judging.judging import create_judge, preview, sent_as_in_words
from evaluations.services.judging.running import start_run
from evaluations.services.judging.trying import Subject, only_this, subject_of, trial_of
from evaluations.services.reporting.noticing import note_seen
from evaluations.tasks import nudge, work_run

operations = Operations(tags=["judges"])
RELATED = ("endpoint", "rubric_version__rubric")


class About(Schema):
    subject: int | None = Field(
        None, ge=1, le=2**63 - 1, description="a comparison, or of a pointwise judge a response"
    )
    shown: Shown = Shown.AS_STORED


class JudgePaging(Paging):
    archived: bool = False


@operations.get_one("/evaluations/{slug:slug}/judges", Scope.READ, JudgePage)
def list_judges(request: HttpRequest, slug: str, paging: Query[JudgePaging]) -> JudgePage:
    """The current ones; with `archived` those that are archived."""
    evaluation = access.evaluation_for(person(request), slug)
    known = Judge.objects.filter(evaluation=evaluation)
    rows, more = page_of(paging, (known.archived() if paging.archived else known.current()).select_related(*RELATED))
    return JudgePage(items=[told(row) for row in rows], next=more)


@operations.make("/evaluations/{slug:slug}/judges", Scope.WRITE, JudgeWhole)
def make_judge(request: HttpRequest, slug: str, body: JudgeNew) -> JudgeWhole:
    user = person(request)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    given = {name: value for name, value in body.model_dump(mode="json").items() if value not in (None, "")}
    form = JudgeForm(given, evaluation=evaluation)
    checked(form)
    return whole(create_judge(evaluation, **form.settings(), user=user))


@operations.get_one("/evaluations/{slug:slug}/judges/{int:pk}", Scope.READ, JudgeWhole)
def get_judge(request: HttpRequest, slug: str, pk: int) -> JudgeWhole:
    return whole(judge_for(access.evaluation_for(person(request), slug), pk))


@operations.do("/evaluations/{slug:slug}/judges/{int:pk}/archive", Scope.WRITE, JudgeWhole)
def archive_judge(request: HttpRequest, slug: str, pk: int, body: NothingSent | None = None) -> JudgeWhole:
    """Leave it out of reports, lists and new exports; its verdicts are kept. Not while a run of it is active."""
    user = person(request)
    return whole(archive.archive_judge(judge_for(access.evaluation_for(user, slug, Action.MANAGE), pk), user=user))


@operations.do("/evaluations/{slug:slug}/judges/{int:pk}/restore", Scope.WRITE, JudgeWhole)
def restore_judge(request: HttpRequest, slug: str, pk: int, body: NothingSent | None = None) -> JudgeWhole:
    """Bring an archived judge back."""
    user = person(request)
    return whole(archive.restore_judge(judge_for(access.evaluation_for(user, slug, Action.MANAGE), pk), user=user))


@operations.get_one("/evaluations/{slug:slug}/judges/{int:pk}/prompt", Scope.READ, PromptTold)
def get_prompt(request: HttpRequest, slug: str, pk: int, asked: Query[About]) -> PromptTold:
    """The exact messages that it is sent about a comparison, or about the first.

    A reviewer, who is not to know which response is A, is told them about made-up texts: `subject` is then null.
    """
    user = person(request)
    judge = judge_for(access.evaluation_for(user, slug), pk)
    if asked.subject is None and not access.may(user, Action.SEE_ALL, judge.evaluation):
        subject, seen = None, preview_of_made_up(judge, asked.shown)
    else:
        access.evaluation_for(user, slug, Action.SEE_ALL)
        subject = subject_for(judge, asked.subject)
        seen = preview(judge, subject, asked.shown)
    if seen is None:
        raise Http404
    return PromptTold(
        subject=subject.pk if subject else None,
        shown=asked.shown,
        messages=messages_told(seen.messages),
        reply_schema=seen.schema,
        shape=seen.shape,
        aspects=list(seen.aspects),
    )


@operations.make("/evaluations/{slug:slug}/judges/{int:pk}/try", Scope.WRITE, RunTold)
def try_judge(request: HttpRequest, slug: str, pk: int, body: Trying) -> RunTold:
    """A run of one call; where it was asked that in vain before, it is asked again. See what came of it as a trial."""
    user = person(request)
    judge = judge_for(access.evaluation_for(user, slug, Action.MANAGE), pk)
    run = start_run(judge, user=user, **only_this(subject_for(judge, body.subject), body.shown))
    nudge(work_run, run.pk)
    return run_told(run)


@operations.get_one("/evaluations/{slug:slug}/judges/{int:pk}/tries/{int:run}", Scope.READ, TrialTold)
def get_trial(request: HttpRequest, slug: str, pk: int, run: int) -> TrialTold:
    """What came of a try."""
    user = person(request)
    judge = judge_for(access.evaluation_for(user, slug, Action.SEE_ALL), pk)
    runs = Run.objects.select_related("judge__rubric_version__rubric", "user")
    tried = trial_of(get_object_or_404(runs, judge=judge, pk=run))
    if tried is None:
        raise Http404
    if tried.call is not None and access.may(user, Action.REVIEW, judge.evaluation):
        note_seen(user, judge.evaluation, list(comparisons_of(tried.call)), tests=True)
    return TrialTold(
        run=run_told(tried.run),
        is_moving=tried.is_moving,
        call=call_whole(tried.call, list(tried.attempts)) if tried.call else None,
    )


def subject_for(judge: Judge, number: int | None) -> Subject:
    subject = subject_of(judge, number)
    if subject is None or judge.kind == JudgeKind.IMPORTED:
        raise Http404
    return subject


def judge_for(evaluation: Evaluation, pk: int) -> Judge:
    row = get_object_or_404(Judge.objects.select_related(*RELATED), evaluation=evaluation, pk=pk)
    row.evaluation = evaluation
    return row


def told(row: Judge) -> JudgeTold:
    version = row.rubric_version
    return JudgeTold(
        id=row.pk,
        name=row.name,
        kind=JudgeKind(row.kind),
        is_baseline=row.is_baseline,
        model=row.model,
        endpoint=row.endpoint.name if row.endpoint else None,
        rubric=version.rubric.name if version else None,
        rubric_version=version.number if version else None,
        archived=row.archived_at is not None,
        created_at=row.created_at,
    )


def whole(row: Judge) -> JudgeWhole:
    settings = ("mode", "temperature", "max_tokens", "seed", "reasoning_effort", "logprobs", "repairs")
    extras = ("extra_headers", "extra_body", "one_aspect_per_call")
    frozen = {name: getattr(row, name) for name in (*settings, *extras, "family", "fingerprint")}
    return JudgeWhole(**told(row).model_dump(), **frozen, sent_as=sent_as_in_words(row))

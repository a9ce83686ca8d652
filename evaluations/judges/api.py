"""The API of judges."""

from django.http import Http404
from django.shortcuts import get_object_or_404
from ninja import Field, Query, Schema

from evaluations.access import Action, is_allowed, require_evaluation
from evaluations.api.operations import OperationRouter
from evaluations.api.pagination import ArchivePageQuery, paginate_by_cursor
from evaluations.api.schemas import EmptyIn
from evaluations.api.serializers import serialize_messages, serialize_row
from evaluations.domain.choices import ShownOrder
from evaluations.domain.errors import InputRefused
from evaluations.domain.judges import JudgeKind
from evaluations.domain.roles import Scope
from evaluations.judges import services as judges_services
from evaluations.judges.calls.serializers import serialize_call_detail
from evaluations.judges.endpoints.grants import list_selectable_endpoints
from evaluations.judges.guards import JUDGE_RELATIONS, get_judge_or_404
from evaluations.judges.runs.schemas import RunOut
from evaluations.judges.runs.serializers import serialize_run
from evaluations.judges.runs.services import start_run
from evaluations.judges.runs.single_call import (
    JudgeTestSubject,
    find_test_call,
    find_test_subject,
    single_call_selection,
)
from evaluations.judges.schemas import (
    JudgeDetailOut,
    JudgeIn,
    JudgeOut,
    JudgePage,
    JudgePromptOut,
    JudgeTestIn,
    JudgeTestOut,
)
from evaluations.judges.selectors import (
    describe_request_adaptations,
    list_judgeable_versions,
    preview_judge_prompt,
    preview_judge_sample_prompt,
)
from evaluations.judges.services import JudgeSettings, complete_settings, create_judge
from evaluations.models.judges import Judge
from evaluations.models.runs import Run
from evaluations.visibility import reveal_call
from evaluations.web.requests import AuthenticatedRequest

operations = OperationRouter(tags=["judges"])


class PromptQuery(Schema):
    subject: int | None = Field(
        None, ge=1, le=2**63 - 1, description="a comparison, or a response for pointwise judges"
    )
    shown: ShownOrder = ShownOrder.AS_STORED


@operations.get_one("/evaluations/{slug:slug}/judges", Scope.READ, JudgePage)
def list_judges(request: AuthenticatedRequest, slug: str, paging: Query[ArchivePageQuery]) -> JudgePage:
    """List current judges, or archived ones with `archived`."""
    evaluation = require_evaluation(request.user, slug)
    all_judges = Judge.objects.filter(evaluation=evaluation)
    judges = all_judges.archived() if paging.archived else all_judges.current()
    rows, next_cursor = paginate_by_cursor(paging, judges.select_related(*JUDGE_RELATIONS))
    return JudgePage(items=[serialize_judge(row) for row in rows], next=next_cursor)


@operations.make("/evaluations/{slug:slug}/judges", Scope.WRITE, JudgeDetailOut)
def make_judge(request: AuthenticatedRequest, slug: str, body: JudgeIn) -> JudgeDetailOut:
    evaluation = require_evaluation(request.user, slug, Action.MANAGE)
    endpoint = list_selectable_endpoints(request.user, evaluation).filter(pk=body.endpoint or -1).first()
    if body.endpoint and endpoint is None:
        raise InputRefused(f"There is no endpoint {body.endpoint}.", field="endpoint")
    version = list_judgeable_versions(evaluation).filter(pk=body.version).first()
    if version is None:
        raise InputRefused(f"There is no rubric version {body.version}.", field="version")
    sent = {name: value for name, value in body if name not in ("endpoint", "rule", "version")}
    settings = complete_settings(JudgeSettings(**sent, endpoint=endpoint, version=version), body.rule)
    return serialize_judge_detail(create_judge(evaluation, settings, user=request.user))


@operations.get_one("/evaluations/{slug:slug}/judges/{int:pk}", Scope.READ, JudgeDetailOut)
def get_judge(request: AuthenticatedRequest, slug: str, pk: int) -> JudgeDetailOut:
    return serialize_judge_detail(get_judge_or_404(request, slug, pk))


@operations.do("/evaluations/{slug:slug}/judges/{int:pk}/archive", Scope.WRITE, JudgeDetailOut)
def archive_judge(request: AuthenticatedRequest, slug: str, pk: int, body: EmptyIn | None = None) -> JudgeDetailOut:
    """Archive a judge without an open run. Results, lists and new exports omit it; its verdicts are kept."""
    row = get_judge_or_404(request, slug, pk, Action.MANAGE)
    return serialize_judge_detail(judges_services.archive_judge(row, user=request.user))


@operations.do("/evaluations/{slug:slug}/judges/{int:pk}/restore", Scope.WRITE, JudgeDetailOut)
def restore_judge(request: AuthenticatedRequest, slug: str, pk: int, body: EmptyIn | None = None) -> JudgeDetailOut:
    """Restore an archived judge."""
    row = get_judge_or_404(request, slug, pk, Action.MANAGE)
    return serialize_judge_detail(judges_services.restore_judge(row, user=request.user))


@operations.remove("/evaluations/{slug:slug}/judges/{int:pk}", Scope.WRITE)
def delete_judge(request: AuthenticatedRequest, slug: str, pk: int) -> None:
    """Delete a judge that never ran."""
    judges_services.delete_judge(get_judge_or_404(request, slug, pk, Action.MANAGE), user=request.user)


@operations.get_one("/evaluations/{slug:slug}/judges/{int:pk}/prompt", Scope.READ, JudgePromptOut)
def get_prompt(request: AuthenticatedRequest, slug: str, pk: int, query: Query[PromptQuery]) -> JudgePromptOut:
    """Get the exact prompt of a judge for a comparison, by default the first.

    Reviewers get it for a made-up comparison: `subject` is then null.
    """
    judge = get_judge_or_404(request, slug, pk)
    if query.subject is None and not is_allowed(request.user, Action.SEE_ALL, judge.evaluation):
        subject, preview = None, preview_judge_sample_prompt(judge, query.shown)
    else:
        require_evaluation(request.user, slug, Action.SEE_ALL)
        subject = get_api_subject_or_404(judge, query.subject)
        preview = preview_judge_prompt(judge, subject, query.shown)
    if preview is None:
        raise Http404
    return JudgePromptOut(
        subject=subject.pk if subject else None,
        shown=query.shown,
        messages=serialize_messages(preview.messages),
        reply_schema=preview.schema,
        shape=preview.shape,
        aspects=list(preview.aspects),
    )


@operations.make("/evaluations/{slug:slug}/judges/{int:pk}/test", Scope.WRITE, RunOut)
def test_judge(request: AuthenticatedRequest, slug: str, pk: int, body: JudgeTestIn) -> RunOut:
    """Start a test run of one call; a failed call is repeated. `get_judge_test` returns its result."""
    judge = get_judge_or_404(request, slug, pk, Action.MANAGE)
    subject = get_api_subject_or_404(judge, body.subject)
    run = start_run(judge, user=request.user, **single_call_selection(subject, body.shown))
    return serialize_run(run)


@operations.get_one("/evaluations/{slug:slug}/judges/{int:pk}/tests/{int:run}", Scope.READ, JudgeTestOut)
def get_judge_test(request: AuthenticatedRequest, slug: str, pk: int, run: int) -> JudgeTestOut:
    """The result of a test call."""
    judge = get_judge_or_404(request, slug, pk, Action.SEE_ALL)
    runs = Run.objects.select_related("judge__rubric_version__rubric", "user")
    test_call = find_test_call(get_object_or_404(runs, judge=judge, pk=run))
    if test_call is None:
        raise Http404
    if test_call.call is not None:
        reveal_call(request.user, test_call.call)
    return JudgeTestOut(
        run=serialize_run(test_call.run),
        is_moving=test_call.is_moving,
        call=serialize_call_detail(test_call.call, test_call.attempts) if test_call.call else None,
    )


def get_api_subject_or_404(judge: Judge, number: int | None) -> JudgeTestSubject:
    subject = find_test_subject(judge, number)
    if subject is None or judge.kind == JudgeKind.IMPORTED:
        raise Http404
    return subject


def serialize_judge(row: Judge) -> JudgeOut:
    version = row.rubric_version
    return serialize_row(
        JudgeOut,
        row,
        endpoint=row.endpoint.name if row.endpoint else None,
        rubric=version.rubric.name if version else None,
        rubric_version=version.number if version else None,
        archived=row.archived_at is not None,
    )


def serialize_judge_detail(row: Judge) -> JudgeDetailOut:
    listed = serialize_judge(row).model_dump()
    return serialize_row(JudgeDetailOut, row, **listed, sent_as=describe_request_adaptations(row))

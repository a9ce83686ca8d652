"""The pages of judges."""

import json
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import Max, QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from evaluations.access import Action, is_allowed, require_evaluation
from evaluations.domain.choices import ShownOrder
from evaluations.domain.errors import InputRefused
from evaluations.domain.judges import FAILURE_STATES, OPEN_CALL_STATES, JudgeKind
from evaluations.domain.secrets import is_probable_key
from evaluations.judges.endpoints.grants import list_grants_of_evaluation, list_selectable_endpoints
from evaluations.judges.endpoints.prices import find_judge_price, find_price
from evaluations.judges.endpoints.selectors import list_model_names
from evaluations.judges.forms import JudgeForm
from evaluations.judges.guards import JUDGE_RELATIONS, get_judge_or_404
from evaluations.judges.runs.estimates import estimate_run
from evaluations.judges.runs.services import start_run
from evaluations.judges.runs.single_call import (
    JudgeTestCall,
    JudgeTestSubject,
    find_call_about,
    find_neighbouring_subject_ids,
    find_test_call,
    find_test_subject,
    single_call_selection,
)
from evaluations.judges.selectors import (
    describe_request_adaptations,
    judge_warnings,
    list_judgeable_versions,
    preview_judge_prompt,
    preview_judge_sample_prompt,
)
from evaluations.judges.services import archive_judge, create_judge, delete_judge, restore_judge
from evaluations.models.comparisons import Comparison, Response
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Endpoint, Judge
from evaluations.models.rubrics import RubricVersion
from evaluations.models.runs import Run
from evaluations.rubrics.selectors import missing_placeholder_warnings
from evaluations.visibility import reveal_call
from evaluations.web.forms import submit_form
from evaluations.web.htmx import STOP_POLLING
from evaluations.web.pagination import paginate
from evaluations.web.requests import AuthenticatedRequest
from evaluations.web.sorting import SortColumn, parse_sorting

ORDER_LABELS = ((ShownOrder.AS_STORED, "A first"), (ShownOrder.SWAPPED, "B first"))
RUNS_SHOWN = 5


@require_safe
def judge(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    """The page; ``subject`` and ``shown`` choose the prompt to show."""
    return render_judge(request, get_judge_or_404(request, slug, pk))


def render_judge(request: AuthenticatedRequest, row: Judge, test_call: JudgeTestCall | None = None) -> HttpResponse:
    context: dict[str, object] = {
        "page": "judges",
        "evaluation": row.evaluation,
        "judge": row,
        "runs": list_latest_runs(row),
        "tried": test_call,
        "request_adaptations": describe_request_adaptations(row),
    }
    if row.kind == JudgeKind.LLM:
        extra_body = json.dumps(row.extra_body, ensure_ascii=False) if row.extra_body else ""
        context |= prompt_context(request, row) | {"price": find_judge_price(row), "extra_body": extra_body}
    return render(request, "judge/judge.html", context)


def prompt_context(request: AuthenticatedRequest, row: Judge) -> dict[str, object]:
    """The prompt about the chosen subject; about a made-up one for users who must not know which response is A."""
    shown = parse_order(request.GET)
    context: dict[str, object] = {"shown": shown, "orders": ORDER_LABELS}
    if not is_allowed(request.user, Action.SEE_ALL, row.evaluation):
        return context | {"is_made_up": True, "preview": preview_judge_sample_prompt(row, shown)}
    subject = get_subject_or_404(request.GET, row)
    return context | subject_context(request, row, subject, shown) if subject else {}


def subject_context(
    request: AuthenticatedRequest, row: Judge, subject: JudgeTestSubject, shown: ShownOrder
) -> dict[str, object]:
    """The exact messages, links to the neighbouring subjects, and the stored answer."""
    before, after = find_neighbouring_subject_ids(row, subject)
    call = find_call_about(row, subject, shown)
    may_try = is_allowed(request.user, Action.MANAGE, row.evaluation)
    return {
        "subject": subject,
        "responses": [subject] if isinstance(subject, Response) else responses_in_order(subject, shown),
        "before": before,
        "after": after,
        "preview": preview_judge_prompt(row, subject, shown),
        "call": call,
        "has_failed": call is not None and call.state in FAILURE_STATES,
        "waits_in_run": call is not None and call.run_id is not None and call.state in OPEN_CALL_STATES,
        "estimate": estimate_run(row, **single_call_selection(subject, shown)) if may_try else None,
    }


def list_latest_runs(row: Judge) -> "QuerySet[Run]":
    runs: QuerySet[Run] = row.runs.order_by("-pk")
    return runs[:RUNS_SHOWN]


def responses_in_order(comparison: Comparison, shown: ShownOrder) -> list[Response]:
    responses = [comparison.response_a, comparison.response_b]
    return responses[::-1] if shown == ShownOrder.SWAPPED else responses


def get_subject_or_404(query: Mapping[str, str], row: Judge) -> JudgeTestSubject | None:
    """The comparison or response with this id, or the first; 404 if the judge cannot be asked about it."""
    subject_id = query.get("subject", "")
    subject = find_test_subject(row, parse_row_id(subject_id) if subject_id else None)
    if subject_id and subject is None:
        raise Http404
    return subject


def is_row_id(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 19


def parse_row_id(text: str) -> int:
    """The id of a row; 404 if the text is none."""
    if not is_row_id(text):
        raise Http404
    return int(text) or -1


def parse_order(query: Mapping[str, str]) -> ShownOrder:
    return ShownOrder.SWAPPED if query.get("shown") == ShownOrder.SWAPPED else ShownOrder.AS_STORED


@require_POST
def judge_archive(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    return change_judge_archive(request, slug, pk, archive_judge, "archived")


@require_POST
def judge_delete(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    row = get_judge_or_404(request, slug, pk, Action.MANAGE)
    try:
        delete_judge(row, user=request.user)
    except InputRefused as refused:
        messages.error(request, str(refused))
        return redirect("judge", slug, pk)
    messages.success(request, f"Judge “{row.name}” deleted.")
    return redirect("judges", slug)


@require_POST
def judge_restore(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    return change_judge_archive(request, slug, pk, restore_judge, "restored")


def change_judge_archive(
    request: AuthenticatedRequest, slug: str, pk: int, change: Callable[..., Judge], done: str
) -> HttpResponse:
    row = get_judge_or_404(request, slug, pk, Action.MANAGE)
    try:
        change(row, user=request.user)
        messages.success(request, f"Judge “{row.name}” {done}.")
    except InputRefused as refused:
        messages.error(request, str(refused))
    return redirect("judge", slug, pk)


MISSING_PLACEHOLDERS_ID: Final = "left-out"  # the element with the rubric's warnings


@require_http_methods(["GET", "HEAD", "POST"])
def judge_new(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """The form; fields in the address fill it in. htmx gets only the model's price or the rubric's warnings."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    endpoints = list_selectable_endpoints(user, evaluation)
    if request.method != "POST":
        form = JudgeForm(initial=request.GET.dict(), evaluation=evaluation, endpoints=endpoints)
        return render_judge_form(request, evaluation, form)
    form = JudgeForm(request.POST, evaluation=evaluation, endpoints=endpoints)
    if form.is_valid() and (judge := submit_form(form, create_judge, evaluation, form.settings(), user=user)):
        return redirect_to_new_judge(request, slug, judge)
    return render_judge_form(request, evaluation, form, status=422)


def redirect_to_new_judge(request: AuthenticatedRequest, slug: str, judge: Judge) -> HttpResponse:
    """Redirect to the new run of a rule; to the page of a model, whose prompt should be read and tested first."""
    if judge.is_baseline:
        messages.success(request, f"Judge “{judge.name}” created.")
        return redirect(f"{reverse('run_new', args=[slug])}?judge={judge.pk}")
    messages.success(request, f"Judge “{judge.name}” created. Check its prompt, then test or run it.")
    for warning in judge_warnings(judge):
        messages.warning(request, warning)
    return redirect("judge", slug, judge.pk)


def render_judge_form(
    request: AuthenticatedRequest, evaluation: Evaluation, form: JudgeForm, status: int = 200
) -> HttpResponse:
    is_partial = request.htmx and request.method == "GET"
    if is_partial and request.htmx.target == MISSING_PLACEHOLDERS_ID:
        return render(request, "rubric/_left_out.html", {"warnings": form_warnings(form, evaluation)})
    endpoints = list_selectable_endpoints(request.user, evaluation)
    endpoint, model = form_endpoint(form, endpoints), str(form["model"].value() or "").strip()
    if is_probable_key(model):
        model = ""
    context = {
        "page": "judges",
        "evaluation": evaluation,
        "form": form,
        "endpoint": endpoint,
        "model": model,
        "price": find_price(endpoint, model) if model else None,
    }
    if is_partial:
        return render(request, "judge_new/_price.html", context)
    context |= {
        "has_endpoints": endpoints.exists(),
        "may_add_endpoints": request.user.is_superuser,
        "models": list_model_names(evaluation, endpoints, sees_found_servers=request.user.is_superuser),
        "warnings": form_warnings(form, evaluation),
    }
    return render(request, "judge_new/judge_new.html", context, status=status)


def form_warnings(form: JudgeForm, evaluation: Evaluation) -> list[str]:
    """Warnings about data that a judge with the form's rubric version would not see."""
    chosen = form["version"].value()
    pk = chosen.pk if isinstance(chosen, RubricVersion) else str(chosen or "")
    if not isinstance(pk, int) and not is_row_id(pk):
        return []
    version = list_judgeable_versions(evaluation).filter(pk=pk).first()
    return missing_placeholder_warnings(evaluation, version.spec()) if version else []


def form_endpoint(form: JudgeForm, endpoints: "QuerySet[Endpoint]") -> Endpoint | None:
    """The endpoint in the form, submitted or not, if it is one of these."""
    chosen = str(form["endpoint"].value() or "")
    return endpoints.filter(pk=chosen).first() if is_row_id(chosen) else None


@require_POST
def judge_test(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    """Start a test call; a failed one is repeated."""
    row = get_judge_or_404(request, slug, pk, Action.MANAGE)
    subject, shown = get_subject_or_404(request.POST, row), parse_order(request.POST)
    if subject is None:
        raise Http404
    query = urlencode({"subject": subject.pk, "shown": str(shown)})
    try:
        run = start_run(row, user=request.user, **single_call_selection(subject, shown))
    except InputRefused as refused:
        messages.error(request, str(refused))
        return redirect(f"{reverse('judge', args=[slug, pk])}?{query}#try")
    return redirect(f"{reverse('judge_test_result', args=[slug, pk])}?{query}&run={run.pk}#try")


@never_cache
@require_safe
def judge_test_result(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    """The judge's page with the test call ``run``, or only the test call for a page that polls."""
    row = get_judge_or_404(request, slug, pk, Action.SEE_ALL)
    test_call = find_requested_test_call(request, row)
    if test_call is not None and test_call.call is not None:
        reveal_call(request.user, test_call.call)
    if not request.htmx or test_call is None:
        return render_judge(request, row, test_call)
    context = {"evaluation": row.evaluation, "judge": row, "tried": test_call}
    if test_call.is_moving:
        return render(request, "judge/_test_result.html", context)
    context["runs"] = list_latest_runs(row)
    return render(request, "judge/_final_test_result.html", context, status=STOP_POLLING)


def find_requested_test_call(request: AuthenticatedRequest, row: Judge) -> JudgeTestCall | None:
    """The test call of the requested run; None if none was requested."""
    run_id = request.GET.get("run", "")
    if not run_id:
        return None
    runs = Run.objects.select_related("judge__rubric_version__rubric")
    test_call = find_test_call(get_object_or_404(runs, judge=row, pk=parse_row_id(run_id)))
    if test_call is None:
        raise Http404
    return test_call


@require_safe
def judges(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    evaluation = require_evaluation(request.user, slug)
    archived = "archived" in request.GET
    all_judges = Judge.objects.filter(evaluation=evaluation)
    listed = (all_judges.archived() if archived else all_judges.current()).select_related(*JUDGE_RELATIONS)
    sorting = parse_sorting(request, SortColumn("created"), SortColumn("name", "name"))
    page = paginate(request, listed, sorting=sorting)
    latest = Run.objects.filter(judge__in=page.rows).order_by().values("judge").annotate(latest=Max("pk"))
    runs = Run.objects.filter(pk__in=[row["latest"] for row in latest])
    context = {
        "page": "judges",
        "evaluation": evaluation,
        "judges": page,
        "sorting": sorting,
        "latest_runs": {run.judge_id: run for run in runs.select_related("judge__endpoint")},
        "archived": archived,
        "any_archived": all_judges.archived().exists(),
        "grants": list_grants_of_evaluation(evaluation) if is_allowed(request.user, Action.MANAGE, evaluation) else [],
    }
    return render(request, "judges/judges.html", context)

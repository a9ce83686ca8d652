"""The list of evaluations, the overview of one, and the help page."""

from typing import cast

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from evaluations.access import (
    Action,
    Right,
    RightRefused,
    get_role,
    has_right,
    is_allowed,
    require_evaluation,
    require_role,
)
from evaluations.domain.errors import InputRefused
from evaluations.domain.judges import FAILURE_STATES
from evaluations.domain.roles import Role
from evaluations.members.selectors import list_invitations_for
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.memberships import find_membership
from evaluations.models.runs import Call
from evaluations.models.users import Membership, User
from evaluations.overview.checklist import ChecklistStep, build_checklist, get_step_url, record_step
from evaluations.overview.deletion import delete_evaluation
from evaluations.overview.event_texts import describe_event, group_views
from evaluations.overview.forms import NewEvaluationForm
from evaluations.overview.selectors import (
    EvaluationProgress,
    ResultsAccess,
    count_evaluation_progress,
    find_single_comparisons,
    get_next_step,
    get_results_access,
    list_evaluation_rows,
    list_event_changes,
)
from evaluations.overview.services import create_evaluation, suggest_slug
from evaluations.overview.stored_results import (
    StoredResults,
    find_results_on_everything,
    read_or_compute_results,
)
from evaluations.reviews.queues.selectors import count_assigned_to
from evaluations.web.forms import add_refusal
from evaluations.web.pagination import paginate
from evaluations.web.requests import AuthenticatedRequest
from evaluations.web.sorting import SortColumn, parse_sorting


@require_safe
def evaluations(request: AuthenticatedRequest) -> HttpResponse:
    user = request.user
    own = Evaluation.objects.of(user)
    archived = "archived" in request.GET
    sorting = parse_sorting(request, SortColumn("created", descending=True), SortColumn("name", "name"))
    page = paginate(request, own.archived() if archived else own.current(), sorting=sorting)
    context = {
        "page": "evaluations",
        "rows": list_evaluation_rows(page.rows, user),
        "page_of_rows": page,
        "sorting": sorting,
        "archived": archived,
        "any_archived": own.archived().exists(),
        "may_create": has_right(user, Right.CREATE_EVALUATIONS),
        "invitations": list_invitations_for(user),
    }
    return render(request, "evaluations/evaluations.html", context)


@require_safe
def evaluation(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    user = request.user
    membership, rater = find_membership(user, slug)
    evaluation = require_role(user, membership, Action.LOOK)
    progress = count_evaluation_progress([evaluation], user)[evaluation.pk]
    role = cast(Role, get_role(user, evaluation))
    access = get_results_access(progress, role)
    stored = find_results_on_everything([evaluation.pk]) if access == ResultsAccess.ALL else {}
    context = {
        "page": "evaluation",
        "evaluation": evaluation,
        "progress": progress,
        "next": get_next_step(progress, role),
        "assigned": count_assigned_to(evaluation, rater),
        "failed_calls_at": failed_calls_url(evaluation, manages=is_allowed(user, Action.MANAGE, evaluation))
        if progress.failed_calls
        else "",
        "checklist": build_checklist(evaluation, cast(Membership, membership), progress),
        "access": access,
        "stored": stored.get(evaluation.pk),
        "poll": "load",
    }
    return render(request, "evaluation/evaluation.html", context)


@require_safe
def evaluation_results(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """The tiles with results, which the overview asks for: computed now, or stored while a worker computes."""
    user = request.user
    evaluation = require_evaluation(user, slug)
    progress = count_evaluation_progress([evaluation], user)[evaluation.pk]
    access = get_results_access(progress, cast(Role, get_role(user, evaluation)))
    if access not in (ResultsAccess.ALL, ResultsAccess.OWN):
        return HttpResponse(status=204)
    reviewer = user if access == ResultsAccess.OWN else None
    stored = read_or_compute_results(evaluation, reviewer, progress.comparisons)
    context = {
        "evaluation": evaluation,
        "progress": progress,
        "access": access,
        "stored": stored,
        "poll": get_poll_trigger(stored, progress),
    }
    return render(request, "evaluation/_results.html", context)


def get_poll_trigger(stored: StoredResults | None, progress: EvaluationProgress) -> str:
    """When the tiles ask again: soon while there is nothing to show, slowly while results change."""
    if stored is None:
        return "every 2s"
    return "" if stored.is_current and not progress.active_runs else "every 10s"


@require_POST
def checklist(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """Record a click in the checklist, and go on to where it leads."""
    evaluation = require_evaluation(request.user, slug, Action.REVIEW)
    word = request.POST.get("step", "")
    if word not in list(ChecklistStep):
        raise Http404
    step = ChecklistStep(word)
    record_step(request.user, evaluation, step)
    return redirect(get_step_url(slug, step))


def failed_calls_url(evaluation: Evaluation, *, manages: bool) -> str:
    """The page on which failed calls can be retried: of one judge its retry page, otherwise the runs."""
    failed = Call.objects.filter(run__evaluation=evaluation, state__in=FAILURE_STATES).order_by()
    runs = list(failed.values_list("run", "judge").distinct())
    if manages and len({judge for _, judge in runs}) == 1:
        return reverse("run_retry", args=[evaluation.slug, max(run for run, _ in runs)])
    return reverse("runs", args=[evaluation.slug])


@require_http_methods(["GET", "HEAD", "POST"])
def evaluation_new(request: AuthenticatedRequest) -> HttpResponse:
    if not has_right(request.user, Right.CREATE_EVALUATIONS):
        raise RightRefused(Right.CREATE_EVALUATIONS)
    form = NewEvaluationForm(request.POST or None)
    if form.is_valid() and (evaluation := create_from_form(form, request.user)):
        messages.success(request, f"“{evaluation.name}” created. Now import your data.")
        return redirect("imports", evaluation.slug)
    status = 422 if request.method == "POST" else 200
    return render(request, "evaluation_new/evaluation_new.html", {"page": "evaluations", "form": form}, status=status)


def create_from_form(form: NewEvaluationForm, owner: User) -> Evaluation | None:
    cleaned = form.cleaned_data
    try:
        slug = cleaned["slug"] or suggest_slug(cleaned["name"])
        return create_evaluation(slug=slug, name=cleaned["name"], owner=owner, by=owner)
    except InputRefused as refused:
        add_refusal(form, refused, "slug")
        return None


@require_POST
def evaluation_delete(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    evaluation = require_evaluation(request.user, slug, Action.OWN)
    try:
        delete_evaluation(evaluation, request.POST.get("name", ""), user=request.user)
    except InputRefused as refused:
        messages.error(request, str(refused))
        return redirect("evaluation_archive", slug)
    messages.success(request, f"“{evaluation.name}” deleted.")
    return redirect("evaluations")


@require_safe
def activity(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    evaluation = require_evaluation(request.user, slug, Action.SEE_ALL)
    events_of_evaluation = Event.objects.filter(evaluation=evaluation).select_related("user", "token")
    sorting = parse_sorting(request, SortColumn("when", descending=True))
    page = paginate(request, events_of_evaluation, sorting=sorting)
    single = find_single_comparisons(page.rows)
    rows = [
        (event, describe_event(event, times), list(list_event_changes(event)), times == 1 and event.pk not in single)
        for event, times in group_views(page.rows)
    ]
    context = {"page": "activity", "evaluation": evaluation, "rows": rows, "page_of_rows": page, "sorting": sorting}
    return render(request, "activity/activity.html", context)


@require_safe
def help_page(request: AuthenticatedRequest) -> HttpResponse:
    return render(request, "help/help.html", {"page": "help"})

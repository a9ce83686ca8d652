"""The pages of queues and calibrations."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from evaluations.access import Action, is_allowed, list_reviewers, require_evaluation
from evaluations.domain.errors import InputRefused
from evaluations.domain.reviews import RANDOM_SELECTION, QueueKind
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.queues import Queue
from evaluations.reviews.queues.calibration import (
    create_calibration,
    find_comparisons_with_known_labels,
    get_calibration_rows,
    get_own_calibration_result,
    get_reviewing_members,
    record_calibration_result_seen,
)
from evaluations.reviews.queues.forms import CalibrationForm, QueueForm
from evaluations.reviews.queues.sampler import MAX_QUEUE_SIZE, QueuePlan
from evaluations.reviews.queues.selectors import (
    describe_assigned,
    get_calibration_result,
    get_default_queue_status,
    get_queue_or_404,
    get_queue_statuses,
    get_queue_work,
    get_slot_statuses,
    is_queue_deletable,
    list_queues,
    list_slots,
)
from evaluations.reviews.queues.services import (
    archive_queue,
    assign_queue_to_reviewers,
    create_queue,
    delete_queue,
    preview_queue,
    restore_queue,
)
from evaluations.reviews.selectors import get_review_subject
from evaluations.web.forms import ReviewersForm, submit_form
from evaluations.web.pagination import paginate
from evaluations.web.refusals import show_refusal
from evaluations.web.requests import AuthenticatedRequest
from evaluations.web.sorting import SortColumn, parse_sorting


@never_cache
@require_safe
def calibration_result(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    """The user's own result once it is finished; with ``?reviewer=…`` another's, for those who see all."""
    user = request.user
    evaluation = require_evaluation(user, slug)
    sees_all = is_allowed(user, Action.SEE_ALL, evaluation)
    queue = get_object_or_404(Queue.objects.select_related("rubric_version__rubric"), evaluation=evaluation, pk=pk)
    if queue.kind != QueueKind.CALIBRATION:
        return redirect("queue", slug, pk)
    queue.evaluation = evaluation
    mine = get_own_calibration_result(queue, user)
    if mine.progress.is_finished:
        record_calibration_result_seen(queue, user)
    person = get_requested_rater(request, queue) if sees_all else None
    page = paginate(request, get_reviewing_members(queue)) if sees_all else None
    context = {
        "page": "queues" if sees_all else "review",
        "evaluation": evaluation,
        "queue": queue,
        "result": get_calibration_result(queue, person) if person else mine,
        "person": person,
        "aspects": queue.rubric_version.spec().aspects,
        "page_of_rows": page,
        "rows": get_calibration_rows(queue, page.rows) if page else [],
    }
    return render(request, "calibration/calibration.html", context)


def get_requested_rater(request: AuthenticatedRequest, queue: Queue) -> Rater | None:
    pk = request.GET.get("reviewer", "")
    if not pk:
        return None
    if not (pk.isascii() and pk.isdecimal() and len(pk) < 19):
        raise Http404
    return get_object_or_404(Rater, evaluation=queue.evaluation, user__isnull=False, pk=int(pk))


@require_http_methods(["GET", "HEAD", "POST"])
def calibration_create(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    known = find_comparisons_with_known_labels(evaluation).count()
    form = CalibrationForm(request.POST or None, initial={"size": min(8, known) or None})
    if form.is_valid() and (queue := submit_form(form, create_calibration, evaluation, user=user, **form.cleaned_data)):
        messages.success(request, f"“{queue.name}” created. Every reviewer gets it next.")
        return redirect("queue", slug, queue.pk)
    context = {"page": "queues", "evaluation": evaluation, "form": form, "known": known}
    status = 422 if request.method == "POST" else 200
    return render(request, "calibration_new/calibration_new.html", context, status=status)


@require_safe
def queue_detail(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    user = request.user
    queue = get_queue_or_404(user, slug, pk, Action.SEE_ALL)
    page = paginate(request, list_slots(queue))
    is_open = queue.closed_at is None and not queue.is_outdated
    context = {
        "page": "queues",
        "evaluation": queue.evaluation,
        "queue": queue,
        "progress": get_queue_statuses([queue])[queue.pk],
        "work": get_queue_work(queue),
        "page_of_rows": page,
        "rows": get_slot_statuses(page.rows),
        "is_deletable": is_queue_deletable(queue),
        "people": list_reviewers(queue.evaluation)
        if is_open and is_allowed(user, Action.MANAGE, queue.evaluation)
        else [],
    }
    return render(request, "queue/queue.html", context)


@require_POST
def queue_assign(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    """Assign the queue's comparisons to these reviewers."""
    user = request.user
    queue = get_queue_or_404(user, slug, pk, Action.MANAGE)
    form = ReviewersForm(request.POST, people=list_reviewers(queue.evaluation))
    with show_refusal(request):
        people = form.get_reviewers()
        messages.success(request, describe_assigned(assign_queue_to_reviewers(queue, people, user), people))
    return redirect("queue", slug, pk)


@require_POST
def queue_archive(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    user = request.user
    queue = get_queue_or_404(user, slug, pk, Action.MANAGE)
    with show_refusal(request):
        archive_queue(queue, user)
        messages.success(request, f"“{queue.name}” archived. Its reviews are kept.")
    return redirect("queue", slug, pk)


@require_POST
def queue_restore(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    user = request.user
    queue = get_queue_or_404(user, slug, pk, Action.MANAGE)
    with show_refusal(request):
        restore_queue(queue, user)
        messages.success(request, f"“{queue.name}” restored.")
    return redirect("queue", slug, pk)


@require_POST
def queue_delete(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    queue = get_queue_or_404(request.user, slug, pk, Action.MANAGE)
    with show_refusal(request):
        delete_queue(queue, request.user)
        messages.success(request, f"“{queue.name}” deleted.")
        return redirect("queues", slug)
    return redirect("queue", slug, pk)


@require_http_methods(["GET", "HEAD", "POST"])
def queue_create(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """The form with a preview; query parameters preview other settings."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    data = request.POST if request.method == "POST" else request.GET
    form = QueueForm(
        data or None, evaluation=evaluation, people=list_reviewers(evaluation), name=suggest_queue_name(evaluation)
    )
    plan, name = form.plan(), form.data.get("name", "")
    if (
        request.method == "POST"
        and form.is_valid()
        and plan
        and (queue := submit_form(form, create_queue, evaluation, name, plan, user=user))
    ):
        messages.success(request, f"“{queue.name}” created.")
        return redirect("queue", slug, queue.pk)
    context = {"page": "queues", "evaluation": evaluation, "form": form, **build_preview_context(evaluation, plan)}
    status = 422 if request.method == "POST" else 200
    only_preview = request.htmx and request.method == "GET"
    template = "queue_new/_preview.html" if only_preview else "queue_new/queue_new.html"
    return render(request, template, context, status=status)


def build_preview_context(evaluation: Evaluation, plan: QueuePlan | None) -> dict[str, Any]:
    """What would be selected, or in one sentence why nothing can be."""
    if plan is None:
        return {"problem": "Fix the fields above to preview."}
    try:
        preview = preview_queue(evaluation, plan)
    except InputRefused as refused:
        return {"problem": str(refused)}
    total = preview.at_random + preview.by_strategy
    is_drawn = plan.strategy in RANDOM_SELECTION
    is_short = is_drawn and total < plan.most < MAX_QUEUE_SIZE
    return {"preview": preview, "total": total, "is_drawn": is_drawn, "is_short": is_short}


def suggest_queue_name(evaluation: Evaluation) -> str:
    """“Queue 3” where there are two; the person may call it anything."""
    taken = set(Queue.objects.filter(evaluation=evaluation).values_list("name", flat=True))
    return next(name for number in range(1, len(taken) + 2) if (name := f"Queue {number}") not in taken)


@require_safe
def queue_list(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    evaluation = require_evaluation(request.user, slug, Action.SEE_ALL)
    archived = "archived" in request.GET
    sorting = parse_sorting(request, SortColumn("created", descending=True), SortColumn("name", "name"))
    page = paginate(request, list_queues(evaluation, archived=archived), sorting=sorting)
    statuses = get_queue_statuses(page.rows)
    context = {
        "page": "queues",
        "evaluation": evaluation,
        "page_of_rows": page,
        "rows": [statuses[queue.pk] for queue in page.rows],
        "sorting": sorting,
        "default_queue": None if archived else get_default_queue_status(evaluation),
        "subject": get_review_subject(evaluation),
        "archived": archived,
        "any_archived": archived or list_queues(evaluation, archived=True).exists(),
    }
    return render(request, "queues/queues.html", context)

"""The page of saved filters, with tags."""

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from evaluations.access import Action, require_evaluation
from evaluations.comparisons.requests import build_filter_form, get_saved_filter_or_404, get_tag_or_404
from evaluations.comparisons.selectors import list_tags_with_counts
from evaluations.comparisons.services import (
    change_tag_name,
    create_saved_filter,
    delete_saved_filter,
    delete_unused_tag,
    list_tag_jobs,
    list_undoable_tag_changes,
    rename_saved_filter,
    undo_tagging,
)
from evaluations.domain.errors import InputRefused
from evaluations.models.comparisons import SavedFilter, TagChange
from evaluations.web.refusals import show_refusal
from evaluations.web.requests import AuthenticatedRequest

MAX_CHANGES_SHOWN = 10
MAX_FILTERS_SHOWN = 500


@require_safe
def saved_filter_list(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    evaluation = require_evaluation(request.user, slug, Action.SEE_ALL)
    saved_filters = SavedFilter.objects.filter(evaluation=evaluation).select_related("user").order_by("name")
    context = {
        "page": "comparisons",
        "evaluation": evaluation,
        "saved_filters": saved_filters[:MAX_FILTERS_SHOWN],
        "tags": list_tags_with_counts(evaluation),
        "tag_changes": list_undoable_tag_changes(evaluation, MAX_CHANGES_SHOWN),
        "tag_jobs": list_tag_jobs(evaluation, MAX_CHANGES_SHOWN),
    }
    return render(request, "saved_filters/saved_filters.html", context)


@require_POST
def saved_filter_new(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """The filter of the address, under a name."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.TAG)
    form = build_filter_form(request, evaluation)
    if not form.is_valid() or "judge_choice" in request.GET:
        raise Http404
    with show_refusal(request):
        if form.get_saved_filter():
            raise InputRefused("A filter cannot contain a saved filter. Set its conditions instead.")
        saved = create_saved_filter(evaluation, request.POST.get("name", ""), form.to_filter(), user=user)
        messages.success(request, f"Filter “{saved.name}” saved. You can use it in results and exports.")
    return redirect(reverse("comparisons", args=[slug], query=request.GET))


@require_POST
def saved_filter_rename(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    saved = get_saved_filter_or_404(request.user, slug, pk)
    with show_refusal(request):
        rename_saved_filter(saved, request.POST.get("name", ""), user=request.user)
        messages.success(request, f"Filter renamed to “{saved.name}”.")
    return redirect("saved_filters", slug)


@require_POST
def saved_filter_delete(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    saved = get_saved_filter_or_404(request.user, slug, pk)
    with show_refusal(request):
        if request.POST.get("name", "").strip() != saved.name:
            raise InputRefused(f"Nothing deleted. Type “{saved.name}” to confirm.")
        delete_saved_filter(saved, user=request.user)
        messages.success(request, f"Filter “{saved.name}” deleted.")
    return redirect("saved_filters", slug)


@require_POST
def tag_rename(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    tag = get_tag_or_404(request.user, slug, pk)
    with show_refusal(request):
        change_tag_name(tag, request.POST.get("name", ""), user=request.user)
        messages.success(request, f"Tag renamed to “{tag.name}”.")
    return redirect("saved_filters", slug)


@require_POST
def tag_delete(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    tag = get_tag_or_404(request.user, slug, pk)
    with show_refusal(request):
        delete_unused_tag(tag, user=request.user)
        messages.success(request, f"Tag “{tag.name}” deleted.")
    return redirect("saved_filters", slug)


@require_POST
def tag_undo(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    user = request.user
    evaluation = require_evaluation(user, slug, Action.TAG)
    get_object_or_404(TagChange, evaluation=evaluation, pk=pk)
    with show_refusal(request):
        change = undo_tagging(evaluation, pk, user=user)
        messages.success(request, f"Undone for {change.changed:,} comparison{'' if change.changed == 1 else 's'}.")
    return redirect("saved_filters", slug)

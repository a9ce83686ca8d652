"""The page of saved filters, with tags."""

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from evaluations.access import Action, require_evaluation
from evaluations.comparisons.requests import build_filter_form
from evaluations.comparisons.selectors import list_tags_with_counts
from evaluations.comparisons.services import (
    TAGGED,
    UNTAGGED,
    change_tag_name,
    create_saved_filter,
    delete_saved_filter,
    delete_unused_tag,
    rename_saved_filter,
    undo_tagging,
    works_of,
)
from evaluations.domain.errors import InputRefused
from evaluations.models.comparisons import Slice, Tag
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.users import User
from evaluations.web.refusals import show_refusal
from evaluations.web.requests import AuthenticatedRequest

MAX_STEPS_SHOWN = 10
MAX_FILTERS_SHOWN = 500


@require_safe
def saved_filter_list(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    evaluation = require_evaluation(request.user, slug, Action.SEE_ALL)
    those = Slice.objects.filter(evaluation=evaluation).select_related("user").order_by("name")[:MAX_FILTERS_SHOWN]
    context = {
        "page": "comparisons",
        "evaluation": evaluation,
        "slices": those,
        "tags": list_tags_with_counts(evaluation),
        "steps": list_undoable_steps(evaluation),
        "works": works_of(evaluation, MAX_STEPS_SHOWN),
    }
    return render(request, "slices/slices.html", context)


def list_undoable_steps(evaluation: Evaluation) -> list[Event]:
    """The last steps of tagging that can be undone."""
    verbs = (TAGGED, UNTAGGED)
    last = list(Event.objects.filter(evaluation=evaluation, object_type="tag", verb__in=verbs).order_by("-pk")[:50])
    undone = {event.after.get("undoes") for event in last}
    open_still = [event for event in last if event.after.get("comparisons") and event.pk not in undone]
    return open_still[:MAX_STEPS_SHOWN]


@require_POST
def saved_filter_new(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """The filter of the address, under a name."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.TAG)
    form = build_filter_form(request, evaluation)
    if not form.is_valid() or "judge_choice" in request.GET:
        raise Http404
    with show_refusal(request):
        if form.sliced():
            raise InputRefused("A slice within a slice cannot be saved: choose its filters themselves.")
        made = create_saved_filter(evaluation, request.POST.get("name", ""), form.wanted(), user=user)
        messages.success(request, f"The slice “{made.name}” is saved: the report and exports can be limited to it.")
    return redirect(reverse("comparisons", args=[slug], query=request.GET))


@require_POST
def saved_filter_rename(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    user, one = get_filter_of_request(request, slug, pk)
    with show_refusal(request):
        rename_saved_filter(one, request.POST.get("name", ""), user=user)
        messages.success(request, f"The slice is called “{one.name}” now.")
    return redirect("slices", slug)


@require_POST
def saved_filter_delete(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    user, one = get_filter_of_request(request, slug, pk)
    with show_refusal(request):
        if request.POST.get("name", "").strip() != one.name:
            raise InputRefused(f"Nothing was deleted: type the name of the slice, {one.name}, to delete it.")
        delete_saved_filter(one, user=user)
        messages.success(request, f"The slice “{one.name}” is deleted. The record keeps what it was.")
    return redirect("slices", slug)


@require_POST
def tag_rename(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    user, one = get_tag_of_request(request, slug, pk)
    with show_refusal(request):
        change_tag_name(one, request.POST.get("name", ""), user=user)
        messages.success(request, f"The tag is called “{one.name}” now, wherever it stands.")
    return redirect("slices", slug)


@require_POST
def tag_delete(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    user, one = get_tag_of_request(request, slug, pk)
    with show_refusal(request):
        delete_unused_tag(one, user=user)
        messages.success(request, f"The tag “{one.name}” is deleted.")
    return redirect("slices", slug)


@require_POST
def tag_undo(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    """Undo one step of tagging, by the number of its Event."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.TAG)
    get_object_or_404(evaluation.events, pk=pk)
    with show_refusal(request):
        event = undo_tagging(evaluation, pk, user=user)
        messages.success(request, f"Undone: {event.after['number']:,} are as they were.")
    return redirect("slices", slug)


def get_filter_of_request(request: AuthenticatedRequest, slug: str, pk: int) -> tuple[User, Slice]:
    user = request.user
    evaluation = require_evaluation(user, slug, Action.TAG)
    return user, get_object_or_404(Slice.objects.select_related("evaluation"), evaluation=evaluation, pk=pk)


def get_tag_of_request(request: AuthenticatedRequest, slug: str, pk: int) -> tuple[User, Tag]:
    user = request.user
    evaluation = require_evaluation(user, slug, Action.TAG)
    return user, get_object_or_404(Tag.objects.select_related("evaluation"), evaluation=evaluation, pk=pk)

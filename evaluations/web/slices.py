"""Slices and tags of an evaluation: what there is, renamed, deleted, and the last steps of tagging undone."""

from typing import cast

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from evaluations import access
from evaluations.access import Action
from evaluations.domain import InputRefused
from evaluations.models import Evaluation, Event, Slice, Tag, TagWork, User
from evaluations.services.preparing import slicing, tagging
from evaluations.web.comparisons import filter_form
from evaluations.web.refusing import told_if_refused

STEPS_SHOWN = 10
MOST_SHOWN = 500


@require_safe
def slices(request: HttpRequest, slug: str) -> HttpResponse:
    evaluation = access.evaluation_for(cast(User, request.user), slug, Action.SEE_ALL)
    those = Slice.objects.filter(evaluation=evaluation).select_related("user").order_by("name")[:MOST_SHOWN]
    works = TagWork.objects.filter(tag__evaluation=evaluation).select_related("tag", "user").order_by("-pk")
    context = {
        "page": "comparisons",
        "evaluation": evaluation,
        "slices": those,
        "tags": tagging.counted(evaluation),
        "steps": steps_of(evaluation),
        "works": works[:STEPS_SHOWN],
    }
    return render(request, "slices/slices.html", context)


def steps_of(evaluation: Evaluation) -> list[Event]:
    """The last steps of tagging that can be undone."""
    verbs = (tagging.TAGGED, tagging.UNTAGGED)
    last = list(Event.objects.filter(evaluation=evaluation, object_type="tag", verb__in=verbs).order_by("-pk")[:50])
    undone = {event.after.get("undoes") for event in last}
    open_still = [event for event in last if event.after.get("comparisons") and event.pk not in undone]
    return open_still[:STEPS_SHOWN]


@require_POST
def slice_save(request: HttpRequest, slug: str) -> HttpResponse:
    """The filter of the address, under a name."""
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug, Action.TAG)
    form = filter_form(request, evaluation)
    if not form.is_valid() or "judge_choice" in request.GET:
        raise Http404
    with told_if_refused(request):
        if form.sliced():
            raise InputRefused("A slice within a slice cannot be saved: choose its filters themselves.")
        made = slicing.save_slice(evaluation, request.POST.get("name", ""), form.wanted(), user=user)
        messages.success(request, f"The slice “{made.name}” is saved: the report and exports can be limited to it.")
    return redirect(reverse("comparisons", args=[slug], query=request.GET))


@require_POST
def slice_rename(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    user, one = slice_for(request, slug, pk)
    with told_if_refused(request):
        slicing.rename_slice(one, request.POST.get("name", ""), user=user)
        messages.success(request, f"The slice is called “{one.name}” now.")
    return redirect("slices", slug)


@require_POST
def slice_delete(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    user, one = slice_for(request, slug, pk)
    with told_if_refused(request):
        if request.POST.get("name", "").strip() != one.name:
            raise InputRefused(f"Nothing was deleted: type the name of the slice, {one.name}, to delete it.")
        slicing.delete_slice(one, user=user)
        messages.success(request, f"The slice “{one.name}” is deleted. The record keeps what it was.")
    return redirect("slices", slug)


@require_POST
def tag_rename(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    user, one = tag_for(request, slug, pk)
    with told_if_refused(request):
        tagging.rename_tag(one, request.POST.get("name", ""), user=user)
        messages.success(request, f"The tag is called “{one.name}” now, wherever it stands.")
    return redirect("slices", slug)


@require_POST
def tag_delete(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    user, one = tag_for(request, slug, pk)
    with told_if_refused(request):
        tagging.delete_tag(one, user=user)
        messages.success(request, f"The tag “{one.name}” is deleted.")
    return redirect("slices", slug)


@require_POST
def tag_undo(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Undo one step of tagging, by the number of its Event."""
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug, Action.TAG)
    get_object_or_404(evaluation.events, pk=pk)
    with told_if_refused(request):
        event = tagging.undo(evaluation, pk, user=user)
        messages.success(request, f"Undone: {event.after['number']:,} are as they were.")
    return redirect("slices", slug)


def slice_for(request: HttpRequest, slug: str, pk: int) -> tuple[User, Slice]:
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug, Action.TAG)
    return user, get_object_or_404(Slice.objects.select_related("evaluation"), evaluation=evaluation, pk=pk)


def tag_for(request: HttpRequest, slug: str, pk: int) -> tuple[User, Tag]:
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug, Action.TAG)
    return user, get_object_or_404(Tag.objects.select_related("evaluation"), evaluation=evaluation, pk=pk)

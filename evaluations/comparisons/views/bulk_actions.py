"""Actions on the selected comparisons, or on all that match a filter."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.html import format_html
from django.views.decorators.http import require_POST

from evaluations.access import Action, list_reviewers, require_evaluation
from evaluations.comparisons import services as comparisons_services
from evaluations.comparisons.forms import BulkAction, BulkActionForm, BulkScope
from evaluations.comparisons.requests import build_filter_form, keep_refused_action, list_filters, read_ids
from evaluations.comparisons.selectors import find_comparison_ids
from evaluations.comparisons.services import refuse_tag_name, start_tag_job, tag_comparisons, untag_comparisons
from evaluations.domain.errors import InputRefused
from evaluations.domain.filters import ComparisonFilter
from evaluations.models.comparisons import Comparison, TagChange
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User
from evaluations.reviews.queues.selectors import describe_assigned
from evaluations.reviews.queues.services import AssignmentCount, assign_comparisons, create_queue_of_comparisons
from evaluations.web.forms import ReviewersForm
from evaluations.web.notices import add_notice_with_undo
from evaluations.web.refusals import show_refusal
from evaluations.web.requests import AuthenticatedRequest

NEEDED_PERMISSION: Final = {
    BulkAction.TAG: Action.TAG,
    BulkAction.UNTAG: Action.TAG,
    BulkAction.ASSIGN: Action.MANAGE,
    BulkAction.QUEUE: Action.MANAGE,
}
ACTION_LABELS: Final = {
    BulkAction.TAG: "Add the tag “{tag}” to",
    BulkAction.UNTAG: "Remove the tag “{tag}” from",
    BulkAction.ASSIGN: "Assign to the selected reviewers:",
    BulkAction.QUEUE: "Add to the queue “{queue}”",
}


@dataclass(frozen=True)
class BulkStep:
    """What was asked for. ``ids``: which comparisons; one more than can be done at once where there are more."""

    evaluation: Evaluation
    user: User
    options: dict[str, Any]
    filters: Sequence[ComparisonFilter]
    ids: list[int]
    posted: Any

    @property
    def is_large(self) -> bool:
        return len(self.ids) > comparisons_services.MAX_TAGGED_AT_ONCE


@require_POST
def comparisons_bulk_action(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    user = request.user
    form = BulkActionForm(request.POST)
    if not form.is_valid():
        require_evaluation(user, slug)
        raise Http404
    options = form.to_options()
    evaluation = require_evaluation(user, slug, NEEDED_PERMISSION[options["act"]])
    filters = filters_of_request(request, evaluation) if options["which"] == BulkScope.ALL else []
    back = redirect(reverse("comparisons", args=[slug], query=request.GET))
    with show_refusal(request, otherwise=lambda: keep_refused_action(request, slug)):
        if options["which"] == BulkScope.ALL:
            ids = find_comparison_ids(evaluation, filters, comparisons_services.MAX_TAGGED_AT_ONCE)
        else:
            ids = read_ids(request, "comparison")
        step = BulkStep(evaluation, user, options, filters, ids, request.POST)
        refuse_bulk_step(step)
        if options["which"] == BulkScope.ALL and not options["confirmed"]:
            return render_confirmation(request, step)
        ACTIONS[options["act"]](request, step)
    return back


def filters_of_request(request: AuthenticatedRequest, evaluation: Evaluation) -> list[ComparisonFilter]:
    form = build_filter_form(request, evaluation)
    if not form.is_valid() or "judge_choice" in request.GET:
        raise Http404
    return list_filters(form)


def refuse_bulk_step(step: BulkStep) -> None:
    act, options = step.options["act"], step.options
    if not step.ids:
        raise InputRefused("Select at least one comparison.")
    if act in (BulkAction.TAG, BulkAction.UNTAG):
        refuse_tag_name(options["tag"])
    elif step.is_large:
        raise InputRefused(
            f"More than {comparisons_services.MAX_TAGGED_AT_ONCE:,} comparisons match. Narrow the filter first."
        )
    if act == BulkAction.QUEUE and not options["queue"]:
        raise InputRefused("Name the queue.")
    if act == BulkAction.ASSIGN:
        selected_reviewers(step)


def render_confirmation(request: AuthenticatedRequest, step: BulkStep) -> HttpResponse:
    """Ask for confirmation with the number of comparisons."""
    context = {
        "page": "comparisons",
        "evaluation": step.evaluation,
        "step": step,
        "words": ACTION_LABELS[step.options["act"]].format(**step.options),
        "number": min(len(step.ids), comparisons_services.MAX_TAGGED_AT_ONCE),
        "filter": " and ".join(comparison_filter.in_words() for comparison_filter in step.filters) or "all comparisons",
        "kept": [(name, value) for name in ("act", "which", "tag", "queue") if (value := request.POST.get(name))],
        "people": request.POST.getlist("people"),
    }
    return render(request, "comparisons_bulk_action/comparisons_bulk_action.html", context)


# ---- one function for each act --------------------------------------------------------------


def apply_tag(request: AuthenticatedRequest, step: BulkStep) -> None:
    name = step.options["tag"]
    removes = step.options["act"] == BulkAction.UNTAG
    if step.is_large:
        start_tag_job(step.evaluation, step.filters, name, removes=removes, user=step.user)
        doing = "Removing the tag “{}” from" if removes else "Adding the tag “{}” to"
        progress = reverse("saved_filters", args=[step.evaluation.slug])
        words = f'{doing} all matching comparisons. <a href="{{}}">Progress</a>'
        messages.success(request, format_html(words, name, progress))
        return
    tag_or_untag = untag_comparisons if removes else tag_comparisons
    add_tag_notice(request, step.evaluation, tag_or_untag(step.evaluation, step.ids, name, user=step.user))


def add_tag_notice(request: AuthenticatedRequest, evaluation: Evaluation, change: TagChange) -> None:
    number, name = change.changed, change.name
    comparisons = f"{number:,} comparison{'' if number == 1 else 's'}"
    if not number:
        has = "None of the selected comparisons has" if change.removes else "All selected comparisons already have"
        messages.warning(request, f"{has} the tag “{name}”.")
        return
    text = f"Tag “{name}” {'removed from' if change.removes else 'added to'} {comparisons}."
    add_notice_with_undo(request, text, reverse("tag_undo", args=[evaluation.slug, change.pk]))


def assign_selected(request: AuthenticatedRequest, step: BulkStep) -> None:
    people = selected_reviewers(step)
    comparisons = list(Comparison.objects.filter(evaluation=step.evaluation, pk__in=step.ids))
    count = assign_comparisons(step.evaluation, comparisons, people, step.user)
    messages.add_message(
        request, messages.SUCCESS if count.number else messages.WARNING, describe_assignment(count, people)
    )


def selected_reviewers(step: BulkStep) -> list[User]:
    return ReviewersForm(step.posted, people=list_reviewers(step.evaluation)).get_reviewers()


def queue_selected(request: AuthenticatedRequest, step: BulkStep) -> None:
    queue = create_queue_of_comparisons(step.evaluation, step.ids, name=step.options["queue"], user=step.user)
    address = reverse("queue", args=[step.evaluation.slug, queue.pk])
    words = '{} comparisons added to the queue <a href="{}">{}</a>. Reviewers get them before the default queue.'
    messages.success(request, format_html(words, queue.slots.count(), address, queue.name))


ACTIONS: Final = {
    BulkAction.TAG: apply_tag,
    BulkAction.UNTAG: apply_tag,
    BulkAction.ASSIGN: assign_selected,
    BulkAction.QUEUE: queue_selected,
}


def describe_assignment(count: AssignmentCount, people: Sequence[User]) -> str:
    if count.number:
        left_out = f" Skipped {count.reviewed} that they already reviewed." if count.reviewed else ""
        return describe_assigned(count.number, people) + left_out
    names = ", ".join(map(str, people))
    done = "already reviewed these" if count.reviewed else "already been assigned these"
    both = " or been assigned them" if count.reviewed and count.waiting else ""
    return f"Nothing assigned: {names} {'has' if len(people) == 1 else 'have'} {done}{both}."

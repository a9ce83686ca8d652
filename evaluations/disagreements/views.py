"""The pages of disagreements and mentions."""

from typing import Final

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from evaluations.access import Action, is_allowed, require_evaluation
from evaluations.disagreements.forms import (
    CommentForm,
    DisagreementsForm,
    ExplainForm,
    ResolveForm,
    UndoForm,
    WithdrawForm,
    clean_or_refuse,
)
from evaluations.disagreements.history import get_comparison_history
from evaluations.disagreements.majorities import (
    accept_majorities,
    count_majorities,
    list_bulk_batches,
    undo_resolutions,
)
from evaluations.disagreements.requests import (
    get_aspect_or_404,
    get_open_comparison_or_404,
    get_own_comment_or_404,
    get_own_review_or_404,
    get_resolution_or_404,
)
from evaluations.disagreements.selectors import (
    MENTION_RELATIONS,
    count_disagreements,
    find_following_disagreement,
    get_mentions,
    get_neighbouring_disagreements,
    get_thread,
    reveal_disagreements,
    reveal_mentions,
)
from evaluations.disagreements.services import (
    ResolutionNote,
    add_comment,
    explain_own_choice,
    mark_mentions_seen,
    resolve_aspects,
    withdraw_own_comment,
    withdraw_resolution,
)
from evaluations.disagreements.workbench import EnteredResolution, build_questions
from evaluations.domain.errors import InputRefused
from evaluations.domain.reviews import (
    DIFFERENCE_REASON_TEXTS,
    RESOLUTION_REASON_TEXTS,
    SAVED_REVIEW_STATES,
    DifferenceReason,
)
from evaluations.models.comparisons import Comparison
from evaluations.models.rubrics import Aspect
from evaluations.models.verdicts import Review
from evaluations.rendered_texts import build_turns, iter_comparison_texts, render_texts
from evaluations.reviews.selectors import get_saved_spans
from evaluations.visibility import (
    can_see_names,
    list_people_who_can_see,
    reveal_visible_vote_table,
    visible_comparisons_everywhere,
)
from evaluations.web.notices import add_notice_with_undo
from evaluations.web.pagination import PAGE_SIZE, Page, build_page_query, paginate, parse_after
from evaluations.web.requests import AuthenticatedRequest
from evaluations.web.sorting import NEWEST_FIRST


@require_safe
def disagreement_list(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    user = request.user
    evaluation = require_evaluation(user, slug)
    form = DisagreementsForm(request.GET, evaluation=evaluation, user=user)
    filters = form.to_filter()
    after = parse_after(request)
    disagreements = reveal_disagreements(user, filters, after=after, size=PAGE_SIZE)
    page = Page(
        [row for row, _ in disagreements.rows],
        is_first=not after,
        first_page=build_page_query(request, 0),
        next_page=build_page_query(request, disagreements.continues_after) if disagreements.continues_after else None,
    )
    number_open, number_resolved = count_disagreements(filters)
    can_resolve = is_allowed(user, Action.ADJUDICATE, evaluation) and evaluation.archived_at is None
    context = {
        "page": "disagreements",
        "evaluation": evaluation,
        "form": form,
        "filters": filters,
        "page_of_rows": page,
        "rows": [
            {"comparison": comparison, "differences": differences} for comparison, differences in disagreements.rows
        ],
        "shows_names": can_see_names(user, evaluation),
        "filter": encode_filter(request.GET),
        "is_filtered": any(request.GET.get(name) for name in form.fields if name != "state"),
        "number_open": number_open,
        "number_resolved": number_resolved,
        "can_resolve": can_resolve,
        "majorities": count_majorities(filters) if can_resolve and not form.errors else None,
        "batches": list_bulk_batches(evaluation) if can_resolve and filters.resolved else [],
    }
    return render(request, "disagreements/disagreements.html", context, status=422 if form.errors else 200)


def encode_filter(query: QueryDict) -> str:
    """The filter parameters, for links to disagreements."""
    parameters = query.copy()
    parameters.pop("after", None)
    for name in [name for name, value in parameters.items() if not value]:
        del parameters[name]
    return parameters.urlencode()


@require_safe
def disagreement_detail(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    comparison, user = get_open_comparison_or_404(request.user, slug, pk), request.user
    mark_mentions_seen(user, comparison)
    return render_disagreement(request, comparison)


def render_disagreement(
    request: AuthenticatedRequest,
    comparison: Comparison,
    *,
    entered: EnteredResolution | None = None,
    refusal: str = "",
    comment: CommentForm | None = None,
) -> HttpResponse:
    user, evaluation = request.user, comparison.evaluation
    filters = DisagreementsForm(request.GET, evaluation=evaluation, user=user).to_filter()
    before, after = get_neighbouring_disagreements(filters, comparison)
    table = reveal_visible_vote_table(user, comparison)
    questions = list(build_questions(comparison, filters, table, entered))
    comments = get_thread(comparison)
    shows_names = can_see_names(user, evaluation)
    html = render_texts([*iter_comparison_texts(comparison), *table.rationales, *(row.text for row in comments)])
    context = {
        "page": "disagreements",
        "evaluation": evaluation,
        "comparison": comparison,
        "sides": [
            (side, response, build_turns(response.messages, html))
            for side, response in (("A", comparison.response_a), ("B", comparison.response_b))
        ],
        "shows_names": shows_names,
        "html": html,
        "table": table,
        "open_questions": [question for question in questions if question.is_open],
        "resolved": [question for question in questions if question.resolution],
        "agreed": [question for question in questions if not question.is_open and not question.resolution],
        "own_choices": [
            (question, row)
            for question in questions
            for row in question.reviewer_choices
            if row.rater.user_id == user.pk and row.review and row.is_confirmed
        ],
        "can_resolve": is_allowed(user, Action.ADJUDICATE, evaluation) and evaluation.archived_at is None,
        "entered": entered,
        "refusal": entered.refusal if entered else refusal,
        "resolution_reasons": RESOLUTION_REASON_TEXTS.items(),
        "passages": [
            ("A" if span.response_id == comparison.response_a_id else "B", span) for span in get_saved_spans(comparison)
        ],
        "thread": comments,
        "comment": comment or CommentForm(aspects=table.aspects),
        "readers": list_people_who_can_see(comparison),
        "history": get_comparison_history(comparison, shows_names=shows_names),
        "own": Review.objects.filter(rater__user=user, comparison=comparison, state__in=SAVED_REVIEW_STATES).first(),
        "reasons": [(reason.value, DIFFERENCE_REASON_TEXTS[reason]) for reason in DifferenceReason],
        "before": before,
        "after": after,
        "filter": encode_filter(request.GET),
    }
    status = 422 if entered or refusal or comment else 200
    return render(request, "disagreement/disagreement.html", context, status=status)


@require_POST
def disagreement_resolve(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    comparison = get_open_comparison_or_404(request.user, slug, pk, Action.ADJUDICATE)
    form = ResolveForm(request.POST, aspects=Aspect.objects.filter(evaluation=comparison.evaluation))
    try:
        note = ResolutionNote(request.POST.get("category", ""), clean_or_refuse(form)["reason"])
        resolutions = resolve_aspects(comparison, form.get_decisions(), note, user=request.user)
    except InputRefused as refusal:
        return render_disagreement(request, comparison, entered=form.get_entered(str(refusal)))
    number, batch = len(resolutions), resolutions[0].batch
    text = f"{resolutions[0].aspect.name} resolved." if number == 1 else f"{number} aspects resolved."
    if batch is None:
        messages.success(request, text)
    else:
        undo_url = add_filter(request, reverse("resolutions_undo", args=[slug]))
        add_notice_with_undo(request, text, undo_url, {"batch": str(batch), "comparison": str(pk)})
    if request.POST.get("then") == "next":
        return redirect_to_next(request, comparison)
    return redirect_to_disagreement(request, comparison)


@require_POST
def resolution_withdraw(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    resolution = get_resolution_or_404(request.user, slug, pk)
    comparison, aspect = resolution.comparison, resolution.aspect
    try:
        cleaned = clean_or_refuse(WithdrawForm(request.POST))
        withdraw_resolution(resolution, version=cleaned["version"], user=request.user)
    except InputRefused as refusal:
        return render_disagreement(request, comparison, refusal=str(refusal))
    messages.success(request, f"{aspect.name} reopened.")
    return redirect_to_disagreement(request, comparison)


@require_POST
def majorities_accept(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    evaluation = require_evaluation(request.user, slug, Action.ADJUDICATE)
    filters = DisagreementsForm(request.GET, evaluation=evaluation, user=request.user).to_filter()
    try:
        done = accept_majorities(filters, user=request.user)
    except InputRefused as refusal:
        messages.error(request, str(refusal))
    else:
        if done.aspects:
            text = f"Majority accepted on {pluralize_aspects(done.aspects)}."
            if done.remaining:
                text += f" {done.remaining:,} left: accept again to continue."
            add_notice_with_undo(request, text, reverse("resolutions_undo", args=[slug]), {"batch": str(done.batch)})
        else:
            messages.info(request, "No open majority to accept.")
    return redirect(add_filter(request, reverse("disagreements", args=[slug])))


@require_POST
def resolutions_undo(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """Reopen what one action resolved, and return to where it was made."""
    evaluation = require_evaluation(request.user, slug, Action.ADJUDICATE)
    address = reverse("disagreements", args=[slug])
    try:
        cleaned = clean_or_refuse(UndoForm(request.POST))
        undone = undo_resolutions(evaluation, cleaned["batch"], user=request.user)
    except InputRefused as refusal:
        messages.error(request, str(refusal))
        return redirect(add_filter(request, address))
    text = f"{pluralize_aspects(undone.aspects)} reopened." if undone.aspects else "Nothing left to undo."
    if undone.remaining:
        text += f" {undone.remaining:,} left: undo again to continue."
    messages.success(request, text)
    if cleaned["comparison"]:
        address = reverse("disagreement", args=[slug, cleaned["comparison"]])
    return redirect(add_filter(request, address))


def pluralize_aspects(number: int) -> str:
    return f"{number:,} aspect{'' if number == 1 else 's'}"


@require_POST
def disagreement_explain(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    """Explain the user's own choice."""
    comparison, user = get_open_comparison_or_404(request.user, slug, pk, Action.REVIEW), request.user
    aspect = get_aspect_or_404(comparison, request.POST.get("aspect", ""))
    try:
        cleaned = clean_or_refuse(ExplainForm(request.POST))
        review = get_own_review_or_404(user, comparison, cleaned["review"])
        explain_own_choice(review, aspect, reason=cleaned["reason"], note=cleaned["note"], user=user)
    except InputRefused as refusal:
        return render_disagreement(request, comparison, refusal=str(refusal))
    return redirect_to_disagreement(request, comparison, f"aspect-{aspect.key}")


@require_POST
def disagreement_comment(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    comparison, user = get_open_comparison_or_404(request.user, slug, pk, Action.DISCUSS), request.user
    form = CommentForm(request.POST, aspects=Aspect.objects.filter(evaluation=comparison.evaluation))
    try:
        cleaned = clean_or_refuse(form)
        posted = add_comment(
            comparison,
            cleaned["text"],
            aspect=get_aspect_or_404(comparison, cleaned["about"]) if cleaned["about"] else None,
            user=user,
            readers=list_people_who_can_see(comparison),
        )
    except InputRefused as refusal:
        if "text" not in form.errors:
            form.add_error("text", str(refusal))
        return render_disagreement(request, comparison, comment=form)
    for name in posted.unknown:
        messages.warning(request, f"“{name}” can’t see this comparison and was not notified.")
    return redirect_to_disagreement(request, comparison, f"comment-{posted.comment.pk}")


@require_POST
def comment_withdraw(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    comment = get_own_comment_or_404(request.user, slug, pk)
    withdraw_own_comment(comment, user=request.user)
    return redirect_to_disagreement(request, comment.comparison, "discussion")


def redirect_to_disagreement(request: AuthenticatedRequest, comparison: Comparison, fragment: str = "") -> HttpResponse:
    """Redirect to the comparison, with the filter that it was opened from."""
    address = reverse("disagreement", args=[comparison.evaluation.slug, comparison.pk])
    return redirect(f"{add_filter(request, address)}{f'#{fragment}' if fragment else ''}")


def redirect_to_next(request: AuthenticatedRequest, comparison: Comparison) -> HttpResponse:
    """Redirect to the next disagreement of the filter, from the first after the last; to the list at the end."""
    slug = comparison.evaluation.slug
    filters = DisagreementsForm(request.GET, evaluation=comparison.evaluation, user=request.user).to_filter()
    following = find_following_disagreement(filters, comparison)
    address = reverse("disagreement", args=[slug, following]) if following else reverse("disagreements", args=[slug])
    return redirect(add_filter(request, address))


def add_filter(request: AuthenticatedRequest, address: str) -> str:
    query = encode_filter(request.GET)
    return f"{address}?{query}" if query else address


MAX_UNSEEN: Final = 100


@require_safe
def mention_list(request: AuthenticatedRequest) -> HttpResponse:
    user = request.user
    mentions = get_mentions(user, visible_comparisons_everywhere(user)).select_related(*MENTION_RELATIONS)
    unseen = list(mentions.filter(seen_at__isnull=True).order_by("-pk")[:MAX_UNSEEN])
    page = paginate(request, mentions.filter(seen_at__isnull=False), sorting=NEWEST_FIRST)
    html = render_texts(mention.comment.text for mention in reveal_mentions(user, [*unseen, *page.rows]))
    context = {"page": "mentions", "unseen": unseen, "page_of_rows": page, "html": html}
    return render(request, "mentions/mentions.html", context)

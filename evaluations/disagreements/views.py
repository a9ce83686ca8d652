"""The pages of disagreements and mentions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

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
    WithdrawForm,
    clean_or_refuse,
)
from evaluations.disagreements.history import get_comparison_history
from evaluations.disagreements.requests import (
    get_aspect_or_404,
    get_open_comparison_or_404,
    get_own_comment_or_404,
    get_own_review_or_404,
    get_resolution_or_404,
)
from evaluations.disagreements.selectors import (
    MENTION_RELATIONS,
    Disagreement,
    DisagreementFilter,
    count_disagreements,
    get_disagreements_on,
    get_mentions,
    get_neighbouring_disagreements,
    get_thread,
    reveal_disagreements,
    reveal_mentions,
)
from evaluations.disagreements.services import (
    add_comment,
    explain_own_choice,
    mark_mentions_seen,
    resolve_aspect,
    withdraw_own_comment,
    withdraw_resolution,
)
from evaluations.domain.choices import Choice
from evaluations.domain.errors import InputRefused
from evaluations.domain.reviews import DIFFERENCE_REASON_TEXTS, SAVED_REVIEW_STATES, DifferenceReason
from evaluations.domain.roles import RaterKind
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.rubrics import Aspect, RubricAspect
from evaluations.models.verdicts import Review
from evaluations.rendered_texts import build_turns, iter_comparison_texts, render_texts
from evaluations.reviews.selectors import get_saved_spans
from evaluations.verdicts.labels import DecidedLabel
from evaluations.verdicts.reviewer_choices import ReviewerChoice, get_reviewer_choices
from evaluations.verdicts.vote_table import VoteCell, VoteRow, VoteTable
from evaluations.visibility import (
    list_people_who_can_see,
    reveal_visible_vote_table,
    visible_comparisons_everywhere,
)
from evaluations.web.pagination import PAGE_SIZE, Page, build_page_query, paginate, parse_after
from evaluations.web.requests import AuthenticatedRequest


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
    between_people, number_resolved = count_disagreements(filters)
    context = {
        "page": "disagreements",
        "evaluation": evaluation,
        "form": form,
        "filters": filters,
        "page_of_rows": page,
        "rows": [
            {"comparison": comparison, "differences": differences} for comparison, differences in disagreements.rows
        ],
        "filter": encode_filter(request.GET),
        "is_filtered": any(request.GET.get(name) for name in form.fields if name != "state"),
        "between_people": between_people,
        "number_resolved": number_resolved,
    }
    return render(request, "disagreements/disagreements.html", context, status=422 if form.errors else 200)


def encode_filter(query: QueryDict) -> str:
    """The filter parameters, for links to disagreements."""
    parameters = query.copy()
    parameters.pop("after", None)
    for name in [name for name, value in parameters.items() if not value]:
        del parameters[name]
    return parameters.urlencode()


CHOICE_TEXTS: Mapping[Choice, str] = {Choice.A: "A", Choice.TIE: "Tie", Choice.BOTH_BAD: "Both bad", Choice.B: "B"}


@dataclass(frozen=True)
class AspectQuestion:
    """One aspect: its votes, judges' choices, and the form that resolves it (None without permission)."""

    aspect: Aspect
    reviewer_choices: Sequence[ReviewerChoice]
    other_choices: Sequence[tuple[VoteRow, VoteCell]]
    difference: Disagreement | None
    label: DecidedLabel | None
    offered: Sequence[tuple[Choice, str]]
    form: ResolveForm | None = None
    refusal: str = ""

    @property
    def is_open(self) -> bool:
        return self.difference is not None and not self.difference.resolution and bool(self.difference.kinds)

    @property
    def is_disputed(self) -> bool:
        """Whether it is open or was resolved."""
        return self.is_open or bool(self.difference and self.difference.resolution)


@dataclass(frozen=True)
class RefusedInput:
    """Refused input about one aspect, with the reason."""

    aspect: str
    reason: str
    sent: Mapping[str, Any] | None = None


@require_safe
def disagreement_detail(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    comparison, user = get_open_comparison_or_404(request.user, slug, pk), request.user
    mark_mentions_seen(user, comparison)
    return render_disagreement(request, comparison)


def render_disagreement(
    request: AuthenticatedRequest,
    comparison: Comparison,
    *,
    refused: RefusedInput | None = None,
    comment: CommentForm | None = None,
) -> HttpResponse:
    user, evaluation = request.user, comparison.evaluation
    filters = DisagreementsForm(request.GET, evaluation=evaluation, user=user).to_filter()
    before, after = get_neighbouring_disagreements(filters, comparison)
    table = reveal_visible_vote_table(user, comparison)
    questions = list(
        build_questions(comparison, filters, table, refused, is_allowed(user, Action.ADJUDICATE, evaluation))
    )
    comments = get_thread(comparison)
    html = render_texts([*iter_comparison_texts(comparison), *table.rationales, *(row.text for row in comments)])
    context = {
        "page": "disagreements",
        "evaluation": evaluation,
        "comparison": comparison,
        "sides": [
            (side, response, build_turns(response.messages, html))
            for side, response in (("A", comparison.response_a), ("B", comparison.response_b))
        ],
        "html": html,
        "table": table,
        "differing": [question for question in questions if question.is_disputed],
        "agreed": [question for question in questions if not question.is_disputed],
        "open_questions": sum(question.is_open for question in questions),
        "passages": [
            ("A" if span.response_id == comparison.response_a_id else "B", span) for span in get_saved_spans(comparison)
        ],
        "thread": comments,
        "comment": comment or CommentForm(aspects=table.aspects),
        "readers": list_people_who_can_see(comparison),
        "history": get_comparison_history(comparison),
        "own": Review.objects.filter(rater__user=user, comparison=comparison, state__in=SAVED_REVIEW_STATES).first(),
        "reasons": [(reason.value, DIFFERENCE_REASON_TEXTS[reason]) for reason in DifferenceReason],
        "before": before,
        "after": after,
        "filter": encode_filter(request.GET),
    }
    status = 422 if refused or comment else 200
    return render(request, "disagreement/disagreement.html", context, status=status)


def build_questions(
    comparison: Comparison,
    filters: DisagreementFilter,
    table: VoteTable,
    refused: RefusedInput | None,
    may_resolve: bool,
) -> Iterator[AspectQuestion]:
    """Every aspect that has choices or that the rubric has, in the rubric's order."""
    reviewer_choices = get_reviewer_choices(comparison)
    differences = get_disagreements_on(comparison, filters.judge)
    offered = get_offered_choices(comparison.evaluation)
    for index, aspect in enumerate(table.aspects):
        other_choices = [
            (row, cell) for row in table.rows if row.kind != RaterKind.HUMAN and (cell := row.cells[index]) is not None
        ]
        difference, choices = differences.get(aspect.pk), offered.get(aspect.pk, [])
        own_refusal = refused if refused and refused.aspect == aspect.key else None
        resolution = difference.resolution if difference else None
        form = (
            ResolveForm.for_aspect(aspect, resolution, own_refusal.sent if own_refusal else None)
            if may_resolve and choices
            else None
        )
        yield AspectQuestion(
            aspect,
            reviewer_choices.get(aspect, []),
            other_choices,
            difference,
            table.labels[index],
            choices,
            form,
            own_refusal.reason if own_refusal else "",
        )


def get_offered_choices(evaluation: Evaluation) -> Mapping[int, Sequence[tuple[Choice, str]]]:
    """The choices offered by aspect: by the current rubric version if it has the aspect, else the newest."""
    rows = RubricAspect.objects.filter(version__rubric__evaluation=evaluation).select_related("aspect")
    current_last = sorted(rows, key=lambda row: (row.version_id == evaluation.review_rubric_id, row.version_id))
    by_aspect = {row.aspect_id: row for row in current_last}
    return {
        aspect: [(choice, label_offered_choice(choice, row)) for choice in row.choices]
        for aspect, row in by_aspect.items()
    }


def label_offered_choice(choice: Choice, aspect: RubricAspect) -> str:
    """The label of the choice. If “both bad” is offered, a tie means “both good”."""
    return "Both good" if choice == Choice.TIE and aspect.offers_both_bad else CHOICE_TEXTS[choice]


@require_POST
def disagreement_resolve(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    comparison = get_open_comparison_or_404(request.user, slug, pk, Action.ADJUDICATE)
    aspect = get_aspect_or_404(comparison, request.POST.get("aspect", ""))
    try:
        cleaned = clean_or_refuse(ResolveForm(request.POST))
        resolution = resolve_aspect(
            comparison,
            aspect,
            choice=cleaned["choice"],
            reason=cleaned["reason"],
            version=cleaned["version"],
            user=request.user,
        )
    except InputRefused as refusal:
        return render_disagreement(request, comparison, refused=RefusedInput(aspect.key, str(refusal), request.POST))
    messages.success(request, f"{aspect.name} is settled as {resolution.choice.replace('_', ' ')}.")
    return redirect_to_disagreement(request, comparison)


@require_POST
def resolution_withdraw(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    resolution = get_resolution_or_404(request.user, slug, pk)
    comparison, aspect = resolution.comparison, resolution.aspect
    try:
        cleaned = clean_or_refuse(WithdrawForm(request.POST))
        withdraw_resolution(resolution, version=cleaned["version"], user=request.user)
    except InputRefused as refusal:
        return render_disagreement(request, comparison, refused=RefusedInput(aspect.key, str(refusal)))
    messages.success(request, f"{aspect.name} is open again.")
    return redirect_to_disagreement(request, comparison)


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
        return render_disagreement(request, comparison, refused=RefusedInput(aspect.key, str(refusal)))
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
        messages.warning(request, f"Nobody who may see this is called “{name}”, so nobody was told of that name.")
    return redirect_to_disagreement(request, comparison, f"comment-{posted.comment.pk}")


@require_POST
def comment_withdraw(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    comment = get_own_comment_or_404(request.user, slug, pk)
    withdraw_own_comment(comment, user=request.user)
    return redirect_to_disagreement(request, comment.comparison, "discussion")


def redirect_to_disagreement(request: AuthenticatedRequest, comparison: Comparison, fragment: str = "") -> HttpResponse:
    """Redirect to the comparison, with the filter that it was opened from."""
    address = reverse("disagreement", args=[comparison.evaluation.slug, comparison.pk])
    query = encode_filter(request.GET)
    return redirect(f"{address}{f'?{query}' if query else ''}{f'#{fragment}' if fragment else ''}")


MAX_UNSEEN: Final = 100


@require_safe
def mention_list(request: AuthenticatedRequest) -> HttpResponse:
    user = request.user
    mentions = get_mentions(user, visible_comparisons_everywhere(user)).select_related(*MENTION_RELATIONS)
    unseen = list(mentions.filter(seen_at__isnull=True).order_by("-pk")[:MAX_UNSEEN])
    page = paginate(request, mentions.filter(seen_at__isnull=False), newest_first=True)
    html = render_texts(mention.comment.text for mention in reveal_mentions(user, [*unseen, *page.rows]))
    context = {"page": "mentions", "unseen": unseen, "page_of_rows": page, "html": html}
    return render(request, "mentions/mentions.html", context)

"""What is done about a disagreement: settle it, open it again, say why one differs, comment, withdraw."""

from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from evaluations import access
from evaluations.access import Action
from evaluations.domain import InputRefused
from evaluations.forms.disagreement import CommentForm, SettleForm, WhyForm, WithdrawForm, checked
from evaluations.models import Adjudication, Aspect, Comment, Comparison, Review, User
from evaluations.services.adjudicating import adjudicating, discussing
from evaluations.services.adjudicating.explaining import explain
from evaluations.web.disagreement import Refused, opened, shown
from evaluations.web.disagreements import filter_of


@require_POST
def disagreement_settle(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    comparison = opened(request, slug, pk, Action.ADJUDICATE)
    aspect = aspect_named(comparison, request.POST.get("aspect", ""))
    try:
        given = checked(SettleForm(request.POST))
        made = adjudicating.adjudicate(
            comparison,
            aspect,
            choice=given["choice"],
            reason=given["reason"],
            version=given["version"],
            user=cast(User, request.user),
        )
    except InputRefused as refusal:
        return shown(request, comparison, refused=Refused(aspect.key, str(refusal), request.POST))
    messages.success(request, f"{aspect.name} is settled as {made.choice.replace('_', ' ')}.")
    return back(request, comparison)


@require_POST
def adjudication_withdraw(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    evaluation = access.evaluation_for(cast(User, request.user), slug, Action.ADJUDICATE)
    found = Adjudication.objects.select_related("comparison", "aspect", "user")
    adjudication = get_object_or_404(found, pk=pk, comparison__evaluation=evaluation)
    comparison = opened(request, slug, adjudication.comparison_id, Action.ADJUDICATE)
    try:
        given = checked(WithdrawForm(request.POST))
        adjudicating.withdraw(adjudication, version=given["version"], user=cast(User, request.user))
    except InputRefused as refusal:
        return shown(request, comparison, refused=Refused(adjudication.aspect.key, str(refusal)))
    messages.success(request, f"{adjudication.aspect.name} is open again.")
    return back(request, comparison)


@require_POST
def disagreement_why(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Why one chose otherwise, on one's own review."""
    comparison, user = opened(request, slug, pk, Action.REVIEW), cast(User, request.user)
    aspect = aspect_named(comparison, request.POST.get("aspect", ""))
    try:
        given = checked(WhyForm(request.POST))
        mine = Review.objects.filter(rater__user=user, comparison=comparison).select_related("rater")
        review = get_object_or_404(mine, pk=given["review"])
        review.comparison = comparison
        explain(review, aspect, reason=given["reason"], note=given["note"], user=user)
    except InputRefused as refusal:
        return shown(request, comparison, refused=Refused(aspect.key, str(refusal)))
    return back(request, comparison, f"aspect-{aspect.key}")


@require_POST
def disagreement_comment(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    comparison, user = opened(request, slug, pk, Action.DISCUSS), cast(User, request.user)
    form = CommentForm(request.POST, aspects=Aspect.objects.filter(evaluation=comparison.evaluation))
    try:
        given = checked(form)
        posted = discussing.post(
            comparison,
            given["text"],
            aspect=aspect_named(comparison, given["about"]) if given["about"] else None,
            user=user,
            readers=access.who_may_see(comparison),
        )
    except InputRefused as refusal:
        if "text" not in form.errors:
            form.add_error("text", str(refusal))
        return shown(request, comparison, comment=form)
    for name in posted.unknown:
        messages.warning(request, f"Nobody who may see this is called “{name}”, so nobody was told of that name.")
    return back(request, comparison, f"comment-{posted.comment.pk}")


@require_POST
def comment_withdraw(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug, Action.DISCUSS)
    own = Comment.objects.filter(user=user, comparison__in=access.open_comparisons(user, evaluation))
    comment = get_object_or_404(own.select_related("comparison__evaluation"), pk=pk)
    discussing.withdraw(comment, user=user)
    return back(request, comment.comparison, "discussion")


def aspect_named(comparison: Comparison, key: str) -> Aspect:
    aspect: Aspect = get_object_or_404(Aspect, evaluation=comparison.evaluation_id, key=key)
    return aspect


def back(request: HttpRequest, comparison: Comparison, fragment: str = "") -> HttpResponse:
    """To the comparison as it stands now, in the line that it was opened from."""
    address = reverse("disagreement", args=[comparison.evaluation.slug, comparison.pk])
    kept = filter_of(request.GET)
    return redirect(f"{address}{f'?{kept}' if kept else ''}{f'#{fragment}' if fragment else ''}")

"""Pages of the members of an evaluation."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from evaluations.access import Action, Right, has_right, is_allowed, list_invitees, require_evaluation
from evaluations.domain.errors import InputRefused
from evaluations.domain.roles import Role
from evaluations.members.forms import ROLE_CHOICES, MemberForm, RoleForm
from evaluations.members.invitations.services import create_invitation
from evaluations.members.requests import create_link_url, get_membership_or_404, render_new_link
from evaluations.members.selectors import describe_unclaimed, list_invitations
from evaluations.members.services import enroll_member, remove_member, set_role
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.users import Membership, User
from evaluations.reviews.queues.selectors import (
    CalibrationResult,
    ReviewerWork,
    get_calibration_results,
    get_open_calibrations,
    get_reviewer_work,
)
from evaluations.web.pagination import paginate
from evaluations.web.refusals import show_refusal
from evaluations.web.requests import AuthenticatedRequest


@dataclass(frozen=True)
class MemberWork:
    rater: int
    work: ReviewerWork
    calibration: CalibrationResult | None


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def members(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """The list; a POST adds a person."""
    user = request.user
    if request.method != "POST":
        return render_members(request, require_evaluation(user, slug), MemberForm())
    evaluation = require_evaluation(user, slug, Action.OWN)
    form = MemberForm(request.POST)
    if not form.is_valid():
        return render_members(request, evaluation, form, status=422)
    username, role = form.cleaned_data["username"], Role(form.cleaned_data["role"])
    try:
        membership, is_new = enroll_member(evaluation, username, role, by=user)
    except InputRefused as refused:
        form.add_error("username", str(refused))
        return render_members(request, evaluation, form, status=422)
    if is_new and list_invitees(user).filter(pk=membership.user_id).exists():
        return render_new_link(
            request, membership.user, create_link_url(request, membership.user, evaluation), evaluation
        )
    if is_new:
        messages.success(
            request, f"“{membership.user.username}” takes part now. Ask a site administrator for the sign-in link."
        )
    else:
        messages.success(request, f"“{membership.user.username}” takes part now, and signs in as before.")
        warn_of_unclaimed(request, membership.user)
    return redirect("members", slug)


def warn_of_unclaimed(request: AuthenticatedRequest, person: User) -> None:
    """Say who made an existing account that has no password yet, and what opens it."""
    if account := describe_unclaimed([person], request.user).get(person.pk):
        made_for = f" for “{account.made_for}”" if account.made_for else ""
        messages.warning(
            request,
            f"This account has no password yet. {account.maker or 'Somebody else'} created it{made_for} and could sign "
            f"in as this person. Now open: sessions {account.sessions}, tokens {account.tokens}, "
            f"links {account.links}.",
        )


@never_cache
@require_http_methods(["POST"])
def member_invite(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """Invite a name. The answer is the same whether or not an account has it."""
    evaluation = require_evaluation(request.user, slug, Action.OWN)
    form = MemberForm(request.POST)
    if not form.is_valid():
        return render_members(request, evaluation, form, status=422)
    try:
        invitation = create_invitation(
            evaluation, form.cleaned_data["username"], Role(form.cleaned_data["role"]), by=request.user
        )
    except InputRefused as refused:
        form.add_error("username", str(refused))
        return render_members(request, evaluation, form, status=422)
    messages.success(
        request,
        f"“{invitation.username}” is invited. The person with this username finds the invitation on their evaluations "
        "page and accepts it there.",
    )
    return redirect("members", slug)


@require_http_methods(["POST"])
def member_role(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    membership = get_membership_or_404(request, slug, pk)
    form = RoleForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Choose one of the roles.")
        return redirect("members", slug)
    with show_refusal(request):
        role = Role(form.cleaned_data["role"])
        set_role(membership.evaluation, membership.user, role, by=request.user)
        messages.success(request, f"{membership.user} is {role} now.")
    return redirect("members", slug)


@require_http_methods(["POST"])
def member_remove(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    membership = get_membership_or_404(request, slug, pk)
    try:
        remove_member(membership, by=request.user)
    except InputRefused as refused:
        messages.error(request, str(refused))
        return redirect("members", slug)
    messages.success(request, f"{membership.user} no longer takes part. Every review stays.")
    return redirect("evaluations" if membership.user == request.user else reverse("members", args=[slug]))


@never_cache
@require_http_methods(["POST"])
def member_link(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    membership = get_membership_or_404(request, slug, pk)
    try:
        link = create_link_url(request, membership.user, membership.evaluation)
    except InputRefused as refused:
        messages.error(request, str(refused))
        return redirect("members", slug)
    return render_new_link(request, membership.user, link, membership.evaluation)


def render_members(
    request: AuthenticatedRequest, evaluation: Evaluation, form: MemberForm, status: int = 200
) -> HttpResponse:
    user = request.user
    page = paginate(request, evaluation.memberships.select_related("user"))
    owns = is_allowed(user, Action.OWN, evaluation)
    invitees = list_invitees(user).filter(memberships__evaluation=evaluation, is_active=True).exclude(pk=user.pk)
    sees_all = is_allowed(user, Action.SEE_ALL, evaluation)
    context = {
        "page": "members",
        "evaluation": evaluation,
        "members": page,
        "done": work_by_member(evaluation, page.rows) if sees_all else {},
        "form": form,
        "roles": ROLE_CHOICES,
        "invitees": set(invitees.values_list("pk", flat=True)) if owns else set(),
        "unclaimed": describe_unclaimed([member.user for member in page.rows], user) if owns else {},
        "invitations": list_invitations(evaluation) if owns else [],
        "may_enroll": owns and has_right(user, Right.CREATE_ACCOUNTS),
    }
    return render(request, "members/members.html", context, status=status)


def work_by_member(evaluation: Evaluation, members: Sequence[Membership]) -> dict[int, MemberWork]:
    """User id → their work by the current rubric, for members who have begun."""
    users = [member.user_id for member in members]
    raters = list(Rater.objects.filter(evaluation=evaluation, user__in=users))
    work = get_reviewer_work(evaluation, raters)
    calibration = get_open_calibrations(evaluation).select_related("rubric_version__rubric").last()
    results = get_calibration_results(calibration, raters) if calibration else {}
    return {
        rater.user_id: MemberWork(rater.pk, work[rater.pk], results.get(rater.pk)) for rater in raters if rater.user_id
    }

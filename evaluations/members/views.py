"""Pages of the members of an evaluation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from evaluations.access import Action, Right, has_right, is_allowed, list_invitees, require_evaluation
from evaluations.domain.errors import InputRefused
from evaluations.domain.roles import Role
from evaluations.members.additions import Addition, Outcome, add_members, invite_members
from evaluations.members.forms import ROLE_CHOICES, JoinLinkForm, MembersForm, RoleForm
from evaluations.members.join_links.services import list_join_links
from evaluations.members.requests import build_link_url, create_link_url, get_membership_or_404, render_new_link
from evaluations.members.selectors import describe_unclaimed, list_invitations
from evaluations.members.services import remove_member, set_role
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.users import Membership
from evaluations.reviews.queues.selectors import (
    CalibrationResult,
    ReviewerWork,
    get_calibration_results,
    get_open_calibrations,
    get_reviewer_work,
)
from evaluations.web.notices import add_notice_with_undo
from evaluations.web.pagination import paginate
from evaluations.web.refusals import show_refusal
from evaluations.web.requests import AuthenticatedRequest
from evaluations.web.sorting import SortColumn, parse_sorting


@dataclass(frozen=True)
class MemberWork:
    rater: int
    work: ReviewerWork
    calibration: CalibrationResult | None


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def members(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """The list; a POST adds members and shows a sign-in link for each new account."""
    if request.method != "POST":
        return render_members(request, require_evaluation(request.user, slug), MembersForm())
    return add_from_form(request, require_evaluation(request.user, slug, Action.OWN), add_members)


@never_cache
@require_http_methods(["POST"])
def member_invite(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """Invite names. The answer is the same whether or not an account has them."""
    return add_from_form(request, require_evaluation(request.user, slug, Action.OWN), invite_members)


def add_from_form(
    request: AuthenticatedRequest, evaluation: Evaluation, add: Callable[..., list[Addition]]
) -> HttpResponse:
    form = MembersForm(request.POST)
    if not form.is_valid():
        return render_members(request, evaluation, form, status=422)
    role = Role(form.cleaned_data["role"])
    additions = add(evaluation, form.cleaned_data["names"], role, by=request.user)
    if all(addition.outcome == Outcome.REFUSED for addition in additions):
        form.add_error("names", ValidationError([addition.problem for addition in additions]))
        return render_members(request, evaluation, form, status=422)
    context = {
        "page": "members",
        "evaluation": evaluation,
        "role": role,
        "additions": [(addition, build_link_url(request, addition.token)) for addition in additions],
        "has_links": any(addition.token for addition in additions),
        "hours": settings.SIGN_IN_LINK_HOURS,
    }
    return render(request, "members/added.html", context)


@require_http_methods(["POST"])
def member_role(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    membership = get_membership_or_404(request, slug, pk)
    form = RoleForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Choose a role.")
        return redirect("members", slug)
    role, before = Role(form.cleaned_data["role"]), membership.role
    with show_refusal(request):
        set_role(membership.evaluation, membership.user, role, by=request.user)
        undo_url = reverse("member_role", args=[slug, pk])
        add_notice_with_undo(request, f"{membership.user} is now {role}.", undo_url, {"role": before})
    return redirect("members", slug)


@require_http_methods(["POST"])
def member_remove(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    membership = get_membership_or_404(request, slug, pk)
    try:
        remove_member(membership, by=request.user)
    except InputRefused as refused:
        messages.error(request, str(refused))
        return redirect("members", slug)
    messages.success(request, f"{membership.user} was removed. Their reviews are kept.")
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
    request: AuthenticatedRequest, evaluation: Evaluation, form: MembersForm, status: int = 200
) -> HttpResponse:
    user = request.user
    sorting = parse_sorting(request, SortColumn("joined"), SortColumn("name", "user__username"))
    page = paginate(request, evaluation.memberships.select_related("user"), sorting=sorting)
    owns = is_allowed(user, Action.OWN, evaluation)
    invitees = list_invitees(user).filter(memberships__evaluation=evaluation, is_active=True).exclude(pk=user.pk)
    sees_all = is_allowed(user, Action.SEE_ALL, evaluation)
    context = {
        "page": "members",
        "evaluation": evaluation,
        "members": page,
        "sorting": sorting,
        "done": work_by_member(evaluation, page.rows) if sees_all else {},
        "form": form,
        "roles": ROLE_CHOICES,
        "invitees": set(invitees.values_list("pk", flat=True)) if owns else set(),
        "unclaimed": describe_unclaimed([member.user for member in page.rows], user) if owns else {},
        "invitations": list_invitations(evaluation) if owns else [],
        "join_links": list_join_links(evaluation) if owns else [],
        "join_form": JoinLinkForm(),
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

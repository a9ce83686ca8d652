"""Who takes part in an evaluation, and as what."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from evaluations import access
from evaluations.access import Action
from evaluations.domain import InputRefused, Role
from evaluations.forms.people import ROLES, PersonForm, RoleForm
from evaluations.models import Evaluation, Membership, Rater, User
from evaluations.services.preparing.inviting import add_person, make_link
from evaluations.services.preparing.preparing import remove_member, set_role
from evaluations.services.reviewing.calibrating import CalibrationResult, open_rounds, results
from evaluations.services.reviewing.overseeing import Work, work_of
from evaluations.services.reviewing.releasing import release
from evaluations.web.paging import page_of
from evaluations.web.refusing import told_if_refused

# Of the places of somebody who leaves so many are put back at once; a sweep puts back the rest.
AT_ONCE: Final = 200


@dataclass(frozen=True)
class Done:
    rater: int
    work: Work
    calibration: CalibrationResult | None


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def people(request: HttpRequest, slug: str) -> HttpResponse:
    """The list; a POST adds a person."""
    user = cast(User, request.user)
    if request.method != "POST":
        return listed(request, access.evaluation_for(user, slug), PersonForm())
    evaluation = access.evaluation_for(user, slug, Action.OWN)
    form = PersonForm(request.POST)
    if not form.is_valid():
        return listed(request, evaluation, form, status=422)
    try:
        membership, is_new = add_person(
            evaluation, form.cleaned_data["username"], Role(form.cleaned_data["role"]), by=user
        )
    except InputRefused as refused:
        form.add_error("username", str(refused))
        return listed(request, evaluation, form, status=422)
    if is_new:
        return handed_over(request, membership)
    messages.success(request, f"“{membership.user.username}” takes part now, and signs in as before.")
    return redirect("people", slug)


@require_http_methods(["POST"])
def people_role(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    membership = membership_for(request, slug, pk)
    form = RoleForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Choose one of the roles.")
        return redirect("people", slug)
    with told_if_refused(request):
        role = Role(form.cleaned_data["role"])
        set_role(membership.evaluation, membership.user, role, by=cast(User, request.user))
        release(AT_ONCE, of=membership.user, by=cast(User, request.user))
        messages.success(request, f"{membership.user} is {role} now.")
    return redirect("people", slug)


@require_http_methods(["POST"])
def people_remove(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    membership = membership_for(request, slug, pk)
    try:
        remove_member(membership, by=cast(User, request.user))
        release(AT_ONCE, of=membership.user, by=cast(User, request.user))
    except InputRefused as refused:
        messages.error(request, str(refused))
        return redirect("people", slug)
    messages.success(request, f"{membership.user} no longer takes part. Every review stays.")
    return redirect("evaluations" if membership.user == request.user else reverse("people", args=[slug]))


@never_cache
@require_http_methods(["POST"])
def people_link(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    membership = membership_for(request, slug, pk)
    if not access.invitees(cast(User, request.user)).filter(pk=membership.user_id).exists():
        messages.error(
            request,
            f"{membership.user}’s account opens more than your evaluations, so a link has to come from a site "
            f"administrator or, on the machine itself, from  manage.py sign_in_link {membership.user.username}",
        )
        return redirect("people", slug)
    try:
        return handed_over(request, membership)
    except InputRefused as refused:
        messages.error(request, str(refused))
        return redirect("people", slug)


def membership_for(request: HttpRequest, slug: str, pk: int) -> Membership:
    evaluation = access.evaluation_for(cast(User, request.user), slug, Action.OWN)
    return get_object_or_404(Membership.objects.select_related("user", "evaluation"), evaluation=evaluation, pk=pk)


def handed_over(request: HttpRequest, membership: Membership) -> HttpResponse:
    """A page with a new link. It is not stored, so it is in this answer and in no later one."""
    evaluation = membership.evaluation
    token = make_link(membership.user, by=cast(User, request.user), evaluation=evaluation)
    link = request.build_absolute_uri(reverse("sign_in_link", args=[token]))
    context = {
        "page": "people",
        "evaluation": evaluation,
        "person": membership.user,
        "link": link,
        "hours": settings.SIGN_IN_LINK_HOURS,
    }
    return render(request, "people/link.html", context)


def listed(request: HttpRequest, evaluation: Evaluation, form: PersonForm, status: int = 200) -> HttpResponse:
    user = cast(User, request.user)
    page = page_of(request, evaluation.memberships.select_related("user"))
    invitees = access.invitees(user).filter(memberships__evaluation=evaluation)
    sees_all = access.may(user, Action.SEE_ALL, evaluation)
    context = {
        "page": "people",
        "evaluation": evaluation,
        "members": page,
        "done": done_by(evaluation, page.rows) if sees_all else {},
        "form": form,
        "roles": ROLES,
        "invitees": set(invitees.values_list("pk", flat=True)) if access.may(user, Action.OWN, evaluation) else set(),
    }
    return render(request, "people/people.html", context, status=status)


def done_by(evaluation: Evaluation, members: Sequence[Membership]) -> dict[int, Done]:
    """User id → what they have done here by the rubric in force; nothing for whom has not begun."""
    users = [member.user_id for member in members]
    raters = list(Rater.objects.filter(evaluation=evaluation, user__in=users))
    work = work_of(evaluation, raters)
    calibration = open_rounds(evaluation).select_related("rubric_version__rubric").last()
    told = results(calibration, raters) if calibration else {}
    return {rater.user_id: Done(rater.pk, work[rater.pk], told.get(rater.pk)) for rater in raters if rater.user_id}

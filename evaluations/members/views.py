"""Pages of accounts, members, tokens and signing in."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import authenticate, login, logout, update_session_auth_hash
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render, resolve_url
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from evaluations.access import Action, is_allowed, list_invitees, require_evaluation, require_site_administrator
from evaluations.domain.errors import InputRefused
from evaluations.domain.roles import Role
from evaluations.members.forms import (
    ROLE_CHOICES,
    AccountForm,
    MemberForm,
    PasswordForm,
    RoleForm,
    SignInForm,
    TokenForm,
)
from evaluations.members.requests import (
    create_link_url,
    create_member_link_url,
    get_account_or_404,
    get_membership_or_404,
)
from evaluations.members.selectors import list_active_tokens
from evaluations.members.services import (
    AccountSettings,
    SignInLinkRefused,
    change_account,
    create_token,
    disable_account,
    enable_account,
    find_sign_in_link,
    invite_member,
    redeem_sign_in_link,
    remove_member,
    revoke_token,
    set_password,
    set_role,
)
from evaluations.members.sign_in_limits import is_try_allowed, reset_tries
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.users import ApiToken, Membership, User
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

MODEL_BACKEND = "django.contrib.auth.backends.ModelBackend"
SIGNED_IN_BY_LINK = "signed in by link"  # a session key: then a new password does not need the old one


@never_cache
@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in_link(request: HttpRequest, token: str) -> HttpResponse:
    try:
        if request.method == "POST":
            login(request, redeem_sign_in_link(token), backend=MODEL_BACKEND)
            request.session[SIGNED_IN_BY_LINK] = True
            return redirect("evaluations")
        context: dict[str, object] = {"link": find_sign_in_link(token)}
    except SignInLinkRefused as refused:
        return render(request, "sign_in_link/sign_in_link.html", {"refused": str(refused)}, status=410)
    return render(request, "sign_in_link/sign_in_link.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def account(request: AuthenticatedRequest) -> HttpResponse:
    user = request.user
    form = AccountForm(request.POST or None, instance=User.objects.get(pk=user.pk))
    if form.is_valid():
        change_account(form.instance, AccountSettings(**form.cleaned_data))
        messages.success(request, "Saved.")
        return redirect("account")
    return render_account(request, form, PasswordForm(user=user, by_link=SIGNED_IN_BY_LINK in request.session))


@sensitive_post_parameters()
@require_http_methods(["POST"])
def account_password(request: AuthenticatedRequest) -> HttpResponse:
    user = request.user
    form = PasswordForm(request.POST, user=user, by_link=SIGNED_IN_BY_LINK in request.session)
    if form.is_valid() and save_password(user, form):
        request.session.pop(SIGNED_IN_BY_LINK, None)
        update_session_auth_hash(request, user)
        messages.success(request, "Your password is set. Everywhere else you are signed out.")
        return redirect("account")
    return render_account(request, AccountForm(instance=user), form)


def save_password(user: User, form: PasswordForm) -> bool:
    try:
        set_password(user, form.cleaned_data["password"], by=user)
    except InputRefused as refused:
        form.add_error("password", str(refused))
        return False
    return True


def render_account(request: AuthenticatedRequest, form: AccountForm, password_form: PasswordForm) -> HttpResponse:
    context = {"page": "account", "form": form, "password_form": password_form}
    return render(request, "account/account.html", context, status=422 if request.method == "POST" else 200)


@dataclass(frozen=True)
class MemberWork:
    rater: int
    work: ReviewerWork
    calibration: CalibrationResult | None


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def people(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """The list; a POST adds a person."""
    user = request.user
    if request.method != "POST":
        return render_members(request, require_evaluation(user, slug), MemberForm())
    evaluation = require_evaluation(user, slug, Action.OWN)
    form = MemberForm(request.POST)
    if not form.is_valid():
        return render_members(request, evaluation, form, status=422)
    try:
        membership, is_new = invite_member(
            evaluation, form.cleaned_data["username"], Role(form.cleaned_data["role"]), by=user
        )
    except InputRefused as refused:
        form.add_error("username", str(refused))
        return render_members(request, evaluation, form, status=422)
    if is_new:
        return render_new_link(
            request, membership.user, create_link_url(request, membership.user, evaluation), evaluation
        )
    messages.success(request, f"“{membership.user.username}” takes part now, and signs in as before.")
    return redirect("people", slug)


@require_http_methods(["POST"])
def people_role(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    membership = get_membership_or_404(request, slug, pk)
    form = RoleForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Choose one of the roles.")
        return redirect("people", slug)
    with show_refusal(request):
        role = Role(form.cleaned_data["role"])
        set_role(membership.evaluation, membership.user, role, by=request.user)
        messages.success(request, f"{membership.user} is {role} now.")
    return redirect("people", slug)


@require_http_methods(["POST"])
def people_remove(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    membership = get_membership_or_404(request, slug, pk)
    try:
        remove_member(membership, by=request.user)
    except InputRefused as refused:
        messages.error(request, str(refused))
        return redirect("people", slug)
    messages.success(request, f"{membership.user} no longer takes part. Every review stays.")
    return redirect("evaluations" if membership.user == request.user else reverse("people", args=[slug]))


@never_cache
@require_http_methods(["POST"])
def people_link(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    membership = get_membership_or_404(request, slug, pk)
    try:
        link = create_member_link_url(request, membership)
    except InputRefused as refused:
        messages.error(request, str(refused))
        return redirect("people", slug)
    return render_new_link(request, membership.user, link, membership.evaluation)


def render_new_link(
    request: AuthenticatedRequest, person: User, link: str, evaluation: Evaluation | None = None
) -> HttpResponse:
    context = {
        "page": "people" if evaluation else "accounts",
        "evaluation": evaluation,
        "person": person,
        "link": link,
        "hours": settings.SIGN_IN_LINK_HOURS,
    }
    return render(request, "members/sign_in_link.html", context)


def render_members(
    request: AuthenticatedRequest, evaluation: Evaluation, form: MemberForm, status: int = 200
) -> HttpResponse:
    user = request.user
    page = paginate(request, evaluation.memberships.select_related("user"))
    invitees = list_invitees(user).filter(memberships__evaluation=evaluation, is_active=True).exclude(pk=user.pk)
    sees_all = is_allowed(user, Action.SEE_ALL, evaluation)
    context = {
        "page": "people",
        "evaluation": evaluation,
        "members": page,
        "done": work_by_member(evaluation, page.rows) if sees_all else {},
        "form": form,
        "roles": ROLE_CHOICES,
        "invitees": set(invitees.values_list("pk", flat=True)) if is_allowed(user, Action.OWN, evaluation) else set(),
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


@require_http_methods(["GET", "HEAD"])
def accounts(request: AuthenticatedRequest) -> HttpResponse:
    require_site_administrator(request.user)
    text = request.GET.get("q", "").strip().replace("\x00", "")
    page = paginate(request, User.objects.filter(username__icontains=text))
    context = {"page": "accounts", "accounts": page, "q": text}
    return render(request, "accounts/accounts.html", context)


@never_cache
@require_http_methods(["POST"])
def account_link(request: AuthenticatedRequest, pk: int) -> HttpResponse:
    person = get_account_or_404(request, pk)
    try:
        link = create_link_url(request, person)
    except InputRefused as refused:
        messages.error(request, str(refused))
        return redirect("accounts")
    return render_new_link(request, person, link)


@require_http_methods(["POST"])
def account_disable(request: AuthenticatedRequest, pk: int) -> HttpResponse:
    person = get_account_or_404(request, pk)
    with show_refusal(request):
        disable_account(person, by=request.user)
        messages.success(request, f"{person} can no longer sign in. Every review stays.")
    return redirect("accounts")


@require_http_methods(["POST"])
def account_enable(request: AuthenticatedRequest, pk: int) -> HttpResponse:
    person = get_account_or_404(request, pk)
    enable_account(person, by=request.user)
    messages.success(request, f"{person} can sign in again.")
    return redirect("accounts")


WRONG_PASSWORD = "This username and this password do not belong together."
TOO_MANY_TRIES = "Too many tries. Wait a quarter of an hour, or use a sign-in link: those work at once."


@sensitive_post_parameters("password")
@never_cache
@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    if request.user.is_authenticated:
        return HttpResponseRedirect(next_url(request))
    form = SignInForm(request.POST or None)
    if form.is_valid() and sign_in_from_form(request, form):
        return HttpResponseRedirect(next_url(request))
    context = {"form": form, "hours": settings.SIGN_IN_LINK_HOURS}
    return render(request, "sign_in/sign_in.html", context, status=422 if request.method == "POST" else 200)


def sign_in_from_form(request: HttpRequest, form: SignInForm) -> bool:
    """Sign in the user that the form names, or add an error to the form."""
    username, password = form.cleaned_data["username"], form.cleaned_data["password"]
    if not is_try_allowed(request, username):
        form.add_error(None, TOO_MANY_TRIES)
        return False
    user = authenticate(request, username=username, password=password)
    if user is None:
        form.add_error(None, WRONG_PASSWORD)
        return False
    reset_tries(request, username)
    login(request, user)
    return True


def next_url(request: HttpRequest) -> str:
    """The page that the person asked for, if it is on this site."""
    url = request.GET.get("next", "")
    if url_has_allowed_host_and_scheme(url, {request.get_host()}, require_https=request.is_secure()):
        return url
    return resolve_url(settings.LOGIN_REDIRECT_URL)


@require_http_methods(["POST"])
def sign_out(request: AuthenticatedRequest) -> HttpResponse:
    logout(request)
    return redirect(settings.LOGOUT_REDIRECT_URL)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def tokens(request: AuthenticatedRequest) -> HttpResponse:
    """The list; a POST creates a token and shows it once."""
    user = request.user
    form = TokenForm(request.POST if request.method == "POST" else None, user=user)
    if form.is_valid():
        try:
            token, text = create_token(user, **form.cleaned_data)
        except InputRefused as refused:
            form.add_error(None, str(refused))
        else:
            return render(request, "token/token.html", {"page": "account", "token": token, "text": text})
    context = {"page": "account", "form": form, "tokens": list_active_tokens(user)}
    return render(request, "tokens/tokens.html", context, status=422 if form.is_bound else 200)


@require_POST
def token_revoke(request: AuthenticatedRequest, pk: int) -> HttpResponse:
    user = request.user
    token = get_object_or_404(ApiToken, user=user, pk=pk)
    revoke_token(token, by=user)
    messages.success(request, f"“{token.name}” opens nothing any more.")
    return redirect("tokens")

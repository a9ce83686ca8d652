"""Pages of one's own account: settings, password, sessions and tokens."""

from typing import Final

from django.contrib import messages
from django.contrib.auth import logout, update_session_auth_hash
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from evaluations.domain.errors import InputRefused
from evaluations.members.account.services import end_session, sign_out_everywhere
from evaluations.members.forms import AccountForm, PasswordForm, TokenForm
from evaluations.members.selectors import list_active_sessions, list_active_tokens, list_security_events
from evaluations.members.services import (
    AccountSettings,
    change_account,
    create_token,
    revoke_all_tokens,
    revoke_token,
    set_password,
)
from evaluations.members.sign_in.devices import remember_device
from evaluations.members.sign_in.passwords import check_present_password
from evaluations.models.users import ApiToken, User
from evaluations.web.forms import add_refusal
from evaluations.web.requests import AuthenticatedRequest
from evaluations.web.sessions import SIGNED_IN_BY_LINK, get_session_row, has_signed_in_recently
from evaluations.web.throttle import TooManyTries

SHOWN_EVENTS: Final = 10
SHOWN_SESSIONS: Final = 100


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def account(request: AuthenticatedRequest) -> HttpResponse:
    user = request.user
    form = AccountForm(request.POST or None, instance=User.objects.get(pk=user.pk))
    if form.is_valid():
        change_account(form.instance, AccountSettings(**form.cleaned_data))
        messages.success(request, "Saved.")
        return redirect("account")
    return render_account(request, form, PasswordForm(user=user, by_link=needs_no_password(request)))


def needs_no_password(request: AuthenticatedRequest) -> bool:
    """Whether the person came in by a link just now, as those do who forgot their password."""
    return SIGNED_IN_BY_LINK in request.session and has_signed_in_recently(request)


@never_cache
@sensitive_post_parameters()
@require_http_methods(["POST"])
def account_password(request: AuthenticatedRequest) -> HttpResponse:
    user = request.user
    form = PasswordForm(request.POST, user=user, by_link=needs_no_password(request))
    if not form.is_valid():
        return render_account(request, AccountForm(instance=user), form, status=422)
    try:
        save_password(request, form)
    except InputRefused as refused:
        add_refusal(form, refused)
        return refuse_password(request, refused, render_account(request, AccountForm(instance=user), form, status=422))
    request.session.pop(SIGNED_IN_BY_LINK, None)
    update_session_auth_hash(request, user)
    messages.success(request, "Password set. You’re signed out everywhere else.")
    response = redirect("account")
    remember_device(request, response, user)
    return response


def save_password(request: AuthenticatedRequest, form: PasswordForm) -> None:
    user, key = request.user, str(request.session.session_key)
    if "present" in form.fields:
        check_present_password(user, form.cleaned_data["present"], key)
    keeps_tokens = form.cleaned_data.get("keep_tokens", False)
    set_password(user, form.cleaned_data["password"], by=user, kept_session=key, keeps_tokens=keeps_tokens)


def refuse_password(request: AuthenticatedRequest, refused: InputRefused, page: HttpResponse) -> HttpResponse:
    """The page as the answer to a refusal, with the wait if there were too many tries."""
    if isinstance(refused, TooManyTries):
        page.status_code = 429
        page.headers["Retry-After"] = str(refused.seconds)
    return page


def render_account(
    request: AuthenticatedRequest, form: AccountForm, password_form: PasswordForm, status: int | None = None
) -> HttpResponse:
    context = {
        "page": "account",
        "form": form,
        "password_form": password_form,
        "sessions": list_active_sessions(request.user)[:SHOWN_SESSIONS],
        "this_session": get_session_row(request),
        "events": list_security_events(request.user).order_by("-pk")[:SHOWN_EVENTS],
    }
    status = status or (422 if request.method == "POST" else 200)
    return render(request, "account/account.html", context, status=status)


@require_POST
def session_end(request: AuthenticatedRequest, pk: int) -> HttpResponse:
    row = get_session_row(request)
    session = get_object_or_404(list_active_sessions(request.user), public_id=pk)
    end_session(session, by=request.user)
    if row is not None and row.pk == session.pk:
        logout(request)
        return redirect("sign_in")
    messages.success(request, "Session ended.")
    return redirect("account")


@require_POST
def sessions_end(request: AuthenticatedRequest) -> HttpResponse:
    sign_out_everywhere(request.user)
    logout(request)
    return redirect("sign_in")


@sensitive_post_parameters("present")
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def tokens(request: AuthenticatedRequest) -> HttpResponse:
    """The list; a POST creates a token and shows it once."""
    form = TokenForm(request.POST if request.method == "POST" else None, user=request.user)
    if not form.is_valid():
        return render_tokens(request, form, status=422 if form.is_bound else 200)
    try:
        token, text = create_token_from_form(request, form)
    except InputRefused as refused:
        add_refusal(form, refused)
        return refuse_password(request, refused, render_tokens(request, form, status=422))
    return render(request, "token/token.html", {"page": "account", "token": token, "text": text})


def create_token_from_form(request: AuthenticatedRequest, form: TokenForm) -> tuple[ApiToken, str]:
    """A session alone makes no token: it takes the password, or a recent sign-in where there is none."""
    values = dict(form.cleaned_data)
    present = values.pop("present", None)
    if present is not None:
        check_present_password(request.user, present, str(request.session.session_key))
    elif not has_signed_in_recently(request):
        raise InputRefused("Set a password first, or sign in again with a new link.")
    return create_token(request.user, **values)


def render_tokens(request: AuthenticatedRequest, form: TokenForm, *, status: int) -> HttpResponse:
    context = {"page": "account", "form": form, "tokens": list_active_tokens(request.user)}
    return render(request, "tokens/tokens.html", context, status=status)


@require_POST
def token_revoke(request: AuthenticatedRequest, pk: int) -> HttpResponse:
    user = request.user
    token = get_object_or_404(ApiToken, user=user, pk=pk)
    revoke_token(token, by=user)
    messages.success(request, f"Token “{token.name}” revoked.")
    return redirect("tokens")


@require_POST
def tokens_revoke(request: AuthenticatedRequest) -> HttpResponse:
    number = revoke_all_tokens(request.user, by=request.user)
    messages.success(request, f"{number} token{'' if number == 1 else 's'} revoked.")
    return redirect("tokens")

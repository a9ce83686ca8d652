"""Pages of signing in and out."""

from django.conf import settings
from django.contrib.auth import login, logout
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render, resolve_url
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from evaluations.audit.security import record_failed_sign_in
from evaluations.domain.errors import InputRefused
from evaluations.members.forms import SignInForm
from evaluations.members.services import SignInLinkRefused, find_sign_in_link, redeem_sign_in_link
from evaluations.members.sign_in.devices import remember_device
from evaluations.members.sign_in.passwords import authenticate_by_password
from evaluations.models.users import User
from evaluations.web.requests import AuthenticatedRequest
from evaluations.web.sessions import SIGNED_IN_BY_LINK
from evaluations.web.throttle import TooManyTries

MODEL_BACKEND = "django.contrib.auth.backends.ModelBackend"


@never_cache
@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in_link(request: HttpRequest, token: str) -> HttpResponse:
    try:
        if request.method == "POST":
            user = redeem_sign_in_link(token)
            login(request, user, backend=MODEL_BACKEND)
            request.session[SIGNED_IN_BY_LINK] = True
            response = redirect("evaluations")
            remember_device(request, response, user)
            return response
        context: dict[str, object] = {"link": find_sign_in_link(token)}
    except SignInLinkRefused as refused:
        if refused.user is not None:
            record_failed_sign_in(refused.user, str(refused))
        return render(request, "sign_in_link/sign_in_link.html", {"refused": str(refused)}, status=410)
    return render(request, "sign_in_link/sign_in_link.html", context)


@sensitive_post_parameters("password")
@never_cache
@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    if request.user.is_authenticated:
        return HttpResponseRedirect(next_url(request))
    form = SignInForm(request.POST or None)
    if not form.is_valid():
        return render_sign_in(request, form, status=422 if request.method == "POST" else 200)
    try:
        user = authenticate_by_password(request, form.cleaned_data["username"], form.cleaned_data["password"])
    except TooManyTries as refused:
        form.add_error(None, str(refused))
        response = render_sign_in(request, form, status=429)
        response.headers["Retry-After"] = str(refused.seconds)
        return response
    except InputRefused as refused:
        form.add_error(None, str(refused))
        return render_sign_in(request, form, status=422)
    return start_session(request, user)


def render_sign_in(request: HttpRequest, form: SignInForm, *, status: int) -> HttpResponse:
    context = {"form": form, "hours": settings.SIGN_IN_LINK_HOURS}
    return render(request, "sign_in/sign_in.html", context, status=status)


def start_session(request: HttpRequest, user: User) -> HttpResponse:
    login(request, user)
    response = HttpResponseRedirect(next_url(request))
    remember_device(request, response, user)
    return response


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

"""Signing in by password."""

from django.conf import settings
from django.contrib.auth import authenticate, login, logout
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render, resolve_url
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from evaluations.forms.sign_in import SignInForm
from evaluations.web.slowing import forget_tries, may_try

NO_MATCH = "This username and this password do not belong together."
WAIT = "Too many tries. Wait a quarter of an hour, or use a sign-in link: those work at once."


@sensitive_post_parameters("password")
@never_cache
@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    if request.user.is_authenticated:
        return HttpResponseRedirect(next_address(request))
    form = SignInForm(request.POST or None)
    if form.is_valid() and signed_in(request, form):
        return HttpResponseRedirect(next_address(request))
    context = {"form": form, "hours": settings.SIGN_IN_LINK_HOURS}
    return render(request, "sign_in/sign_in.html", context, status=422 if request.method == "POST" else 200)


def signed_in(request: HttpRequest, form: SignInForm) -> bool:
    """Sign in whom the form names; what speaks against it stands on the form."""
    username, password = form.cleaned_data["username"], form.cleaned_data["password"]
    if not may_try(request, username):
        form.add_error(None, WAIT)
        return False
    user = authenticate(request, username=username, password=password)
    if user is None:
        form.add_error(None, NO_MATCH)
        return False
    forget_tries(request, username)
    login(request, user)
    return True


def next_address(request: HttpRequest) -> str:
    """Where the person wanted to go, if that is a place on this site."""
    wanted = request.GET.get("next", "")
    if url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure()):
        return wanted
    return resolve_url(settings.LOGIN_REDIRECT_URL)


@require_http_methods(["POST"])
def sign_out(request: HttpRequest) -> HttpResponse:
    logout(request)
    return redirect(settings.LOGOUT_REDIRECT_URL)

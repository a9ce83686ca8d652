"""What a person decides about their own account."""

from typing import cast

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from evaluations.domain import InputRefused
from evaluations.forms.account import AccountForm, PasswordForm
from evaluations.models import User
from evaluations.services.preparing.inviting import set_password
from evaluations.web.sign_in_link import BY_LINK


@require_http_methods(["GET", "HEAD", "POST"])
def account(request: HttpRequest) -> HttpResponse:
    user = cast(User, request.user)
    form = AccountForm(request.POST or None, instance=User.objects.get(pk=user.pk))
    if form.is_valid():
        form.save()
        messages.success(request, "Saved.")
        return redirect("account")
    return shown(request, form, PasswordForm(user=user, by_link=BY_LINK in request.session))


@sensitive_post_parameters()
@require_http_methods(["POST"])
def account_password(request: HttpRequest) -> HttpResponse:
    user = cast(User, request.user)
    form = PasswordForm(request.POST, user=user, by_link=BY_LINK in request.session)
    if form.is_valid() and changed(user, form):
        request.session.pop(BY_LINK, None)
        update_session_auth_hash(request, user)
        messages.success(request, "Your password is set. Everywhere else you are signed out.")
        return redirect("account")
    return shown(request, AccountForm(instance=user), form)


def changed(user: User, form: PasswordForm) -> bool:
    try:
        set_password(user, form.cleaned_data["password"], by=user)
    except InputRefused as refused:
        form.add_error("password", str(refused))
        return False
    return True


def shown(request: HttpRequest, form: AccountForm, password_form: PasswordForm) -> HttpResponse:
    context = {"page": "account", "form": form, "password_form": password_form}
    return render(request, "account/account.html", context, status=422 if request.method == "POST" else 200)

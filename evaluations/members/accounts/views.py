"""Pages of all accounts of the site, for its administrators."""

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from evaluations.access import RIGHT_COLUMNS, get_site_policy, require_site_administrator
from evaluations.domain.errors import InputRefused
from evaluations.members.accounts.services import change_account_rights, change_site_policy
from evaluations.members.forms import AccountRightsForm, SitePolicyForm
from evaluations.members.requests import create_link_url, get_account_or_404, render_new_link
from evaluations.members.selectors import describe_unclaimed, find_account, list_security_events
from evaluations.members.services import disable_account, enable_account, end_access
from evaluations.models.users import User
from evaluations.web.pagination import paginate
from evaluations.web.refusals import show_refusal
from evaluations.web.requests import AuthenticatedRequest
from evaluations.web.sorting import NEWEST_FIRST

# More than a username has; SQLite refuses to search for much longer ones.
MAX_SEARCHED = 200


@never_cache
@require_safe
def accounts(request: AuthenticatedRequest) -> HttpResponse:
    require_site_administrator(request.user)
    text = request.GET.get("q", "").strip().replace("\x00", "")
    page = paginate(request, User.objects.filter(username__icontains=text[:MAX_SEARCHED]))
    context = {
        "page": "accounts",
        "accounts": page,
        "q": text,
        "policy_form": SitePolicyForm(instance=get_site_policy()),
        "rights_forms": {person.pk: AccountRightsForm(instance=person, prefix=str(person.pk)) for person in page.rows},
        "unclaimed": describe_unclaimed(page.rows, request.user),
    }
    return render(request, "accounts/accounts.html", context)


@require_POST
def site_policy(request: AuthenticatedRequest) -> HttpResponse:
    require_site_administrator(request.user)
    form = SitePolicyForm(request.POST)
    form.is_valid()  # it holds nothing but boxes
    rights = {right: form.cleaned_data[columns.policy] for right, columns in RIGHT_COLUMNS.items()}
    change_site_policy(rights, by=request.user)
    messages.success(request, "Site policy saved.")
    return redirect("accounts")


@require_POST
def account_rights(request: AuthenticatedRequest, pk: int) -> HttpResponse:
    person = get_account_or_404(request, pk)
    form = AccountRightsForm(request.POST, prefix=str(person.pk))
    form.is_valid()  # it holds nothing but boxes
    rights = {right: form.cleaned_data[columns.account] for right, columns in RIGHT_COLUMNS.items()}
    change_account_rights(person, rights, by=request.user)
    messages.success(request, f"Rights of {person} saved.")
    return redirect("accounts")


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


@require_POST
def account_end_access(request: AuthenticatedRequest, pk: int) -> HttpResponse:
    person = get_account_or_404(request, pk)
    end_access(person, by=request.user)
    messages.success(request, f"Ended all sessions, sign-in links and tokens of {person}.")
    return redirect("accounts")


@require_http_methods(["POST"])
def account_disable(request: AuthenticatedRequest, pk: int) -> HttpResponse:
    person = get_account_or_404(request, pk)
    with show_refusal(request):
        disable_account(person, by=request.user)
        messages.success(request, f"{person} can no longer sign in. Their reviews are kept.")
    return redirect("accounts")


@require_http_methods(["POST"])
def account_enable(request: AuthenticatedRequest, pk: int) -> HttpResponse:
    person = get_account_or_404(request, pk)
    enable_account(person, by=request.user)
    messages.success(request, f"{person} can sign in again.")
    return redirect("accounts")


@never_cache
@require_safe
def security_events(request: AuthenticatedRequest) -> HttpResponse:
    """Sign-ins, refusals and what ended, of the whole site or of one account, newest first."""
    require_site_administrator(request.user)
    name = request.GET.get("account", "").strip().replace("\x00", "")
    person = find_account(name) if name else None
    events = list_security_events().none() if name and person is None else list_security_events(person)
    page = paginate(request, events, sorting=NEWEST_FIRST)
    context = {
        "page": "accounts",
        "events": page.rows,
        "page_of_rows": page,
        "account": name,
        "days": settings.SECURITY_EVENT_DAYS,
    }
    return render(request, "security_events/security_events.html", context)

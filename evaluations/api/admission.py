"""Who asks: the person of a token, for what the token may be used for, and no oftener than it may."""

from typing import Any

from django.http import Http404, HttpRequest
from django.utils import timezone
from ninja.security import HttpBearer

from evaluations.api.problems import Problem
from evaluations.domain import Scope
from evaluations.models import ApiToken, User
from evaluations.services.preparing.admitting import Allowance, count_request, token_of

CHALLENGE = {"WWW-Authenticate": 'Bearer realm="judgeweb"'}


class Bearer(HttpBearer):
    """For the document, and so that no operation is open by mistake: `admit` has looked at the token by now."""

    def authenticate(self, request: HttpRequest, token: str) -> Any:
        return getattr(request, "auth", None)


def admit(request: HttpRequest) -> tuple[ApiToken, Allowance]:
    token = token_in(request)
    allowance = count_request(token)
    if allowance.is_spent:
        raise Problem(
            "rate_limited",
            f"This token has made its {allowance.limit:,} requests of this minute. Wait {allowance.seconds} seconds.",
            headers={"Retry-After": str(allowance.seconds), **limits(allowance)},
        )
    return token, allowance


def refuse_scope(token: ApiToken, scope: Scope) -> None:
    if not token.may(scope):
        raise Problem(
            "scope_missing",
            f"This takes a token with the scope “{scope}”; this one has {token.scopes.replace(',', ', ')}.",
        )


def token_in(request: HttpRequest) -> ApiToken:
    """The token of the header. A session opens nothing here, so no other site can act through somebody's browser."""
    scheme, _, text = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not text.strip():
        raise Problem("token_missing", "Send a token: Authorization: Bearer jw_…", headers=CHALLENGE)
    token = token_of(text.strip())
    if token is None:
        detail = "There is no such token, it was revoked, or its person’s account is disabled."
        raise Problem("token_unknown", detail, headers=CHALLENGE)
    if token.expires_at <= timezone.now():
        raise Problem("token_expired", "This token has expired: make another on the account page.", headers=CHALLENGE)
    return token


def refuse_elsewhere(token: ApiToken, slug: str | None) -> None:
    """A token that is tied to one evaluation opens no other, and nothing that belongs to the whole site."""
    if token.evaluation is not None and slug != token.evaluation.slug:
        raise Http404


def limits(allowance: Allowance) -> dict[str, str]:
    return {
        "RateLimit-Limit": str(allowance.limit),
        "RateLimit-Remaining": str(max(allowance.left, 0)),
        "RateLimit-Reset": str(allowance.seconds),
    }


def person(request: HttpRequest) -> User:
    token: ApiToken = request.auth  # type: ignore[attr-defined]
    return token.user

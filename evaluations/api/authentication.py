"""Bearer tokens of the API, their scopes and their rate limit."""

from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.db.models import Case, F, Value, When
from django.http import Http404, HttpRequest
from django.utils import timezone
from ninja.security import HttpBearer

from evaluations.api.problems import Problem
from evaluations.audit.events import act_with_token
from evaluations.audit.security import get_client, record_failed_sign_in, record_security_event
from evaluations.domain.roles import Scope
from evaluations.domain.security import SecurityEventKind
from evaluations.models.sign_ins import SecurityEvent
from evaluations.models.users import ApiToken, hash_token
from evaluations.web.throttle import TooManyTries, begin_try, limits_of_unknown_token

WINDOW_SECONDS: Final = 60


@dataclass(frozen=True)
class RequestAllowance:
    """The requests per minute of a token, how many are left, and the seconds until the next minute."""

    limit: int
    left: int
    seconds: int

    @property
    def is_spent(self) -> bool:
        return self.left < 0


def find_token(text: str) -> ApiToken | None:
    """The token of that text, with its person; None if there is none or it opens nothing, which is recorded."""
    token = ApiToken.objects.filter(token_sha256=hash_token(text)).select_related("user", "evaluation").first()
    if token is None:
        return None
    if token.revoked_at is not None or not token.user.is_active:
        record_refused_token(token, "was revoked" if token.revoked_at else "belongs to a disabled account")
        return None
    return token


def record_refused_token(token: ApiToken, why: str) -> None:
    with act_with_token(token):
        record_failed_sign_in(token.user, f"The API token {token} {why}.")


def count_token_request(token: ApiToken) -> RequestAllowance:
    """Count a request in the token's row, so that all web processes share one limit."""
    now = timezone.now()
    window, into = divmod(int(now.timestamp()), WINDOW_SECONDS)
    address = get_client().address
    used_from = {"last_address": address} if address else {}
    ApiToken.objects.filter(pk=token.pk).update(
        requests=Case(When(window=window, then=F("requests") + 1), default=Value(1)),
        window=window,
        last_used_at=now,
        **used_from,
    )
    if address not in ("", token.last_address):
        record_new_address(token, address)
    counted = ApiToken.objects.values_list("requests", flat=True).get(pk=token.pk)
    limit = settings.API_REQUESTS_PER_MINUTE
    return RequestAllowance(limit, limit - counted, WINDOW_SECONDS - into)


def record_new_address(token: ApiToken, address: str) -> None:
    """Record that a token came from an address that it did not come from before."""
    kind = SecurityEventKind.TOKEN_NEW_ADDRESS
    if not SecurityEvent.objects.filter(token=token, address=address, kind=kind).exists():
        with act_with_token(token):
            record_security_event(kind, token.user, detail=str(token))


AUTH_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="judgeweb"'}


class BearerAuth(HttpBearer):
    """Document the bearer token, and refuse operations that `authenticate_request` has not checked."""

    def authenticate(self, request: HttpRequest, token: str) -> Any:
        return getattr(request, "auth", None)


def authenticate_request(request: HttpRequest) -> tuple[ApiToken, RequestAllowance]:
    token = read_bearer_token(request)
    allowance = count_token_request(token)
    if allowance.is_spent:
        raise Problem(
            "rate_limited",
            f"This token has reached its limit of {allowance.limit:,} requests per minute. "
            f"Wait {allowance.seconds} seconds.",
            headers={"Retry-After": str(allowance.seconds), **rate_limit_headers(allowance)},
        )
    return token, allowance


def require_scope(token: ApiToken, scope: Scope) -> None:
    if not token.may(scope):
        raise Problem(
            "scope_missing",
            f"This needs a token with the scope “{scope}”; this one has {token.scopes.replace(',', ', ')}.",
        )


def read_bearer_token(request: HttpRequest) -> ApiToken:
    """The token of the header. Sessions are not accepted, so that no other site can act through a browser."""
    scheme, _, text = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not text.strip():
        raise Problem("token_missing", "Send a token: Authorization: Bearer jw_…", headers=AUTH_CHALLENGE)
    token = find_token(text.strip())
    if token is None:
        count_unknown_token()
        detail = "The token does not exist, was revoked, or belongs to a disabled account."
        raise Problem("token_unknown", detail, headers=AUTH_CHALLENGE)
    if token.expires_at <= timezone.now():
        record_refused_token(token, "has expired")
        raise Problem(
            "token_expired", "This token has expired. Create another one on the account page.", headers=AUTH_CHALLENGE
        )
    return token


def count_unknown_token() -> None:
    """Slow down an address that guesses tokens. Requests with valid tokens from there go on."""
    if limits := limits_of_unknown_token(get_client().address):
        try:
            begin_try(limits, user=None)
        except TooManyTries as refused:
            raise Problem("rate_limited", str(refused), headers={"Retry-After": str(refused.seconds)}) from refused


def refuse_other_evaluation(token: ApiToken, slug: str | None) -> None:
    """A token that is tied to one evaluation opens no other, and nothing that belongs to the whole site."""
    if token.evaluation is not None and slug != token.evaluation.slug:
        raise Http404


def rate_limit_headers(allowance: RequestAllowance) -> dict[str, str]:
    return {
        "RateLimit-Limit": str(allowance.limit),
        "RateLimit-Remaining": str(max(allowance.left, 0)),
        "RateLimit-Reset": str(allowance.seconds),
    }

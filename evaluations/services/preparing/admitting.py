"""Letting programs in: tokens that open the API in a person's name, and how often they may ask."""

import hashlib
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Case, F, QuerySet, Value, When
from django.utils import timezone

from evaluations.domain import InputRefused, Scope
from evaluations.models import ApiToken, Evaluation, User
from evaluations.services.recording import record

BEGINNING: Final = "jw_"
SHOWN: Final = 10  # characters of a token by which people know it again
LONGEST_DAYS: Final = 366
MOST_TOKENS: Final = 50
SECONDS: Final = 60


@dataclass(frozen=True)
class Allowance:
    """How many requests a token may make in a minute, how many of them are left, and when the next minute begins."""

    limit: int
    left: int
    seconds: int

    @property
    def is_spent(self) -> bool:
        return self.left < 0


@transaction.atomic
def make_token(
    user: User, *, name: str, scopes: Collection[Scope], days: int, evaluation: Evaluation | None = None
) -> tuple[ApiToken, str]:
    """A new token and its text, which is told once: only its hash is kept."""
    name = name.strip()
    if not 1 <= len(name) <= 80 or not name.isprintable():
        raise InputRefused("A token needs a name of at most 80 characters: say what it is for.")
    if not scopes:
        raise InputRefused("Choose at least one thing that the token may be used for.")
    if not 1 <= days <= LONGEST_DAYS:
        raise InputRefused(f"A token is valid for 1 to {LONGEST_DAYS} days.")
    if in_force(user).count() >= MOST_TOKENS:
        raise InputRefused(f"You have {MOST_TOKENS} tokens already: revoke one that is not used any more.")
    text = BEGINNING + secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        user=user,
        evaluation=evaluation,
        name=name,
        prefix=text[:SHOWN],
        token_sha256=hashed(text),
        scopes=",".join(scope for scope in Scope if scope in scopes),
        expires_at=timezone.now() + timedelta(days=days),
    )
    after = {"name": name, "scopes": token.scopes, "expires_at": token.expires_at.isoformat()}
    record("made token", token, user=user, evaluation=evaluation, after=after)
    return token, text


def in_force(user: User) -> "QuerySet[ApiToken]":
    """The tokens of this person that open anything, newest first."""
    mine: QuerySet[ApiToken] = ApiToken.objects.filter(user=user, revoked_at__isnull=True)
    return mine.filter(expires_at__gt=timezone.now()).select_related("evaluation").order_by("-pk")


@transaction.atomic
def revoke_token(token: ApiToken, *, by: User | None) -> None:
    """It opens nothing from now on. Revoked once more, nothing changes."""
    if ApiToken.objects.filter(pk=token.pk, revoked_at__isnull=True).update(revoked_at=timezone.now()):
        record("revoked token", token, user=by, evaluation=token.evaluation, before={"name": token.name})


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def token_of(text: str) -> ApiToken | None:
    """The token of that text, with its person; None where there is none, or it opens nothing any more."""
    token = ApiToken.objects.filter(token_sha256=hashed(text)).select_related("user", "evaluation").first()
    if token is None or token.revoked_at is not None or not token.user.is_active:
        return None
    return token


def count_request(token: ApiToken) -> Allowance:
    """One more request with this token, in its own row: so the limit is one for all web processes together."""
    now = timezone.now()
    window, into = divmod(int(now.timestamp()), SECONDS)
    ApiToken.objects.filter(pk=token.pk).update(
        requests=Case(When(window=window, then=F("requests") + 1), default=Value(1)), window=window, last_used_at=now
    )
    counted = ApiToken.objects.values_list("requests", flat=True).get(pk=token.pk)
    limit = settings.API_REQUESTS_PER_MINUTE
    return Allowance(limit, limit - counted, SECONDS - into)

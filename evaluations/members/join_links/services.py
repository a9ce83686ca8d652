"""Join links: anyone who has one joins an evaluation in one role, with a new account or their own."""

import secrets
from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.text import slugify

from evaluations.access import Action, Right, has_right, is_allowed, require_right
from evaluations.audit.events import record_event
from evaluations.audit.security import record_security_event
from evaluations.domain.errors import InputRefused
from evaluations.domain.roles import JOINABLE_ROLES, Role
from evaluations.domain.security import SecurityEventKind
from evaluations.members.services import MAX_DISPLAY_NAME_CHARACTERS, create_account, set_role
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import JoinLink, Membership, User, hash_token

MAX_USES: Final = 500
MAX_DAYS: Final = 90
USERNAME_CHARACTERS: Final = 40  # of the name, before the digits
ASK_FOR_ANOTHER: Final = "Ask the person who sent it for a new link."


class JoinLinkRefused(InputRefused):
    """A join link that does not work, or not any longer."""


def list_join_links(evaluation: Evaluation) -> "QuerySet[JoinLink]":
    """The join links that were neither revoked nor have expired, with those that are used up."""
    links = JoinLink.objects.filter(evaluation=evaluation, revoked_at__isnull=True, expires_at__gt=Now())
    return links.select_related("created_by", "evaluation").order_by("pk")


@transaction.atomic
def create_join_link(evaluation: Evaluation, role: Role, *, days: int, max_uses: int, by: User) -> tuple[JoinLink, str]:
    """A new link and its token, of which only the hash is stored. It replaces the earlier link of the role.

    It makes accounts, so it takes the right to create them.
    """
    require_right(by, Right.CREATE_ACCOUNTS)
    if role not in JOINABLE_ROLES:
        raise InputRefused(f"A join link can’t give the role {role}.", field="role")
    if not 1 <= days <= MAX_DAYS:
        raise InputRefused(f"Choose 1 to {MAX_DAYS} days.", field="days")
    if not 1 <= max_uses <= MAX_USES:
        raise InputRefused(f"Choose 1 to {MAX_USES} uses.", field="max_uses")
    for earlier in list_join_links(evaluation).filter(role=role):
        revoke_join_link(earlier, by=by)
    token = secrets.token_urlsafe(32)
    link = JoinLink.objects.create(
        evaluation=evaluation,
        role=role,
        token_sha256=hash_token(token),
        created_by=by,
        expires_at=timezone.now() + timedelta(days=days),
        max_uses=max_uses,
    )
    after = {"role": role, "max_uses": max_uses, "expires_at": link.expires_at.isoformat()}
    record_event("made join link", link, user=by, evaluation=evaluation, after=after)
    detail = f"{evaluation.slug}: {role}, {max_uses} uses"
    record_security_event(SecurityEventKind.JOIN_LINK_MADE, by, detail=detail)
    return link, token


@transaction.atomic
def revoke_join_link(link: JoinLink, *, by: User) -> None:
    """Revoke a join link. Revoking it again changes nothing. Who joined with it stays a member."""
    if JoinLink.objects.filter(pk=link.pk, revoked_at__isnull=True).update(revoked_at=Now()):
        before = {"role": link.role, "uses": link.uses}
        record_event("revoked join link", link, user=by, evaluation=link.evaluation, before=before)
        detail = f"{link.evaluation.slug}: {link.role}"
        record_security_event(SecurityEventKind.JOIN_LINK_REVOKED, by, detail=detail)


def find_join_link(token: str) -> JoinLink:
    """The working link of this token; reading it does not use it."""
    links = JoinLink.objects.select_related("evaluation", "created_by")
    link = links.filter(token_sha256=hash_token(token)).first()
    if link is None:
        raise JoinLinkRefused(f"This join link is not valid. Part of the address may be missing. {ASK_FOR_ANOTHER}")
    if link.uses >= link.max_uses:
        raise JoinLinkRefused(f"This join link has been used up. {ASK_FOR_ANOTHER}")
    maker, evaluation = link.created_by, link.evaluation
    owns = maker.is_active and is_allowed(maker, Action.OWN, evaluation)
    may_let_in = owns and has_right(maker, Right.CREATE_ACCOUNTS)
    is_open = list_join_links(evaluation).filter(pk=link.pk).exists()
    if not (is_open and may_let_in) or evaluation.archived_at is not None:
        raise JoinLinkRefused(f"This join link no longer works. {ASK_FOR_ANOTHER}")
    return link


def use_join_link(token: str) -> JoinLink:
    """The link with one use less left. Of two people who take the last use at once, one is refused."""
    link = find_join_link(token)
    usable = JoinLink.objects.filter(pk=link.pk, revoked_at__isnull=True, expires_at__gt=Now())
    if not usable.filter(uses__lt=F("max_uses")).update(uses=F("uses") + 1):
        raise JoinLinkRefused(f"This join link no longer works. {ASK_FOR_ANOTHER}")
    return link


@transaction.atomic
def join_with_new_account(token: str, name: str) -> tuple[User, Evaluation]:
    """Make an account without a password for a visitor, and let it join."""
    name = name.strip()
    if not 1 <= len(name) <= MAX_DISPLAY_NAME_CHARACTERS or not name.isprintable():
        raise InputRefused(f"Enter a name of up to {MAX_DISPLAY_NAME_CHARACTERS} characters.", field="name")
    link = use_join_link(token)
    evaluation = link.evaluation
    user = create_account(invent_username(name), by=link.created_by, evaluation=evaluation, display_name=name)
    set_role(evaluation, user, Role(link.role), by=user)
    record_join(link, user)
    return user, evaluation


@transaction.atomic
def join_with_own_account(token: str, user: User) -> Evaluation:
    """Let a signed-in user join. Members keep their role, and use nothing up."""
    evaluation = find_join_link(token).evaluation
    if not Membership.objects.filter(evaluation=evaluation, user=user).exists():
        link = use_join_link(token)
        set_role(evaluation, user, Role(link.role), by=user)
        record_join(link, user)
    return evaluation


def record_join(link: JoinLink, user: User) -> None:
    record_event("joined by link", link, user=user, evaluation=link.evaluation, after={"role": link.role})
    detail = f"{link.evaluation.slug}: {link.role}"
    record_security_event(SecurityEventKind.JOINED_BY_LINK, user, by=link.created_by, detail=detail)


def invent_username(name: str) -> str:
    """A username made from the name. Its digits are drawn, so that nobody learns which usernames exist."""
    start = slugify(name)[:USERNAME_CHARACTERS].strip("-_") or "member"
    return f"{start}-{secrets.randbelow(900_000) + 100_000}"

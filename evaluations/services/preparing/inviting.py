"""Letting people in: accounts, passwords, and links that sign one person in once."""

import hashlib
import secrets
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from evaluations.domain import MADE_ACCOUNT, InputRefused, Role
from evaluations.models import Evaluation, Membership, SignInLink, User
from evaluations.services.preparing.preparing import set_role
from evaluations.services.recording import record


class LinkRefused(InputRefused):
    """A sign-in link that lets nobody in; the sentence says why and how to get another."""


def find_account(username: str) -> User | None:
    """The account of that name; another spelling in capitals and small letters finds it too."""
    name = User.normalize_username(username.strip())
    found = User.objects.filter(username__iexact=name)
    return next((user for user in found if user.username == name), None) or found.first()


@transaction.atomic
def create_account(username: str, *, by: User | None, evaluation: Evaluation | None = None) -> User:
    """An account without a password: a sign-in link is the way in."""
    name = User.normalize_username(username.strip())
    user = User(username=name, timezone=settings.TIME_ZONE)
    user.set_unusable_password()
    try:
        user.clean_fields(exclude=["password"])
    except ValidationError as error:
        raise InputRefused(
            f"“{name[:150]}” cannot be a username: use letters, digits and . @ + - _, at most 150 in all."
        ) from error
    if existing := find_account(name):
        raise InputRefused(f"There is an account “{existing.username}” already.")
    user.save()
    record(MADE_ACCOUNT, user, user=by, evaluation=evaluation, after={"username": name})
    return user


@transaction.atomic
def make_administrator(user: User, *, by: User | None) -> None:
    """Site administrators set up endpoints and look after accounts; they see no more evaluations."""
    if not user.is_superuser:
        User.objects.filter(pk=user.pk).update(is_superuser=True)
        record("made administrator", user, user=by, evaluation=None)


@transaction.atomic
def add_person(evaluation: Evaluation, username: str, role: Role, *, by: User) -> tuple[Membership, bool]:
    """Let someone take part, with an account made for it where there is none: then True."""
    person = find_account(username)
    if person and not person.is_active:
        raise InputRefused(f"The account “{person.username}” is disabled: ask a site administrator to enable it.")
    if person and Membership.objects.filter(evaluation=evaluation, user=person).exists():
        raise InputRefused(f"“{person.username}” takes part already: change the role in the list below.")
    account = person or create_account(username, by=by, evaluation=evaluation)
    return set_role(evaluation, account, role, by=by), person is None


@transaction.atomic
def make_link(user: User, *, by: User | None, evaluation: Evaluation | None = None) -> str:
    """The token of a new sign-in link. It is told once: only its hash is kept."""
    if not user.is_active:
        raise InputRefused(f"The account “{user.username}” is disabled: enable it first.")
    token = secrets.token_urlsafe(32)
    link = SignInLink.objects.create(
        user=user, token_sha256=hashed(token), expires_at=timezone.now() + timedelta(hours=settings.SIGN_IN_LINK_HOURS)
    )
    record("made sign-in link", link, user=by, evaluation=evaluation, after={"for": user.username})
    return token


def hashed(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def open_link(token: str) -> SignInLink:
    """The link as it stands. Looking does not use it up, so mail scanners and prefetches may."""
    link = SignInLink.objects.filter(token_sha256=hashed(token)).select_related("user").first()
    if link is None:
        raise LinkRefused("There is no such sign-in link: part of the address may be missing.")
    if not link.user.is_active:
        raise LinkRefused("This account is disabled: ask whoever runs this server.")
    if link.used_at is not None:
        raise LinkRefused("This sign-in link was used already: each one works once.")
    if link.expires_at <= timezone.now():
        raise LinkRefused("This sign-in link has expired.")
    return link


@transaction.atomic
def use_link(token: str) -> User:
    """Whom this link lets in, now that it is used up. Of two clicks at once one is refused."""
    link = open_link(token)
    # Only columns of the row itself: a second writer that waited for the first looks at them again.
    won = SignInLink.objects.filter(pk=link.pk, used_at__isnull=True).update(used_at=timezone.now())
    if not won:
        raise LinkRefused("This sign-in link was used already: each one works once.")
    record("signed in by link", link, user=link.user, evaluation=None)
    return link.user


@transaction.atomic
def set_password(user: User, password: str, *, by: User) -> None:
    """A new password. Whoever else was signed in to the account, or held a link to it, is out."""
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise InputRefused(" ".join(error.messages)) from error
    user.set_password(password)
    user.save(update_fields=["password"])
    close_links(user)
    record("set password", user, user=by, evaluation=None)


@transaction.atomic
def disable_account(user: User, *, by: User) -> None:
    """The person can no longer sign in, and is signed out everywhere. What they judged stays."""
    if user == by:
        raise InputRefused("You cannot disable your own account: ask another site administrator.")
    User.objects.filter(pk=user.pk).update(is_active=False)
    close_links(user)
    record("disabled account", user, user=by, evaluation=None)


@transaction.atomic
def enable_account(user: User, *, by: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=True)
    record("enabled account", user, user=by, evaluation=None)


def close_links(user: User) -> None:
    now = timezone.now()
    SignInLink.objects.filter(user=user, used_at__isnull=True, expires_at__gt=now).update(expires_at=now)

"""Accounts with their rights, sign-in links, memberships, invitations and API tokens."""

import hashlib
from typing import Final

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.db.models import F, Q

from evaluations.domain.roles import JOINABLE_ROLES, Role, Scope
from evaluations.models.base import Row, enum_choices, enum_constraint

MAX_USERNAME_CHARACTERS: Final = 150  # as Django's own column of accounts


class User(AbstractUser):
    display_name = models.CharField(max_length=120, blank=True)
    timezone = models.CharField(max_length=64, default="UTC")
    theme = models.CharField(
        max_length=8, default="system", choices=[("system", "system"), ("light", "light"), ("dark", "dark")]
    )

    # Single keys act on the review page. Speech input and some keyboards press them by accident (WCAG 2.1.4).
    single_keys = models.BooleanField(default=True)
    # Its owners may make sign-in links for the account until it has a password, if site policy lets them. For an
    # account that a backup names nobody may.
    created_for = models.ForeignKey(
        "Evaluation", on_delete=models.PROTECT, null=True, blank=True, related_name="accounts"
    )
    # None: by a command on the machine, or by a restored backup.
    created_by = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="created_accounts", db_index=False
    )

    # Rights of this account alone, in addition to those that site policy gives to everyone.
    can_create_evaluations = models.BooleanField(default=False)
    can_create_accounts = models.BooleanField(default=False)
    can_make_links = models.BooleanField(default=False)

    # By slug the role by which this very object was let into an evaluation: no column, and asked once a request.
    roles: dict[str, str]

    def __str__(self) -> str:
        return self.display_name or self.username

    @property
    def rights_of_account(self) -> int:
        """How many rights this account has of its own."""
        return self.can_create_evaluations + self.can_create_accounts + self.can_make_links


class SitePolicy(Row):
    """The rights that every account has. There is one row, or none while nobody has changed the policy."""

    everyone_creates_evaluations = models.BooleanField(default=False)
    everyone_creates_accounts = models.BooleanField(default=False)
    everyone_makes_links = models.BooleanField(default=False)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(pk=1), name="site_policy_once")]


class SignInLink(Row):
    """A link that signs one person in once. Only the hash of its token is kept."""

    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="sign_in_links")
    token_sha256 = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)


class Membership(Row):
    evaluation = models.ForeignKey("Evaluation", on_delete=models.PROTECT, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="memberships")
    role = models.CharField(max_length=12, choices=enum_choices(Role))
    # What this person clicked in the checklist of an example, as words with spaces between.
    checklist_steps = models.CharField(max_length=80, blank=True, default="", db_default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["evaluation", "user"], name="membership_once"),
            enum_constraint("role", Role, "membership_role"),
        ]


class Invitation(Row):
    """An offer to take part, addressed to a name that may or may not be an account.

    ``name_key`` is the name as accounts are found by it. A declined one stays, hidden from the invited person, so that
    an owner does not learn from it whether the account exists.
    """

    evaluation = models.ForeignKey("Evaluation", on_delete=models.PROTECT, related_name="invitations", db_index=False)
    username = models.CharField(max_length=MAX_USERNAME_CHARACTERS)
    name_key = models.CharField(max_length=200)
    role = models.CharField(max_length=12, choices=enum_choices(Role))
    invited_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, related_name="sent_invitations", db_index=False
    )
    declined_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["evaluation", "name_key"], name="invitation_once"),
            enum_constraint("role", Role, "invitation_role"),
        ]
        indexes = [models.Index(fields=["name_key"], name="invitation_of_name")]

    def __str__(self) -> str:
        return self.username


class JoinLink(Row):
    """A link by which anyone who has it joins an evaluation in one role. Only the hash of its token is kept.

    It makes accounts in the name of ``created_by``, so it works only while that account may create accounts.
    """

    evaluation = models.ForeignKey("Evaluation", on_delete=models.PROTECT, related_name="join_links")
    role = models.CharField(max_length=12, choices=enum_choices(Role))
    token_sha256 = models.CharField(max_length=64, unique=True)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="join_links", db_index=False)
    expires_at = models.DateTimeField()
    max_uses = models.PositiveIntegerField()
    uses = models.PositiveIntegerField(default=0)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(role__in=[*JOINABLE_ROLES]), name="join_link_role"),
            models.CheckConstraint(condition=Q(uses__lte=F("max_uses")), name="join_link_uses"),
        ]


class ApiToken(Row):
    """A key to the API that belongs to one person. Only its hash is kept, and a beginning to know it by.

    ``scopes``: words of Scope, with commas between. ``evaluation``: the only one that it opens, if it is tied to one.
    ``window`` is the minute in which it was used last, and ``requests`` how often in that minute.
    """

    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="api_tokens")
    evaluation = models.ForeignKey("Evaluation", on_delete=models.PROTECT, null=True, related_name="api_tokens")
    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=12)
    token_sha256 = models.CharField(max_length=64, unique=True)
    scopes = models.CharField(max_length=60)
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)
    last_address = models.CharField(max_length=64, blank=True, default="")
    revoked_at = models.DateTimeField(null=True)
    window = models.BigIntegerField(default=0)
    requests = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes.split(",")


class IdempotencyRecord(Row):
    """The response of a write by its idempotency key; ``status`` is None while the write is running."""

    token = models.ForeignKey(ApiToken, on_delete=models.PROTECT, related_name="idempotency_records", db_index=False)
    key = models.CharField(max_length=200)
    request_sha256 = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    content_type = models.CharField(max_length=100, blank=True)
    location = models.CharField(max_length=500, blank=True)
    body = models.TextField(blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["token", "key"], name="idempotency_record_once")]
        indexes = [models.Index(fields=["created_at"], name="idempotency_record_age")]


def hash_token(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def fold_username(username: str) -> str:
    """The form in which two spellings of one username are equal."""
    return User.normalize_username(username.strip()).casefold()

"""Accounts, the links that let people in, and who takes part in what."""

from django.contrib.auth.models import AbstractUser
from django.db import models

from evaluations.domain import Role
from evaluations.models.row import Row, closed_list, one_of


class User(AbstractUser):
    display_name = models.CharField(max_length=120, blank=True)
    timezone = models.CharField(max_length=64, default="UTC")
    theme = models.CharField(
        max_length=8, default="system", choices=[("system", "system"), ("light", "light"), ("dark", "dark")]
    )

    # Single keys act on the review page. Speech input and some keyboards press them by accident (WCAG 2.1.4).
    single_keys = models.BooleanField(default=True)

    def __str__(self) -> str:
        return self.display_name or self.username


class SignInLink(Row):
    """A link that signs one person in once. Only the hash of its token is kept."""

    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="sign_in_links")
    token_sha256 = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"sign-in link for {self.user}"


class Membership(Row):
    evaluation = models.ForeignKey("Evaluation", on_delete=models.PROTECT, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="memberships")
    role = models.CharField(max_length=12, choices=one_of(Role))

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["evaluation", "user"], name="membership_once"),
            closed_list("role", Role, "membership_role"),
        ]

    def __str__(self) -> str:
        return f"{self.user} as {self.role}"

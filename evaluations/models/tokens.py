"""What lets programs in: tokens of people, and the answers kept for writes that may be sent again."""

from django.db import models

from evaluations.domain import Scope
from evaluations.models.people import User
from evaluations.models.row import Row


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
    revoked_at = models.DateTimeField(null=True)
    window = models.BigIntegerField(default=0)
    requests = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes.split(",")


class KeptAnswer(Row):
    """What a write was answered with, under the key that its program gave it; ``status`` is None while it is done."""

    token = models.ForeignKey(ApiToken, on_delete=models.PROTECT, related_name="kept_answers", db_index=False)
    key = models.CharField(max_length=200)
    request_sha256 = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    content_type = models.CharField(max_length=100, blank=True)
    location = models.CharField(max_length=500, blank=True)
    body = models.TextField(blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["token", "key"], name="kept_answer_once")]
        indexes = [models.Index(fields=["created_at"], name="kept_answer_age")]

    def __str__(self) -> str:
        return f"answer to {self.key}"

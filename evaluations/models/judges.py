"""Who judges: endpoints, judges, and the raters that people and judges are in one evaluation."""

from django.db import models
from django.db.models import Q

from evaluations.domain import AskingMode, JudgeKind, RaterKind
from evaluations.models.evaluations import Evaluation
from evaluations.models.people import User
from evaluations.models.row import Row, closed_list, one_of
from evaluations.models.rubrics import RubricVersion


class Endpoint(Row):
    """An OpenAI-compatible server, site-wide. Address and key name never change once used."""

    name = models.CharField(max_length=120, unique=True)
    base_url = models.URLField(max_length=500)
    key_variable = models.CharField(max_length=120, blank=True)
    max_in_flight = models.PositiveIntegerField(null=True, blank=True)
    requests_per_minute = models.PositiveIntegerField(null=True, blank=True)
    tokens_per_minute = models.PositiveIntegerField(null=True, blank=True)
    paused_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(key_variable="")
                | Q(key_variable__endswith="_API_KEY")
                | Q(key_variable__startswith="JUDGEWEB_KEY_"),
                name="endpoint_key_variable",
            )
        ]

    def __str__(self) -> str:
        return self.name


class Judge(Row):
    """Rubric version + endpoint + model + settings, frozen. A change makes a new Judge."""

    evaluation = models.ForeignKey(Evaluation, on_delete=models.PROTECT, related_name="judges")
    name = models.CharField(max_length=120)
    kind = models.CharField(max_length=10, choices=one_of(JudgeKind))
    rubric_version = models.ForeignKey(
        RubricVersion, on_delete=models.PROTECT, null=True, blank=True, related_name="judges"
    )
    endpoint = models.ForeignKey(Endpoint, on_delete=models.PROTECT, null=True, blank=True, related_name="judges")
    model = models.CharField(max_length=200, blank=True)
    mode = models.CharField(max_length=12, default=AskingMode.AUTO.value, choices=one_of(AskingMode))
    temperature = models.FloatField(null=True, blank=True)
    max_tokens = models.PositiveIntegerField(null=True, blank=True)
    seed = models.BigIntegerField(null=True, blank=True)
    settings = models.JSONField(default=dict)
    fence_key = models.CharField(max_length=64, blank=True)
    fingerprint = models.CharField(max_length=64)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["evaluation", "name"], name="judge_name"),
            models.UniqueConstraint(fields=["evaluation", "fingerprint"], name="judge_fingerprint"),
            closed_list("kind", JudgeKind, "judge_kind"),
            models.CheckConstraint(
                condition=Q(kind=JudgeKind.LLM.value, endpoint__isnull=False, rubric_version__isnull=False)
                | Q(kind=JudgeKind.RULE.value, endpoint__isnull=True, rubric_version__isnull=False)
                | Q(kind=JudgeKind.IMPORTED.value, endpoint__isnull=True, rubric_version__isnull=True),
                name="judge_kind_agrees",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_baseline(self) -> bool:
        """A rule, not a model: pages, reports and exports must say so."""
        return self.kind == JudgeKind.RULE


class Rater(Row):
    """Whoever gives verdicts in one evaluation."""

    evaluation = models.ForeignKey(Evaluation, on_delete=models.PROTECT, related_name="raters")
    kind = models.CharField(max_length=8, choices=one_of(RaterKind))
    name = models.CharField(max_length=200)
    user = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="raters")
    judge = models.ForeignKey(Judge, on_delete=models.PROTECT, null=True, blank=True, related_name="raters")
    verdicts_changed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["evaluation", "kind", "name"], name="rater_name"),
            models.UniqueConstraint(fields=["evaluation", "user"], condition=Q(user__isnull=False), name="rater_user"),
            models.UniqueConstraint(fields=["judge"], condition=Q(judge__isnull=False), name="rater_judge"),
            models.CheckConstraint(
                condition=Q(kind=RaterKind.HUMAN.value, judge__isnull=True)
                | Q(kind=RaterKind.JUDGE.value, judge__isnull=False, user__isnull=True)
                | Q(kind=RaterKind.GOLD.value, judge__isnull=True, user__isnull=True),
                name="rater_kind_agrees",
            ),
        ]

    def __str__(self) -> str:
        return self.name

"""Judges with their endpoints, prices and raters."""

from typing import Final

from django.db import models
from django.db.models import Q

from evaluations.domain.json_values import JsonDict
from evaluations.domain.judges import RULE_JUDGE_TEXTS, Dialect, JudgeKind, OutputMode, ReplyShape
from evaluations.domain.reviews import ScreeningChoice
from evaluations.domain.roles import RaterKind
from evaluations.domain.rubrics import RubricKind
from evaluations.models.base import ArchivableQuerySet, Row, enum_choices, enum_constraint
from evaluations.models.evaluations import Evaluation
from evaluations.models.rubrics import RubricVersion
from evaluations.models.users import User


class Endpoint(Row):
    """An LLM server, site-wide. Once used, its address never changes, nor its key variable if it has one."""

    name = models.CharField(max_length=120, unique=True)
    base_url = models.URLField(max_length=500)
    key_variable = models.CharField(max_length=120, blank=True)
    # An API key that was pasted, as a Fernet token. No page, answer, event, export or backup has it.
    encrypted_key = models.TextField(blank=True, default="")
    max_in_flight = models.PositiveIntegerField(null=True, blank=True)
    requests_per_minute = models.PositiveIntegerField(null=True, blank=True)
    tokens_per_minute = models.PositiveIntegerField(null=True, blank=True)
    paused_until = models.DateTimeField(null=True, blank=True)
    # The reason in a sentence; empty for a short rate limit.
    pause_reason = models.CharField(max_length=500, blank=True)
    # Since when it does not answer, though it did before: nothing but probes is sent until one of them is answered.
    down_since = models.DateTimeField(null=True, blank=True)
    down_reason = models.CharField(max_length=500, blank=True)
    next_probe_at = models.DateTimeField(null=True, blank=True)
    failed_probes = models.PositiveIntegerField(default=0)
    # When a probe ended the last outage. Until a request is answered after it, waits go on growing.
    probed_up_at = models.DateTimeField(null=True, blank=True)
    # If empty, it follows from the address or from the latest check.
    dialect = models.CharField(max_length=20, blank=True, choices=enum_choices(Dialect))
    # Empty: long for servers on this machine or network, else the site's setting.
    timeout_seconds = models.PositiveIntegerField(null=True, blank=True)
    # Nano-USD that all evaluations together may spend here on one UTC day.
    daily_budget = models.BigIntegerField(null=True, blank=True)
    # Whether every evaluation may use it without a grant.
    is_offered = models.BooleanField(default=False)
    # Sent with every request. A value of the form $NAME is the environment variable of that name, as for keys.
    extra_headers = models.JSONField(default=dict, blank=True)
    extra_query = models.JSONField(default=dict, blank=True)
    extra_body = models.JSONField(default=dict, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(key_variable="")
                | Q(key_variable__endswith="_API_KEY")
                | Q(key_variable__startswith="JUDGEWEB_KEY_"),
                name="endpoint_key_variable",
            ),
            models.CheckConstraint(condition=Q(key_variable="") | Q(encrypted_key=""), name="endpoint_one_key"),
        ]


class Price(Row):
    """The price of a model at an endpoint, in nano-USD for a million tokens. Without a row it is unknown."""

    endpoint = models.ForeignKey(Endpoint, on_delete=models.PROTECT, related_name="prices")
    model = models.CharField(max_length=200)
    tokens_in = models.PositiveBigIntegerField()
    tokens_cached = models.PositiveBigIntegerField()
    tokens_out = models.PositiveBigIntegerField()
    batch_percent = models.PositiveSmallIntegerField(default=50)  # of the price, through the Batch API
    # The most tokens that a reply can have, reasoning included, by the provider's own page.
    most_tokens_out = models.PositiveIntegerField(null=True, blank=True)
    # Address and date of a list price; empty for a price that a person set.
    source = models.CharField(max_length=300, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["endpoint", "model"], name="price_of_model"),
            models.CheckConstraint(condition=Q(batch_percent__lte=100), name="price_batch_percent"),
        ]

    def __str__(self) -> str:
        return f"{self.model} at {self.endpoint}"


class EndpointCheck(Row):
    """The latest test of an endpoint for one model: one tiny request shows what it accepts."""

    endpoint = models.ForeignKey(Endpoint, on_delete=models.CASCADE, related_name="checks")
    model = models.CharField(max_length=200)
    checked_at = models.DateTimeField()
    # A `CheckResult` as JSON, or since when a worker is awaited.
    result = models.JSONField(default=dict)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["endpoint", "model"], name="endpoint_check_of_model")]

    @property
    def problem(self) -> JsonDict | None:
        """The first finding that is a problem, if there is one."""
        findings: list[JsonDict] = self.result.get("findings", [])
        return next((finding for finding in findings if finding["health"] == "problem"), None)


MODELS_LISTED: Final = 5


class LocalServer(Row):
    """A server of models that a worker found on its own machine, to be offered as an endpoint."""

    base_url = models.URLField(max_length=500, unique=True)
    kind = models.CharField(max_length=20)
    model_names = models.JSONField(default=list)
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.base_url

    @property
    def first_models(self) -> list[str]:
        return list(self.model_names[:MODELS_LISTED])

    @property
    def models_left(self) -> int:
        return len(self.model_names) - len(self.first_models)


class JudgeQuerySet(ArchivableQuerySet["Judge"]):
    pass


class Judge(Row):
    """Rubric version + endpoint + model + settings, frozen. A change makes a new Judge."""

    evaluation = models.ForeignKey(Evaluation, on_delete=models.PROTECT, related_name="judges")
    name = models.CharField(max_length=120)
    kind = models.CharField(max_length=10, choices=enum_choices(JudgeKind))
    rubric_version = models.ForeignKey(
        RubricVersion, on_delete=models.PROTECT, null=True, blank=True, related_name="judges"
    )
    endpoint = models.ForeignKey(Endpoint, on_delete=models.PROTECT, null=True, blank=True, related_name="judges")
    model = models.CharField(max_length=200, blank=True)
    mode = models.CharField(max_length=12, default=OutputMode.AUTO.value, choices=enum_choices(OutputMode))
    temperature = models.FloatField(null=True, blank=True)
    max_tokens = models.PositiveIntegerField(null=True, blank=True)
    seed = models.BigIntegerField(null=True, blank=True)
    reasoning_effort = models.CharField(max_length=20, blank=True)
    logprobs = models.BooleanField(default=False)
    # Whether an unreadable reply is returned to the model once, with what is wrong with it.
    repairs = models.BooleanField(default=True)
    # The enforced reply format that its server accepts, detected before its first verdict; empty until then.
    reply_shape = models.CharField(max_length=12, blank=True, choices=enum_choices(ReplyShape))
    # A `RequestShape`: how its settings are written so that the model accepts them; null until it is detected.
    request_shape = models.JSONField(null=True, blank=True)
    # They override those of its endpoint.
    extra_headers = models.JSONField(default=dict, blank=True)
    extra_body = models.JSONField(default=dict, blank=True)
    # Whether each aspect is asked for in a request of its own.
    one_aspect_per_call = models.BooleanField(default=False)
    fence_key = models.CharField(max_length=64, blank=True)
    # The model family, named as those of candidates: a note for the report, not part of what is frozen.
    family = models.CharField(max_length=80, blank=True)
    fingerprint = models.CharField(max_length=64)
    # An archived judge is in no report, list or choice; its verdicts stay stored.
    archived_at = models.DateTimeField(null=True, blank=True)
    archived_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")

    objects = JudgeQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["evaluation", "name"], name="judge_name"),
            models.UniqueConstraint(fields=["evaluation", "fingerprint"], name="judge_fingerprint"),
            enum_constraint("kind", JudgeKind, "judge_kind"),
            models.CheckConstraint(
                condition=Q(kind=JudgeKind.LLM.value, endpoint__isnull=False, rubric_version__isnull=False)
                | Q(kind=JudgeKind.RULE.value, endpoint__isnull=True, rubric_version__isnull=False)
                | Q(kind=JudgeKind.IMPORTED.value, endpoint__isnull=True, rubric_version__isnull=True),
                name="judge_kind_agrees",
            ),
        ]

    @property
    def is_baseline(self) -> bool:
        """Whether the judge is a rule and not a model, which pages, reports and exports must state."""
        return self.kind == JudgeKind.RULE

    @property
    def is_llm(self) -> bool:
        return self.kind == JudgeKind.LLM

    @property
    def is_imported(self) -> bool:
        return self.kind == JudgeKind.IMPORTED

    @property
    def is_pointwise(self) -> bool:
        """Whether it scores single responses, so that a choice between two is only derived."""
        return self.rubric_version is not None and self.rubric_version.rubric.kind == RubricKind.POINTWISE

    @property
    def rule(self) -> str:
        """The description of a rule-based judge; empty for other judges."""
        return RULE_JUDGE_TEXTS.get(self.model, "") if self.is_baseline else ""


class RaterQuerySet(models.QuerySet["Rater"]):
    def current(self) -> "RaterQuerySet":
        """All but those of archived judges."""
        return self.filter(judge__archived_at__isnull=True)


class Rater(Row):
    """A source of verdicts in one evaluation: a reviewer, a judge or gold."""

    evaluation = models.ForeignKey(Evaluation, on_delete=models.PROTECT, related_name="raters")
    kind = models.CharField(max_length=8, choices=enum_choices(RaterKind))
    name = models.CharField(max_length=200)
    user = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="raters")
    judge = models.ForeignKey(Judge, on_delete=models.PROTECT, null=True, blank=True, related_name="raters")
    # The time of the last counted change of what it said, and their number: later ones are rows of VerdictChange.
    verdicts_changed_at = models.DateTimeField(null=True)
    verdict_changes = models.PositiveBigIntegerField(default=0, db_default=0)
    # Whether results count this reviewer, as an owner or manager chose; empty: not decided, and counted.
    screening_choice = models.CharField(
        max_length=8, blank=True, default="", db_default="", choices=enum_choices(ScreeningChoice)
    )
    screening_chosen_at = models.DateTimeField(null=True, blank=True)
    screening_chosen_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")

    objects = RaterQuerySet.as_manager()

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
            enum_constraint("screening_choice", ScreeningChoice, "rater_screening_choice", or_empty=True),
            models.CheckConstraint(
                condition=Q(kind=RaterKind.HUMAN.value) | Q(screening_choice=""), name="rater_screening_human"
            ),
            models.CheckConstraint(
                condition=Q(screening_choice="", screening_chosen_at__isnull=True, screening_chosen_by__isnull=True)
                | (~Q(screening_choice="") & Q(screening_chosen_at__isnull=False)),
                name="rater_screening_dated",
            ),
        ]

    @property
    def is_excluded(self) -> bool:
        """Whether results leave this reviewer out."""
        return self.screening_choice == ScreeningChoice.EXCLUDE


def find_rater_of_user(user: User, evaluation: Evaluation) -> Rater | None:
    return Rater.objects.filter(evaluation=evaluation, user=user).first()


def get_or_create_rater(user: User, evaluation: Evaluation) -> Rater:
    """This user's rater row, created on first need. An imported rater may already have the name."""
    existing = find_rater_of_user(user, evaluation)
    if existing is not None:
        return existing
    namesakes = Rater.objects.filter(evaluation=evaluation, kind=RaterKind.HUMAN, name=user.username, user__isnull=True)
    name = f"{user.username} (account)" if namesakes.exists() else user.username
    rater, _ = Rater.objects.get_or_create(
        evaluation=evaluation, user=user, defaults={"kind": RaterKind.HUMAN, "name": name}
    )
    return rater

import uuid

import django.contrib.auth.models
import django.contrib.auth.validators
import django.db.models.deletion
import django.db.models.functions.comparison
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [
        migrations.CreateModel(
            name="Evaluation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("slug", models.SlugField(max_length=80, unique=True)),
                ("name", models.CharField(max_length=200)),
                ("description", models.TextField(blank=True)),
                ("guidelines", models.TextField(blank=True)),
                ("guidelines_changed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "reveal",
                    models.CharField(
                        choices=[
                            ("blind", "blind"),
                            ("shown", "shown"),
                            ("never", "never"),
                            ("randomised", "randomised"),
                        ],
                        default="blind",
                        max_length=12,
                    ),
                ),
                ("reviews_wanted", models.PositiveSmallIntegerField(default=1)),
                (
                    "label_policy",
                    models.CharField(
                        choices=[("people_then_judges", "people then judges"), ("people", "people")],
                        default="people_then_judges",
                        max_length=20,
                    ),
                ),
                ("resolve_judge_disagreements", models.BooleanField(default=False)),
                ("reservation_minutes", models.PositiveSmallIntegerField(default=30)),
                ("is_example", models.BooleanField(default=False)),
                ("comparisons_changed_at", models.DateTimeField(blank=True, null=True)),
                ("archived_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("reveal__in", ["blind", "shown", "never", "randomised"])),
                        name="evaluation_reveal",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("label_policy__in", ["people_then_judges", "people"])),
                        name="evaluation_label_policy",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("reviews_wanted__gte", 1)), name="evaluation_reviews_wanted"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("reservation_minutes__gte", 1)), name="evaluation_reservation_minutes"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Lease",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("name", models.CharField(max_length=40, unique=True)),
                ("holder", models.CharField(blank=True, max_length=200)),
                ("until", models.DateTimeField()),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="LocalServer",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("base_url", models.URLField(max_length=500, unique=True)),
                ("kind", models.CharField(max_length=20)),
                ("model_names", models.JSONField(default=list)),
                ("seen_at", models.DateTimeField()),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="Worker",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("name", models.CharField(max_length=200, unique=True)),
                ("host", models.CharField(max_length=200)),
                ("pid", models.PositiveIntegerField()),
                ("version", models.CharField(max_length=40)),
                ("started_at", models.DateTimeField()),
                ("seen_at", models.DateTimeField()),
                ("in_flight", models.PositiveIntegerField(default=0)),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="User",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("password", models.CharField(max_length=128, verbose_name="password")),
                ("last_login", models.DateTimeField(blank=True, null=True, verbose_name="last login")),
                (
                    "is_superuser",
                    models.BooleanField(
                        default=False,
                        help_text="Designates that this user has all permissions without explicitly assigning them.",
                        verbose_name="superuser status",
                    ),
                ),
                (
                    "username",
                    models.CharField(
                        error_messages={"unique": "A user with that username already exists."},
                        help_text="Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only.",
                        max_length=150,
                        unique=True,
                        validators=[django.contrib.auth.validators.UnicodeUsernameValidator()],
                        verbose_name="username",
                    ),
                ),
                ("first_name", models.CharField(blank=True, max_length=150, verbose_name="first name")),
                ("last_name", models.CharField(blank=True, max_length=150, verbose_name="last name")),
                ("email", models.EmailField(blank=True, max_length=254, verbose_name="email address")),
                (
                    "is_staff",
                    models.BooleanField(
                        default=False,
                        help_text="Designates whether the user can log into this admin site.",
                        verbose_name="staff status",
                    ),
                ),
                (
                    "is_active",
                    models.BooleanField(
                        default=True,
                        help_text="Designates whether this user should be treated as active. Unselect this instead of deleting accounts.",
                        verbose_name="active",
                    ),
                ),
                ("date_joined", models.DateTimeField(default=django.utils.timezone.now, verbose_name="date joined")),
                ("display_name", models.CharField(blank=True, max_length=120)),
                ("timezone", models.CharField(default="UTC", max_length=64)),
                (
                    "theme",
                    models.CharField(
                        choices=[("system", "system"), ("light", "light"), ("dark", "dark")],
                        default="system",
                        max_length=8,
                    ),
                ),
                ("single_keys", models.BooleanField(default=True)),
                (
                    "created_for",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="accounts",
                        to="evaluations.evaluation",
                    ),
                ),
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True,
                        help_text="The groups this user belongs to. A user will get all permissions granted to each of their groups.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.group",
                        verbose_name="groups",
                    ),
                ),
                (
                    "user_permissions",
                    models.ManyToManyField(
                        blank=True,
                        help_text="Specific permissions for this user.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.permission",
                        verbose_name="user permissions",
                    ),
                ),
            ],
            options={
                "verbose_name": "user",
                "verbose_name_plural": "users",
                "abstract": False,
            },
            managers=[
                ("objects", django.contrib.auth.models.UserManager()),
            ],
        ),
        migrations.CreateModel(
            name="Endpoint",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("name", models.CharField(max_length=120, unique=True)),
                ("base_url", models.URLField(max_length=500)),
                ("key_variable", models.CharField(blank=True, max_length=120)),
                ("max_in_flight", models.PositiveIntegerField(blank=True, null=True)),
                ("requests_per_minute", models.PositiveIntegerField(blank=True, null=True)),
                ("tokens_per_minute", models.PositiveIntegerField(blank=True, null=True)),
                ("paused_until", models.DateTimeField(blank=True, null=True)),
                ("pause_reason", models.CharField(blank=True, max_length=500)),
                (
                    "dialect",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("openai", "openai"),
                            ("openai_responses", "openai responses"),
                            ("azure", "azure"),
                            ("anthropic", "anthropic"),
                            ("google", "google"),
                            ("openrouter", "openrouter"),
                            ("xai", "xai"),
                            ("groq", "groq"),
                            ("ollama", "ollama"),
                            ("llama_cpp", "llama cpp"),
                            ("vllm", "vllm"),
                            ("lm_studio", "lm studio"),
                            ("litellm", "litellm"),
                            ("generic", "generic"),
                        ],
                        max_length=20,
                    ),
                ),
                ("timeout_seconds", models.PositiveIntegerField(blank=True, null=True)),
                ("extra_headers", models.JSONField(blank=True, default=dict)),
                ("extra_query", models.JSONField(blank=True, default=dict)),
                ("extra_body", models.JSONField(blank=True, default=dict)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("key_variable", ""),
                            ("key_variable__endswith", "_API_KEY"),
                            ("key_variable__startswith", "JUDGEWEB_KEY_"),
                            _connector="OR",
                        ),
                        name="endpoint_key_variable",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Rendering",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("sha256", models.CharField(max_length=64)),
                ("renderer", models.PositiveSmallIntegerField()),
                ("html", models.TextField()),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("renderer", "sha256"), name="rendering_once")],
            },
        ),
        migrations.CreateModel(
            name="Aspect",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("key", models.SlugField(max_length=60)),
                ("name", models.CharField(max_length=80)),
                ("slot", models.PositiveSmallIntegerField()),
                (
                    "evaluation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="aspects", to="evaluations.evaluation"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("evaluation", "key"), name="aspect_key"),
                    models.UniqueConstraint(fields=("evaluation", "slot"), name="aspect_slot"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Candidate",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("name", models.CharField(max_length=200)),
                ("family", models.CharField(blank=True, max_length=80)),
                (
                    "evaluation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="candidates",
                        to="evaluations.evaluation",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("evaluation", "name"), name="candidate_name")],
            },
        ),
        migrations.CreateModel(
            name="ApiToken",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("name", models.CharField(max_length=80)),
                ("prefix", models.CharField(max_length=12)),
                ("token_sha256", models.CharField(max_length=64, unique=True)),
                ("scopes", models.CharField(max_length=60)),
                ("expires_at", models.DateTimeField()),
                ("last_used_at", models.DateTimeField(null=True)),
                ("revoked_at", models.DateTimeField(null=True)),
                ("window", models.BigIntegerField(default=0)),
                ("requests", models.PositiveIntegerField(default=0)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="api_tokens",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "evaluation",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="api_tokens",
                        to="evaluations.evaluation",
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="Export",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("format", models.CharField(max_length=20)),
                ("extension", models.CharField(blank=True, max_length=20)),
                ("filters", models.JSONField(default=dict)),
                ("options", models.JSONField(default=dict)),
                ("label_policy", models.CharField(max_length=40)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("unfinished", "unfinished"),
                            ("done", "done"),
                            ("failed", "failed"),
                            ("cancelled", "cancelled"),
                        ],
                        default="unfinished",
                        max_length=12,
                    ),
                ),
                ("rows", models.PositiveBigIntegerField(null=True)),
                ("sha256", models.CharField(blank=True, max_length=64)),
                ("file", models.FileField(blank=True, upload_to="exports/%Y/%m/")),
                ("size_bytes", models.PositiveBigIntegerField(null=True)),
                ("counts", models.JSONField(default=dict)),
                ("manifest", models.JSONField(default=dict)),
                ("in_background", models.BooleanField(default=False)),
                ("reason", models.TextField(blank=True)),
                ("finished_at", models.DateTimeField(null=True)),
                ("removed_at", models.DateTimeField(null=True)),
                (
                    "evaluation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="exports", to="evaluations.evaluation"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="exports",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["waiting", "unfinished", "done", "failed", "cancelled"])),
                        name="export_state",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="EndpointCheck",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("model", models.CharField(max_length=200)),
                ("checked_at", models.DateTimeField()),
                ("result", models.JSONField(default=dict)),
                (
                    "endpoint",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="checks",
                        to="evaluations.endpoint",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("endpoint", "model"), name="endpoint_check_of_model")],
            },
        ),
        migrations.CreateModel(
            name="Import",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("file", models.FileField(blank=True, upload_to="uploads/%Y/%m/")),
                ("file_name", models.CharField(max_length=255)),
                ("sha256", models.CharField(max_length=64)),
                ("format", models.CharField(max_length=40)),
                ("brings", models.CharField(blank=True, max_length=12)),
                ("options_json", models.JSONField(default=dict)),
                ("skip_bad", models.BooleanField(default=False)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("mapping", "mapping"),
                            ("checking", "checking"),
                            ("previewed", "previewed"),
                            ("storing", "storing"),
                            ("done", "done"),
                            ("cancelled", "cancelled"),
                            ("failed", "failed"),
                            ("undoing", "undoing"),
                            ("undone", "undone"),
                        ],
                        default="previewed",
                        max_length=12,
                    ),
                ),
                ("rows_read", models.PositiveBigIntegerField(default=0)),
                ("rows_stored", models.PositiveBigIntegerField(default=0)),
                ("rows_unchanged", models.PositiveBigIntegerField(default=0)),
                ("rows_bad", models.PositiveBigIntegerField(default=0)),
                ("rows_skipped", models.PositiveBigIntegerField(default=0)),
                ("bad_rows", models.JSONField(default=list)),
                ("summary_json", models.JSONField(default=dict)),
                ("new_queries", models.PositiveBigIntegerField(default=0)),
                ("new_responses", models.PositiveBigIntegerField(default=0)),
                ("new_comparisons", models.PositiveBigIntegerField(default=0)),
                ("new_verdicts", models.PositiveBigIntegerField(default=0)),
                ("new_scores", models.PositiveBigIntegerField(default=0)),
                ("new_failures", models.PositiveBigIntegerField(default=0)),
                ("created_json", models.JSONField(default=dict)),
                ("pairs_cursor", models.PositiveBigIntegerField(default=0)),
                ("is_removing", models.BooleanField(default=False)),
                ("labels_cursor", models.PositiveBigIntegerField(default=0)),
                ("rows_cursor", models.PositiveBigIntegerField(default=0)),
                ("reason", models.TextField(blank=True)),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "evaluation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="imports", to="evaluations.evaluation"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="imports",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                [
                                    "mapping",
                                    "checking",
                                    "previewed",
                                    "storing",
                                    "done",
                                    "cancelled",
                                    "failed",
                                    "undoing",
                                    "undone",
                                ],
                            )
                        ),
                        name="import_state",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("state", "storing")), fields=("evaluation",), name="import_one_at_a_time"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Job",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("kind", models.CharField(max_length=40)),
                ("subject", models.BigIntegerField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("running", "running"),
                            ("done", "done"),
                            ("failed", "failed"),
                            ("cancelled", "cancelled"),
                            ("set_aside", "set aside"),
                        ],
                        default="waiting",
                        max_length=12,
                    ),
                ),
                ("claim", models.UUIDField(null=True)),
                ("claimed_by", models.CharField(blank=True, max_length=200)),
                ("lease_until", models.DateTimeField(null=True)),
                ("heartbeat_at", models.DateTimeField(null=True)),
                ("not_before", models.DateTimeField(null=True)),
                ("position", models.PositiveBigIntegerField(default=0)),
                ("total", models.PositiveBigIntegerField(null=True)),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("reason", models.TextField(blank=True)),
                ("begun_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "evaluation",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="jobs",
                        to="evaluations.evaluation",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("state__in", ["waiting", "running"])),
                        fields=["state", "not_before"],
                        name="job_open",
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ["waiting", "running", "done", "failed", "cancelled", "set_aside"])
                        ),
                        name="job_state",
                    ),
                    models.UniqueConstraint(fields=("kind", "subject"), name="job_once"),
                ],
            },
        ),
        migrations.CreateModel(
            name="EarlierGuidelines",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("text", models.TextField(blank=True)),
                (
                    "evaluation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="earlier_guidelines",
                        to="evaluations.evaluation",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="earlier_guidelines",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="JudgeComparisonLook",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("number", models.PositiveSmallIntegerField()),
                ("results_sha256", models.CharField(max_length=64)),
                (
                    "evaluation",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="judge_comparison_looks",
                        to="evaluations.evaluation",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("evaluation", "number"), name="judge_comparison_look_number"),
                    models.UniqueConstraint(fields=("evaluation", "results_sha256"), name="judge_comparison_look_once"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Membership",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("owner", "owner"),
                            ("manager", "manager"),
                            ("reviewer", "reviewer"),
                            ("adjudicator", "adjudicator"),
                            ("viewer", "viewer"),
                        ],
                        max_length=12,
                    ),
                ),
                (
                    "evaluation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="memberships",
                        to="evaluations.evaluation",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="memberships",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("evaluation", "user"), name="membership_once"),
                    models.CheckConstraint(
                        condition=models.Q(("role__in", ["owner", "manager", "reviewer", "adjudicator", "viewer"])),
                        name="membership_role",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Price",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("model", models.CharField(max_length=200)),
                ("tokens_in", models.PositiveBigIntegerField()),
                ("tokens_cached", models.PositiveBigIntegerField()),
                ("tokens_out", models.PositiveBigIntegerField()),
                ("batch_percent", models.PositiveSmallIntegerField(default=50)),
                ("most_tokens_out", models.PositiveIntegerField(blank=True, null=True)),
                ("source", models.CharField(blank=True, max_length=300)),
                (
                    "endpoint",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="prices", to="evaluations.endpoint"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("endpoint", "model"), name="price_of_model"),
                    models.CheckConstraint(condition=models.Q(("batch_percent__lte", 100)), name="price_batch_percent"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Rubric",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("name", models.CharField(max_length=120)),
                (
                    "kind",
                    models.CharField(
                        choices=[("pairwise", "pairwise"), ("pointwise", "pointwise")],
                        default="pairwise",
                        max_length=10,
                    ),
                ),
                (
                    "origin",
                    models.CharField(
                        choices=[("builtin", "builtin"), ("own", "own"), ("imported", "imported")],
                        default="own",
                        max_length=10,
                    ),
                ),
                (
                    "evaluation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="rubrics", to="evaluations.evaluation"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("evaluation", "name"), name="rubric_name"),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["pairwise", "pointwise"])), name="rubric_kind"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("origin__in", ["builtin", "own", "imported"])), name="rubric_origin"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SignInLink",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("token_sha256", models.CharField(max_length=64, unique=True)),
                ("expires_at", models.DateTimeField()),
                ("used_at", models.DateTimeField(blank=True, null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="sign_in_links",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="SavedFilter",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("name", models.CharField(max_length=80)),
                ("filter", models.JSONField(default=dict)),
                (
                    "evaluation",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="saved_filters",
                        to="evaluations.evaluation",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="saved_filters",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("evaluation", "name"), name="saved_filter_name")],
            },
        ),
        migrations.CreateModel(
            name="Tag",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("name", models.CharField(max_length=60)),
                (
                    "evaluation",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="tags",
                        to="evaluations.evaluation",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("evaluation", "name"), name="tag_name")],
            },
        ),
        migrations.CreateModel(
            name="Webhook",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("url", models.URLField(max_length=500)),
                ("kinds", models.CharField(max_length=200)),
                ("secret", models.CharField(max_length=80)),
                ("failures", models.PositiveIntegerField(default=0)),
                ("paused_until", models.DateTimeField(null=True)),
                ("stopped_at", models.DateTimeField(null=True)),
                ("stop_reason", models.CharField(blank=True, max_length=300)),
                (
                    "evaluation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="webhooks",
                        to="evaluations.evaluation",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="webhooks",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("evaluation", "url"), name="webhook_once")],
            },
        ),
        migrations.CreateModel(
            name="ColumnMapping",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("signature", models.CharField(max_length=64)),
                ("columns", models.JSONField()),
                ("format", models.CharField(max_length=40)),
                ("mapping", models.JSONField(default=dict)),
                ("constants", models.JSONField(default=dict)),
                ("choices", models.JSONField(default=dict)),
                ("mapped_at", models.DateTimeField()),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="column_mappings",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "evaluation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="column_mappings",
                        to="evaluations.evaluation",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("evaluation", "signature"), name="column_mapping_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="Event",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("verb", models.CharField(max_length=60)),
                ("object_type", models.CharField(max_length=40)),
                ("object_id", models.BigIntegerField(null=True)),
                ("before", models.JSONField(default=dict)),
                ("after", models.JSONField(default=dict)),
                (
                    "evaluation",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="events",
                        to="evaluations.evaluation",
                    ),
                ),
                (
                    "token",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="events",
                        to="evaluations.apitoken",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="events",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["evaluation", "-id"], name="event_newest"),
                    models.Index(fields=["object_type", "object_id"], name="event_of_object"),
                ],
            },
        ),
        migrations.CreateModel(
            name="IdempotencyRecord",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("key", models.CharField(max_length=200)),
                ("request_sha256", models.CharField(max_length=64)),
                ("status", models.PositiveSmallIntegerField(null=True)),
                ("content_type", models.CharField(blank=True, max_length=100)),
                ("location", models.CharField(blank=True, max_length=500)),
                ("body", models.TextField(blank=True)),
                (
                    "token",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="idempotency_records",
                        to="evaluations.apitoken",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["created_at"], name="idempotency_record_age")],
                "constraints": [models.UniqueConstraint(fields=("token", "key"), name="idempotency_record_once")],
            },
        ),
        migrations.CreateModel(
            name="Query",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("key", models.CharField(max_length=200)),
                ("cluster", models.CharField(max_length=200)),
                ("cluster_number", models.BigIntegerField(default=0)),
                ("messages", models.JSONField()),
                ("text", models.TextField(blank=True)),
                ("context", models.TextField(null=True)),
                ("reference", models.TextField(null=True)),
                ("category", models.CharField(blank=True, max_length=120)),
                ("metadata", models.JSONField(default=dict)),
                ("flags", models.CharField(blank=True, max_length=120)),
                ("sha256", models.CharField(max_length=64)),
                ("near_duplicate_key", models.BigIntegerField(db_default=0, default=0)),
                (
                    "evaluation",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="queries",
                        to="evaluations.evaluation",
                    ),
                ),
                (
                    "source_import",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="queries",
                        to="evaluations.import",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "queries",
                "indexes": [
                    models.Index(fields=["evaluation", "category"], name="query_category"),
                    models.Index(
                        condition=models.Q(("flags", ""), _negated=True), fields=["evaluation"], name="query_flagged"
                    ),
                    models.Index(
                        fields=["evaluation", "id", "source_import", "near_duplicate_key"], name="query_in_order"
                    ),
                ],
                "constraints": [models.UniqueConstraint(fields=("evaluation", "key"), name="query_key")],
            },
        ),
        migrations.CreateModel(
            name="RubricVersion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("number", models.PositiveIntegerField()),
                ("instructions", models.TextField(blank=True)),
                ("placeholders", models.JSONField(default=dict)),
                ("answer_format", models.CharField(default="json", max_length=400)),
                ("few_shot", models.JSONField(default=list)),
                ("rationale_key", models.CharField(default="rationale", max_length=60)),
                ("choices_key", models.CharField(blank=True, default="choices", max_length=60)),
                ("layout", models.PositiveSmallIntegerField(default=1)),
                ("sha256", models.CharField(max_length=64)),
                ("frozen_at", models.DateTimeField(null=True)),
                (
                    "rubric",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="versions", to="evaluations.rubric"
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("rubric", "number"), name="rubric_version_number")],
            },
        ),
        migrations.CreateModel(
            name="TagChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("filters", models.JSONField(default=list)),
                ("removes", models.BooleanField(default=False)),
                ("changed", models.PositiveIntegerField(default=0)),
                ("comparisons", models.JSONField(default=list)),
                ("undone_at", models.DateTimeField(null=True)),
                ("tag_name", models.CharField(blank=True, max_length=60)),
                (
                    "evaluation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="tag_changes",
                        to="evaluations.evaluation",
                    ),
                ),
                (
                    "tag",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="changes",
                        to="evaluations.tag",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="tag_changes",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("run.finished", "run.finished"),
                            ("run.stopped", "run.stopped"),
                            ("round.reviewed", "round.reviewed"),
                            ("disagreement.opened", "disagreement.opened"),
                            ("test", "test"),
                        ],
                        max_length=20,
                    ),
                ),
                ("subject", models.BigIntegerField()),
                ("key", models.UUIDField(default=uuid.uuid4, unique=True)),
                ("body", models.TextField()),
                (
                    "state",
                    models.CharField(
                        choices=[("waiting", "waiting"), ("delivered", "delivered"), ("failed", "failed")],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("not_before", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "webhook",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="deliveries",
                        to="evaluations.webhook",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "deliveries",
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "waiting")), fields=["not_before"], name="delivery_waiting"
                    ),
                    models.Index(fields=["webhook", "-id"], name="delivery_newest"),
                    models.Index(fields=["webhook", "kind", "subject"], name="delivery_of_subject"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "kind__in",
                                ["run.finished", "run.stopped", "round.reviewed", "disagreement.opened", "test"],
                            )
                        ),
                        name="delivery_kind",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["waiting", "delivered", "failed"])), name="delivery_state"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("finished_at__isnull", True), ("not_before__isnull", False), ("state", "waiting")
                            ),
                            models.Q(models.Q(("state", "waiting"), _negated=True), ("finished_at__isnull", False)),
                            _connector="OR",
                        ),
                        name="delivery_waits_or_ended",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="OutboxEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("run.finished", "run.finished"),
                            ("run.stopped", "run.stopped"),
                            ("round.reviewed", "round.reviewed"),
                            ("disagreement.opened", "disagreement.opened"),
                            ("test", "test"),
                        ],
                        max_length=20,
                    ),
                ),
                ("subject", models.BigIntegerField()),
                (
                    "webhook",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="outbox_entries",
                        to="evaluations.webhook",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "kind__in",
                                ["run.finished", "run.stopped", "round.reviewed", "disagreement.opened", "test"],
                            )
                        ),
                        name="outbox_entry_kind",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Judge",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("name", models.CharField(max_length=120)),
                (
                    "kind",
                    models.CharField(
                        choices=[("llm", "llm"), ("rule", "rule"), ("imported", "imported")], max_length=10
                    ),
                ),
                ("model", models.CharField(blank=True, max_length=200)),
                (
                    "mode",
                    models.CharField(
                        choices=[
                            ("auto", "auto"),
                            ("json_schema", "json schema"),
                            ("json_object", "json object"),
                            ("text", "text"),
                            ("two_step", "two step"),
                        ],
                        default="auto",
                        max_length=12,
                    ),
                ),
                ("temperature", models.FloatField(blank=True, null=True)),
                ("max_tokens", models.PositiveIntegerField(blank=True, null=True)),
                ("seed", models.BigIntegerField(blank=True, null=True)),
                ("reasoning_effort", models.CharField(blank=True, max_length=20)),
                ("logprobs", models.BooleanField(default=False)),
                ("repairs", models.BooleanField(default=True)),
                (
                    "reply_shape",
                    models.CharField(
                        blank=True,
                        choices=[("json_schema", "json schema"), ("json_object", "json object"), ("text", "text")],
                        max_length=12,
                    ),
                ),
                ("request_shape", models.JSONField(blank=True, null=True)),
                ("extra_headers", models.JSONField(blank=True, default=dict)),
                ("extra_body", models.JSONField(blank=True, default=dict)),
                ("one_aspect_per_call", models.BooleanField(default=False)),
                ("fence_key", models.CharField(blank=True, max_length=64)),
                ("family", models.CharField(blank=True, max_length=80)),
                ("fingerprint", models.CharField(max_length=64)),
                ("archived_at", models.DateTimeField(blank=True, null=True)),
                (
                    "archived_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "endpoint",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="judges",
                        to="evaluations.endpoint",
                    ),
                ),
                (
                    "evaluation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="judges", to="evaluations.evaluation"
                    ),
                ),
                (
                    "rubric_version",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="judges",
                        to="evaluations.rubricversion",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("evaluation", "name"), name="judge_name"),
                    models.UniqueConstraint(fields=("evaluation", "fingerprint"), name="judge_fingerprint"),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["llm", "rule", "imported"])), name="judge_kind"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("endpoint__isnull", False), ("kind", "llm"), ("rubric_version__isnull", False)),
                            models.Q(("endpoint__isnull", True), ("kind", "rule"), ("rubric_version__isnull", False)),
                            models.Q(
                                ("endpoint__isnull", True), ("kind", "imported"), ("rubric_version__isnull", True)
                            ),
                            _connector="OR",
                        ),
                        name="judge_kind_agrees",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Response",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("messages", models.JSONField()),
                ("sha256", models.CharField(max_length=64)),
                ("characters", models.PositiveIntegerField()),
                ("markup", models.BigIntegerField(default=0)),
                ("metadata", models.JSONField(default=dict)),
                ("flags", models.CharField(blank=True, max_length=120)),
                (
                    "candidate",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="responses",
                        to="evaluations.candidate",
                    ),
                ),
                (
                    "query",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="responses",
                        to="evaluations.query",
                    ),
                ),
                (
                    "source_import",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="responses",
                        to="evaluations.import",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("flags", ""), _negated=True), fields=["query"], name="response_flagged"
                    )
                ],
                "constraints": [models.UniqueConstraint(fields=("query", "candidate", "sha256"), name="response_once")],
            },
        ),
        migrations.CreateModel(
            name="Queue",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("name", models.CharField(max_length=120)),
                (
                    "kind",
                    models.CharField(
                        choices=[("review", "review"), ("calibration", "calibration")], default="review", max_length=12
                    ),
                ),
                (
                    "strategy",
                    models.CharField(
                        choices=[
                            ("random", "random"),
                            ("stratified", "stratified"),
                            ("flips", "flips"),
                            ("judges_disagree", "judges disagree"),
                            ("people_disagree", "people disagree"),
                            ("least_confident", "least confident"),
                            ("calibration", "calibration"),
                            ("by_hand", "by hand"),
                        ],
                        max_length=20,
                    ),
                ),
                (
                    "strata",
                    models.CharField(
                        blank=True,
                        choices=[("category", "category"), ("candidate_pair", "candidate pair")],
                        max_length=16,
                    ),
                ),
                ("random_percent", models.PositiveSmallIntegerField(default=100)),
                ("reviews_wanted", models.PositiveSmallIntegerField(default=1)),
                ("population", models.PositiveIntegerField(default=0)),
                ("seed", models.BigIntegerField(default=0)),
                ("assigned_only", models.BooleanField(default=False)),
                ("closed_at", models.DateTimeField(null=True)),
                (
                    "evaluation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="queues", to="evaluations.evaluation"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="queues",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "rubric_version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="queues",
                        to="evaluations.rubricversion",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("evaluation", "name"), name="queue_name"),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["review", "calibration"])), name="queue_kind"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "strategy__in",
                                [
                                    "random",
                                    "stratified",
                                    "flips",
                                    "judges_disagree",
                                    "people_disagree",
                                    "least_confident",
                                    "calibration",
                                    "by_hand",
                                ],
                            )
                        ),
                        name="queue_strategy",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("strata__in", ["", "category", "candidate_pair"])), name="queue_strata"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("random_percent__lte", 100)), name="queue_random_percent"
                    ),
                    models.CheckConstraint(condition=models.Q(("reviews_wanted__gte", 1)), name="queue_reviews_wanted"),
                ],
            },
        ),
        migrations.CreateModel(
            name="RubricAspect",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("position", models.PositiveSmallIntegerField()),
                ("output_position", models.PositiveSmallIntegerField()),
                ("definition", models.TextField(blank=True)),
                ("offers_tie", models.BooleanField(default=True)),
                ("offers_both_bad", models.BooleanField(default=False)),
                ("choice_labels", models.JSONField(default=dict)),
                ("scale_min", models.FloatField(null=True)),
                ("scale_max", models.FloatField(null=True)),
                ("scale_step", models.FloatField(null=True)),
                ("scale_labels", models.JSONField(default=list)),
                ("tie_margin", models.FloatField(default=0.0)),
                ("reply_key", models.CharField(blank=True, max_length=60)),
                ("lower_is_better", models.BooleanField(default=False)),
                (
                    "aspect",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="rubric_aspects",
                        to="evaluations.aspect",
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="rubric_aspects",
                        to="evaluations.rubricversion",
                    ),
                ),
            ],
            options={
                "ordering": ["position"],
                "constraints": [models.UniqueConstraint(fields=("version", "aspect"), name="rubric_aspect_once")],
            },
        ),
        migrations.CreateModel(
            name="DefaultQueue",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("items", models.PositiveIntegerField(default=0)),
                ("wanted", models.PositiveSmallIntegerField(default=1)),
                ("imports", models.PositiveIntegerField(default=0)),
                ("last_comparison", models.BigIntegerField(default=0)),
                (
                    "rubric_version",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="default_queue",
                        to="evaluations.rubricversion",
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="DeliveryAttempt",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("number", models.PositiveSmallIntegerField()),
                ("http_status", models.PositiveSmallIntegerField(null=True)),
                ("answer", models.TextField(blank=True)),
                ("error", models.CharField(blank=True, max_length=300)),
                ("milliseconds", models.PositiveIntegerField()),
                (
                    "delivery",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="attempts",
                        to="evaluations.delivery",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "delivery attempts",
                "constraints": [models.UniqueConstraint(fields=("delivery", "number"), name="delivery_attempt_once")],
            },
        ),
        migrations.CreateModel(
            name="Comparison",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "origin",
                    models.CharField(
                        choices=[("imported", "imported"), ("paired", "paired"), ("by_hand", "by hand")], max_length=12
                    ),
                ),
                ("swapped", models.BooleanField(default=False)),
                ("random_order", models.BigIntegerField()),
                ("candidate_a", models.BigIntegerField(default=0)),
                ("candidate_b", models.BigIntegerField(default=0)),
                ("category", models.CharField(blank=True, default="", max_length=120)),
                ("metadata", models.JSONField(default=dict)),
                ("resolution_count", models.PositiveIntegerField(db_default=0, default=0)),
                (
                    "evaluation",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="comparisons",
                        to="evaluations.evaluation",
                    ),
                ),
                (
                    "source_import",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="comparisons",
                        to="evaluations.import",
                    ),
                ),
                (
                    "query",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="comparisons", to="evaluations.query"
                    ),
                ),
                (
                    "response_a",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="comparisons_as_a",
                        to="evaluations.response",
                    ),
                ),
                (
                    "response_b",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="comparisons_as_b",
                        to="evaluations.response",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["evaluation", "random_order"], name="comparison_random_order"),
                    models.Index(
                        fields=[
                            "evaluation",
                            "id",
                            "candidate_a",
                            "candidate_b",
                            "category",
                            "origin",
                            "source_import",
                        ],
                        name="comparison_in_order",
                    ),
                    models.Index(
                        condition=models.Q(("origin", "by_hand")),
                        fields=["evaluation", "origin"],
                        name="comparison_by_hand",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("response_a", models.F("response_b")), _negated=True),
                        name="comparison_of_two",
                    ),
                    models.UniqueConstraint(
                        django.db.models.functions.comparison.Least("response_a", "response_b"),
                        django.db.models.functions.comparison.Greatest("response_a", "response_b"),
                        name="comparison_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("origin__in", ["imported", "paired", "by_hand"])), name="comparison_origin"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Rater",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "kind",
                    models.CharField(choices=[("human", "human"), ("judge", "judge"), ("gold", "gold")], max_length=8),
                ),
                ("name", models.CharField(max_length=200)),
                ("verdicts_changed_at", models.DateTimeField(null=True)),
                (
                    "evaluation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="raters", to="evaluations.evaluation"
                    ),
                ),
                (
                    "judge",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="raters",
                        to="evaluations.judge",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="raters",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("evaluation", "kind", "name"), name="rater_name"),
                    models.UniqueConstraint(
                        condition=models.Q(("user__isnull", False)), fields=("evaluation", "user"), name="rater_user"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("judge__isnull", False)), fields=("judge",), name="rater_judge"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("judge__isnull", True), ("kind", "human")),
                            models.Q(("judge__isnull", False), ("kind", "judge"), ("user__isnull", True)),
                            models.Q(("judge__isnull", True), ("kind", "gold"), ("user__isnull", True)),
                            _connector="OR",
                        ),
                        name="rater_kind_agrees",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Reparse",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("calls", models.PositiveIntegerField()),
                ("counts", models.JSONField(default=dict)),
                ("changes", models.JSONField(default=dict)),
                (
                    "judge",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="reparses", to="evaluations.judge"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reparses",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="Run",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("batch", models.UUIDField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("planning", "planning"),
                            ("running", "running"),
                            ("paused", "paused"),
                            ("done", "done"),
                            ("cancelled", "cancelled"),
                            ("stopped", "stopped"),
                        ],
                        default="planning",
                        max_length=10,
                    ),
                ),
                (
                    "channel",
                    models.CharField(choices=[("live", "live"), ("batch", "batch")], default="live", max_length=5),
                ),
                (
                    "orders",
                    models.CharField(
                        choices=[
                            ("both", "both"),
                            ("random", "random"),
                            ("as-stored", "as-stored"),
                            ("swapped", "swapped"),
                        ],
                        default="both",
                        max_length=10,
                    ),
                ),
                ("samples", models.PositiveSmallIntegerField(default=1)),
                ("seed", models.BigIntegerField(default=0)),
                ("filters", models.JSONField(default=dict)),
                ("planned", models.PositiveBigIntegerField(default=0)),
                ("reused", models.PositiveBigIntegerField(default=0)),
                ("budget", models.BigIntegerField(null=True)),
                ("spent", models.BigIntegerField(default=0)),
                ("reserved", models.BigIntegerField(default=0)),
                ("stop_reason", models.TextField(blank=True)),
                ("resumed_at", models.DateTimeField(null=True)),
                ("started_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "evaluation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="runs", to="evaluations.evaluation"
                    ),
                ),
                (
                    "judge",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="runs", to="evaluations.judge"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="runs",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["evaluation", "-id"], name="run_newest")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ["planning", "running", "paused", "done", "cancelled", "stopped"])
                        ),
                        name="run_state",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("orders__in", ["both", "random", "as-stored", "swapped"])),
                        name="run_orders",
                    ),
                    models.CheckConstraint(condition=models.Q(("channel__in", ["live", "batch"])), name="run_channel"),
                    models.CheckConstraint(condition=models.Q(("samples__gte", 1)), name="run_samples"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Batch",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("sending", "sending"),
                            ("submitted", "submitted"),
                            ("collecting", "collecting"),
                            ("done", "done"),
                            ("failed", "failed"),
                        ],
                        default="sending",
                        max_length=10,
                    ),
                ),
                ("remote_id", models.CharField(blank=True, max_length=200)),
                ("remote_state", models.CharField(blank=True, max_length=40)),
                ("output_file", models.CharField(blank=True, max_length=200)),
                ("error_file", models.CharField(blank=True, max_length=200)),
                ("calls_sent", models.PositiveIntegerField(default=0)),
                ("calls_answered", models.PositiveIntegerField(default=0)),
                ("error", models.TextField(blank=True)),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="batches", to="evaluations.run"
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "batches",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["sending", "submitted", "collecting", "done", "failed"])),
                        name="batch_state",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Comment",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("text", models.TextField()),
                ("withdrawn_at", models.DateTimeField(null=True)),
                (
                    "aspect",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="comments",
                        to="evaluations.aspect",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="comments",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "comparison",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="comments",
                        to="evaluations.comparison",
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="Label",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "choice",
                    models.CharField(
                        blank=True,
                        choices=[("A", "A"), ("B", "B"), ("tie", "tie"), ("both_bad", "both bad")],
                        max_length=8,
                    ),
                ),
                (
                    "source",
                    models.CharField(
                        choices=[
                            ("adjudicated", "adjudicated"),
                            ("majority", "majority"),
                            ("single", "single"),
                            ("split", "split"),
                            ("panel", "panel"),
                            ("judge", "judge"),
                        ],
                        max_length=12,
                    ),
                ),
                ("votes", models.PositiveIntegerField()),
                ("unanimous", models.BooleanField()),
                (
                    "aspect",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="labels",
                        to="evaluations.aspect",
                    ),
                ),
                (
                    "comparison",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="labels",
                        to="evaluations.comparison",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["aspect", "choice", "comparison"], name="label_of_choice"),
                    models.Index(
                        condition=models.Q(("unanimous", False), models.Q(("source", "adjudicated"), _negated=True)),
                        fields=["comparison", "aspect"],
                        name="label_in_conflict",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("comparison", "aspect"), name="label_once"),
                    models.CheckConstraint(
                        condition=models.Q(("choice__in", ["", "A", "B", "tie", "both_bad"])), name="label_choice"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("source__in", ["adjudicated", "majority", "single", "split", "panel", "judge"])
                        ),
                        name="label_source",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("choice", ""), ("source", "split")),
                            models.Q(
                                models.Q(("choice", ""), _negated=True), models.Q(("source", "split"), _negated=True)
                            ),
                            _connector="OR",
                        ),
                        name="label_split_is_empty",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="QueueItem",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("position", models.BigIntegerField()),
                ("wanted", models.PositiveSmallIntegerField()),
                ("taken", models.PositiveIntegerField(default=0)),
                ("drawn", models.BooleanField(default=False)),
                (
                    "comparison",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="queue_items",
                        to="evaluations.comparison",
                    ),
                ),
                (
                    "rubric_version",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="queue_items",
                        to="evaluations.rubricversion",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["rubric_version", "position"], name="queue_item_in_order"),
                    models.Index(
                        condition=models.Q(("taken__lt", models.F("wanted"))),
                        fields=["rubric_version", "position"],
                        name="queue_item_open",
                    ),
                    models.Index(
                        condition=models.Q(("drawn", False)),
                        fields=["rubric_version", "position"],
                        name="queue_item_undrawn",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("rubric_version", "comparison"), name="queue_item_once"),
                    models.CheckConstraint(condition=models.Q(("wanted__gte", 1)), name="queue_item_wanted"),
                ],
            },
        ),
        migrations.CreateModel(
            name="ReviewerPseudonym",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("number", models.PositiveIntegerField()),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="pseudonyms",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "evaluation",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="pseudonyms",
                        to="evaluations.evaluation",
                    ),
                ),
                (
                    "rater",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="pseudonyms",
                        to="evaluations.rater",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("evaluation", "number"), name="pseudonym_number"),
                    models.UniqueConstraint(
                        condition=models.Q(("user__isnull", False)),
                        fields=("evaluation", "user"),
                        name="pseudonym_of_user",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("rater__isnull", False)), fields=("rater",), name="pseudonym_of_rater"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("rater__isnull", True), ("user__isnull", False)),
                            models.Q(("rater__isnull", False), ("user__isnull", True)),
                            _connector="OR",
                        ),
                        name="pseudonym_of_one",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Review",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "shown",
                    models.CharField(
                        choices=[
                            ("as_stored", "as stored"),
                            ("swapped", "swapped"),
                            ("unknown", "unknown"),
                            ("folded", "folded"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("draft", "draft"), ("first", "first"), ("final", "final"), ("skipped", "skipped")],
                        default="draft",
                        max_length=8,
                    ),
                ),
                ("version", models.PositiveIntegerField(default=0)),
                ("blind", models.BooleanField(default=True)),
                ("judge_first", models.BooleanField(default=False)),
                (
                    "reveal",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("blind", "blind"),
                            ("shown", "shown"),
                            ("never", "never"),
                            ("randomised", "randomised"),
                        ],
                        max_length=12,
                    ),
                ),
                (
                    "selection_method",
                    models.CharField(
                        choices=[
                            ("random", "random"),
                            ("stratified", "stratified"),
                            ("flips", "flips"),
                            ("judges_disagree", "judges disagree"),
                            ("people_disagree", "people disagree"),
                            ("least_confident", "least confident"),
                            ("calibration", "calibration"),
                            ("by_hand", "by hand"),
                        ],
                        default="by_hand",
                        max_length=20,
                    ),
                ),
                ("probability", models.FloatField(null=True)),
                ("awaits_judge", models.BooleanField(default=False)),
                ("draft", models.JSONField(default=dict)),
                ("draft_number", models.PositiveIntegerField(default=0)),
                ("draft_tab", models.CharField(blank=True, max_length=36)),
                ("first_saved_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                ("active_ms", models.PositiveIntegerField(default=0)),
                ("skip_reason", models.CharField(blank=True, max_length=200)),
                ("note", models.TextField(blank=True)),
                ("is_example", models.BooleanField(default=False)),
                (
                    "comparison",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="reviews", to="evaluations.comparison"
                    ),
                ),
                (
                    "judge",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reviews",
                        to="evaluations.judge",
                    ),
                ),
                (
                    "rater",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reviews",
                        to="evaluations.rater",
                    ),
                ),
                (
                    "source_import",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reviews",
                        to="evaluations.import",
                    ),
                ),
                (
                    "queue",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reviews",
                        to="evaluations.queue",
                    ),
                ),
                (
                    "rubric_version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reviews",
                        to="evaluations.rubricversion",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["comparison", "rubric_version", "state"], name="review_of_comparison"),
                    models.Index(fields=["rater", "rubric_version", "state"], name="review_of_rater"),
                    models.Index(fields=["rater", "rubric_version", "finished_at"], name="review_last_finished"),
                    models.Index(
                        condition=models.Q(("awaits_judge", True)),
                        fields=["rubric_version", "rater"],
                        name="review_awaiting_judge",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("rater", "comparison", "rubric_version"), name="review_once"),
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["draft", "first", "final", "skipped"])), name="review_state"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("shown__in", ["as_stored", "swapped", "unknown", "folded"])),
                        name="review_shown",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "selection_method__in",
                                [
                                    "random",
                                    "stratified",
                                    "flips",
                                    "judges_disagree",
                                    "people_disagree",
                                    "least_confident",
                                    "calibration",
                                    "by_hand",
                                ],
                            )
                        ),
                        name="review_selection_method",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("reveal__in", ["", "blind", "shown", "never", "randomised"])),
                        name="review_reveal",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("probability__isnull", True),
                            models.Q(("probability__gt", 0), ("probability__lte", 1)),
                            _connector="OR",
                        ),
                        name="review_probability",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="QueueProgress",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("reached", models.BigIntegerField(default=0)),
                ("done", models.PositiveIntegerField(default=0)),
                ("drawn_at", models.DateTimeField(null=True)),
                ("result_seen_at", models.DateTimeField(null=True)),
                (
                    "rater",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="queue_progress",
                        to="evaluations.rater",
                    ),
                ),
                (
                    "queue",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="queue_progress",
                        to="evaluations.queue",
                    ),
                ),
                (
                    "rubric_version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="queue_progress",
                        to="evaluations.rubricversion",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("queue__isnull", True)),
                        fields=("rater", "rubric_version"),
                        name="queue_progress_in_default_queue",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("queue__isnull", False)),
                        fields=("rater", "queue"),
                        name="queue_progress_in_queue",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("result_seen_at__isnull", True), ("queue__isnull", False), _connector="OR"),
                        name="queue_progress_result_of_queue",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Tagging",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "comparison",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="taggings",
                        to="evaluations.comparison",
                    ),
                ),
                (
                    "tag",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="taggings",
                        to="evaluations.tag",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="taggings",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("tag", "comparison"), name="tagging_once")],
            },
        ),
        migrations.CreateModel(
            name="Disclosure",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "comparison",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="disclosures",
                        to="evaluations.comparison",
                    ),
                ),
                (
                    "evaluation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="disclosures",
                        to="evaluations.evaluation",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="disclosures",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("user", "comparison"), name="disclosure_once"),
                    models.UniqueConstraint(
                        condition=models.Q(("comparison__isnull", True)),
                        fields=("user", "evaluation"),
                        name="disclosure_of_all_once",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Adjudication",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "choice",
                    models.CharField(
                        choices=[("A", "A"), ("B", "B"), ("tie", "tie"), ("both_bad", "both bad")], max_length=8
                    ),
                ),
                ("reason", models.TextField()),
                ("version", models.PositiveIntegerField(default=1)),
                ("changed_at", models.DateTimeField(auto_now=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="adjudications",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "aspect",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="adjudications",
                        to="evaluations.aspect",
                    ),
                ),
                (
                    "comparison",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="adjudications",
                        to="evaluations.comparison",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("comparison", "aspect"), name="adjudication_once"),
                    models.CheckConstraint(
                        condition=models.Q(("choice__in", ["A", "B", "tie", "both_bad"])), name="adjudication_choice"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Mention",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("seen_at", models.DateTimeField(null=True)),
                (
                    "comment",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="mentions",
                        to="evaluations.comment",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="mentions",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("comment", "user"), name="mention_once")],
            },
        ),
        migrations.CreateModel(
            name="QueueSlot",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("position", models.PositiveIntegerField()),
                (
                    "selection_method",
                    models.CharField(
                        choices=[
                            ("random", "random"),
                            ("stratified", "stratified"),
                            ("flips", "flips"),
                            ("judges_disagree", "judges disagree"),
                            ("people_disagree", "people disagree"),
                            ("least_confident", "least confident"),
                            ("calibration", "calibration"),
                            ("by_hand", "by hand"),
                        ],
                        max_length=20,
                    ),
                ),
                ("probability", models.FloatField(null=True)),
                (
                    "item",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="slots", to="evaluations.queueitem"
                    ),
                ),
                (
                    "queue",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="slots",
                        to="evaluations.queue",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("queue", "item"), name="queue_slot_once"),
                    models.UniqueConstraint(fields=("queue", "position"), name="queue_slot_position"),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "selection_method__in",
                                [
                                    "random",
                                    "stratified",
                                    "flips",
                                    "judges_disagree",
                                    "people_disagree",
                                    "least_confident",
                                    "calibration",
                                    "by_hand",
                                ],
                            )
                        ),
                        name="queue_slot_selection_method",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("probability__isnull", True),
                            models.Q(("probability__gt", 0), ("probability__lte", 1)),
                            _connector="OR",
                        ),
                        name="queue_slot_probability",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Call",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "shown",
                    models.CharField(
                        choices=[
                            ("as_stored", "as stored"),
                            ("swapped", "swapped"),
                            ("unknown", "unknown"),
                            ("folded", "folded"),
                        ],
                        default="as_stored",
                        max_length=10,
                    ),
                ),
                ("sample", models.PositiveSmallIntegerField(default=0)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("pending", "pending"),
                            ("running", "running"),
                            ("answered", "answered"),
                            ("unreadable", "unreadable"),
                            ("suspect", "suspect"),
                            ("refused", "refused"),
                            ("truncated", "truncated"),
                            ("too_long", "too long"),
                            ("failed", "failed"),
                            ("cancelled", "cancelled"),
                        ],
                        default="pending",
                        max_length=10,
                    ),
                ),
                (
                    "step",
                    models.CharField(
                        choices=[("ask", "ask"), ("repair", "repair"), ("score", "score")], default="ask", max_length=8
                    ),
                ),
                ("is_test", models.BooleanField(default=False)),
                ("repaired", models.BooleanField(default=False)),
                ("reserved", models.BigIntegerField(default=0)),
                ("prompt_sha256", models.CharField(blank=True, max_length=64)),
                ("reuse_key", models.CharField(blank=True, max_length=64)),
                ("lease", models.UUIDField(null=True)),
                ("lease_until", models.DateTimeField(null=True)),
                ("not_before", models.DateTimeField(null=True)),
                ("error", models.TextField(blank=True)),
                ("rationale", models.TextField(blank=True)),
                ("confirmed_at", models.DateTimeField(null=True)),
                (
                    "batch",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="calls",
                        to="evaluations.batch",
                    ),
                ),
                (
                    "confirmed_by",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "copied_from",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="copies",
                        to="evaluations.call",
                    ),
                ),
                (
                    "comparison",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="calls",
                        to="evaluations.comparison",
                    ),
                ),
                (
                    "source_import",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="calls",
                        to="evaluations.import",
                    ),
                ),
                (
                    "judge",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="calls", to="evaluations.judge"
                    ),
                ),
                (
                    "response",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="calls",
                        to="evaluations.response",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="calls",
                        to="evaluations.run",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("comparison__isnull", False)),
                        fields=["comparison"],
                        name="call_by_comparison",
                    ),
                    models.Index(
                        condition=models.Q(("response__isnull", False)), fields=["response"], name="call_by_response"
                    ),
                    models.Index(
                        condition=models.Q(("source_import__isnull", False)),
                        fields=["source_import"],
                        name="call_by_source_import",
                    ),
                    models.Index(condition=models.Q(("batch__isnull", False)), fields=["batch"], name="call_by_batch"),
                    models.Index(
                        condition=models.Q(("copied_from__isnull", False)),
                        fields=["copied_from"],
                        name="call_by_copied_from",
                    ),
                    models.Index(fields=["run", "state", "id"], name="call_of_run"),
                    models.Index(
                        condition=models.Q(("lease_until__isnull", False)), fields=["lease_until"], name="call_leased"
                    ),
                    models.Index(
                        condition=models.Q(("reuse_key", ""), _negated=True), fields=["reuse_key"], name="call_reuse"
                    ),
                    models.Index(condition=models.Q(("repaired", True)), fields=["judge"], name="call_repaired"),
                    models.Index(
                        condition=models.Q(
                            ("state__in", ["unreadable", "suspect", "refused", "truncated", "too_long", "failed"])
                        ),
                        fields=["judge"],
                        name="call_failed",
                    ),
                    models.Index(condition=models.Q(("is_test", True)), fields=["judge"], name="call_test"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                [
                                    "pending",
                                    "running",
                                    "answered",
                                    "unreadable",
                                    "suspect",
                                    "refused",
                                    "truncated",
                                    "too_long",
                                    "failed",
                                    "cancelled",
                                ],
                            )
                        ),
                        name="call_state",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("shown__in", ["as_stored", "swapped", "unknown", "folded"])),
                        name="call_shown",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("step__in", ["ask", "repair", "score"])), name="call_step"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("comparison__isnull", False), ("response__isnull", True)),
                            models.Q(("comparison__isnull", True), ("response__isnull", False)),
                            _connector="OR",
                        ),
                        name="call_one_subject",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("confirmed_at__isnull", True), ("confirmed_by__isnull", True)),
                            models.Q(("confirmed_at__isnull", False), ("confirmed_by__isnull", False)),
                            _connector="OR",
                        ),
                        name="call_confirmed",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("comparison__isnull", False)),
                        fields=("judge", "comparison", "shown", "sample"),
                        name="call_of_comparison",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("response__isnull", False)),
                        fields=("judge", "response", "sample"),
                        name="call_of_response",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Span",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("turn", models.PositiveSmallIntegerField(default=0)),
                ("start", models.PositiveIntegerField()),
                ("end", models.PositiveIntegerField()),
                ("quote", models.TextField()),
                ("comment", models.TextField(blank=True)),
                (
                    "aspect",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="spans",
                        to="evaluations.aspect",
                    ),
                ),
                (
                    "response",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="spans", to="evaluations.response"
                    ),
                ),
                (
                    "review",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="spans", to="evaluations.review"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("start__lt", models.F("end"))), name="span_not_empty")
                ],
            },
        ),
        migrations.CreateModel(
            name="Assignment",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "selection_method",
                    models.CharField(
                        choices=[
                            ("random", "random"),
                            ("stratified", "stratified"),
                            ("flips", "flips"),
                            ("judges_disagree", "judges disagree"),
                            ("people_disagree", "people disagree"),
                            ("least_confident", "least confident"),
                            ("calibration", "calibration"),
                            ("by_hand", "by hand"),
                        ],
                        max_length=20,
                    ),
                ),
                ("probability", models.FloatField(null=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("reserved", "reserved"),
                            ("assigned", "assigned"),
                            ("done", "done"),
                            ("skipped", "skipped"),
                            ("expired", "expired"),
                        ],
                        max_length=8,
                    ),
                ),
                ("reserved_until", models.DateTimeField(null=True)),
                (
                    "slot",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="assignments",
                        to="evaluations.queueslot",
                    ),
                ),
                (
                    "item",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="assignments",
                        to="evaluations.queueitem",
                    ),
                ),
                (
                    "rater",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="assignments",
                        to="evaluations.rater",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["rater", "-state", "id"], name="assignment_of_rater"),
                    models.Index(
                        condition=models.Q(("state", "reserved")),
                        fields=["reserved_until"],
                        name="assignment_to_expire",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("item", "rater"), name="assignment_once"),
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["reserved", "assigned", "done", "skipped", "expired"])),
                        name="assignment_state",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "selection_method__in",
                                [
                                    "random",
                                    "stratified",
                                    "flips",
                                    "judges_disagree",
                                    "people_disagree",
                                    "least_confident",
                                    "calibration",
                                    "by_hand",
                                ],
                            )
                        ),
                        name="assignment_selection_method",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("reserved_until__isnull", False), ("state", "reserved")),
                            models.Q(models.Q(("state", "reserved"), _negated=True), ("reserved_until__isnull", True)),
                            _connector="OR",
                        ),
                        name="assignment_reserved_until",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PackedVotes",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("shown", models.PositiveSmallIntegerField()),
                ("sample", models.PositiveSmallIntegerField(default=0)),
                ("aspect_block", models.PositiveSmallIntegerField(default=0)),
                ("first_choices", models.BigIntegerField(default=0)),
                ("final_choices", models.BigIntegerField(default=0)),
                ("inconsistent_aspects", models.BigIntegerField(default=0)),
                ("decided_at_ms", models.BigIntegerField(default=0)),
                (
                    "call",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="packed_votes",
                        to="evaluations.call",
                    ),
                ),
                (
                    "comparison",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="packed_votes",
                        to="evaluations.comparison",
                    ),
                ),
                (
                    "source_import",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="packed_votes",
                        to="evaluations.import",
                    ),
                ),
                (
                    "rater",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="packed_votes",
                        to="evaluations.rater",
                    ),
                ),
                (
                    "review",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="packed_votes",
                        to="evaluations.review",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=[
                            "rater",
                            "comparison",
                            "shown",
                            "aspect_block",
                            "first_choices",
                            "inconsistent_aspects",
                        ],
                        name="packed_votes_of_rater",
                    ),
                    models.Index(
                        condition=models.Q(("source_import__isnull", False)),
                        fields=["source_import"],
                        name="packed_votes_by_source_import",
                    ),
                    models.Index(fields=["comparison"], name="packed_votes_of_comparison"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("call__isnull", False), ("review__isnull", True), ("source_import__isnull", True)
                            ),
                            models.Q(
                                ("call__isnull", True), ("review__isnull", False), ("source_import__isnull", True)
                            ),
                            models.Q(
                                ("call__isnull", True), ("review__isnull", True), ("source_import__isnull", False)
                            ),
                            _connector="OR",
                        ),
                        name="packed_votes_source",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("call__isnull", False)),
                        fields=("call", "aspect_block"),
                        name="packed_votes_of_call",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("review__isnull", False)),
                        fields=("review", "aspect_block"),
                        name="packed_votes_of_review",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("source_import__isnull", False)),
                        fields=(
                            "rater",
                            "comparison",
                            "sample",
                            "shown",
                            "source_import",
                            "aspect_block",
                            "decided_at_ms",
                        ),
                        name="packed_votes_of_import",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Attempt",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("lease", models.UUIDField(null=True)),
                ("number", models.PositiveSmallIntegerField()),
                (
                    "step",
                    models.CharField(
                        choices=[("ask", "ask"), ("repair", "repair"), ("score", "score")], default="ask", max_length=8
                    ),
                ),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("answered", "answered"),
                            ("unreadable", "unreadable"),
                            ("refused", "refused"),
                            ("truncated", "truncated"),
                            ("too_long", "too long"),
                            ("failed", "failed"),
                            ("retry", "retry"),
                            ("stopped", "stopped"),
                            ("lost", "lost"),
                        ],
                        max_length=10,
                    ),
                ),
                ("http_status", models.PositiveSmallIntegerField(null=True)),
                ("raw", models.TextField(blank=True)),
                ("finish_reason", models.CharField(blank=True, max_length=40)),
                ("model_returned", models.CharField(blank=True, max_length=200)),
                ("tokens_in", models.PositiveIntegerField(null=True)),
                ("tokens_out", models.PositiveIntegerField(null=True)),
                ("tokens_cached", models.PositiveIntegerField(null=True)),
                ("tokens_reasoning", models.PositiveIntegerField(null=True)),
                ("cost", models.BigIntegerField(null=True)),
                ("max_cost", models.BigIntegerField(null=True)),
                ("latency_ms", models.PositiveIntegerField()),
                ("logprobs", models.JSONField(null=True)),
                ("reasoning", models.TextField(blank=True)),
                ("aspect", models.CharField(blank=True, max_length=80)),
                ("error", models.TextField(blank=True)),
                (
                    "batch",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="attempts",
                        to="evaluations.batch",
                    ),
                ),
                (
                    "call",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="attempts",
                        to="evaluations.call",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="attempts", to="evaluations.run"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("batch__isnull", False)), fields=["batch"], name="attempt_by_batch"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("call", "number"), name="attempt_number"),
                    models.CheckConstraint(
                        condition=models.Q(("step__in", ["ask", "repair", "score"])), name="attempt_step"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "outcome__in",
                                [
                                    "answered",
                                    "unreadable",
                                    "refused",
                                    "truncated",
                                    "too_long",
                                    "failed",
                                    "retry",
                                    "stopped",
                                    "lost",
                                ],
                            )
                        ),
                        name="attempt_outcome",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Score",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("value", models.FloatField()),
                ("weighted", models.FloatField(null=True)),
                ("sample", models.PositiveSmallIntegerField(default=0)),
                (
                    "stage",
                    models.CharField(choices=[("first", "first"), ("final", "final")], default="first", max_length=5),
                ),
                ("rationale", models.TextField(blank=True)),
                ("note", models.TextField(blank=True)),
                (
                    "reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("missed_error", "missed error"),
                            ("length_or_format", "length or format"),
                            ("position", "position"),
                            ("ignored_instruction", "ignored instruction"),
                            ("rubric_unclear", "rubric unclear"),
                            ("query_ambiguous", "query ambiguous"),
                            ("both_acceptable", "both acceptable"),
                            ("my_mistake", "my mistake"),
                            ("other", "other"),
                        ],
                        max_length=40,
                    ),
                ),
                (
                    "aspect",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="scores", to="evaluations.aspect"
                    ),
                ),
                (
                    "call",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="scores",
                        to="evaluations.call",
                    ),
                ),
                (
                    "rater",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="scores",
                        to="evaluations.rater",
                    ),
                ),
                (
                    "response",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="scores", to="evaluations.response"
                    ),
                ),
                (
                    "review",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="scores",
                        to="evaluations.review",
                    ),
                ),
                (
                    "source_import",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="scores",
                        to="evaluations.import",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["rater", "response"], name="score_of_rater"),
                    models.Index(
                        condition=models.Q(("source_import__isnull", False)),
                        fields=["source_import"],
                        name="score_by_source_import",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("stage__in", ["first", "final"])), name="score_stage"),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "reason__in",
                                [
                                    "",
                                    "missed_error",
                                    "length_or_format",
                                    "position",
                                    "ignored_instruction",
                                    "rubric_unclear",
                                    "query_ambiguous",
                                    "both_acceptable",
                                    "my_mistake",
                                    "other",
                                ],
                            )
                        ),
                        name="score_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("call__isnull", False), ("review__isnull", True), ("source_import__isnull", True)
                            ),
                            models.Q(
                                ("call__isnull", True), ("review__isnull", False), ("source_import__isnull", True)
                            ),
                            models.Q(
                                ("call__isnull", True), ("review__isnull", True), ("source_import__isnull", False)
                            ),
                            _connector="OR",
                        ),
                        name="score_source",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("call__isnull", False)), fields=("call", "aspect"), name="score_of_call"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("review__isnull", False)),
                        fields=("review", "response", "aspect", "stage"),
                        name="score_of_review",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("source_import__isnull", False)),
                        fields=("rater", "response", "aspect", "sample"),
                        name="score_of_import",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Verdict",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("sample", models.PositiveSmallIntegerField(default=0)),
                (
                    "stage",
                    models.CharField(choices=[("first", "first"), ("final", "final")], default="first", max_length=5),
                ),
                (
                    "shown",
                    models.CharField(
                        choices=[
                            ("as_stored", "as stored"),
                            ("swapped", "swapped"),
                            ("unknown", "unknown"),
                            ("folded", "folded"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "choice",
                    models.CharField(
                        choices=[("A", "A"), ("B", "B"), ("tie", "tie"), ("both_bad", "both bad")], max_length=8
                    ),
                ),
                ("inconsistent", models.BooleanField(default=False)),
                ("rationale", models.TextField(blank=True)),
                ("note", models.TextField(blank=True)),
                (
                    "reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("missed_error", "missed error"),
                            ("length_or_format", "length or format"),
                            ("position", "position"),
                            ("ignored_instruction", "ignored instruction"),
                            ("rubric_unclear", "rubric unclear"),
                            ("query_ambiguous", "query ambiguous"),
                            ("both_acceptable", "both acceptable"),
                            ("my_mistake", "my mistake"),
                            ("other", "other"),
                        ],
                        max_length=40,
                    ),
                ),
                ("confidence", models.FloatField(null=True)),
                ("weighted", models.FloatField(null=True)),
                (
                    "aspect",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="verdicts", to="evaluations.aspect"
                    ),
                ),
                (
                    "call",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="verdicts",
                        to="evaluations.call",
                    ),
                ),
                (
                    "comparison",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="verdicts",
                        to="evaluations.comparison",
                    ),
                ),
                (
                    "rater",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="verdicts",
                        to="evaluations.rater",
                    ),
                ),
                (
                    "review",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="verdicts",
                        to="evaluations.review",
                    ),
                ),
                (
                    "source_import",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="verdicts",
                        to="evaluations.import",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["comparison", "aspect", "rater", "choice"], name="verdict_of_comparison"),
                    models.Index(fields=["rater", "comparison"], name="verdict_of_rater"),
                    models.Index(
                        condition=models.Q(("source_import__isnull", False)),
                        fields=["source_import"],
                        name="verdict_by_source_import",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("choice__in", ["A", "B", "tie", "both_bad"])), name="verdict_choice"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("shown__in", ["as_stored", "swapped", "unknown", "folded"])),
                        name="verdict_shown",
                    ),
                    models.CheckConstraint(condition=models.Q(("stage__in", ["first", "final"])), name="verdict_stage"),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "reason__in",
                                [
                                    "",
                                    "missed_error",
                                    "length_or_format",
                                    "position",
                                    "ignored_instruction",
                                    "rubric_unclear",
                                    "query_ambiguous",
                                    "both_acceptable",
                                    "my_mistake",
                                    "other",
                                ],
                            )
                        ),
                        name="verdict_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("call__isnull", False), ("review__isnull", True), ("source_import__isnull", True)
                            ),
                            models.Q(
                                ("call__isnull", True), ("review__isnull", False), ("source_import__isnull", True)
                            ),
                            models.Q(
                                ("call__isnull", True), ("review__isnull", True), ("source_import__isnull", False)
                            ),
                            _connector="OR",
                        ),
                        name="verdict_source",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("call__isnull", False)), fields=("call", "aspect"), name="verdict_of_call"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("review__isnull", False)),
                        fields=("review", "aspect", "stage"),
                        name="verdict_of_review",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("source_import__isnull", False)),
                        fields=("rater", "comparison", "aspect", "sample", "shown"),
                        name="verdict_of_import",
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="tag",
            name="comparisons",
            field=models.ManyToManyField(
                related_name="tags", through="evaluations.Tagging", to="evaluations.comparison"
            ),
        ),
        migrations.AddField(
            model_name="evaluation",
            name="review_rubric",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="reviewed_in",
                to="evaluations.rubricversion",
            ),
        ),
        migrations.AddField(
            model_name="evaluation",
            name="shown_judge",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="shown_in",
                to="evaluations.judge",
            ),
        ),
    ]

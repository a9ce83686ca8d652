"""The deletion of a whole evaluation: hidden at once, deleted in small transactions by a worker."""

from collections.abc import Iterator
from typing import Any, Final

from django.db import models, transaction
from django.db.models import QuerySet
from django.utils import timezone

from evaluations.access import Action, is_allowed
from evaluations.audit.events import record_event
from evaluations.audit.security import record_security_event
from evaluations.backups.selectors import BACKUP_TABLES
from evaluations.comparisons.search.services import remove_from_search_index
from evaluations.domain.errors import InputRefused
from evaluations.domain.jobs import COUNT_LABELS, COUNT_PROGRESS, INDEX_IMPORT, RENDER_AHEAD
from evaluations.domain.judges import ACTIVE_RUN_STATES
from evaluations.domain.security import SecurityEventKind
from evaluations.jobs.kinds import JobClaim, JobKind, register_job_kind
from evaluations.jobs.queue import enqueue_job
from evaluations.models.comparisons import Comparison
from evaluations.models.endpoint_grants import EndpointSpending
from evaluations.models.evaluations import Evaluation
from evaluations.models.exports import Export
from evaluations.models.imports import Import
from evaluations.models.jobs import Job
from evaluations.models.progress import ComparisonProgress, VerdictChange
from evaluations.models.runs import Call, Run
from evaluations.models.transactions import TransactionPacer, is_time_up, rows_per_transaction
from evaluations.models.users import ApiToken, User
from evaluations.models.webhooks import Delivery, DeliveryAttempt, OutboxEntry, Webhook
from evaluations.overview.stored_results import COMPUTE_RESULTS
from evaluations.reports.served_reports import REFRESH_REPORT

DELETE_EVALUATION: Final = "delete_evaluation"
# What these do can be thrown away with the evaluation.
IDLE_JOBS: Final = (COMPUTE_RESULTS, COUNT_LABELS, COUNT_PROGRESS, INDEX_IMPORT, REFRESH_REPORT, RENDER_AHEAD)
# Rows without a column of the evaluation, and those without a constraint, that no backup has.
OTHER_TABLES: Final[tuple[tuple[type[models.Model], str], ...]] = (
    (OutboxEntry, "webhook__evaluation"),
    (DeliveryAttempt, "delivery__webhook__evaluation"),
    (Delivery, "webhook__evaluation"),
    (Webhook, "evaluation"),
    (VerdictChange, "evaluation"),
    (ComparisonProgress, "evaluation"),
)
# These outlive the evaluation: what was spent, and accounts and tokens, which have records elsewhere.
KEPT_MODELS: Final = (EndpointSpending, User, ApiToken)


def delete_evaluation(evaluation: Evaluation, typed_name: str, *, user: User) -> None:
    """Hide the evaluation from everybody and have a worker delete it. Only an owner may, by typing its name."""
    if not is_allowed(user, Action.OWN, evaluation):
        raise InputRefused("Only an owner can delete an evaluation. Ask an owner, or archive it.")
    if typed_name.strip() != evaluation.name:
        raise InputRefused(f"Type the name exactly as it is: {evaluation.name}", field="name")
    with transaction.atomic():
        locked = Evaluation.objects.select_for_update().get(pk=evaluation.pk)
        refuse_while_working(locked)
        what = {"name": locked.name, "slug": locked.slug}
        record_security_event(SecurityEventKind.EVALUATION_DELETED, user, detail=f"{locked.name} ({locked.slug})")
        record_event("deleted", locked, user=user, evaluation=None, before=what)
        hide_evaluation(locked)
        enqueue_job(DELETE_EVALUATION, locked.pk, evaluation=None)


def refuse_while_working(evaluation: Evaluation) -> None:
    if Run.objects.filter(evaluation=evaluation, state__in=ACTIVE_RUN_STATES).exists():
        raise InputRefused("A run is in progress. Wait for it or cancel it, then delete the evaluation.")
    if Job.objects.open().filter(evaluation=evaluation).exclude(kind__in=IDLE_JOBS).exists():
        raise InputRefused("An import, export or other job is in progress. Wait for it or cancel it, then try again.")


def hide_evaluation(evaluation: Evaluation) -> None:
    """Take it from all members and tokens, and free its URL name."""
    now = timezone.now()
    tokens = ApiToken.objects.filter(evaluation=evaluation)
    tokens.filter(revoked_at__isnull=True).update(revoked_at=now)
    tokens.update(evaluation=None)  # a revoked token opens nothing
    User.objects.filter(created_for=evaluation).update(created_for=None)
    evaluation.memberships.all().delete()
    evaluation.invitations.all().delete()
    evaluation.webhooks.update(stopped_at=now)
    columns = {"slug": f"deleted-{evaluation.pk}", "archived_at": now, "review_rubric": None, "shown_judge": None}
    Evaluation.objects.filter(pk=evaluation.pk).update(**columns)


def delete_rows(claim: JobClaim) -> bool:
    """Delete rows of the evaluation until time is up. Returns whether nothing is left."""
    evaluation = Evaluation.objects.filter(pk=claim.job.subject).first()
    if evaluation is None:
        return True
    delete_files(evaluation)
    pace = TransactionPacer()
    copies = Call.all_rows.filter(copied_from__judge__evaluation=evaluation)
    while ids := list(copies.values_list("pk", flat=True)[: rows_per_transaction()]):
        with pace.turn():
            Call.all_rows.filter(pk__in=ids).update(copied_from=None)
        claim.heartbeat_if_due()
    for rows in list_tables(evaluation):
        while ids := list(rows.order_by().values_list("pk", flat=True)[: rows_per_transaction()]):
            if is_time_up(claim.until):
                return False
            with pace.turn():
                delete_some(rows.model, ids)
            claim.heartbeat_if_due()
    evaluation.delete()  # refused if a row still refers to it
    return True


def delete_some(model: type[models.Model], ids: list[Any]) -> None:
    """Delete rows past the ORM's collector, which would look for what refers to each."""
    with transaction.atomic():
        if model is Comparison:
            remove_from_search_index(ids)
        rows = get_all_rows(model).filter(pk__in=ids)
        rows._raw_delete(rows.db)


def list_tables(evaluation: Evaluation) -> "Iterator[QuerySet[Any]]":
    """All rows of the evaluation, by table: what refers to others comes before these."""
    named = [table.model for table in BACKUP_TABLES] + [model for model, _ in OTHER_TABLES]
    direct = [(model, name) for model, name in find_direct_references() if model not in named]
    tables = [*direct, *OTHER_TABLES, *((table.model, table.path) for table in reversed(BACKUP_TABLES))]
    for model, path in tables:
        yield get_all_rows(model).filter(**{path: evaluation.pk})


def find_direct_references() -> Iterator[tuple[type[models.Model], str]]:
    for relation in Evaluation._meta.related_objects:
        if relation.related_model not in KEPT_MODELS:
            yield relation.related_model, relation.field.name


def get_all_rows(model: type[models.Model]) -> "QuerySet[Any]":
    return getattr(model, "all_rows", model._base_manager).all()


def delete_files(evaluation: Evaluation) -> None:
    for model in (Export, Import):
        for row in model.objects.filter(evaluation=evaluation).exclude(file=""):
            row.file.storage.delete(str(row.file.name))
            model.objects.filter(pk=row.pk).update(file="")


register_job_kind(JobKind(DELETE_EVALUATION, delete_rows, counts_faults=True, per_worker=1))

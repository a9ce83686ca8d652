"""A cache of reports, each valid until something that it was made of changes."""

import hashlib
import logging
from collections.abc import Callable
from typing import Any, Final, TypeVar

from django.core.cache import caches
from django.db.models import Max

from evaluations.domain.judges import ACTIVE_RUN_STATES
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.judges import Rater
from evaluations.models.runs import Run
from evaluations.verdicts.array_files import VERSION
from evaluations.verdicts.changes import read_rater_states

Made = TypeVar("Made")

logger = logging.getLogger(__name__)

REPORT_CACHE_SECONDS: Final = 24 * 60 * 60
EVENTS_IN_FLIGHT: Final = 100  # more than are written to one evaluation while a transaction with an Event ends


def get_cached_report(evaluation: Evaluation, depends_on: object, make: Callable[[], Made]) -> Made:
    """The result of ``make``, computed once for each state of the evaluation and value of ``depends_on``.

    A result during whose computation the state changed is returned, but not cached.
    """
    state = read_evaluation_state(evaluation)
    if state is None:
        return make()
    key = hash_state(evaluation, state, depends_on)
    report: Made | None = read_cached_report(key)
    if report is None:
        report = make()
        if read_evaluation_state(evaluation) == state:
            save_cached_report(key, report)
    return report


def hash_state(evaluation: Evaluation, state: tuple[object, ...], depends_on: object = None) -> str:
    # The caller's evaluation object may be older than its last change. Looking at results changes none of them.
    names = [column.attname for column in evaluation._meta.concrete_fields if column.name != "results_seen_at"]
    columns = [getattr(evaluation, name) for name in names]
    return hashlib.sha256(repr((columns, depends_on, state, VERSION)).encode()).hexdigest()


def save_cached_report(key: str, report: object) -> None:
    """Store a report in the cache if there is room for it."""
    try:
        caches["reports"].set(key, report, REPORT_CACHE_SECONDS)
    except OSError:
        logger.warning("A report could not be remembered, and is made again each time", exc_info=True)


def read_cached_report(key: str) -> Any:
    """The cached result; None if there is none or it cannot be read: unpickling damaged data may raise anything."""
    try:
        return caches["reports"].get(key)
    except Exception:
        logger.warning("A remembered report could not be read, and is made again", exc_info=True)
        return None


def read_evaluation_state(evaluation: Evaluation) -> tuple[object, ...] | None:
    """A value that differs after every change to the evaluation; None while a run changes its calls.

    The newest events only tell that something changed: no report reads what they hold.
    Every rater says for itself when it last gave a verdict, a call of it ended or it drew a comparison, and every
    other change by a person is an Event, so that no row is shared by all who write.
    """
    runs = list(Run.objects.filter(evaluation=evaluation).values_list("pk", "state").order_by("pk"))
    if any(state in ACTIVE_RUN_STATES for _, state in runs):
        return None
    raters = Rater.objects.filter(evaluation=evaluation).order_by("pk")
    drawn = raters.annotate(drawn_at=Max("queue_progress__drawn_at")).values_list("pk", "name", "drawn_at")
    rater_states = (*drawn, *sorted((pk, *state[:2]) for pk, state in read_rater_states(raters).items()))
    changed = Evaluation.objects.values_list("comparisons_changed_at", flat=True).get(pk=evaluation.pk)
    return tuple(runs), rater_states, list_last_events(evaluation), changed


def list_last_events(evaluation: Evaluation) -> tuple[object, ...]:
    """The newest events. The last id is not enough: earlier ids may be committed later, or repeat after a restore."""
    events = Event.objects.filter(evaluation=evaluation).order_by("-pk")
    return tuple(events.values_list("pk", "created_at")[:EVENTS_IN_FLIGHT])

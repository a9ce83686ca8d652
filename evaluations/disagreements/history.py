"""The history of one comparison, read from its events."""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import Q, QuerySet

from evaluations.domain.choices import Choice
from evaluations.domain.events import SAW_VERDICTS
from evaluations.domain.json_values import JsonMapping
from evaluations.domain.reviews import DIFFERENCE_REASON_TEXTS
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Event
from evaluations.models.rubrics import Aspect
from evaluations.models.verdicts import Adjudication, Comment, Review

# Texts of the page; other events show their verb.
VERB_TEXTS: Final[Mapping[str, str]] = {
    SAW_VERDICTS: "saw other votes",
    "undid": "undid their last step",
    "adjudicated": "resolved",
    "withdrew adjudication": "reopened",
    "withdrew comment": "deleted a comment",
    "marked a passage": "highlighted a passage",
    "unmarked a passage": "removed a highlight",
}
# Texts of stored values.
VALUE_TEXTS: Final[Mapping[Any, str]] = {Choice.BOTH_BAD: "both bad", **DIFFERENCE_REASON_TEXTS}
# Values that are technical or shown elsewhere on the page, and the text of withdrawn comments.
HIDDEN_KEYS: Final = frozenset(
    {"shown", "state", "choices", "reasons", "notes", "aspect", "comparison", "response", "turn", "start", "end", "by"}
    | {"text"}
)
CANDIDATE_NAMES_KEY: Final = "candidates"  # of the event that added a comparison


@dataclass(frozen=True)
class HistoryChange:
    """``about``: the name of an aspect or a value. ``before`` and ``after`` are None if there is no value."""

    about: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class HistoryEntry:
    time: datetime
    actor: str
    action: str
    changes: tuple[HistoryChange, ...]


def get_comparison_history(comparison: Comparison, *, shows_names: bool) -> list[HistoryEntry]:
    """The history, oldest first; a review's entry lists what changed since its previous step.

    ``shows_names``: include the names of the candidates.
    """
    hidden = HIDDEN_KEYS if shows_names else HIDDEN_KEYS | {CANDIDATE_NAMES_KEY}
    names = dict(Aspect.objects.filter(evaluation=comparison.evaluation_id).values_list("key", "name"))
    answers: dict[int | None, Mapping[str, str]] = {}
    events = get_comparison_events(comparison).order_by("pk")
    return [build_history_entry(event, names, answers, hidden) for event in events]


def get_comparison_events(comparison: Comparison) -> QuerySet[Event]:
    """The events of the comparison, of its reviews, comments, resolutions and spans."""
    condition = Q(object_type="comparison", object_id=comparison.pk)
    for model, rows in (
        (Review, Review.all_rows.filter(comparison=comparison)),
        (Comment, Comment.objects.filter(comparison=comparison)),
        (Adjudication, Adjudication.objects.filter(comparison=comparison)),
    ):
        condition |= Q(object_type=model._meta.model_name, object_id__in=list(rows.values_list("pk", flat=True)))
    # Deleted highlights have no row; their events name the comparison.
    highlights = Q(object_type="span", evaluation=comparison.evaluation_id)
    condition |= highlights & (Q(after__comparison=comparison.pk) | Q(before__comparison=comparison.pk))
    return Event.objects.filter(condition).select_related("user")


def build_history_entry(
    event: Event, names: Mapping[str, str], answers: dict[int | None, Mapping[str, str]], hidden: Set[str]
) -> HistoryEntry:
    changes = [*list_answer_changes(event, names, answers), *list_value_changes(event, hidden)]
    aspect = names.get(event.after.get("aspect") or event.before.get("aspect") or "", "")
    action = VERB_TEXTS.get(event.verb, event.verb)
    return HistoryEntry(
        event.created_at,
        str(event.user) if event.user else "the system",
        f"{action}: {aspect}" if aspect else action,
        tuple(changes),
    )


def list_answer_changes(
    event: Event, names: Mapping[str, str], answers: dict[int | None, Mapping[str, str]]
) -> Iterator[HistoryChange]:
    """Changes of choices, reasons and notes since the previous step of the same review."""
    if not is_review_event(event):
        return
    before = read_event_answers(event.before, names) or answers.get(event.object_id) or {}
    after = read_event_answers(event.after, names)
    answers[event.object_id] = after
    for about in dict.fromkeys([*before, *after]):
        if before.get(about) != after.get(about):
            yield HistoryChange(about, before.get(about), after.get(about))


def is_review_event(event: Event) -> bool:
    return event.object_type == "review" and ("choices" in event.after or "choices" in event.before)


def read_event_answers(state: JsonMapping, names: Mapping[str, str]) -> Mapping[str, str]:
    """Choices by aspect, then reasons and notes by their subject."""
    answers = {names.get(key, key): format_event_value(value) for key, value in state.get("choices", {}).items()}
    for field, about in (("reasons", "reason on"), ("notes", "note on")):
        answers |= {
            f"{about} {names.get(key, key)}": format_event_value(value) for key, value in state.get(field, {}).items()
        }
    answers["note"] = format_event_value(state.get("note"))
    return {about: value for about, value in answers.items() if value is not None}


def list_value_changes(event: Event, hidden: Set[str]) -> Iterator[HistoryChange]:
    hidden = hidden | {"note"} if is_review_event(event) else hidden
    # Sorted, because PostgreSQL keeps no order of keys; the note comes last.
    for name in sorted({*event.before, *event.after} - hidden, key=lambda name: (name == "note", name)):
        before, after = format_event_value(event.before.get(name)), format_event_value(event.after.get(name))
        if before != after:
            yield HistoryChange(name.replace("_", " "), before, after)


def format_event_value(value: Any) -> str | None:
    """The value in words; None if it is empty."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or value == "" or value == [] or value == {}:
        return None
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {format_event_value(item)}" for name, item in value.items())
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ", ".join(str(item) for item in value)
    return VALUE_TEXTS.get(value, str(value))

"""What happened to one comparison, from its Events: who, when, from what to what."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import Q, QuerySet

from evaluations.domain import REASONS_IN_WORDS, SAW_VERDICTS, Choice
from evaluations.models import Adjudication, Aspect, Comment, Comparison, Event, Review

# In the words of the page; what is not listed says its own verb.
IN_WORDS: Final[Mapping[str, str]] = {
    SAW_VERDICTS: "saw what others chose",
    "undid": "took a step back",
    "adjudicated": "settled",
    "withdrew adjudication": "opened it again",
}
# Words of the database as people say them.
SPOKEN: Final[Mapping[Any, str]] = {Choice.BOTH_BAD: "both bad", **REASONS_IN_WORDS}
# What says nothing to people, or stands elsewhere on the page; of withdrawn comments the words are not shown again.
UNTOLD: Final = frozenset(
    {"shown", "state", "choices", "reasons", "notes", "aspect", "comparison", "response", "turn", "start", "end", "by"}
    | {"text"}
)


@dataclass(frozen=True)
class Change:
    """``about``: an aspect's name, or the name of a value. None where there was or is nothing."""

    about: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Told:
    when: datetime
    who: str
    what: str
    changes: tuple[Change, ...]


def history(comparison: Comparison) -> list[Told]:
    """Oldest first; what a review says is told as what changed since its step before."""
    names = dict(Aspect.objects.filter(evaluation=comparison.evaluation_id).values_list("key", "name"))
    said: dict[int | None, Mapping[str, str]] = {}
    return [told(event, names, said) for event in events_about(comparison).order_by("pk")]


def events_about(comparison: Comparison) -> QuerySet[Event]:
    """Those about the comparison itself, and about every row that speaks of it."""
    about = Q(object_type="comparison", object_id=comparison.pk)
    for model, rows in (
        (Review, Review.all_rows.filter(comparison=comparison)),
        (Comment, Comment.objects.filter(comparison=comparison)),
        (Adjudication, Adjudication.objects.filter(comparison=comparison)),
    ):
        about |= Q(object_type=model._meta.model_name, object_id__in=list(rows.values_list("pk", flat=True)))
    # Passages that were taken away have left no row: their events say which comparison they were on.
    marked = Q(object_type="span", evaluation=comparison.evaluation_id)
    about |= marked & (Q(after__comparison=comparison.pk) | Q(before__comparison=comparison.pk))
    return Event.objects.filter(about).select_related("user")


def told(event: Event, names: Mapping[str, str], said: dict[int | None, Mapping[str, str]]) -> Told:
    changes = [*said_changed(event, names, said), *values_changed(event)]
    aspect = names.get(event.after.get("aspect") or event.before.get("aspect") or "", "")
    what = IN_WORDS.get(event.verb, event.verb)
    return Told(
        event.created_at,
        str(event.user) if event.user else "the server",
        f"{what}: {aspect}" if aspect else what,
        tuple(changes),
    )


def said_changed(event: Event, names: Mapping[str, str], said: dict[int | None, Mapping[str, str]]) -> Iterator[Change]:
    """From what the same review said before, choices and words, to what it says after."""
    if not tells_a_review(event):
        return
    before = said_in(event.before, names) or said.get(event.object_id) or {}
    after = said_in(event.after, names)
    said[event.object_id] = after
    for about in dict.fromkeys([*before, *after]):
        if before.get(about) != after.get(about):
            yield Change(about, before.get(about), after.get(about))


def tells_a_review(event: Event) -> bool:
    return event.object_type == "review" and ("choices" in event.after or "choices" in event.before)


def said_in(state: Mapping[str, Any], names: Mapping[str, str]) -> Mapping[str, str]:
    """Choices by aspect, then why they were made, by what they are about."""
    said = {names.get(key, key): in_words(given) for key, given in state.get("choices", {}).items()}
    for words, about in (("reasons", "reason on"), ("notes", "note on")):
        said |= {f"{about} {names.get(key, key)}": in_words(given) for key, given in state.get(words, {}).items()}
    said["note"] = in_words(state.get("note"))
    return {about: given for about, given in said.items() if given is not None}


def values_changed(event: Event) -> Iterator[Change]:
    untold = UNTOLD | {"note"} if tells_a_review(event) else UNTOLD
    # PostgreSQL keeps no order of keys: by name, and what somebody wrote comes last.
    for name in sorted({*event.before, *event.after} - untold, key=lambda name: (name == "note", name)):
        one, other = in_words(event.before.get(name)), in_words(event.after.get(name))
        if one != other:
            yield Change(name.replace("_", " "), one, other)


def in_words(value: Any) -> str | None:
    """None for what says nothing; a list by its members; a pair of scores side by side."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or value == "" or value == [] or value == {}:
        return None
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {in_words(one)}" for name, one in value.items())
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ", ".join(str(one) for one in value)
    return SPOKEN.get(value, str(value))

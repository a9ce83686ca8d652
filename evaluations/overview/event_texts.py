"""How the activity page words events and their values."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Final

from evaluations.domain.events import SAW_VERDICTS
from evaluations.models.evaluations import Event

MAX_VALUE_CHARACTERS: Final = 200

OBJECT_NAMES: Final[Mapping[str, str]] = {
    "apitoken": "API token",
    "columnmapping": "column mapping",
    "defaultqueue": "default queue",
    "endpointgrant": "LLM endpoint",
    "invitation": "invitation",
    "membership": "member",
    "rubricversion": "rubric version",
    "savedfilter": "saved filter",
    "signinlink": "sign-in link",
    "span": "highlight",
    "user": "account",
}

# By verb what happened; braces hold the name of the object or a value of the event.
VERB_TEXTS: Final[Mapping[str, str]] = {
    "accepted invitation": "Invitation accepted",
    "adjudicated": "Disagreement resolved",
    "assigned": "Comparisons assigned",
    "assigned queue": "Queue assigned",
    "began": "Export started",
    "began storing": "Import started",
    "commented": "Comment added",
    "changed budget": "Budget changed",
    "changed families": "Model families changed",
    "closed queue": "Queue archived",
    "created queue": "Queue created",
    "ended batch": "Batch ended",
    "explained": "Reason added",
    "excluded reviewer": "Reviewer excluded from results",
    "exported": "Export finished",
    "forgot columns": "Column mapping deleted",
    "found out": "Output format detected",
    "invited": "Member invited",
    "kept reviewer": "Reviewer kept in results",
    "loaded reviews": "Sample reviews added",
    "made": "{object} created",
    "made account": "Account created",
    "made searchable": "Search index built",
    "made sign-in link": "Sign-in link created",
    "made token": "API token created",
    "mapped": "Columns mapped",
    "mapped columns": "Column mapping saved",
    "placed reviews": "{reviews} items queued",
    "put back": "Comparisons returned to the queue",
    "put in one cluster": "Prompts grouped into a cluster",
    "received": "File uploaded",
    "removed file": "Export file deleted",
    "removed names": "Unused models and raters deleted",
    "renewed secret": "Webhook secret replaced",
    "reopened queue": "Queue restored",
    "revoked token": "API token revoked",
    "saved final choices": "Review completed",
    "saved first choices": "Review saved",
    "saw calibration result": "Calibration result viewed",
    "saw verdicts": "Saw others’ votes",
    "set role": "Role set",
    "stored": "Import finished",
    "stored again": "Re-imported after an undo",
    "undid": "Import undone",
    "undid screening": "Choice on a reviewer undone",
    "withdrew adjudication": "Resolution withdrawn",
    "withdrew comment": "Comment withdrawn",
    "withdrew grant": "LLM endpoint withdrawn",
    "withdrew invitation": "Invitation withdrawn",
    "wrote version": "Rubric version created",
}

FIELD_TEXTS: Final[Mapping[str, str]] = {
    "archived_at": "archived",
    "bar_aspect": "margin on one aspect",
    "bar_bias": "bias effect",
    "bar_failures": "failed calls",
    "bar_half_width": "spot-check precision",
    "bar_inconsistency": "order inconsistency",
    "bar_stand_in": "stand-in margin",
    "bar_unreliable": "not reliable below",
    "for": "account",
    "guidelines_changed_at": "guidelines changed",
    "label_policy": "label source",
    "n": "number",
    "person": "member",
    "queries": "prompts",
    "candidates": "models",
    "reservation_minutes": "reservation (min)",
    "reveal": "judge revealed",
    "review_rubric": "rubric",
    "reviews_wanted": "reviews per comparison",
    "sha256": "checksum",
    "skip_bad": "invalid rows",
}
# Instead of yes and no.
FLAG_TEXTS: Final[Mapping[str, tuple[str, str]]] = {"skip_bad": ("strict", "skipped")}


def group_views(events: Iterable[Event]) -> Iterator[tuple[Event, int]]:
    """Merge consecutive views of votes by one user; yields the first of them with their number."""
    for (verb, *_), same in groupby(events, key=lambda event: (event.verb, event.user_id, event.token_id)):
        if verb == SAW_VERDICTS:
            first, *others = same
            yield first, 1 + len(others)
        else:
            yield from ((event, 1) for event in same)


def describe_event(event: Event, times: int = 1) -> str:
    """What happened, as a short sentence without a subject. ``times``: the number of merged events."""
    if times > 1:
        return f"{VERB_TEXTS[event.verb]} on {times:,} comparisons"
    name = name_object(event)
    template = VERB_TEXTS.get(event.verb, f"{{object}} {event.verb}")
    text = template.replace("{object}", name[:1].upper() + name[1:])
    number = event.after.get("reviews")
    return text.replace("{reviews}", f"{number:,}" if isinstance(number, int) else "Some")


def name_object(event: Event) -> str:
    return OBJECT_NAMES.get(event.object_type, event.object_type)


def name_field(name: str) -> str:
    return FIELD_TEXTS.get(name, name.replace("_", " "))


def write_value(name: str, value: object) -> str | None:
    """A value of an event as text, shortened; None if it is empty."""
    if value is None or value in ("", [], {}):
        return None
    text = write_plain_value(name, value)
    return text if len(text) <= MAX_VALUE_CHARACTERS else f"{text[:MAX_VALUE_CHARACTERS]}…"


def write_plain_value(name: str, value: object) -> str:
    if isinstance(value, bool):
        no, yes = FLAG_TEXTS.get(name, ("no", "yes"))
        return yes if value else no
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name_field(str(key))}: {write_plain_value(str(key), part)}" for key, part in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(write_plain_value(name, part) for part in value)
    return str(value)

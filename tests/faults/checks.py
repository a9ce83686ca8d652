"""What must be true after every fault, from the rows of the site and what is known outside it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from tests.faults.people import Reviewer
from tests.faults.site import Json, Site

READ_FACTS: Final = """
import json
from django.db.models import Count, F, Q, Sum
from django.db.models.functions import Coalesce
from evaluations.models.verdicts import Review, Verdict
calls = Call.objects.filter(judge__evaluation__slug=slug).annotate(
    answered=Count("attempts", filter=~Q(attempts__outcome__in=["lost", "retry", "stopped", "failed"])),
    lost=Count("attempts", filter=Q(attempts__outcome="lost")),
    cut=Count("attempts", filter=Q(attempts__outcome__in=["retry", "stopped"], attempts__http_status__isnull=True)),
    asked=Count("attempts"),
)
verdicts = Verdict.objects.filter(call__judge__evaluation__slug=slug).values("call").annotate(verdicts=Count("pk"))
reviews = Review.objects.filter(comparison__evaluation__slug=slug)
runs = Run.objects.filter(evaluation__slug=slug).annotate(
    charged=Sum(Coalesce("attempts__cost", "attempts__max_cost", 0)))
choices = Verdict.objects.filter(review__in=reviews).values_list("review", "stage", "aspect__key", "choice")
print(json.dumps({
    "calls": list(calls.values("pk", "state", "answered", "lost", "cut", "asked", "run", "error",
                               model=F("judge__name"), query=F("comparison__query__key"))),
    "verdicts": list(verdicts.values_list("call", "verdicts")),
    "runs": list(runs.values("state", "budget", "spent", "reserved", "charged", name=F("judge__name"))),
    "reviews": list(reviews.values("pk", "state", "note", "shown", "draft", username=F("rater__user__username"),
                                   number=F("comparison"))),
    "choices": list(choices),
}))
"""
SWAPPED: Final = {"A": "B", "B": "A", "tie": "tie"}


def read_facts(site: Site, slug: str) -> Json:
    return site.run_script(READ_FACTS, slug=slug)


def check_reviews(reviewers: Sequence[Reviewer], facts: Json) -> Iterator[str]:
    """Every acknowledged review is there once, as it was sent; of those in doubt, the review or its draft."""
    choices: dict[tuple[int, str], dict[str, str]] = {}
    for review, stage, aspect, choice in facts["choices"]:
        choices.setdefault((review, stage), {})[aspect] = choice
    times = Counter((row["username"], row["number"]) for row in facts["reviews"])
    rows = {(row["username"], row["number"]): row for row in facts["reviews"]}
    yield from (f"{key} has {number} reviews" for key, number in times.items() if number > 1)
    for reviewer in reviewers:
        for pk, sent in reviewer.acknowledged.items():
            row = rows.get((reviewer.username, pk))
            stages = ("first", "final") if pk in reviewer.confirmed else ("first",)
            if row is None or row["note"] != sent.note:
                yield f"{reviewer.username} saved {sent.note!r} of {pk}, and this is stored: {row}"
                continue
            for stage in stages:
                stored = choices.get((row["pk"], stage), {})
                seen = {key: SWAPPED[choice] for key, choice in stored.items()} if row["shown"] == "swapped" else stored
                if seen != sent.choices:
                    yield f"{reviewer.username} chose {sent.choices} of {pk}, and {stage} choices are {seen}"
        for pk, several in reviewer.in_doubt.items():
            row = rows.get((reviewer.username, pk), {})
            if row.get("note") not in {sent.note for sent in several} and not draft_note(row):
                yield f"{reviewer.username} sent {several[-1].note!r} of {pk}: neither review nor draft is stored"
        for pk, note in reviewer.drafts.items():
            if pk not in reviewer.drafts_in_doubt and draft_note(rows.get((reviewer.username, pk), {})) != note:
                yield f"{reviewer.username} kept the draft {note!r} of {pk}, and it is lost"


def draft_note(row: dict[str, Any]) -> str:
    return str((row.get("draft") or {}).get("fields", {}).get("note", ""))


def check_calls(answered: Sequence[tuple[str, str]], facts: Json) -> Iterator[str]:
    """Each answer of the server is an Attempt, or counted as lost.

    Only what was lost, or whose connection broke before the answer was read, was asked for again.
    """
    stored: Counter[tuple[str, str]] = Counter()
    lost: Counter[tuple[str, str]] = Counter()
    calls: Counter[tuple[str, str]] = Counter()
    for call in facts["calls"]:
        key = call["model"], call["query"]
        stored[key] += call["asked"]
        lost[key] += call["lost"] + call["cut"]
        calls[key] += 1
        if call["answered"] > 1 + call["lost"]:  # an answer that was given up for lost may come after all
            yield f"call {call['pk']} has {call['answered']} answers, and {call['lost']} were lost"
    for key, times in Counter(answered).items():
        if times > stored[key]:
            yield f"{key} was answered {times} times, and {stored[key]} are stored or counted as lost"
        if times > calls[key] + lost[key]:
            yield f"{key} was answered {times} times: {calls[key]} calls, {lost[key]} lost or cut off"
    verdicts = dict(facts["verdicts"])
    for call in facts["calls"]:
        if call["state"] == "answered" and verdicts.get(call["pk"]) != 6:
            yield f"call {call['pk']} is answered with {verdicts.get(call['pk'], 0)} verdicts"


def check_runs(facts: Json, *, calls: int) -> Iterator[str]:
    """The first run has all its verdicts. The second stays within its budget, lost requests at their worst."""
    steady = [call for call in facts["calls"] if call["model"] == "steady"]
    states = Counter(call["state"] for call in steady)
    if states["answered"] != calls:
        yield f"{states} of {calls} calls: {[call['error'] for call in steady if call['state'] != 'answered']}"
    for run in facts["runs"]:
        if run["reserved"]:
            yield f"the ended run of {run['name']} still reserves {run['reserved']}"
        if run["budget"] is not None and not (run["charged"] <= run["spent"] <= run["budget"]):
            yield f"{run['name']}: charged {run['charged']}, spent {run['spent']}, budget {run['budget']}"
        if run["budget"] is not None and run["state"] != "stopped":
            yield f"{run['name']} was to be stopped by its budget, and is {run['state']}: the check shows nothing"

"""What a run brought, and whether each stored verdict is the one in the raw reply.

The replies are read with ``json`` alone, independently of the product's parser.
"""

import json
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from evaluations.domain.choices import FLIPPED_CHOICES, Choice, ShownOrder
from evaluations.domain.judges import AttemptOutcome, CallState
from evaluations.domain.rubrics import AspectSpec, RubricKind, RubricSpec
from evaluations.models.runs import Attempt, Call, Run
from evaluations.models.verdicts import Score, Verdict

# Answers are stored a moment after they came, not always the same moment.
STORING_SECONDS: Final = 0.1

Values = Mapping[str, str | float]


@dataclass(frozen=True)
class Reread:
    """``other`` are replies that are not plain JSON, for a person to read, each with what was stored.

    ``left`` are replies that are plain JSON and whose call has no verdict.
    """

    same: int
    wrong: tuple[str, ...]
    other: tuple[str, ...]
    left: tuple[str, ...]


def figures_of(run: Run) -> dict[str, Any]:
    attempts = list(Attempt.objects.filter(run=run))
    calls = Call.objects.filter(run=run)
    states = Counter(calls.values_list("state", flat=True))
    answered = states.pop(CallState.ANSWERED, 0)
    seconds = [attempt.latency_ms / 1000 for attempt in attempts if attempt.outcome != AttemptOutcome.LOST]
    spans = [
        (attempt.created_at.timestamp() - attempt.latency_ms / 1000, attempt.created_at.timestamp())
        for attempt in attempts
    ]
    took = (run.finished_at - run.started_at) / timedelta(seconds=1) if run.finished_at and run.started_at else None
    return {
        "calls": calls.count(),
        "answered": answered,
        "repaired": calls.filter(repaired=True).count(),
        "failures": dict(states),
        "requests": len(attempts),
        "request_seconds_median": round(statistics.median(seconds), 1) if seconds else None,
        "request_seconds_most": round(max(seconds), 1) if seconds else None,
        "tokens_in_median": middle(attempt.tokens_in for attempt in attempts),
        "tokens_out_median": middle(attempt.tokens_out for attempt in attempts),
        "most_in_flight": most_at_once(spans),
        "run_seconds": None if took is None else round(took),
        "run": run.state,
        "stop_reason": run.stop_reason,
    }


def middle(counts: Iterable[int | None]) -> float | None:
    numbers = [count for count in counts if count is not None]
    return statistics.median(numbers) if numbers else None


def most_at_once(spans: Iterable[tuple[float, float]]) -> int:
    """How many of these spans of time, in seconds, overlap at some moment; touching ends do not count."""
    moments = []
    for begin, end in spans:
        if end - STORING_SECONDS > begin + STORING_SECONDS:
            moments += [(begin + STORING_SECONDS, 1), (end - STORING_SECONDS, -1)]
    highest = now = 0
    for _, change in sorted(moments):
        now += change
        highest = max(highest, now)
    return highest


def reread(run: Run) -> Reread:
    spec = run.judge.rubric_version.spec() if run.judge.rubric_version else None
    assert spec is not None
    same, wrong, other, left = 0, [], [], []
    for call in Call.objects.filter(run=run).order_by("pk"):
        stored = stored_values(call)
        last = Attempt.objects.filter(call=call).order_by("number").last()
        raw = last.raw if last else ""
        read = plainly_read(spec, ShownOrder(call.shown), raw)
        message = f"call {call.pk} is {call.state}, shown {call.shown}: stored {stored}, reply {raw!r}"
        if call.state != CallState.ANSWERED:
            wrong += [message] if stored else []
            left += [message] if read is not None else []
        elif read is None:
            other.append(message)
        elif read == stored:
            same += 1
        else:
            wrong.append(message)
    return Reread(same, tuple(wrong), tuple(other), tuple(left))


def stored_values(call: Call) -> Values:
    verdicts = Verdict.all_rows.filter(call=call).values_list("aspect__key", "choice")
    scores = Score.all_rows.filter(call=call).values_list("aspect__key", "value")
    return {**dict(verdicts), **dict(scores)}


def plainly_read(spec: RubricSpec, shown: ShownOrder, raw: str) -> Values | None:
    """The verdicts in the one JSON object of the reply, in terms of A and B as stored; None where there is no such."""
    try:
        members = json.loads(raw[raw.index("{") : raw.rindex("}") + 1], strict=False)
        verdicts = members[spec.choices_key] if spec.choices_key else members
        return {
            aspect.key: value_in(spec, aspect, shown, verdicts[aspect.reply_key or aspect.key])
            for aspect in spec.aspects
        }
    except (ValueError, KeyError, TypeError):
        return None


def value_in(spec: RubricSpec, aspect: AspectSpec, shown: ShownOrder, value: Any) -> str | float:
    if spec.kind == RubricKind.POINTWISE:
        return float(value)
    choice = {aspect.labels.get(choice_label, choice_label): choice_label for choice_label in Choice}[value]
    return str(FLIPPED_CHOICES[choice] if shown == ShownOrder.SWAPPED else choice)

"""An answer that is stored is never bought again: equal questions have equal keys, whoever asked first."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from django.db import connection
from django.db.models import F

from evaluations.domain import FLIPPED, CallState, Choice, ReplyShape, SentAs, Shown
from evaluations.judge.prompting import prompt_sha256
from evaluations.models import Call, Judge, Run, Score, Verdict
from evaluations.models.many import update_many
from evaluations.services.judging.filing import write_answers
from evaluations.services.judging.working import Bout, Held, Outcome

COPY_COLUMNS = ("id", "state", "copied_from_id", "reuse_key", "prompt_sha256", "repaired", "rationale", "error")


def reuse_key(bout: Bout, prompt: str, sample: int, shape: ReplyShape) -> str:
    """Endpoint, model, settings, how a reply is read, messages and sample, as one sum."""
    seed = None if bout.judge.seed is None else bout.judge.seed + sample
    return hashlib.sha256(f"{settings_sum(bout, shape)} {prompt} {seed} {sample}".encode()).hexdigest()


def settings_sum(bout: Bout, shape: ReplyShape) -> str:
    """What is the same in all questions of a judge, as one sum, built once."""
    if shape not in bout.settings_sums:
        judge = bout.judge
        settings = (
            judge.endpoint.base_url if judge.endpoint else "",
            *(judge.model, bout.two_steps, shape.value, judge.temperature, judge.max_tokens),
            *(judge.reasoning_effort, judge.logprobs),
            judge.rubric_version.sha256 if judge.rubric_version else "",
            *written_otherwise(judge),
            *extras_of(judge),
            *(["one aspect per call"] if judge.one_aspect_per_call else []),
        )
        bout.settings_sums[shape] = hashlib.sha256(json.dumps(settings).encode()).hexdigest()
    return bout.settings_sums[shape]


def written_otherwise(judge: Judge) -> list[dict[str, object]]:
    """What is sent otherwise than every judge's settings were before it could be: equal keys stay equal."""
    sent_as = SentAs.from_json(judge.sent_as)
    return [sent_as.as_json()] if sent_as != SentAs() else []


def extras_of(judge: Judge) -> list[dict[str, object]]:
    """What is sent besides, of the endpoint and the judge; nothing where neither has any, as for all keys before."""
    endpoint = judge.endpoint
    of_endpoint = (endpoint.extra_headers, endpoint.extra_query, endpoint.extra_body) if endpoint else ({}, {}, {})
    extras = [*of_endpoint, judge.extra_headers, judge.extra_body]
    return extras if any(extras) else []


def keys_of(bout: Bout, held: Held) -> list[str]:
    """The keys under which an equal question may have been answered: one for each shape while none is found."""
    if held.reuse_key or not held.messages or held.earlier:
        return [held.reuse_key] if held.reuse_key else []
    return [key_in_shape(bout, held, shape) for shape in ReplyShape]


def key_in_shape(bout: Bout, held: Held, shape: ReplyShape) -> str:
    form = bout.form(held.step, held.before, shape, held.aspect)
    return reuse_key(bout, prompt_sha256(held.messages, form), held.sample, shape)


# ---- finding -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """An answered call, as far as a copy needs it."""

    call_id: int
    root_id: int
    key: str
    shown: Shown
    repaired: bool
    rationale: str
    prompt_sha256: str
    choices: dict[str, Choice] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)
    weighted: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Sorted:
    """Held calls by what is to become of them: asked, copied from a source, or left while an equal one is asked."""

    to_ask: list[Held]
    to_copy: list[tuple[Held, Source]]
    to_wait: list[Held]


def sort_out(bout: Bout, held: Sequence[Held], now: datetime) -> Sorted:
    keys = {one.call_id: keys_of(bout, one) for one in held}
    known = known_calls([key for mine in keys.values() for key in mine], now)
    answered = sources(bout, [one for one in known if one.state == CallState.ANSWERED])
    asked = {one.reuse_key for one in known if one.state == CallState.RUNNING}
    result = Sorted([], [], [])
    for one in held:
        mine = keys[one.call_id]
        source = next((answered[key] for key in mine if key in answered), None)
        if source is not None:
            result.to_copy.append((one, source))
        elif asked.isdisjoint(mine):
            result.to_ask.append(one)
            asked.update(mine)
        else:
            result.to_wait.append(one)
    return result


class Known(NamedTuple):
    """A call with a key that is asked for."""

    call_id: int
    copied_from_id: int | None
    reuse_key: str
    state: str
    shown: str
    repaired: bool
    rationale: str
    prompt_sha256: str


def known_calls(keys: Sequence[str], now: datetime) -> list[Known]:
    """The calls with these keys that are answered, or being asked. The condition on '' names the index."""
    if not keys:
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, copied_from_id, reuse_key, state, shown, repaired, rationale, prompt_sha256 "
            f"FROM evaluations_call WHERE reuse_key IN ({', '.join(['%s'] * len(keys))}) AND NOT (reuse_key = '') "
            "AND (state = 'answered' OR (state = 'running' AND lease_until > %s)) ORDER BY id DESC",
            [*keys, connection.ops.adapt_datetimefield_value(now)],
        )
        return [Known(*row) for row in cursor.fetchall()]


def sources(bout: Bout, answered: Sequence[Known]) -> dict[str, Source]:
    """Key → an answered call with that key and an answer for all that this judge is asked."""
    found = {
        one.call_id: Source(
            one.call_id,
            one.copied_from_id or one.call_id,
            one.reuse_key,
            Shown(one.shown),
            *(bool(one.repaired), one.rationale, one.prompt_sha256),
        )
        for one in answered
        if bout.judge.repairs or not one.repaired
    }
    if found:
        add_answers(found)
    whole = set(bout.aspect_ids)
    return {one.key: one for one in found.values() if whole in (set(one.choices), set(one.scores))}


def add_answers(found: Mapping[int, Source]) -> None:
    verdicts = Verdict.all_rows.filter(call__in=found).values_list("call_id", "aspect__key", "choice", "weighted")
    for pk, key, choice, weighted in verdicts:
        found[pk].choices[key] = Choice(choice)
        if weighted is not None:
            found[pk].weighted[key] = weighted
    scores = Score.all_rows.filter(call__in=found).values_list("call_id", "aspect__key", "value", "weighted")
    for pk, key, value, weighted in scores:
        found[pk].scores[key] = value
        if weighted is not None:
            found[pk].weighted[key] = weighted


# ---- copying -------------------------------------------------------------------------------


def copy(bout: Bout, pairs: Sequence[tuple[Held, Source]], now: datetime) -> None:
    """These calls are answered as their sources were, at no cost and without an Attempt."""
    if not pairs:
        return
    answered = CallState.ANSWERED.value
    rows = [
        (
            held.call_id,
            answered,
            source.root_id,
            source.key,
            source.prompt_sha256,
            source.repaired,
            source.rationale,
            "",
        )
        for held, source in pairs
    ]
    update_many(Call, COPY_COLUMNS, rows)
    write_answers(bout, [as_answered(held, source) for held, source in pairs], now)
    Run.objects.filter(pk=bout.run.pk).update(reused=F("reused") + len(pairs))


def as_answered(held: Held, source: Source) -> Outcome:
    """The source's answer to this call. Equal messages show the same text first, which may be A here and B there."""
    turned = held.shown != source.shown
    choices = {key: FLIPPED[choice] if turned else choice for key, choice in source.choices.items()}
    weighted = {key: 1 - weight if turned and key in choices else weight for key, weight in source.weighted.items()}
    return Outcome(held, CallState.ANSWERED, choices=choices, scores=source.scores, weighted=weighted)

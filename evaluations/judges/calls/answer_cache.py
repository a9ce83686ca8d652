"""The cache of answers: equal questions have equal keys, so no stored answer is bought again."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import F

from evaluations.domain.choices import FLIPPED_CHOICES, Choice, ShownOrder
from evaluations.domain.judges import CallState, ReplyShape, RequestShape
from evaluations.judge_prompts.prompt_builder import hash_prompt
from evaluations.judges.calls.answer_rows import write_answers
from evaluations.judges.calls.work_session import CallOutcome, ClaimedCall, WorkSession
from evaluations.judges.sql import KnownCall, find_known_calls
from evaluations.models.bulk import update_many
from evaluations.models.judges import Judge
from evaluations.models.runs import Call, Run
from evaluations.models.verdicts import Score, Verdict

COPY_COLUMNS = ("id", "state", "copied_from_id", "reuse_key", "prompt_sha256", "repaired", "rationale", "error")


def make_reuse_key(bout: WorkSession, prompt: str, sample: int, shape: ReplyShape) -> str:
    """Endpoint, model, settings, how a reply is read, messages and sample, as one sum."""
    seed = None if bout.judge.seed is None else bout.judge.seed + sample
    return hashlib.sha256(f"{hash_judge_settings(bout, shape)} {prompt} {seed} {sample}".encode()).hexdigest()


def hash_judge_settings(bout: WorkSession, shape: ReplyShape) -> str:
    """What is the same in all questions of a judge, as one sum, built once."""
    if shape not in bout.settings_sums:
        judge = bout.judge
        settings = (
            judge.endpoint.base_url if judge.endpoint else "",
            *(judge.model, bout.two_steps, shape.value, judge.temperature, judge.max_tokens),
            *(judge.reasoning_effort, judge.logprobs),
            judge.rubric_version.sha256 if judge.rubric_version else "",
            *nonstandard_settings(judge),
            *request_extras(judge),
            *(["one aspect per call"] if judge.one_aspect_per_call else []),
        )
        bout.settings_sums[shape] = hashlib.sha256(json.dumps(settings).encode()).hexdigest()
    return bout.settings_sums[shape]


def nonstandard_settings(judge: Judge) -> list[dict[str, object]]:
    """What is sent otherwise than every judge's settings were before it could be: equal keys stay equal."""
    sent_as = RequestShape.from_json(judge.sent_as)
    return [sent_as.as_json()] if sent_as != RequestShape() else []


def request_extras(judge: Judge) -> list[dict[str, object]]:
    """What is sent besides, of the endpoint and the judge; nothing where neither has any, as for all keys before."""
    endpoint = judge.endpoint
    of_endpoint = (endpoint.extra_headers, endpoint.extra_query, endpoint.extra_body) if endpoint else ({}, {}, {})
    extras = [*of_endpoint, judge.extra_headers, judge.extra_body]
    return extras if any(extras) else []


def possible_reuse_keys(bout: WorkSession, held: ClaimedCall) -> list[str]:
    """The keys under which an equal question may have been answered: one for each shape while none is found."""
    if held.reuse_key or not held.messages or held.earlier:
        return [held.reuse_key] if held.reuse_key else []
    return [reuse_key_for_shape(bout, held, shape) for shape in ReplyShape]


def reuse_key_for_shape(bout: WorkSession, held: ClaimedCall, shape: ReplyShape) -> str:
    form = bout.form(held.step, held.before, shape, held.aspect)
    return make_reuse_key(bout, hash_prompt(held.messages, form), held.sample, shape)


# ---- finding -------------------------------------------------------------------------------


@dataclass(frozen=True)
class CachedAnswer:
    """An answered call, as far as a copy needs it."""

    call_id: int
    root_id: int
    key: str
    shown: ShownOrder
    repaired: bool
    rationale: str
    prompt_sha256: str
    choices: dict[str, Choice] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)
    weighted: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ReuseDecision:
    """Held calls by what is to become of them: asked, copied from a source, or left while an equal one is asked."""

    to_ask: list[ClaimedCall]
    to_copy: list[tuple[ClaimedCall, CachedAnswer]]
    to_wait: list[ClaimedCall]


def decide_reuse(bout: WorkSession, held: Sequence[ClaimedCall], now: datetime) -> ReuseDecision:
    keys = {one.call_id: possible_reuse_keys(bout, one) for one in held}
    known = find_known_calls([key for mine in keys.values() for key in mine], now)
    answered = load_cached_answers(bout, [one for one in known if one.state == CallState.ANSWERED])
    asked = {one.reuse_key for one in known if one.state == CallState.RUNNING}
    result = ReuseDecision([], [], [])
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


def load_cached_answers(bout: WorkSession, answered: Sequence[KnownCall]) -> dict[str, CachedAnswer]:
    """Key → an answered call with that key and an answer for all that this judge is asked."""
    found = {
        one.call_id: CachedAnswer(
            one.call_id,
            one.copied_from_id or one.call_id,
            one.reuse_key,
            ShownOrder(one.shown),
            *(bool(one.repaired), one.rationale, one.prompt_sha256),
        )
        for one in answered
        if bout.judge.repairs or not one.repaired
    }
    if found:
        load_answer_values(found)
    whole = set(bout.aspect_ids)
    return {one.key: one for one in found.values() if whole in (set(one.choices), set(one.scores))}


def load_answer_values(found: Mapping[int, CachedAnswer]) -> None:
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


def copy_answers(bout: WorkSession, pairs: Sequence[tuple[ClaimedCall, CachedAnswer]], now: datetime) -> None:
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
    write_answers(bout, [make_copied_outcome(held, source) for held, source in pairs], now)
    Run.objects.filter(pk=bout.run.pk).update(reused=F("reused") + len(pairs))


def make_copied_outcome(held: ClaimedCall, source: CachedAnswer) -> CallOutcome:
    """The source's answer to this call. Equal messages show the same text first, which may be A here and B there."""
    turned = held.shown != source.shown
    choices = {key: FLIPPED_CHOICES[choice] if turned else choice for key, choice in source.choices.items()}
    weighted = {key: 1 - weight if turned and key in choices else weight for key, weight in source.weighted.items()}
    return CallOutcome(held, CallState.ANSWERED, choices=choices, scores=source.scores, weighted=weighted)

"""The cache of answers: equal calls have equal keys, so no stored answer is bought again."""

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
from evaluations.judges.sql import EqualCall, find_equal_calls
from evaluations.models.bulk import update_many
from evaluations.models.judges import Judge
from evaluations.models.runs import Call, Run
from evaluations.models.verdicts import Score, Verdict

COPY_COLUMNS = ("id", "state", "copied_from_id", "reuse_key", "prompt_sha256", "repaired", "rationale", "error")


def make_reuse_key(session: WorkSession, prompt: str, sample: int, shape: ReplyShape) -> str:
    """SHA-256 of endpoint, model, settings, reply shape, messages and sample number."""
    seed = None if session.judge.seed is None else session.judge.seed + sample
    return hashlib.sha256(f"{hash_judge_settings(session, shape)} {prompt} {seed} {sample}".encode()).hexdigest()


def hash_judge_settings(session: WorkSession, shape: ReplyShape) -> str:
    """SHA-256 of what all calls of a judge have in common; computed once per session."""
    if shape not in session.settings_sums:
        judge = session.judge
        settings = (
            judge.endpoint.base_url if judge.endpoint else "",
            *(judge.model, session.two_steps, shape.value, judge.temperature, judge.max_tokens),
            *(judge.reasoning_effort, judge.logprobs),
            judge.rubric_version.sha256 if judge.rubric_version else "",
            *nonstandard_settings(judge),
            *request_extras(judge),
            *(["one aspect per call"] if judge.one_aspect_per_call else []),
        )
        session.settings_sums[shape] = hashlib.sha256(json.dumps(settings).encode()).hexdigest()
    return session.settings_sums[shape]


def nonstandard_settings(judge: Judge) -> list[dict[str, object]]:
    """The request adaptations; left out if there are none, so that older keys stay valid."""
    request_shape = RequestShape.from_json(judge.request_shape)
    return [request_shape.as_json()] if request_shape != RequestShape() else []


def request_extras(judge: Judge) -> list[dict[str, object]]:
    """The extra headers, query and body of endpoint and judge; left out if empty, so that older keys stay valid."""
    endpoint = judge.endpoint
    of_endpoint = (endpoint.extra_headers, endpoint.extra_query, endpoint.extra_body) if endpoint else ({}, {}, {})
    extras = [*of_endpoint, judge.extra_headers, judge.extra_body]
    return extras if any(extras) else []


def possible_reuse_keys(session: WorkSession, call: ClaimedCall) -> list[str]:
    """The keys under which an equal call may be stored: one per reply shape until the probe has found the shape."""
    if call.reuse_key or not call.messages or call.earlier_answers:
        return [call.reuse_key] if call.reuse_key else []
    return [reuse_key_for_shape(session, call, shape) for shape in ReplyShape]


def reuse_key_for_shape(session: WorkSession, call: ClaimedCall, shape: ReplyShape) -> str:
    form = session.form(call.step, call.earlier_replies, shape, call.aspect)
    return make_reuse_key(session, hash_prompt(call.messages, form), call.sample, shape)


@dataclass(frozen=True)
class CachedAnswer:
    """The part of an answered call that a copy needs."""

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
    """Claimed calls to send, to copy from a source, or to delay while an equal call is in flight."""

    to_ask: list[ClaimedCall]
    to_copy: list[tuple[ClaimedCall, CachedAnswer]]
    to_wait: list[ClaimedCall]


def decide_reuse(session: WorkSession, calls: Sequence[ClaimedCall], now: datetime) -> ReuseDecision:
    keys = {call.call_id: possible_reuse_keys(session, call) for call in calls}
    equal_calls = find_equal_calls([key for call_keys in keys.values() for key in call_keys], now)
    answered = load_cached_answers(session, [call for call in equal_calls if call.state == CallState.ANSWERED])
    running_keys = {call.reuse_key for call in equal_calls if call.state == CallState.RUNNING}
    result = ReuseDecision([], [], [])
    for call in calls:
        call_keys = keys[call.call_id]
        source = next((answered[key] for key in call_keys if key in answered), None)
        if source is not None:
            result.to_copy.append((call, source))
        elif running_keys.isdisjoint(call_keys):
            result.to_ask.append(call)
            running_keys.update(call_keys)
        else:
            result.to_wait.append(call)
    return result


def load_cached_answers(session: WorkSession, answered: Sequence[EqualCall]) -> dict[str, CachedAnswer]:
    """Key → an answered call with that key that has an answer for every aspect of this judge."""
    answers = {
        call.call_id: CachedAnswer(
            call.copied_from_id or call.call_id,
            call.reuse_key,
            ShownOrder(call.shown),
            *(bool(call.repaired), call.rationale, call.prompt_sha256),
        )
        for call in answered
        if session.judge.repairs or not call.repaired
    }
    if answers:
        load_answer_values(answers)
    aspect_keys = set(session.aspect_ids)
    return {
        answer.key: answer for answer in answers.values() if aspect_keys in (set(answer.choices), set(answer.scores))
    }


def load_answer_values(answers: Mapping[int, CachedAnswer]) -> None:
    verdicts = Verdict.all_rows.filter(call__in=answers).values_list("call_id", "aspect__key", "choice", "weighted")
    for pk, key, choice, weighted in verdicts:
        answers[pk].choices[key] = Choice(choice)
        if weighted is not None:
            answers[pk].weighted[key] = weighted
    scores = Score.all_rows.filter(call__in=answers).values_list("call_id", "aspect__key", "value", "weighted")
    for pk, key, value, weighted in scores:
        answers[pk].scores[key] = value
        if weighted is not None:
            answers[pk].weighted[key] = weighted


def copy_answers(session: WorkSession, pairs: Sequence[tuple[ClaimedCall, CachedAnswer]], now: datetime) -> None:
    """Answer these calls with copies of their sources, at no cost and without an Attempt."""
    if not pairs:
        return
    rows = []
    for call, source in pairs:
        texts = (source.key, source.prompt_sha256, source.repaired, source.rationale, "")
        rows.append((call.call_id, CallState.ANSWERED.value, source.root_id, *texts))
    update_many(Call, COPY_COLUMNS, rows)
    write_answers(session, [make_copied_outcome(call, source) for call, source in pairs], now)
    Run.objects.filter(pk=session.run.pk).update(reused=F("reused") + len(pairs))


def make_copied_outcome(call: ClaimedCall, source: CachedAnswer) -> CallOutcome:
    """The source's answer for this call. Equal messages show the same text first, which may be A here and B there."""
    is_swapped = call.shown != source.shown
    choices = {key: FLIPPED_CHOICES[choice] if is_swapped else choice for key, choice in source.choices.items()}
    weighted = {key: 1 - weight if is_swapped and key in choices else weight for key, weight in source.weighted.items()}
    return CallOutcome(call, CallState.ANSWERED, choices=choices, scores=source.scores, weighted=weighted)

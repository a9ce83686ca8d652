"""One request for one call: what is sent, and what became of it."""

import random
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from django.conf import settings

from evaluations.domain import AttemptOutcome, AttemptStep, CallState, Dialect, ReplyShape, SentAs
from evaluations.judge.dictation import DICTATED, state_of
from evaluations.judge.probabilities import weigh
from evaluations.judge.prompting import prompt_sha256
from evaluations.judge.reading import NotRead, Read, Reply, read_evaluation, read_reply
from evaluations.judge.replying import is_verdict_alone
from evaluations.models import Endpoint, Judge
from evaluations.outside.addresses import is_local_address
from evaluations.outside.dialects import adapter_of
from evaluations.outside.llm import (
    Answer,
    Ask,
    FormatRefused,
    LLMError,
    QuotaUsedUp,
    RecordOnCall,
    Request,
    Retry,
    Server,
    SettingRefused,
    StopRun,
    TimedOut,
    Usage,
)
from evaluations.services.judging.aspect_answers import WEIGHT, joined_aspects
from evaluations.services.judging.cut_prompts import Watched
from evaluations.services.judging.probing import Probe
from evaluations.services.judging.sharing import timeout_of
from evaluations.services.judging.working import AspectAnswer, Bout, Held, Outcome


@dataclass
class Asker:
    """How this bout asks: built once, shared by all its requests."""

    bout: Bout
    leases: dict[int, uuid.UUID] = field(default_factory=dict)
    probe: Probe = field(init=False)
    # What the model was seen to count; None where no prompt is checked.
    watched: Watched | None = None
    # Whether a request of the run brought a reply that its server and model stand for; before that few are sent.
    has_answered: bool = False

    def __post_init__(self) -> None:
        self.probe = Probe(self.bout, sent_as=as_protocol_has_it(self.bout.judge))

    def room(self, room: int, held: int) -> int:
        """How many may be claimed: one while the probe is open, and before the first success few enough to lose."""
        room = self.probe.room(room, held)
        most = settings.PAUSE_AFTER_FAILURES
        return room if self.has_answered or not most else min(room, most - held)

    def note(self, outcome: Outcome) -> None:
        """Whether this outcome shows that the run gets somewhere."""
        said = (outcome.attempt or {}).get("outcome")
        if said in (AttemptOutcome.ANSWERED, AttemptOutcome.REFUSED):
            self.has_answered = True

    def request_for(self, held: Held) -> Request:
        """The next request of this call's conversation."""
        judge, alone = self.bout.judge, is_verdict_alone(held.step, held.before)
        shape = ReplyShape.TEXT if self.is_evaluation(held) else self.probe.shape
        return Request(
            messages=held.messages,
            model=judge.model,
            temperature=judge.temperature,
            max_tokens=judge.max_tokens,
            seed=None if judge.seed is None else judge.seed + held.sample,
            shape=shape,
            schema=self.bout.schema(alone=alone, aspect=held.aspect) if shape == ReplyShape.JSON_SCHEMA else None,
            reasoning_effort=judge.reasoning_effort,
            logprobs=judge.logprobs and not self.is_evaluation(held),
            sent_as=self.probe.settings,
            headers=judge.extra_headers,
            body=judge.extra_body,
            context_tokens=self.context_for(held),
        )

    @cached_property
    def dialect(self) -> Dialect:
        return adapter_of(server_of(self.bout)).dialect

    def context_for(self, held: Held) -> int | None:
        """How many tokens of context the request needs, for servers that must be told."""
        if self.watched is None or self.dialect != Dialect.OLLAMA:
            return None
        return self.watched.context_for(held.messages, self.bout.judge.max_tokens)

    def is_evaluation(self, held: Held) -> bool:
        """Whether this request is the first of two: it has no verdict, and so no shape."""
        return self.bout.two_steps and not is_verdict_alone(held.step, held.before)

    def prompt_of(self, held: Held, request: Request) -> str:
        """The sum of what was asked, which the claim could not know while it was being found out."""
        form = self.bout.form(held.step, held.before, request.shape, held.aspect)
        return held.prompt_sha256 or prompt_sha256(held.messages, form)


def as_protocol_has_it(judge: Judge) -> SentAs:
    """Without the judge's settings that its endpoint's protocol does not have."""
    if judge.endpoint is None:
        return SentAs()
    lacks = adapter_of(server_of_endpoint(judge.endpoint)).lacks
    return SentAs(left_out=tuple(name for name in lacks if getattr(judge, name) not in (None, False, "")))


def server_of(bout: Bout) -> Server:
    endpoint = bout.judge.endpoint
    if endpoint is None:
        raise StopRun("This judge has no endpoint to ask.")
    return server_of_endpoint(endpoint)


def server_of_endpoint(endpoint: Endpoint) -> Server:
    return Server(
        endpoint.base_url,
        endpoint.key_variable,
        timeout_of(endpoint),
        Dialect(endpoint.dialect) if endpoint.dialect else None,
        endpoint.extra_headers,
        endpoint.extra_query,
        endpoint.extra_body,
    )


async def put_to_judge(asker: Asker, ask: Ask, held: Held) -> Outcome:
    """One request for one call, and what became of it. Raises nothing that the world may cause."""
    if asker.bout.judge.one_aspect_per_call and not held.aspect:
        return from_aspects(asker.bout, held, held.earlier)
    request = asker.request_for(held)
    began = time.monotonic()
    try:
        answer = await ask(request)
    except LLMError as error:
        outcome = from_error(asker, held, request, error, milliseconds_since(began))
    else:
        outcome = from_answer(asker, held, request, answer, milliseconds_since(began))
    return about_aspect(asker.bout, held, outcome) if held.aspect else outcome


def milliseconds_since(began: float) -> int:
    return round((time.monotonic() - began) * 1000)


# ---- an answer -----------------------------------------------------------------------------


def from_answer(asker: Asker, held: Held, request: Request, answer: Answer, latency_ms: int) -> Outcome:
    """What an answer makes of its call. The first to a request for a verdict tells what the server takes."""
    reply = Reply(answer.text, answer.finish_reason, answer.refusal)
    attempt = attempt_of(answer, latency_ms)
    asker.bout.learn_of_reply(answer.tokens_out, answer.usage.tokens_reasoning)
    if asker.watched and (why := asker.watched.why_cut(request.messages, answer.tokens_in)):
        return from_cut_prompt(asker.watched, held, why, attempt)
    if asker.is_evaluation(held):
        return replace(from_evaluation(held, reply, attempt), prompt_sha256=asker.prompt_of(held, request))
    outcome = from_verdict(asker.bout, held, reply, answer, attempt)
    has_next_aspect = outcome.next_step == AttemptStep.ASK
    is_read = outcome.state == CallState.ANSWERED or has_next_aspect
    if answer.is_flawed and not is_read and asker.probe.may_change_shape:
        asker.probe.was_refused(request.shape)
        return Outcome(held, CallState.PENDING, attempt | {"outcome": AttemptOutcome.RETRY}, error=FLAWED)
    found = asker.probe.was_taken(request.shape)
    return replace(
        outcome,
        prompt_sha256=asker.prompt_of(held, request),
        shape_found=found.shape if found else None,
        sent_as_found=found.sent_as if found else None,
    )


FLAWED = "The server could not hold the model to the form of the reply."


def from_cut_prompt(watched: Watched, held: Held, why: str, attempt: dict[str, Any]) -> Outcome:
    """A reply to half a prompt is no answer to it, whatever it says."""
    attempt |= {"outcome": AttemptOutcome.TOO_LONG, "error": why}
    return replace(given_up(held, CallState.TOO_LONG, attempt, why), ceiling=watched.rates.ceiling)


def attempt_of(answer: Answer, latency_ms: int) -> dict[str, Any]:
    return {
        "http_status": answer.http_status,
        "raw": answer.text or answer.refusal,
        "finish_reason": answer.finish_reason,
        "model_returned": answer.model,
        "latency_ms": latency_ms,
        "reasoning": answer.reasoning,
        **counted(answer.usage),
    }


def counted(usage: Usage) -> dict[str, int | None]:
    """What the server counted, as the Attempt has it; ``told_cost`` and ``tokens_written`` only enter the cost."""
    return {
        "tokens_in": usage.tokens_in,
        "tokens_out": usage.tokens_out,
        "tokens_cached": usage.tokens_cached,
        "tokens_reasoning": usage.tokens_reasoning,
        "tokens_written": usage.tokens_written,
        "told_cost": usage.cost,
    }


def from_evaluation(held: Held, reply: Reply, attempt: dict[str, Any]) -> Outcome:
    """The first of two steps: what it says is kept, and its verdict asked for next."""
    if told := read_evaluation(reply):
        return unread(held, told, attempt)
    attempt["outcome"] = AttemptOutcome.ANSWERED
    return Outcome(held, CallState.PENDING, attempt, next_step=AttemptStep.SCORE)


def from_verdict(bout: Bout, held: Held, reply: Reply, answer: Answer, attempt: dict[str, Any]) -> Outcome:
    spec = bout.spec_of(held.aspect)
    told = read_reply(spec, held.shown, reply, step=held.step, before=held.before, judged=lambda: held.texts)
    if not isinstance(told, Read):
        return unread(held, told, attempt, mending=bout.judge.repairs and bool(reply.text.strip()))
    weighed = weigh(spec, held.shown, told, reply.text, answer.logprobs)
    attempt |= {"outcome": AttemptOutcome.ANSWERED, "logprobs": weighed.tokens or None}
    is_suspect = state_of(told, (*held.before, reply.text), lambda: held.texts) == CallState.SUSPECT
    if held.aspect:
        weight, repaired = weighed.weights.get(held.aspect), held.step == AttemptStep.REPAIR
        one = AspectAnswer(held.aspect, told, is_suspect, repaired, weight)
        return from_aspects(bout, held, (*held.earlier, one), attempt | kept_of(one, attempt["logprobs"]))
    if is_suspect:
        return Outcome(held, CallState.SUSPECT, attempt, error=DICTATED)
    return Outcome(
        held,
        CallState.ANSWERED,
        attempt,
        choices=told.choices,
        scores=told.scores,
        weighted=weighed.weights,
        rationale=told.rationale,
        repaired=held.step == AttemptStep.REPAIR,
    )


# ---- one aspect at a time ------------------------------------------------------------------


def kept_of(one: AspectAnswer, tokens: Mapping[str, Any] | None) -> dict[str, Any]:
    """What the Attempt keeps for the time when the other aspects are answered, too."""
    weight = {} if one.weight is None else {WEIGHT: one.weight}
    return {"logprobs": {**(tokens or {}), **weight} or None, "error": DICTATED if one.is_suspect else ""}


def from_aspects(
    bout: Bout, held: Held, answers: Sequence[AspectAnswer], attempt: Mapping[str, Any] | None = None
) -> Outcome:
    """The next aspect is asked for; after the last one the call is answered, or is suspect where one answer is."""
    if len(answers) < len(bout.spec.output_order):
        return Outcome(held, CallState.PENDING, attempt, next_step=AttemptStep.ASK)
    if dictated := [one for one in answers if one.is_suspect]:
        return Outcome(held, CallState.SUSPECT, attempt, error=f"{bout.aspect_names[dictated[0].aspect]}: {DICTATED}")
    joined = joined_aspects(bout, {one.aspect: one.read for one in answers})
    return Outcome(
        held,
        CallState.ANSWERED,
        attempt,
        choices=joined.choices,
        scores=joined.scores,
        weighted={one.aspect: one.weight for one in answers if one.weight is not None},
        rationale=joined.rationale,
        repaired=any(one.repaired for one in answers),
    )


def about_aspect(bout: Bout, held: Held, outcome: Outcome) -> Outcome:
    """With the aspect in its Attempt, and in the error of a call that ends without a verdict."""
    attempt = {**(outcome.attempt or {}), "aspect": held.aspect}
    if outcome.state in (CallState.PENDING, CallState.ANSWERED, CallState.SUSPECT):
        return replace(outcome, attempt=attempt)
    return replace(outcome, attempt=attempt, error=f"{bout.aspect_names[held.aspect]}: {outcome.error}")


# ---- no verdict ----------------------------------------------------------------------------


def unread(held: Held, told: NotRead, attempt: dict[str, Any], *, mending: bool = False) -> Outcome:
    """No verdict. One that cannot be read is answered once with what was wrong; no other is, nor twice.

    An empty reply is no answer to be repaired: the same is asked once more.
    """
    attempt |= {"outcome": told.state, "error": told.error}
    if told.state == CallState.UNREADABLE and not attempt["raw"].strip() and not held.came_empty:
        return Outcome(held, CallState.PENDING, attempt | {"outcome": AttemptOutcome.RETRY}, error=told.error)
    if held.step == AttemptStep.REPAIR:
        return unmended(held, attempt)
    if mending and told.state == CallState.UNREADABLE:
        return Outcome(held, CallState.PENDING, attempt, error=told.error, next_step=AttemptStep.REPAIR)
    return Outcome(held, told.state, attempt, error=told.error)


def unmended(held: Held, attempt: dict[str, Any]) -> Outcome:
    """A repair that brought nothing leaves the call as it was: unreadable, for the reason it had."""
    return Outcome(held, CallState.UNREADABLE, attempt, error=held.unread)


# ---- no answer -----------------------------------------------------------------------------


def from_error(asker: Asker, held: Held, request: Request, error: LLMError, latency_ms: int) -> Outcome:
    said = {"http_status": error.http_status, "raw": error.body, "latency_ms": latency_ms, "error": str(error)}
    if error.usage is not None:
        said |= counted(error.usage)
    if isinstance(error, Retry):
        return from_fault(asker.bout, held, error, said)
    if isinstance(error, RecordOnCall):
        return given_up(held, error.state, said | {"outcome": error.state}, str(error))
    if isinstance(error, FormatRefused):
        return from_refused_shape(asker, held, error, said)
    if isinstance(error, SettingRefused) and asker.probe.was_refused_setting(error):
        return Outcome(held, CallState.PENDING, said | {"outcome": AttemptOutcome.RETRY}, error=str(error))
    return stopped(held, said, str(error))


def from_refused_shape(asker: Asker, held: Held, error: FormatRefused, said: dict[str, Any]) -> Outcome:
    """While it is not known what the server takes, the next shape is tried; afterwards nothing can be answered."""
    if not asker.probe.may_change_shape:
        return stopped(held, said, refused_for_good(asker.bout, error))
    asker.probe.was_refused(error.shape)
    return Outcome(held, CallState.PENDING, said | {"outcome": AttemptOutcome.RETRY}, error=str(error))


def refused_for_good(bout: Bout, error: FormatRefused) -> str:
    if not bout.judge.asked_as:
        return f"{error} Make a judge that is asked in another mode, or in mode auto."
    return f"{error} It took this judge's requests before: make a new judge, which finds out anew what it takes."


def from_fault(bout: Bout, held: Held, error: Retry, said: dict[str, Any]) -> Outcome:
    """Ask again after a while, or give up: the call, or the run where nobody is there at all."""
    if isinstance(error, TimedOut) and bout.judge.endpoint and is_local_address(bout.judge.endpoint.base_url):
        return from_timeout(bout, held, timeout_of(bout.judge.endpoint), error, said)
    tried = held.tried - held.timed_out + 1
    if not bout.patience.is_over(tried, busy=error.busy, unreachable=error.unreachable):
        return Outcome(
            held,
            CallState.PENDING,
            said | {"outcome": AttemptOutcome.RETRY},
            error=str(error),
            wait_seconds=bout.patience.wait(tried, error.after, random.random()),
            busy=error.busy,
            pause_reason=str(error) if isinstance(error, QuotaUsedUp) else "",
            unsent=error.unreachable,
        )
    if error.unreachable:
        return stopped(held, said, str(error), unsent=True)
    sentence = f"Asked {tried} times without an answer. {error}"
    return given_up(held, CallState.FAILED, said | {"outcome": AttemptOutcome.FAILED}, sentence)


def from_timeout(bout: Bout, held: Held, seconds: float, error: TimedOut, said: dict[str, Any]) -> Outcome:
    """Leave a slow server the time to finish what it may be at work on still, and give up after few tries."""
    tried = held.timed_out + 1
    if not bout.patience.is_over(tried, timed_out=True):
        return Outcome(
            held,
            CallState.PENDING,
            said | {"outcome": AttemptOutcome.RETRY},
            error=str(error),
            wait_seconds=bout.patience.wait_after_timeout(tried, seconds, random.random()),
        )
    sentence = (
        f"Asked {tried} times, and no answer came within {seconds:g} seconds. "
        "Raise the endpoint's timeout or lower its requests at once."
    )
    return given_up(held, CallState.FAILED, said | {"outcome": AttemptOutcome.FAILED}, sentence)


def given_up(held: Held, state: CallState, attempt: dict[str, Any], error: str) -> Outcome:
    if held.step == AttemptStep.REPAIR:
        return unmended(held, attempt)
    return Outcome(held, state, attempt, error=error)


def stopped(held: Held, said: dict[str, Any], reason: str, *, unsent: bool = False) -> Outcome:
    """The call waits for a run that can go on."""
    attempt = said | {"outcome": AttemptOutcome.STOPPED}
    return Outcome(held, CallState.PENDING, attempt, stop_reason=reason, unsent=unsent)

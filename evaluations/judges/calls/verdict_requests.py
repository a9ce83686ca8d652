"""One request for a verdict: what is sent, what outcome the answer makes."""

import random
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from django.conf import settings

from evaluations.domain.json_values import JsonDict
from evaluations.domain.judges import AttemptOutcome, AttemptStep, CallState, Dialect, ReplyShape, RequestShape
from evaluations.judge_prompts.prompt_builder import hash_prompt
from evaluations.judges.calls.capability_probe import CapabilityProbe
from evaluations.judges.calls.conversations import WEIGHT_KEY, join_aspect_replies
from evaluations.judges.calls.prompt_truncation import TruncationWatch
from evaluations.judges.calls.work_session import AspectAnswer, CallOutcome, ClaimedCall, WorkSession
from evaluations.judges.endpoints.selectors import endpoint_timeout, server_for_endpoint
from evaluations.llm.dialects.registry import find_adapter
from evaluations.llm.exchange import (
    Answer,
    FormatRefused,
    LLMError,
    QuotaExhausted,
    RecordOnCall,
    Request,
    RequestTimedOut,
    Retry,
    SendRequest,
    Server,
    SettingRefused,
    StopRun,
    Usage,
)
from evaluations.models.judges import Judge
from evaluations.net.addresses import is_local_address
from evaluations.replies.reply_format import asks_verdict_alone
from evaluations.replies.reply_parser import (
    DICTATED_ERROR,
    ParsedReply,
    RawReply,
    UnparsedReply,
    check_evaluation,
    parse_reply,
    reply_state,
)
from evaluations.replies.verdict_weights import weigh_verdicts


@dataclass
class CallRequester:
    """How this session sends requests: built once, shared by all its calls."""

    bout: WorkSession
    leases: dict[int, uuid.UUID] = field(default_factory=dict)
    probe: CapabilityProbe = field(init=False)
    # What the model was seen to count; None where no prompt is checked.
    watched: TruncationWatch | None = None
    # Whether a request of the run brought a reply that its server and model stand for; before that few are sent.
    has_answered: bool = False

    def __post_init__(self) -> None:
        self.probe = CapabilityProbe(self.bout, sent_as=settings_unsupported_by_dialect(self.bout.judge))

    def room(self, room: int, held: int) -> int:
        """How many may be claimed: one while the probe is open, and before the first success few enough to lose."""
        room = self.probe.room(room, held)
        most = settings.PAUSE_AFTER_FAILURES
        return room if self.has_answered or not most else min(room, most - held)

    def note(self, outcome: CallOutcome) -> None:
        """Whether this outcome shows that the run gets somewhere."""
        said = (outcome.attempt or {}).get("outcome")
        if said in (AttemptOutcome.ANSWERED, AttemptOutcome.REFUSED):
            self.has_answered = True

    def request_for(self, held: ClaimedCall) -> Request:
        """The next request of this call's conversation."""
        judge, alone = self.bout.judge, asks_verdict_alone(held.step, held.before)
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
        return find_adapter(session_server(self.bout)).dialect

    def context_for(self, held: ClaimedCall) -> int | None:
        """How many tokens of context the request needs, for servers that must be told."""
        if self.watched is None or self.dialect != Dialect.OLLAMA:
            return None
        return self.watched.context_for(held.messages, self.bout.judge.max_tokens)

    def is_evaluation(self, held: ClaimedCall) -> bool:
        """Whether this request is the first of two: it has no verdict, and so no shape."""
        return self.bout.two_steps and not asks_verdict_alone(held.step, held.before)

    def prompt_of(self, held: ClaimedCall, request: Request) -> str:
        """The sum of what was asked, which the claim could not know while it was being found out."""
        form = self.bout.form(held.step, held.before, request.shape, held.aspect)
        return held.prompt_sha256 or hash_prompt(held.messages, form)


def settings_unsupported_by_dialect(judge: Judge) -> RequestShape:
    """Without the judge's settings that its endpoint's protocol does not have."""
    if judge.endpoint is None:
        return RequestShape()
    lacks = find_adapter(server_for_endpoint(judge.endpoint)).lacks
    return RequestShape(left_out=tuple(name for name in lacks if getattr(judge, name) not in (None, False, "")))


def session_server(bout: WorkSession) -> Server:
    endpoint = bout.judge.endpoint
    if endpoint is None:
        raise StopRun("This judge has no endpoint to ask.")
    return server_for_endpoint(endpoint)


async def request_verdict(asker: CallRequester, ask: SendRequest, held: ClaimedCall) -> CallOutcome:
    """Send one request for one call and return its outcome. Raises nothing that the outside world may cause."""
    if asker.bout.judge.one_aspect_per_call and not held.aspect:
        return outcome_of_aspects(asker.bout, held, held.earlier)
    request = asker.request_for(held)
    began = time.monotonic()
    try:
        answer = await ask(request)
    except LLMError as error:
        outcome = outcome_from_error(asker, held, request, error, elapsed_ms(began))
    else:
        outcome = outcome_from_answer(asker, held, request, answer, elapsed_ms(began))
    return add_aspect_to_outcome(asker.bout, held, outcome) if held.aspect else outcome


def elapsed_ms(began: float) -> int:
    return round((time.monotonic() - began) * 1000)


# ---- an answer -----------------------------------------------------------------------------


def outcome_from_answer(
    asker: CallRequester, held: ClaimedCall, request: Request, answer: Answer, latency_ms: int
) -> CallOutcome:
    """The outcome of a call by its answer. The first verdict shows what the server accepts."""
    reply = RawReply(answer.text, answer.finish_reason, answer.refusal)
    attempt = attempt_from_answer(answer, latency_ms)
    asker.bout.learn_of_reply(answer.tokens_out, answer.usage.tokens_reasoning)
    if asker.watched and (why := asker.watched.why_cut(request.messages, answer.tokens_in)):
        return outcome_of_cut_prompt(asker.watched, held, why, attempt)
    if asker.is_evaluation(held):
        return replace(outcome_of_evaluation(held, reply, attempt), prompt_sha256=asker.prompt_of(held, request))
    outcome = outcome_of_verdict(asker.bout, held, reply, answer, attempt)
    has_next_aspect = outcome.next_step == AttemptStep.ASK
    is_read = outcome.state == CallState.ANSWERED or has_next_aspect
    if answer.is_flawed and not is_read and asker.probe.may_change_shape:
        asker.probe.was_refused(request.shape)
        return CallOutcome(held, CallState.PENDING, attempt | {"outcome": AttemptOutcome.RETRY}, error=FLAWED_ERROR)
    found = asker.probe.was_taken(request.shape)
    return replace(
        outcome,
        prompt_sha256=asker.prompt_of(held, request),
        shape_found=found.shape if found else None,
        sent_as_found=found.sent_as if found else None,
    )


FLAWED_ERROR = "The server could not hold the model to the form of the reply."


def outcome_of_cut_prompt(
    watched: TruncationWatch, held: ClaimedCall, why: str, attempt: dict[str, object]
) -> CallOutcome:
    """A reply to half a prompt is no answer to it, whatever it says."""
    attempt |= {"outcome": AttemptOutcome.TOO_LONG, "error": why}
    return replace(failed_outcome(held, CallState.TOO_LONG, attempt, why), ceiling=watched.rates.ceiling)


def attempt_from_answer(answer: Answer, latency_ms: int) -> dict[str, object]:
    return {
        "http_status": answer.http_status,
        "raw": answer.text or answer.refusal,
        "finish_reason": answer.finish_reason,
        "model_returned": answer.model,
        "latency_ms": latency_ms,
        "reasoning": answer.reasoning,
        **usage_columns(answer.usage),
    }


def usage_columns(usage: Usage) -> dict[str, int | None]:
    """What the server counted, as the Attempt has it; ``told_cost`` and ``tokens_written`` only enter the cost."""
    return {
        "tokens_in": usage.tokens_in,
        "tokens_out": usage.tokens_out,
        "tokens_cached": usage.tokens_cached,
        "tokens_reasoning": usage.tokens_reasoning,
        "tokens_written": usage.tokens_written,
        "told_cost": usage.cost,
    }


def outcome_of_evaluation(held: ClaimedCall, reply: RawReply, attempt: dict[str, object]) -> CallOutcome:
    """The first of two steps: what it says is kept, and its verdict asked for next."""
    if told := check_evaluation(reply):
        return outcome_of_unparsed_reply(held, told, attempt)
    attempt["outcome"] = AttemptOutcome.ANSWERED
    return CallOutcome(held, CallState.PENDING, attempt, next_step=AttemptStep.SCORE)


def outcome_of_verdict(
    bout: WorkSession, held: ClaimedCall, reply: RawReply, answer: Answer, attempt: JsonDict
) -> CallOutcome:
    spec = bout.spec_of(held.aspect)
    told = parse_reply(spec, held.shown, reply, step=held.step, before=held.before, judged=lambda: held.texts)
    if not isinstance(told, ParsedReply):
        return outcome_of_unparsed_reply(held, told, attempt, mending=bout.judge.repairs and bool(reply.text.strip()))
    weighed = weigh_verdicts(spec, held.shown, told, reply.text, answer.logprobs)
    attempt |= {"outcome": AttemptOutcome.ANSWERED, "logprobs": weighed.tokens or None}
    is_suspect = reply_state(told, (*held.before, reply.text), lambda: held.texts) == CallState.SUSPECT
    if held.aspect:
        weight, repaired = weighed.weights.get(held.aspect), held.step == AttemptStep.REPAIR
        one = AspectAnswer(held.aspect, told, is_suspect, repaired, weight)
        return outcome_of_aspects(
            bout, held, (*held.earlier, one), attempt | reply_part_to_keep(one, attempt["logprobs"])
        )
    if is_suspect:
        return CallOutcome(held, CallState.SUSPECT, attempt, error=DICTATED_ERROR)
    return CallOutcome(
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


def reply_part_to_keep(one: AspectAnswer, tokens: Mapping[str, object] | None) -> dict[str, object]:
    """What the Attempt keeps for the time when the other aspects are answered, too."""
    weight = {} if one.weight is None else {WEIGHT_KEY: one.weight}
    return {"logprobs": {**(tokens or {}), **weight} or None, "error": DICTATED_ERROR if one.is_suspect else ""}


def outcome_of_aspects(
    bout: WorkSession, held: ClaimedCall, answers: Sequence[AspectAnswer], attempt: Mapping[str, object] | None = None
) -> CallOutcome:
    """The next aspect is asked for; after the last one the call is answered, or is suspect where one answer is."""
    if len(answers) < len(bout.spec.output_order):
        return CallOutcome(held, CallState.PENDING, attempt, next_step=AttemptStep.ASK)
    if dictated := [one for one in answers if one.is_suspect]:
        return CallOutcome(
            held, CallState.SUSPECT, attempt, error=f"{bout.aspect_names[dictated[0].aspect]}: {DICTATED_ERROR}"
        )
    joined = join_aspect_replies(bout, {one.aspect: one.read for one in answers})
    return CallOutcome(
        held,
        CallState.ANSWERED,
        attempt,
        choices=joined.choices,
        scores=joined.scores,
        weighted={one.aspect: one.weight for one in answers if one.weight is not None},
        rationale=joined.rationale,
        repaired=any(one.repaired for one in answers),
    )


def add_aspect_to_outcome(bout: WorkSession, held: ClaimedCall, outcome: CallOutcome) -> CallOutcome:
    """With the aspect in its Attempt, and in the error of a call that ends without a verdict."""
    attempt = {**(outcome.attempt or {}), "aspect": held.aspect}
    if outcome.state in (CallState.PENDING, CallState.ANSWERED, CallState.SUSPECT):
        return replace(outcome, attempt=attempt)
    return replace(outcome, attempt=attempt, error=f"{bout.aspect_names[held.aspect]}: {outcome.error}")


# ---- no verdict ----------------------------------------------------------------------------


def outcome_of_unparsed_reply(
    held: ClaimedCall, told: UnparsedReply, attempt: JsonDict, *, mending: bool = False
) -> CallOutcome:
    """A call without a verdict. An unreadable reply is repaired once; no other kind is.

    An empty reply is no answer to be repaired: the same is asked once more.
    """
    attempt |= {"outcome": told.state, "error": told.error}
    if told.state == CallState.UNREADABLE and not attempt["raw"].strip() and not held.came_empty:
        return CallOutcome(held, CallState.PENDING, attempt | {"outcome": AttemptOutcome.RETRY}, error=told.error)
    if held.step == AttemptStep.REPAIR:
        return outcome_of_failed_repair(held, attempt)
    if mending and told.state == CallState.UNREADABLE:
        return CallOutcome(held, CallState.PENDING, attempt, error=told.error, next_step=AttemptStep.REPAIR)
    return CallOutcome(held, told.state, attempt, error=told.error)


def outcome_of_failed_repair(held: ClaimedCall, attempt: dict[str, object]) -> CallOutcome:
    """A repair without a result leaves the call unreadable, for the reason it had."""
    return CallOutcome(held, CallState.UNREADABLE, attempt, error=held.unread)


# ---- no answer -----------------------------------------------------------------------------


def outcome_from_error(
    asker: CallRequester, held: ClaimedCall, request: Request, error: LLMError, latency_ms: int
) -> CallOutcome:
    said = {"http_status": error.http_status, "raw": error.body, "latency_ms": latency_ms, "error": str(error)}
    if error.usage is not None:
        said |= usage_columns(error.usage)
    if isinstance(error, Retry):
        return outcome_of_fault(asker.bout, held, error, said)
    if isinstance(error, RecordOnCall):
        return failed_outcome(held, error.state, said | {"outcome": error.state}, str(error))
    if isinstance(error, FormatRefused):
        return outcome_of_refused_shape(asker, held, error, said)
    if isinstance(error, SettingRefused) and asker.probe.was_refused_setting(error):
        return CallOutcome(held, CallState.PENDING, said | {"outcome": AttemptOutcome.RETRY}, error=str(error))
    return stopped_outcome(held, said, str(error))


def outcome_of_refused_shape(
    asker: CallRequester, held: ClaimedCall, error: FormatRefused, said: JsonDict
) -> CallOutcome:
    """While it is not known what the server takes, the next shape is tried; afterwards nothing can be answered."""
    if not asker.probe.may_change_shape:
        return stopped_outcome(held, said, final_refusal_message(asker.bout, error))
    asker.probe.was_refused(error.shape)
    return CallOutcome(held, CallState.PENDING, said | {"outcome": AttemptOutcome.RETRY}, error=str(error))


def final_refusal_message(bout: WorkSession, error: FormatRefused) -> str:
    if not bout.judge.asked_as:
        return f"{error} Make a judge that is asked in another mode, or in mode auto."
    return f"{error} It took this judge's requests before: make a new judge, which finds out anew what it takes."


def outcome_of_fault(bout: WorkSession, held: ClaimedCall, error: Retry, said: JsonDict) -> CallOutcome:
    """Ask again after a while, or give up: the call, or the run where nobody is there at all."""
    if isinstance(error, RequestTimedOut) and bout.judge.endpoint and is_local_address(bout.judge.endpoint.base_url):
        return outcome_of_timeout(bout, held, endpoint_timeout(bout.judge.endpoint), error, said)
    tried = held.tried - held.timed_out + 1
    if not bout.patience.is_over(tried, busy=error.busy, unreachable=error.unreachable):
        return CallOutcome(
            held,
            CallState.PENDING,
            said | {"outcome": AttemptOutcome.RETRY},
            error=str(error),
            wait_seconds=bout.patience.wait(tried, error.after, random.random()),
            busy=error.busy,
            pause_reason=str(error) if isinstance(error, QuotaExhausted) else "",
            unsent=error.unreachable,
        )
    if error.unreachable:
        return stopped_outcome(held, said, str(error), unsent=True)
    sentence = f"Asked {tried} times without an answer. {error}"
    return failed_outcome(held, CallState.FAILED, said | {"outcome": AttemptOutcome.FAILED}, sentence)


def outcome_of_timeout(
    bout: WorkSession, held: ClaimedCall, seconds: float, error: RequestTimedOut, said: dict[str, object]
) -> CallOutcome:
    """Leave a slow server the time to finish what it may be at work on still, and give up after few tries."""
    tried = held.timed_out + 1
    if not bout.patience.is_over(tried, timed_out=True):
        return CallOutcome(
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
    return failed_outcome(held, CallState.FAILED, said | {"outcome": AttemptOutcome.FAILED}, sentence)


def failed_outcome(held: ClaimedCall, state: CallState, attempt: JsonDict, error: str) -> CallOutcome:
    if held.step == AttemptStep.REPAIR:
        return outcome_of_failed_repair(held, attempt)
    return CallOutcome(held, state, attempt, error=error)


def stopped_outcome(held: ClaimedCall, said: JsonDict, reason: str, *, unsent: bool = False) -> CallOutcome:
    """The call stays pending for a run that can continue."""
    attempt = said | {"outcome": AttemptOutcome.STOPPED}
    return CallOutcome(held, CallState.PENDING, attempt, stop_reason=reason, unsent=unsent)

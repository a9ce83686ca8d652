"""One request for a verdict: what is sent, and the outcome that its answer makes."""

import random
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from http import HTTPStatus
from typing import Final

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

OUTAGE_FAILURES: Final = 4


@dataclass
class CallRequester:
    """How a session sends requests; built once and shared by all its calls."""

    session: WorkSession
    leases: dict[int, uuid.UUID] = field(default_factory=dict)
    probe: CapabilityProbe = field(init=False)
    # The model's token counts so far; None if prompts are not checked.
    truncation_watch: TruncationWatch | None = None
    # Whether the run has got a reply that shows that server and model work; before that few requests are sent.
    has_answered: bool = False
    # Whether the endpoint ever answered, any run: then an outage ends by itself, and the run need not stop.
    knows_endpoint: bool = False
    # Failures in a row that look like an outage; from a handful on nothing more is sent.
    outage_failures: int = 0

    def __post_init__(self) -> None:
        self.probe = CapabilityProbe(self.session, request_shape=settings_unsupported_by_dialect(self.session.judge))

    def room(self, room: int, unstored: int) -> int:
        """How many calls may be claimed: one while the probe is open, few before the first success."""
        if self.is_endpoint_down:
            return 0
        room = self.probe.room(room, unstored)
        limit = settings.PAUSE_AFTER_FAILURES
        return room if self.has_answered or not limit else min(room, limit - unstored)

    def record_outcome(self, outcome: CallOutcome) -> None:
        """Note that the server and model work, if this outcome shows it."""
        if (outcome.attempt or {}).get("http_status") == HTTPStatus.OK:
            self.outage_failures = 0
        if (outcome.attempt or {}).get("outcome") in (AttemptOutcome.ANSWERED, AttemptOutcome.REFUSED):
            self.has_answered = self.knows_endpoint = True

    @property
    def is_endpoint_down(self) -> bool:
        """Whether nothing more is sent in this session."""
        return self.knows_endpoint and self.outage_failures >= OUTAGE_FAILURES

    def build_request(self, call: ClaimedCall) -> Request:
        """The next request of this call's conversation."""
        judge, alone = self.session.judge, asks_verdict_alone(call.step, call.earlier_replies)
        shape = ReplyShape.TEXT if self.is_evaluation(call) else self.probe.shape
        return Request(
            messages=call.messages,
            model=judge.model,
            temperature=judge.temperature,
            max_tokens=judge.max_tokens,
            seed=None if judge.seed is None else judge.seed + call.sample,
            shape=shape,
            schema=self.session.schema(alone=alone, aspect=call.aspect) if shape == ReplyShape.JSON_SCHEMA else None,
            reasoning_effort=judge.reasoning_effort,
            logprobs=judge.logprobs and not self.is_evaluation(call),
            request_shape=self.probe.settings,
            headers=judge.extra_headers,
            body=judge.extra_body,
            context_tokens=self.context_size(call),
        )

    @cached_property
    def dialect(self) -> Dialect:
        return find_adapter(session_server(self.session)).dialect

    def context_size(self, call: ClaimedCall) -> int | None:
        """Tokens of context for the request, for servers that need the number."""
        if self.truncation_watch is None or self.dialect != Dialect.OLLAMA:
            return None
        return self.truncation_watch.context_size(call.messages, self.session.judge.max_tokens)

    def is_evaluation(self, call: ClaimedCall) -> bool:
        """Whether this request is the first of two steps: it has no verdict, and so no shape."""
        return self.session.two_steps and not asks_verdict_alone(call.step, call.earlier_replies)

    def prompt_hash(self, call: ClaimedCall, request: Request) -> str:
        """The SHA-256 of the prompt; the claim could not know it while the probe was open."""
        form = self.session.form(call.step, call.earlier_replies, request.shape, call.aspect)
        return call.prompt_sha256 or hash_prompt(call.messages, form)


def settings_unsupported_by_dialect(judge: Judge) -> RequestShape:
    """Omit the judge's settings that its endpoint's protocol does not have."""
    if judge.endpoint is None:
        return RequestShape()
    lacks = find_adapter(server_for_endpoint(judge.endpoint)).lacks
    return RequestShape(left_out=tuple(name for name in lacks if getattr(judge, name) not in (None, False, "")))


def session_server(session: WorkSession) -> Server:
    endpoint = session.judge.endpoint
    if endpoint is None:
        raise StopRun("This judge has no endpoint.")
    return server_for_endpoint(endpoint)


async def request_verdict(requester: CallRequester, send: SendRequest, call: ClaimedCall) -> CallOutcome:
    """Send one request for one call and return its outcome. No failure of network or server raises."""
    if requester.session.judge.one_aspect_per_call and not call.aspect:
        return outcome_of_aspects(requester.session, call, call.earlier_answers)
    request = requester.build_request(call)
    began = time.monotonic()
    try:
        answer = await send(request)
    except LLMError as error:
        outcome = outcome_from_error(requester, call, error, elapsed_ms(began))
    else:
        outcome = outcome_from_answer(requester, call, request, answer, elapsed_ms(began))
    return add_aspect_to_outcome(requester.session, call, outcome) if call.aspect else outcome


def elapsed_ms(began: float) -> int:
    return round((time.monotonic() - began) * 1000)


def outcome_from_answer(
    requester: CallRequester, call: ClaimedCall, request: Request, answer: Answer, latency_ms: int
) -> CallOutcome:
    """The outcome of a call by its answer. The first verdict shows what the server accepts."""
    reply = RawReply(answer.text, answer.finish_reason, answer.refusal)
    attempt = attempt_from_answer(answer, latency_ms)
    requester.session.learn_of_reply(answer.tokens_out, answer.usage.tokens_reasoning)
    if requester.truncation_watch and (why := requester.truncation_watch.find_cut(request.messages, answer.tokens_in)):
        # A reply to half a prompt never counts, even if it can be parsed.
        cut = make_failed_outcome(call, CallState.TOO_LONG, attempt, why)
        return replace(cut, ceiling=requester.truncation_watch.rates.ceiling)
    if requester.is_evaluation(call):
        return replace(outcome_of_evaluation(call, reply, attempt), prompt_sha256=requester.prompt_hash(call, request))
    outcome = outcome_of_verdict(requester.session, call, reply, answer, attempt)
    has_next_aspect = outcome.next_step == AttemptStep.ASK
    is_read = outcome.state == CallState.ANSWERED or has_next_aspect
    if answer.is_flawed and not is_read and requester.probe.may_change_shape:
        requester.probe.record_refused_shape(request.shape)
        return make_retry_outcome(call, attempt, FLAWED_ERROR)
    capabilities = requester.probe.record_success(request.shape)
    return replace(
        outcome,
        prompt_sha256=requester.prompt_hash(call, request),
        shape_found=capabilities.shape if capabilities else None,
        request_shape_found=capabilities.request_shape if capabilities else None,
    )


FLAWED_ERROR = "The server could not enforce the output format."


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
    """The server's counts as an Attempt has them; ``reported_cost`` and ``tokens_written`` only enter the cost."""
    return {
        "tokens_in": usage.tokens_in,
        "tokens_out": usage.tokens_out,
        "tokens_cached": usage.tokens_cached,
        "tokens_reasoning": usage.tokens_reasoning,
        "tokens_written": usage.tokens_written,
        "reported_cost": usage.cost,
    }


def outcome_of_evaluation(call: ClaimedCall, reply: RawReply, attempt: dict[str, object]) -> CallOutcome:
    """The first of two steps: its text is kept, and the verdict is requested next."""
    if failure := check_evaluation(reply):
        return outcome_of_unparsed_reply(call, failure, attempt)
    attempt["outcome"] = AttemptOutcome.ANSWERED
    return CallOutcome(call, CallState.PENDING, attempt, next_step=AttemptStep.SCORE)


def outcome_of_verdict(
    session: WorkSession, call: ClaimedCall, reply: RawReply, answer: Answer, attempt: JsonDict
) -> CallOutcome:
    spec, before = session.spec_of(call.aspect), call.earlier_replies
    parsed = parse_reply(spec, call.shown, reply, step=call.step, before=before, judged=lambda: call.texts)
    if not isinstance(parsed, ParsedReply):
        repairing = session.judge.repairs and bool(reply.text.strip())
        return outcome_of_unparsed_reply(call, parsed, attempt, repairing=repairing)
    weighed = weigh_verdicts(spec, call.shown, parsed, reply.text, answer.logprobs)
    attempt |= {"outcome": AttemptOutcome.ANSWERED, "logprobs": weighed.tokens or None}
    is_suspect = reply_state(parsed, (*before, reply.text), lambda: call.texts) == CallState.SUSPECT
    if call.aspect:
        weight = weighed.weights.get(call.aspect)
        answer_of_aspect = AspectAnswer(call.aspect, parsed, is_suspect, call.step == AttemptStep.REPAIR, weight)
        # The Attempt keeps these until the other aspects are answered.
        logprobs = {**weighed.tokens, **({} if weight is None else {WEIGHT_KEY: weight})}
        kept = {"logprobs": logprobs or None, "error": DICTATED_ERROR if is_suspect else ""}
        return outcome_of_aspects(session, call, (*call.earlier_answers, answer_of_aspect), attempt | kept)
    if is_suspect:
        return CallOutcome(call, CallState.SUSPECT, attempt, error=DICTATED_ERROR)
    return CallOutcome(
        call,
        CallState.ANSWERED,
        attempt,
        choices=parsed.choices,
        scores=parsed.scores,
        weighted=weighed.weights,
        rationale=parsed.rationale,
        repaired=call.step == AttemptStep.REPAIR,
    )


def outcome_of_aspects(
    session: WorkSession,
    call: ClaimedCall,
    answers: Sequence[AspectAnswer],
    attempt: Mapping[str, object] | None = None,
) -> CallOutcome:
    """Ask for the next aspect; after the last one the call is answered, or suspect if one answer is."""
    if len(answers) < len(session.spec.output_order):
        return CallOutcome(call, CallState.PENDING, attempt, next_step=AttemptStep.ASK)
    if dictated := [answer for answer in answers if answer.is_suspect]:
        error = f"{session.aspect_names[dictated[0].aspect]}: {DICTATED_ERROR}"
        return CallOutcome(call, CallState.SUSPECT, attempt, error=error)
    joined = join_aspect_replies(session, {answer.aspect: answer.read for answer in answers})
    return CallOutcome(
        call,
        CallState.ANSWERED,
        attempt,
        choices=joined.choices,
        scores=joined.scores,
        weighted={answer.aspect: answer.weight for answer in answers if answer.weight is not None},
        rationale=joined.rationale,
        repaired=any(answer.repaired for answer in answers),
    )


def add_aspect_to_outcome(session: WorkSession, call: ClaimedCall, outcome: CallOutcome) -> CallOutcome:
    """The outcome with its aspect in the Attempt, and in the error of a call that ends without a verdict."""
    attempt = {**(outcome.attempt or {}), "aspect": call.aspect}
    if outcome.state in (CallState.PENDING, CallState.ANSWERED, CallState.SUSPECT):
        return replace(outcome, attempt=attempt)
    return replace(outcome, attempt=attempt, error=f"{session.aspect_names[call.aspect]}: {outcome.error}")


def outcome_of_unparsed_reply(
    call: ClaimedCall, failure: UnparsedReply, attempt: JsonDict, *, repairing: bool = False
) -> CallOutcome:
    """A call without a verdict. Unreadable replies are repaired once; empty ones are requested once more."""
    attempt |= {"outcome": failure.state, "error": failure.error}
    if failure.state == CallState.UNREADABLE and not attempt["raw"].strip() and not call.had_empty_reply:
        return make_retry_outcome(call, attempt, failure.error)
    if repairing and failure.state == CallState.UNREADABLE and call.step != AttemptStep.REPAIR:
        return CallOutcome(call, CallState.PENDING, attempt, error=failure.error, next_step=AttemptStep.REPAIR)
    return make_failed_outcome(call, failure.state, attempt, failure.error)


def outcome_from_error(requester: CallRequester, call: ClaimedCall, error: LLMError, latency_ms: int) -> CallOutcome:
    attempt = {"http_status": error.http_status, "raw": error.body, "latency_ms": latency_ms, "error": str(error)}
    if error.usage is not None:
        attempt |= usage_columns(error.usage)
    if isinstance(error, Retry):
        return outcome_of_outage(requester, call, error, attempt) or outcome_of_fault(
            requester.session, call, error, attempt
        )
    if isinstance(error, RecordOnCall):
        return make_failed_outcome(call, error.state, attempt, str(error))
    if isinstance(error, FormatRefused):
        return outcome_of_refused_shape(requester, call, error, attempt)
    if isinstance(error, SettingRefused) and requester.probe.adapt_setting(error):
        return make_retry_outcome(call, attempt, str(error))
    return make_stopped_outcome(call, attempt, str(error))


def outcome_of_refused_shape(
    requester: CallRequester, call: ClaimedCall, error: FormatRefused, attempt: JsonDict
) -> CallOutcome:
    """Try the next shape while the probe is open; otherwise stop the run."""
    if not requester.probe.may_change_shape:
        return make_stopped_outcome(call, attempt, final_refusal_message(requester.session, error))
    requester.probe.record_refused_shape(error.shape)
    return make_retry_outcome(call, attempt, str(error))


def final_refusal_message(session: WorkSession, error: FormatRefused) -> str:
    if not session.judge.reply_shape:
        return f"{error} Create a judge with another output format, or auto."
    return (
        f"{error} The server accepted this judge’s requests before. Create a new judge to detect "
        "its capabilities again."
    )


def outcome_of_outage(
    requester: CallRequester, call: ClaimedCall, error: Retry, attempt: JsonDict
) -> CallOutcome | None:
    """The outcome of a request to an endpoint that is down: the call waits, and the endpoint is set aside.

    None if it does not look so, or not yet. A request that cannot have cost anything leaves no Attempt.
    """
    if not error.is_outage or not requester.knows_endpoint:
        return None
    requester.outage_failures += 1
    tried = call.failed_requests - call.timed_out + 1
    is_over = error.unreachable and requester.session.retry_policy.is_over(tried, unreachable=True)
    if not requester.is_endpoint_down and not is_over:
        return None
    requester.outage_failures = max(requester.outage_failures, OUTAGE_FAILURES)
    is_free = error.unreachable or error.http_status is not None
    made = make_retry_outcome(call, attempt, str(error))
    return replace(made, attempt=None if is_free else made.attempt, outage=str(error), unsent=error.unreachable)


def outcome_of_fault(session: WorkSession, call: ClaimedCall, error: Retry, attempt: JsonDict) -> CallOutcome:
    """Ask again later, or give up: on the call, or on the run if the server is unreachable."""
    endpoint = session.judge.endpoint
    if isinstance(error, RequestTimedOut) and endpoint and is_local_address(endpoint.base_url):
        return outcome_of_timeout(session, call, endpoint_timeout(endpoint), error, attempt)
    tried = call.failed_requests - call.timed_out + 1
    if not session.retry_policy.is_over(tried, busy=error.busy, unreachable=error.unreachable):
        return replace(
            make_retry_outcome(call, attempt, str(error)),
            wait_seconds=session.retry_policy.wait(tried, error.after, random.random()),
            busy=error.busy,
            pause_reason=str(error) if isinstance(error, QuotaExhausted) else "",
            unsent=error.unreachable,
        )
    if error.unreachable:
        return make_stopped_outcome(call, attempt, str(error), unsent=True)
    return make_failed_outcome(call, CallState.FAILED, attempt, f"No answer after {tried} tries. {error}")


def outcome_of_timeout(
    session: WorkSession, call: ClaimedCall, seconds: float, error: RequestTimedOut, attempt: dict[str, object]
) -> CallOutcome:
    """Give a slow server time to finish what it may still be working on; give up after few tries."""
    tried = call.timed_out + 1
    if not session.retry_policy.is_over(tried, timed_out=True):
        wait = session.retry_policy.wait_after_timeout(tried, seconds, random.random())
        return replace(make_retry_outcome(call, attempt, str(error)), wait_seconds=wait)
    sentence = (
        f"No answer within {seconds:g} seconds after {tried} tries. Raise the endpoint’s timeout "
        "or lower its max concurrency."
    )
    return make_failed_outcome(call, CallState.FAILED, attempt, sentence)


def make_retry_outcome(call: ClaimedCall, attempt: JsonDict, error: str) -> CallOutcome:
    """The call stays pending, and its request is repeated."""
    return CallOutcome(call, CallState.PENDING, attempt | {"outcome": AttemptOutcome.RETRY}, error=error)


def make_failed_outcome(call: ClaimedCall, state: CallState, attempt: JsonDict, error: str) -> CallOutcome:
    """The call ends without a verdict; a failed repair leaves it unreadable, with its original error."""
    attempt = {"error": error, **attempt, "outcome": state}
    if call.step == AttemptStep.REPAIR:
        return CallOutcome(call, CallState.UNREADABLE, attempt, error=call.unread)
    return CallOutcome(call, state, attempt, error=error)


def make_stopped_outcome(call: ClaimedCall, attempt: JsonDict, reason: str, *, unsent: bool = False) -> CallOutcome:
    """The call stays pending for a run that can continue."""
    attempt = attempt | {"outcome": AttemptOutcome.STOPPED}
    return CallOutcome(call, CallState.PENDING, attempt, stop_reason=reason, unsent=unsent)

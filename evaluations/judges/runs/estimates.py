"""The estimate of a run before it starts: calls, tokens, money, time, each with its basis."""

import json
import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Final, Unpack

from django.db.models import Count, Sum

from evaluations.domain.choices import ShownOrder
from evaluations.domain.judges import JudgeKind, ReplyShape, RunChannel
from evaluations.domain.money import format_exact_usd
from evaluations.domain.rubrics import RubricSpec
from evaluations.domain.texts import Messages, estimate_tokens_by_rule
from evaluations.judge_prompts.prompt_builder import build_messages
from evaluations.judges.calls.conversations import (
    SUBJECT_RELATIONS,
    JudgedSubject,
    call_subject,
    find_latest_answered_calls,
)
from evaluations.judges.calls.work_session import DEFAULT_IN_FLIGHT
from evaluations.judges.endpoints.prices import TOKENS_PER_PRICE, find_judge_price, list_price_source
from evaluations.judges.runs.selection import (
    ExpectedCalls,
    Selection,
    SelectionOptions,
    count_expected_calls,
    find_calls_to_retry,
    make_selection,
    select_subject_ids,
)
from evaluations.judges.selectors import judge_warnings
from evaluations.llm.list_prices import FULL_PERCENT
from evaluations.models.comparisons import Comparison, Response
from evaluations.models.judges import Judge, Price
from evaluations.models.runs import Attempt
from evaluations.replies.reply_format import build_reply_schema, known_reply_shape, only_aspect, wants_two_steps

# Fewer calls say nothing; more say nothing new.
MIN_CALLS: Final = 20
MAX_CALLS: Final = 64
MAX_JUDGES: Final = 8


@dataclass(frozen=True)
class ValueRange:
    """From ``low`` to ``high``, both included."""

    low: float
    high: float

    def times(self, factor: float) -> "ValueRange":
        return ValueRange(self.low * factor, self.high * factor)

    def plus(self, other: "ValueRange") -> "ValueRange":
        return ValueRange(self.low + other.low, self.high + other.high)


@dataclass(frozen=True)
class CallUsage:
    """The tokens and time of one answered call, all its requests together.

    ``by_rule``: its first prompt in tokens by our rule; with one aspect per call, the sum over its aspects.
    """

    by_rule: float
    tokens_in: int
    tokens_out: int
    requests: int
    seconds: float


@dataclass(frozen=True)
class ObservedUsage:
    """Means of ``calls`` earlier calls; ranges are two standard errors to each side.

    ``ratio``: tokens in as counted by the server, per token by our rule.
    """

    calls: int
    ratio: ValueRange
    tokens_out: ValueRange
    requests: float
    seconds_a_request: float


def observe_usage(judge: Judge, spec: RubricSpec) -> ObservedUsage | None:
    """The usage of calls of this judge's model, its own first; None if there are too few."""
    usages: list[CallUsage] = []
    for other, other_spec in similar_judges(judge, spec):
        if len(usages) < MAX_CALLS:
            usages += recent_call_usage(other, other_spec, MAX_CALLS - len(usages))
    return mean_usage(usages) if len(usages) >= MIN_CALLS else None


def similar_judges(judge: Judge, spec: RubricSpec) -> Iterable[tuple[Judge, RubricSpec]]:
    """This judge, then others of its model at its endpoint that send as many requests per call."""
    yield judge, spec
    others = Judge.objects.filter(endpoint=judge.endpoint_id, model=judge.model).exclude(pk=judge.pk).order_by("-pk")
    for other in others.select_related("rubric_version__rubric")[:MAX_JUDGES]:
        if other.rubric_version is not None:
            other_spec = other.rubric_version.spec()
            if request_pattern(other, other_spec) == request_pattern(judge, spec):
                yield other, other_spec


def request_pattern(judge: Judge, spec: RubricSpec) -> tuple[bool, int]:
    """Whether the judge asks in two steps, and how many aspects have separate requests."""
    return wants_two_steps(spec, judge.mode), len(spec.aspects) if judge.one_aspect_per_call else 0


def recent_call_usage(judge: Judge, spec: RubricSpec, limit: int) -> list[CallUsage]:
    """The judge's latest calls with known token counts. Batches are left out: they say nothing about time."""
    calls = {call.pk: call for call in find_latest_answered_calls(judge, limit)}
    rows = Attempt.objects.filter(call__in=calls, batch__isnull=True).order_by().values_list("call_id")
    sums = rows.annotate(Sum("tokens_in"), Sum("tokens_out"), Count("pk"), Sum("latency_ms"))
    return [
        CallUsage(
            count_prompt_tokens(judge, spec, call_subject(calls[call_id])),
            *(tokens_in, tokens_out, requests, milliseconds / 1000),
        )
        for call_id, tokens_in, tokens_out, requests, milliseconds in sums
        if tokens_in and tokens_out is not None
    ]


def mean_usage(usages: Sequence[CallUsage]) -> ObservedUsage:
    by_rule = fmean(usage.by_rule for usage in usages)
    ratio = fmean(usage.tokens_in for usage in usages) / by_rule
    deviations = [(usage.tokens_in - ratio * usage.by_rule) / by_rule for usage in usages]
    requests = fmean(usage.requests for usage in usages)
    return ObservedUsage(
        calls=len(usages),
        ratio=confidence_range(ratio, deviations),
        tokens_out=mean_range([usage.tokens_out for usage in usages]),
        requests=requests,
        seconds_a_request=fmean(usage.seconds for usage in usages) / requests,
    )


def mean_range(values: Sequence[float]) -> ValueRange:
    return confidence_range(fmean(values or [0]), values)


def confidence_range(mean: float, values: Sequence[float]) -> ValueRange:
    """Two standard errors of these values' mean to each side, and never below zero."""
    error = stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return ValueRange(max(mean - 2 * error, 0.0), mean + 2 * error)


PROMPTS_SAMPLED: Final = 32
MESSAGE_OVERHEAD_TOKENS: Final = 4
# Assumed for models of which too few calls are known.
SERVER_COUNT_RANGE: Final = ValueRange(0.8, 1.25)  # tokens counted by the server, per token by our rule
REPLY_TOKEN_RANGE: Final = ValueRange(100, 1_000)
REASONED_REPLY_TOKEN_RANGE: Final = ValueRange(500, 8_000)  # with a reasoning effort
VERDICT_TOKEN_RANGE: Final = ValueRange(10, 50)  # the second of two steps
SECONDS_PER_REQUEST: Final = ValueRange(2, 10)
SECONDS_PER_BASELINE_CALL: Final = 0.002


@dataclass(frozen=True)
class RunEstimate:
    """The estimate of a run. ``cost``: nano-USD, None if no price is known.

    ``minutes``: None through the Batch API, whose servers promise a day. ``assumptions`` are sentences, and so are
    ``warnings``, which name what the judge will not see of the data.
    """

    expected: ExpectedCalls
    requests: ValueRange
    tokens_in: ValueRange
    tokens_out: ValueRange
    cost: ValueRange | None
    minutes: ValueRange | None
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    @property
    def calls(self) -> int:
        return self.expected.to_ask


@dataclass(frozen=True)
class CallEstimate:
    """The average usage of one call, all its requests together."""

    requests: float
    tokens_in: ValueRange
    tokens_out: ValueRange
    seconds_a_request: ValueRange
    assumptions: tuple[str, ...]


def estimate_run(
    judge: Judge, *, channel: str = RunChannel.LIVE, budget: int | None = None, **options: Unpack[SelectionOptions]
) -> RunEstimate:
    """Estimate a run that starts now with these options, ignoring its budget. No request is sent."""
    selection = make_selection(judge, **options)
    expected = count_expected_calls(selection)
    if judge.kind != JudgeKind.LLM or judge.rubric_version is None:
        return estimate_baseline_run(expected)
    spec = judge.rubric_version.spec()
    prompts = [count_prompt_tokens(judge, spec, subject) for subject in sample_subjects(selection)]
    call = (
        estimate_from_observed(prompts, observed, describe_aspect_requests(judge, spec))
        if (observed := observe_usage(judge, spec))
        else estimate_from_assumptions(judge, spec, prompts)
    )
    price, is_batch, calls = find_judge_price(judge), channel == RunChannel.BATCH, expected.to_ask
    price_basis, time_basis = describe_price_basis(judge, price, is_batch), describe_time_basis(judge, call, is_batch)
    return RunEstimate(
        expected=expected,
        requests=ValueRange(call.requests, call.requests).times(calls),
        tokens_in=call.tokens_in.times(calls),
        tokens_out=call.tokens_out.times(calls),
        cost=estimate_call_cost(price, call, is_batch).times(calls) if price else None,
        minutes=None if is_batch else estimate_call_minutes(judge, call).times(calls),
        assumptions=(*call.assumptions, price_basis, time_basis),
        warnings=tuple(judge_warnings(judge)),
    )


def estimate_baseline_run(expected: ExpectedCalls) -> RunEstimate:
    nothing, minutes = ValueRange(0, 0), expected.to_ask * SECONDS_PER_BASELINE_CALL / 60
    assumptions = ("Rule-based: no requests, no cost, about 500 calls/s.",)
    return RunEstimate(expected, nothing, nothing, nothing, nothing, ValueRange(minutes, minutes), assumptions)


def sample_subjects(selection: Selection) -> Sequence[JudgedSubject]:
    """A sample of the selection, the same every time."""
    if selection.only_states:
        calls = find_calls_to_retry(selection)
        ids = draw_sample(list(calls.order_by("pk").values_list("pk", flat=True)))
        return [call_subject(call) for call in calls.filter(pk__in=ids).select_related(*SUBJECT_RELATIONS)]
    if selection.column == "response":
        ids = draw_sample(list(select_subject_ids(selection)))
        return list(Response.objects.filter(pk__in=ids).select_related("query"))
    # Their order is random: the first of them are a sample.
    ids = list(select_subject_ids(selection)[:PROMPTS_SAMPLED])
    return list(Comparison.objects.filter(pk__in=ids).select_related("query", "response_a", "response_b"))


def draw_sample(ids: Sequence[int]) -> list[int]:
    return random.Random(0).sample(ids, min(PROMPTS_SAMPLED, len(ids)))


def count_prompt_tokens(judge: Judge, spec: RubricSpec, subject: JudgedSubject) -> float:
    """The first prompt in tokens by our rule; with one aspect per call, the sum over all aspects."""
    if judge.one_aspect_per_call:
        return sum(count_first_prompt_tokens(judge, only_aspect(spec, key), subject) for key in spec.output_order)
    return count_first_prompt_tokens(judge, spec, subject)


def count_first_prompt_tokens(judge: Judge, spec: RubricSpec, subject: JudgedSubject) -> float:
    two_steps = wants_two_steps(spec, judge.mode)
    messages = build_messages(spec, subject.judged_texts(), ShownOrder.AS_STORED, judge.fence_key, two_steps=two_steps)
    shape = known_reply_shape(spec, judge.mode, judge.reply_shape) or ReplyShape.JSON_SCHEMA
    with_schema = not two_steps and shape == ReplyShape.JSON_SCHEMA
    return count_message_tokens(messages, json.dumps(build_reply_schema(spec)) if with_schema else "")


def count_message_tokens(messages: Messages, schema: str = "") -> float:
    text = "".join(message["content"] for message in messages) + schema
    return estimate_tokens_by_rule(text) + MESSAGE_OVERHEAD_TOKENS * len(messages)


def estimate_from_observed(
    prompts: Sequence[float], observed: ObservedUsage, more_assumptions: tuple[str, ...] = ()
) -> CallEstimate:
    prompt, ratio, out = mean_range(prompts), observed.ratio, observed.tokens_out
    return CallEstimate(
        requests=observed.requests,
        tokens_in=ValueRange(prompt.low * ratio.low, prompt.high * ratio.high),
        tokens_out=out,
        seconds_a_request=ValueRange(observed.seconds_a_request, observed.seconds_a_request),
        assumptions=(
            (
                f"{describe_prompt_basis(prompts)}, corrected by {observed.calls} earlier calls of this "
                "model, with retries."
            ),
            f"Replies: {out.low:,.0f} to {out.high:,.0f} tokens per call, as in those calls.",
            *more_assumptions,
        ),
    )


def estimate_from_assumptions(judge: Judge, spec: RubricSpec, prompts: Sequence[float]) -> CallEstimate:
    """The estimate for a model of which too few calls are known; assumes that nothing is repeated."""
    prompt = mean_range(prompts)
    first = ValueRange(prompt.low * SERVER_COUNT_RANGE.low, prompt.high * SERVER_COUNT_RANGE.high)
    reply = REASONED_REPLY_TOKEN_RANGE if judge.reasoning_effort else REPLY_TOKEN_RANGE
    if judge.max_tokens is not None:
        reply = ValueRange(min(reply.low, judge.max_tokens), judge.max_tokens)
    two_steps = wants_two_steps(spec, judge.mode)
    # The second request repeats the first and its reply.
    tokens_in = first.times(2).plus(reply) if two_steps else first
    replies = len(spec.aspects) if judge.one_aspect_per_call else 1
    return CallEstimate(
        requests=2 if two_steps else replies,
        tokens_in=tokens_in,
        tokens_out=reply.plus(VERDICT_TOKEN_RANGE) if two_steps else reply.times(replies),
        seconds_a_request=SECONDS_PER_REQUEST,
        assumptions=(
            f"{describe_prompt_basis(prompts)}; the actual count may be 20% lower to 25% higher.",
            f"Assumed, since too few calls of this model are known: replies of {reply.low:,.0f} to {reply.high:,.0f} "
            f"tokens{' and a verdict of at most 50' if two_steps else ''}, and nothing asked twice.",
            *describe_aspect_requests(judge, spec),
        ),
    )


def describe_aspect_requests(judge: Judge, spec: RubricSpec) -> tuple[str, ...]:
    if not judge.one_aspect_per_call:
        return ()
    return (f"One aspect per call: {len(spec.aspects)} requests per call, each with the full prompt.",)


def describe_prompt_basis(prompts: Sequence[float]) -> str:
    return (
        f"Prompts: {fmean(prompts or [0]):,.0f} tokens on average, sampled from {len(prompts)} (4 "
        "ASCII characters or 1 other character per token)"
    )


def estimate_call_cost(price: Price, call: CallEstimate, is_batch: bool) -> ValueRange:
    low = estimate_token_cost(price, call.tokens_in.low, call.tokens_out.low, call.requests)
    high = estimate_token_cost(price, call.tokens_in.high, call.tokens_out.high, call.requests)
    return ValueRange(low, high).times(price.batch_percent / 100) if is_batch else ValueRange(low, high)


def estimate_token_cost(price: Price, tokens_in: float, tokens_out: float, requests: float) -> float:
    """Nano-USD; a list price may be higher for long prompts."""
    line = list_price_source(price)
    in_percent, out_percent = line.percents(int(tokens_in / requests)) if line else (FULL_PERCENT, FULL_PERCENT)
    whole = tokens_in * price.tokens_in * in_percent + tokens_out * price.tokens_out * out_percent
    return whole / (TOKENS_PER_PRICE * FULL_PERCENT)


def describe_price_basis(judge: Judge, price: Price | None, is_batch: bool) -> str:
    if price is None:
        return f"No price is set for “{judge.model}” at “{judge.endpoint}”. Set it to see the cost."
    part = f", at {price.batch_percent}% with the Batch API" if is_batch else ""
    origin = f"List price, {price.source}. " if price.source else ""
    price_in, price_out = format_exact_usd(price.tokens_in), format_exact_usd(price.tokens_out)
    return f"{origin}USD {price_in} in and {price_out} out per million tokens{part}; prompt caching ignored."


def estimate_call_minutes(judge: Judge, call: CallEstimate) -> ValueRange:
    """Minutes per call under the endpoint's limits, by the one that is reached first."""
    return ValueRange(
        find_slowest_limit(judge, call, call.seconds_a_request.low, call.tokens_in.low + call.tokens_out.low),
        find_slowest_limit(judge, call, call.seconds_a_request.high, call.tokens_in.high + call.tokens_out.high),
    )


def find_slowest_limit(judge: Judge, call: CallEstimate, seconds: float, tokens: float) -> float:
    endpoint = judge.endpoint
    assert endpoint is not None  # a model has one
    minutes = [call.requests * seconds / 60 / (endpoint.max_in_flight or DEFAULT_IN_FLIGHT)]
    if endpoint.requests_per_minute:
        minutes.append(call.requests / endpoint.requests_per_minute)
    if endpoint.tokens_per_minute:
        minutes.append(tokens / endpoint.tokens_per_minute)
    return max(minutes)


def describe_time_basis(judge: Judge, call: CallEstimate, is_batch: bool) -> str:
    if is_batch:
        return "Batch API: answers within a day."
    endpoint, seconds = judge.endpoint, call.seconds_a_request
    assert endpoint is not None
    limits = (("requests", endpoint.requests_per_minute), ("tokens", endpoint.tokens_per_minute))
    per_minute = "".join(f", up to {limit:,} {unit}/min" for unit, limit in limits if limit)
    is_observed = seconds.low == seconds.high
    duration = f"{seconds.low:.1f} s each, as measured" if is_observed else "2 to 10 s each (assumed)"
    at_once = endpoint.max_in_flight or f"{DEFAULT_IN_FLIGHT} (assumed)"
    return f"Time: {at_once} requests in parallel{per_minute}, {duration}."

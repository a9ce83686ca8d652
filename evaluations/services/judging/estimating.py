"""What a run would take before it starts: calls, tokens, money and time, each with what it rests on."""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, Unpack

from evaluations.domain import Channel, JudgeKind, Messages, ReplyShape, RubricSpec, Shown, exact_usd, tokens_by_rule
from evaluations.judge.prompting import messages_for
from evaluations.judge.replying import only, reply_schema
from evaluations.models import Comparison, Judge, Price, Response
from evaluations.outside.list_prices import FULL
from evaluations.services.judging.judging import is_two_step, shape_of, texts_of, warnings_of_judge
from evaluations.services.judging.observing import (
    SUBJECTS,
    Observed,
    Span,
    Subject,
    around,
    observed,
    subject_of,
)
from evaluations.services.judging.pricing import PER_TOKENS, line_behind, price_for
from evaluations.services.judging.selecting import (
    Expected,
    Selection,
    SelectionOptions,
    calls_to_retry,
    expected_of,
    selection,
    subject_ids,
)
from evaluations.services.judging.working import IN_FLIGHT

PROMPTS_SAMPLED: Final = 32
TOKENS_AROUND_A_MESSAGE: Final = 4
# Assumed where too little of this model was seen yet.
SERVER_COUNTS: Final = Span(0.8, 1.25)  # tokens, for each by our rule
REPLY_TOKENS: Final = Span(100, 1_000)
REASONED_REPLY_TOKENS: Final = Span(500, 8_000)  # with a reasoning effort
VERDICT_TOKENS: Final = Span(10, 50)  # the second of two steps
SECONDS_A_REQUEST: Final = Span(2, 10)
SECONDS_A_RULING: Final = 0.002


@dataclass(frozen=True)
class Estimate:
    """What a run would take. ``cost`` is in nano-USD, None where no price is known.

    ``minutes`` is None through the Batch API, whose servers promise a day. ``assumptions`` are sentences, and
    so are ``warnings``: what the judge will not see of the data.
    """

    expected: Expected
    requests: Span
    tokens_in: Span
    tokens_out: Span
    cost: Span | None
    minutes: Span | None
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    @property
    def calls(self) -> int:
        return self.expected.to_ask


@dataclass(frozen=True)
class OneCall:
    """What one call takes on average, all its requests together."""

    requests: float
    tokens_in: Span
    tokens_out: Span
    seconds_a_request: Span
    assumptions: tuple[str, ...]


def estimate(judge: Judge, *, channel: str = Channel.LIVE, **options: Unpack[SelectionOptions]) -> Estimate:
    """What a run with these options would take if it started now. Nothing is asked."""
    wanted = selection(judge, **options)
    ahead = expected_of(wanted)
    if judge.kind != JudgeKind.LLM or judge.rubric_version is None:
        return by_rule(ahead)
    spec = judge.rubric_version.spec()
    prompts = [prompt_tokens(judge, spec, subject) for subject in sampled(wanted)]
    one = (
        from_observed(prompts, seen, said_of_aspects(judge, spec))
        if (seen := observed(judge, spec, prompt_tokens))
        else assumed(judge, spec, prompts)
    )
    price, is_batch = price_for(judge), channel == Channel.BATCH
    return Estimate(
        expected=ahead,
        requests=Span(one.requests, one.requests).times(ahead.to_ask),
        tokens_in=one.tokens_in.times(ahead.to_ask),
        tokens_out=one.tokens_out.times(ahead.to_ask),
        cost=cost_of_one(price, one, is_batch).times(ahead.to_ask) if price else None,
        minutes=None if is_batch else minutes_of_one(judge, one).times(ahead.to_ask),
        assumptions=(*one.assumptions, said_of_price(judge, price, is_batch), said_of_time(judge, one, is_batch)),
        warnings=tuple(warnings_of_judge(judge)),
    )


def by_rule(ahead: Expected) -> Estimate:
    nothing, minutes = Span(0, 0), ahead.to_ask * SECONDS_A_RULING / 60
    said = ("A rule makes no requests and costs nothing; it answers about 500 calls a second.",)
    return Estimate(ahead, nothing, nothing, nothing, nothing, Span(minutes, minutes), said)


# ---- prompts -------------------------------------------------------------------------------


def sampled(wanted: Selection) -> Sequence[Subject]:
    """Some of what is selected, the same ones every time."""
    if wanted.only_states:
        calls = calls_to_retry(wanted)
        some = drawn(list(calls.order_by("pk").values_list("pk", flat=True)))
        subjects = map(subject_of, calls.filter(pk__in=some).select_related(*SUBJECTS))
        return [subject for subject in subjects if subject]
    if wanted.column == "response":
        some = drawn(list(subject_ids(wanted)))
        return list(Response.objects.filter(pk__in=some).select_related("query"))
    # Their order was drawn at random: the first of them are a sample.
    some = list(subject_ids(wanted)[:PROMPTS_SAMPLED])
    return list(Comparison.objects.filter(pk__in=some).select_related("query", "response_a", "response_b"))


def drawn(ids: Sequence[int]) -> list[int]:
    return random.Random(0).sample(ids, min(PROMPTS_SAMPLED, len(ids)))


def prompt_tokens(judge: Judge, spec: RubricSpec, subject: Subject) -> float:
    """The first prompt about this in tokens by our rule; with one aspect per call, the prompts of all aspects."""
    if judge.one_aspect_per_call:
        return sum(tokens_of_first(judge, only(spec, key), subject) for key in spec.output_order)
    return tokens_of_first(judge, spec, subject)


def tokens_of_first(judge: Judge, spec: RubricSpec, subject: Subject) -> float:
    two_steps = is_two_step(judge, spec)
    messages = messages_for(spec, texts_of(subject), Shown.AS_STORED, judge.fence_key, two_steps=two_steps)
    with_schema = not two_steps and shape_of(judge, spec) in (None, ReplyShape.JSON_SCHEMA)
    return tokens_of_prompt(messages, json.dumps(reply_schema(spec)) if with_schema else "")


def tokens_of_prompt(messages: Messages, schema: str = "") -> float:
    text = "".join(message["content"] for message in messages) + schema
    return tokens_by_rule(text) + TOKENS_AROUND_A_MESSAGE * len(messages)


# ---- one call ------------------------------------------------------------------------------


def from_observed(prompts: Sequence[float], seen: Observed, said: tuple[str, ...] = ()) -> OneCall:
    prompt = around(fmean(prompts or [0]), prompts)
    return OneCall(
        requests=seen.requests,
        tokens_in=Span(prompt.low * seen.ratio.low, prompt.high * seen.ratio.high),
        tokens_out=seen.tokens_out,
        seconds_a_request=Span(seen.seconds_a_request, seen.seconds_a_request),
        assumptions=(
            f"{said_of_prompts(prompts)}, corrected by what the server counted for {seen.calls} earlier calls "
            "of this model, repairs and retries included.",
            f"Replies as in those calls: {seen.tokens_out.low:,.0f} to {seen.tokens_out.high:,.0f} tokens a call.",
            *said,
        ),
    )


def assumed(judge: Judge, spec: RubricSpec, prompts: Sequence[float]) -> OneCall:
    """Before anything was seen of the model; nothing is taken to be asked twice."""
    prompt = around(fmean(prompts or [0]), prompts)
    first = Span(prompt.low * SERVER_COUNTS.low, prompt.high * SERVER_COUNTS.high)
    reply = REASONED_REPLY_TOKENS if judge.reasoning_effort else REPLY_TOKENS
    if judge.max_tokens is not None:
        reply = Span(min(reply.low, judge.max_tokens), judge.max_tokens)
    two_steps = is_two_step(judge, spec)
    # The second request holds the first and its reply once more.
    tokens_in = first.times(2).plus(reply) if two_steps else first
    replies = len(spec.aspects) if judge.one_aspect_per_call else 1
    return OneCall(
        requests=2 if two_steps else replies,
        tokens_in=tokens_in,
        tokens_out=reply.plus(VERDICT_TOKENS) if two_steps else reply.times(replies),
        seconds_a_request=SECONDS_A_REQUEST,
        assumptions=(
            f"{said_of_prompts(prompts)}; the server may count from 20 % fewer to 25 % more.",
            f"Assumed, since too few calls of this model are known: replies of {reply.low:,.0f} to {reply.high:,.0f} "
            f"tokens{' and a verdict of at most 50' if two_steps else ''}, and nothing asked twice.",
            *said_of_aspects(judge, spec),
        ),
    )


def said_of_aspects(judge: Judge, spec: RubricSpec) -> tuple[str, ...]:
    if not judge.one_aspect_per_call:
        return ()
    return (f"One aspect per call: {len(spec.aspects)} requests for each call, each with the whole material.",)


def said_of_prompts(prompts: Sequence[float]) -> str:
    return (
        f"Prompts: {fmean(prompts or [0]):,.0f} tokens on average, from {len(prompts)} of them, at four characters "
        "of ASCII or one other character a token"
    )


# ---- money and time ------------------------------------------------------------------------


def cost_of_one(price: Price, one: OneCall, is_batch: bool) -> Span:
    low = usual_cost(price, one.tokens_in.low, one.tokens_out.low, one.requests)
    high = usual_cost(price, one.tokens_in.high, one.tokens_out.high, one.requests)
    return Span(low, high).times(price.batch_percent / 100) if is_batch else Span(low, high)


def usual_cost(price: Price, tokens_in: float, tokens_out: float, requests: float) -> float:
    """In nano-USD; a list price may be higher for long prompts."""
    line = line_behind(price)
    in_percent, out_percent = line.percents(int(tokens_in / requests)) if line else (FULL, FULL)
    whole = tokens_in * price.tokens_in * in_percent + tokens_out * price.tokens_out * out_percent
    return whole / (PER_TOKENS * FULL)


def said_of_price(judge: Judge, price: Price | None, is_batch: bool) -> str:
    if price is None:
        return f"No price is known for “{judge.model}” at “{judge.endpoint}”: set it to see what this costs."
    part = f", of which the Batch API takes {price.batch_percent}%" if is_batch else ""
    origin = f"List price, {price.source}. " if price.source else ""
    return origin + (
        f"A million tokens cost USD {exact_usd(price.tokens_in)} in and {exact_usd(price.tokens_out)} out{part}; "
        "cached ones are counted as others."
    )


def minutes_of_one(judge: Judge, one: OneCall) -> Span:
    """At the present limits of the endpoint, whichever is met first."""
    return Span(
        slowest(judge, one, one.seconds_a_request.low, one.tokens_in.low + one.tokens_out.low),
        slowest(judge, one, one.seconds_a_request.high, one.tokens_in.high + one.tokens_out.high),
    )


def slowest(judge: Judge, one: OneCall, seconds: float, tokens: float) -> float:
    endpoint = judge.endpoint
    assert endpoint is not None  # a model has one
    minutes = [one.requests * seconds / 60 / (endpoint.max_in_flight or IN_FLIGHT)]
    if endpoint.requests_per_minute:
        minutes.append(one.requests / endpoint.requests_per_minute)
    if endpoint.tokens_per_minute:
        minutes.append(tokens / endpoint.tokens_per_minute)
    return max(minutes)


def said_of_time(judge: Judge, one: OneCall, is_batch: bool) -> str:
    if is_batch:
        return "Servers of the Batch API promise an answer within a day."
    endpoint, seconds = judge.endpoint, one.seconds_a_request
    assert endpoint is not None
    limits = (("requests", endpoint.requests_per_minute), ("tokens", endpoint.tokens_per_minute))
    minutely = "".join(f", at most {most:,} {what} a minute" for what, most in limits if most)
    took = (
        f"{seconds.low:.1f} seconds each, as before" if seconds.low == seconds.high else "assumed 2 to 10 seconds each"
    )
    at_once = f"{endpoint.max_in_flight} requests" if endpoint.max_in_flight else f"an assumed {IN_FLIGHT} requests"
    return f"Time: {at_once} at once{minutely}, {took}."

"""Who is to judge: endpoints, judges, and what exactly a judge would be sent."""

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast
from urllib.parse import urlsplit

from django.db import transaction
from django.db.models import QuerySet

from evaluations.domain import (
    AskingMode,
    AttemptStep,
    Dialect,
    InputRefused,
    JudgeKind,
    Message,
    PairTexts,
    RaterKind,
    ReplyShape,
    ResponseTexts,
    RubricKind,
    RubricOrigin,
    RubricSpec,
    SentAs,
    Shown,
)
from evaluations.judge.checking import refuse_unusable
from evaluations.judge.prompting import later_messages, messages_for
from evaluations.judge.replying import asked_in_order, only, reply_schema, score_schema, wants_text, wants_two_steps
from evaluations.judge.rules import DEFAULT_SEEDS, RULES, SAYS_TIE
from evaluations.judge.templating import is_template, left_out_of
from evaluations.models import Comparison, Endpoint, Evaluation, Judge, Query, Rater, Response, RubricVersion, User
from evaluations.outside.addresses import checked_base_url, checked_key_variable, refuse_key
from evaluations.outside.extras import (
    PRICED_APART,
    Given,
    checked_body,
    checked_headers,
    checked_query,
    variables_in,
)
from evaluations.services.judging.pricing import keep_list_price
from evaluations.services.preparing.preparing import freeze
from evaluations.services.recording import record

MOST_IN_FLIGHT: Final = 1000
MOST_A_MINUTE: Final = 2_000_000_000
LONGEST_TIMEOUT_SECONDS: Final = 86_400
MODES: Final = tuple(AskingMode)
# As servers that know one call it; which of them a model takes, its server says.
REASONING_EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh")
FURTHEST_SEED: Final = 2**62  # each sample adds one
# Columns of an endpoint that say how it is asked, beside its limits.
WAYS_OF_ASKING: Final = ("dialect", "timeout_seconds", "extra_headers", "extra_query", "extra_body")
ITS_EVALUATION: Final = "(the evaluation that it wrote)"
# What a judge does not see, by the field that a pasted prompt has no placeholder for.
NOT_SEEN: Final = {
    "query": "The prompt has no placeholder for the query. The judge will not see the conversation that the responses "
    "answer.",
    "context": "The prompt has no placeholder for the context. Queries in this evaluation have one, and the judge will "
    "not see it.",
    "reference": "The prompt has no placeholder for the reference answer. Queries in this evaluation have one, and the "
    "judge will not see it.",
}


@transaction.atomic
def create_endpoint(
    *,
    name: str,
    base_url: str,
    key_variable: str = "",
    max_in_flight: int | None = None,
    requests_per_minute: int | None = None,
    tokens_per_minute: int | None = None,
    dialect: str = "",
    timeout_seconds: int | None = None,
    extra_headers: Given = "",
    extra_query: Given = "",
    extra_body: Given = "",
    user: User | None,
) -> Endpoint:
    """A server that judges may be asked on. For site administrators and commands alone."""
    if not name.strip():
        raise InputRefused("An endpoint needs a name.")
    refuse_key(name, "The name")
    if Endpoint.objects.filter(name=name.strip()).exists():
        raise InputRefused(f"There is an endpoint “{name.strip()}” already: choose another name.")
    endpoint = Endpoint.objects.create(
        name=name.strip(),
        base_url=checked_base_url(base_url),
        key_variable=checked_key_variable(key_variable),
        max_in_flight=checked_limit(max_in_flight),
        requests_per_minute=checked_limit(requests_per_minute, "Requests a minute", MOST_A_MINUTE),
        tokens_per_minute=checked_limit(tokens_per_minute, "Tokens a minute", MOST_A_MINUTE),
        dialect=checked_dialect(dialect),
        timeout_seconds=checked_timeout(timeout_seconds),
        extra_headers=checked_headers(extra_headers),
        extra_query=checked_query(extra_query),
        extra_body=checked_body(extra_body),
    )
    after = {"name": endpoint.name, "base_url": endpoint.base_url, "key_variable": endpoint.key_variable}
    added = {name: getattr(endpoint, name) for name in WAYS_OF_ASKING if getattr(endpoint, name)}
    record("created", endpoint, user=user, evaluation=None, after=after | added)
    return endpoint


def checked_dialect(dialect: str) -> str:
    """The name of a dialect; empty where it is left to the endpoint's address and handshake."""
    if dialect not in ("", *Dialect):
        raise InputRefused(f"Provider: one of {', '.join(Dialect)}, or none for automatic.")
    return str(dialect)


def checked_timeout(seconds: int | None) -> int | None:
    return checked_limit(seconds, "Timeout in seconds", LONGEST_TIMEOUT_SECONDS)


def checked_limit(limit: int | None, what: str = "Requests in flight", most: int = MOST_IN_FLIGHT) -> int | None:
    if limit is not None and not 1 <= limit <= most:
        raise InputRefused(f"{what}: a whole number from 1 to {most}.")
    return limit


@transaction.atomic
def find_or_create_endpoint(
    *,
    base_url: str,
    key_variable: str,
    max_in_flight: int | None,
    timeout_seconds: int | None = None,
    dialect: str = "",
) -> Endpoint:
    """The endpoint of this address and key name; a limit, time-out or dialect that is given becomes its own."""
    address, variable = checked_base_url(base_url), checked_key_variable(key_variable)
    endpoint = Endpoint.objects.filter(base_url=address, key_variable=variable).order_by("pk").first()
    if endpoint is None:
        return create_endpoint(
            name=unused_endpoint_name(urlsplit(address).netloc),
            base_url=address,
            key_variable=variable,
            max_in_flight=max_in_flight,
            timeout_seconds=timeout_seconds,
            dialect=dialect,
            user=None,
        )
    given = {
        "max_in_flight": checked_limit(max_in_flight),
        "timeout_seconds": checked_timeout(timeout_seconds),
        "dialect": checked_dialect(dialect) or None,
    }
    after = {name: value for name, value in given.items() if value not in (None, getattr(endpoint, name))}
    if after:
        before = {name: getattr(endpoint, name) for name in after}
        for name, value in after.items():
            setattr(endpoint, name, value)
        endpoint.save(update_fields=list(after))
        record("changed", endpoint, user=None, evaluation=None, before=before, after=after)
    return endpoint


def endpoints_at(base_url: str) -> "QuerySet[Endpoint]":
    """The endpoints of this address, one for each key name."""
    return Endpoint.objects.filter(base_url=checked_base_url(base_url)).order_by("pk")


def unused_endpoint_name(host: str) -> str:
    taken = set(Endpoint.objects.filter(name__startswith=host).values_list("name", flat=True))
    return next(name for name in (host, *(f"{host} {n}" for n in range(2, len(taken) + 3))) if name not in taken)


@transaction.atomic
def create_judge(
    evaluation: Evaluation,
    *,
    name: str,
    model: str,
    version: RubricVersion | None,
    endpoint: Endpoint | None = None,
    mode: str = AskingMode.AUTO,
    temperature: float | None = None,
    max_tokens: int | None = None,
    seed: int | None = None,
    reasoning_effort: str = "",
    logprobs: bool = False,
    repairs: bool = True,
    extra_headers: Given = "",
    extra_body: Given = "",
    one_aspect_per_call: bool = False,
    user: User | None,
) -> Judge:
    """A judge and the rater that it is here. Without an endpoint it is a rule, not a model."""
    if version is None or version.rubric.evaluation_id != evaluation.pk:
        raise InputRefused("A judge needs a rubric version of this evaluation.")
    refuse_unusable(version.spec())
    judge = Judge(
        evaluation=evaluation,
        name=name.strip(),
        kind=JudgeKind.RULE if endpoint is None else JudgeKind.LLM,
        rubric_version=version,
        endpoint=endpoint,
        model=model.strip(),
        mode=mode,
        temperature=temperature,
        max_tokens=max_tokens,
        seed=DEFAULT_SEEDS.get(model.strip()) if seed is None and endpoint is None else seed,
        reasoning_effort=reasoning_effort.strip(),
        logprobs=logprobs,
        repairs=repairs,
        extra_headers=checked_headers(extra_headers),
        extra_body=checked_body(extra_body),
        one_aspect_per_call=one_aspect_per_call,
        fence_key=fence_key_of(evaluation),
    )
    refuse_unusable_judge(judge)
    refuse_unusable_extras(judge)
    refuse_one_aspect_per_call(judge, version.spec())
    # With a single aspect it changes nothing, and must not make another judge.
    judge.one_aspect_per_call = one_aspect_per_call and len(version.spec().aspects) > 1
    judge.fingerprint = fingerprint(judge)
    refuse_repeated_judge(judge)
    judge.save()
    freeze(version)
    keep_list_price(endpoint, judge.model, user=user)
    Rater.objects.create(evaluation=evaluation, kind=RaterKind.JUDGE, name=judge.name, judge=judge)
    record("created", judge, user=user, evaluation=evaluation, after=settings_of(judge) | {"name": judge.name})
    return judge


def refuse_unusable_judge(judge: Judge) -> None:
    if not judge.name:
        raise InputRefused("A judge needs a name.")
    refuse_key(judge.name, "The name")
    refuse_key(judge.model, "The model")
    if judge.kind == JudgeKind.RULE:
        refuse_unusable_rule(judge)
    if not judge.model:
        raise InputRefused("A judge needs the name of a model.")
    if judge.kind == JudgeKind.LLM and is_without_words(judge.rubric_version):
        raise InputRefused(
            "This rubric only names the aspects that an import spoke of. A model needs instructions: choose another."
        )
    if judge.mode not in MODES:
        raise InputRefused(f"A judge is asked in one of these modes: {', '.join(MODES)}.")
    if judge.temperature is not None and not 0 <= judge.temperature <= 2:
        raise InputRefused("Temperature: a number from 0 to 2.")
    if judge.max_tokens is not None and not 1 <= judge.max_tokens <= 1_000_000:
        raise InputRefused("Tokens of a reply: a whole number from 1 to 1000000.")
    if judge.seed is not None and abs(judge.seed) > FURTHEST_SEED:
        raise InputRefused(f"Seed: a whole number from -{FURTHEST_SEED} to {FURTHEST_SEED}.")
    if judge.reasoning_effort not in ("", *REASONING_EFFORTS):
        raise InputRefused(
            f"Reasoning effort: one of {', '.join(REASONING_EFFORTS)}. Leave it out where the model has none."
        )


def refuse_unusable_extras(judge: Judge) -> None:
    """Site administrators decide which keys a server is sent, and what its tokens cost: both belong to the endpoint."""
    endpoint, extras = judge.endpoint, {"headers": judge.extra_headers, "body": judge.extra_body}
    if endpoint is None:
        if judge.extra_headers or judge.extra_body:
            raise InputRefused("Extra headers and body fields are for models: a rule makes no requests.")
        return
    sent_there = {"headers": endpoint.extra_headers, "query": endpoint.extra_query, "body": endpoint.extra_body}
    unknown = sorted(variables_in(extras) - variables_in(sent_there) - {endpoint.key_variable})
    if unknown:
        raise InputRefused(
            f"“{endpoint}” is not sent {unknown[0]} yet. A site administrator can add it to the endpoint's extra "
            "headers; a judge then needs no variable of its own."
        )
    priced_apart = sorted(set(PRICED_APART) & set(judge.extra_body))
    if priced_apart:
        raise InputRefused(
            f"Extra body fields: leave out “{priced_apart[0]}”, it changes what a token costs. A site administrator "
            "can add an endpoint with this field and with prices of its own."
        )


def refuse_one_aspect_per_call(judge: Judge, spec: RubricSpec) -> None:
    """What would still ask for all aspects at once, or for none."""
    if not judge.one_aspect_per_call:
        return
    if judge.kind == JudgeKind.RULE:
        raise InputRefused("One aspect per call is for models: a rule makes no requests.")
    if is_two_step(judge, spec):
        raise InputRefused(
            "One aspect per call does not work in two steps: choose another mode and a rubric that is answered in "
            "one step."
        )
    if is_template(spec.placeholders) and len(spec.aspects) > 1:
        raise InputRefused(
            "One aspect per call does not work with a pasted prompt, which asks for all its aspects by itself: choose "
            "another rubric, or leave the option out."
        )


def refuse_unusable_rule(judge: Judge) -> None:
    if judge.model not in RULES:
        raise InputRefused(
            f"“{judge.model}” needs an endpoint to ask. Without one there are only the rules {', '.join(RULES)}: "
            "baselines that are no LLM."
        )
    assert judge.rubric_version is not None
    spec = judge.rubric_version.spec()
    if spec.kind != RubricKind.PAIRWISE:
        raise InputRefused("A rule compares two responses: choose a pairwise rubric for it.")
    without_tie = [aspect.name for aspect in spec.aspects if not aspect.offers_tie]
    if judge.model in SAYS_TIE and without_tie:
        raise InputRefused(
            f"The rule {judge.model} says tie where it cannot tell, and this rubric offers none for "
            f"{', '.join(without_tie)}: choose another rubric."
        )


def is_without_words(version: RubricVersion | None) -> bool:
    return version is not None and version.rubric.origin == RubricOrigin.IMPORTED


def refuse_repeated_judge(judge: Judge) -> None:
    others = Judge.objects.filter(evaluation=judge.evaluation)
    if others.filter(name=judge.name).exists():
        raise InputRefused(f"There is a judge “{judge.name}” already: choose another name.")
    same = others.filter(fingerprint=judge.fingerprint).first()
    if same is not None:
        raise InputRefused(f"“{same.name}” is this judge already, setting for setting: run that one.")


def settings_of(judge: Judge) -> dict[str, Any]:
    """All that makes a judge what it is; a change of any of it makes another judge.

    What came later is left out where it is as it was for every judge before: their fingerprints stay.
    """
    later = {"reasoning_effort": "", "logprobs": False, "repairs": True, "extra_headers": {}, "extra_body": {}}
    later |= {"one_aspect_per_call": False}
    return {
        "kind": str(judge.kind),
        "rubric": judge.rubric_version.sha256 if judge.rubric_version else None,
        "base_url": judge.endpoint.base_url if judge.endpoint else None,
        "model": judge.model,
        "mode": str(judge.mode),
        "temperature": judge.temperature,
        "max_tokens": judge.max_tokens,
        "seed": judge.seed,
    } | {name: getattr(judge, name) for name, before in later.items() if getattr(judge, name) != before}


def fingerprint(judge: Judge) -> str:
    return hashlib.sha256(json.dumps(settings_of(judge), sort_keys=True).encode()).hexdigest()


def fence_key_of(evaluation: Evaluation) -> str:
    """One key for all judges of an evaluation, so that equal settings send equal prompts.

    Each judge keeps it, frozen with what else it is. Drawn under the evaluation's lock: two first
    judges that are made at once have the same.
    """
    Evaluation.objects.select_for_update().get(pk=evaluation.pk)
    known = Judge.objects.filter(evaluation=evaluation).exclude(fence_key="").order_by("pk").first()
    return known.fence_key if known else secrets.token_hex(32)


@dataclass(frozen=True)
class Preview:
    """What is sent in one request: its messages, and the schema or shape asked for beside them.

    Of two steps, ``later`` is the second: what it adds to the conversation. Its verdict is asked
    for as JSON by a schema until its server was found to take less. ``aspects``: the names of those that have a request
    of their own, in the order in which they are asked for; this is the first of these requests.
    """

    messages: Sequence[Message]
    schema: str
    shape: ReplyShape
    later: "Preview | None" = None
    aspects: Sequence[str] = ()


def preview(judge: Judge, subject: Comparison | Response, shown: Shown) -> Preview | None:
    """The exact messages about this in this order; None for a judge that is sent nothing."""
    return previewed_for(judge, texts_of(subject), shown)


def previewed_for(judge: Judge, texts: PairTexts | ResponseTexts, shown: Shown) -> Preview | None:
    """The same about any texts of the judge's kind."""
    if judge.kind != JudgeKind.LLM or judge.rubric_version is None:
        return None
    spec = judge.rubric_version.spec()
    shape, two_steps = shape_of(judge, spec) or ReplyShape.JSON_SCHEMA, is_two_step(judge, spec)
    if judge.one_aspect_per_call:
        first = previewed(only(spec, spec.output_order[0]), texts, shown, judge.fence_key, shape, two_steps=False)
        return replace(first, aspects=[aspect.name for aspect in asked_in_order(spec)])
    return previewed(spec, texts, shown, judge.fence_key, shape, two_steps=two_steps)


def previewed(
    spec: RubricSpec,
    texts: PairTexts | ResponseTexts,
    shown: Shown,
    fence_key: str,
    shape: ReplyShape,
    *,
    two_steps: bool,
) -> Preview:
    """The requests for a rubric that no judge needs to have yet."""
    first = messages_for(spec, texts, shown, fence_key, two_steps=two_steps)
    if not two_steps:
        return Preview(first, schema_shown(reply_schema(spec), shape), shape)
    added = later_messages(spec, first, [ITS_EVALUATION], AttemptStep.SCORE)[len(first) :]
    later = Preview(added, schema_shown(score_schema(spec), shape), shape)
    return Preview(first, "", ReplyShape.TEXT, later)


def schema_shown(schema: Mapping[str, Any], shape: ReplyShape) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) if shape == ReplyShape.JSON_SCHEMA else ""


def warnings_of_judge(judge: Judge) -> list[str]:
    """What this judge will not see of the evaluation's data; nothing for a judge that is sent nothing."""
    if judge.kind != JudgeKind.LLM or judge.rubric_version is None:
        return []
    return left_out_warnings(judge.evaluation, judge.rubric_version.spec())


def left_out_warnings(evaluation: Evaluation, spec: RubricSpec) -> list[str]:
    """A sentence for every text that the evaluation's queries have and a pasted prompt has no placeholder for."""
    queries = Query.objects.filter(evaluation=evaluation).order_by()
    holding = {
        "query": queries.exclude(messages=[]),
        "context": queries.filter(context__gt=""),
        "reference": queries.filter(reference__gt=""),
    }
    return [NOT_SEEN[field] for field in left_out_of(spec.placeholders) if holding[field].exists()]


def is_two_step(judge: Judge, spec: RubricSpec) -> bool:
    """Whether an evaluation in free text comes first, and its verdict in a second request."""
    return judge.mode == AskingMode.TWO_STEP or wants_two_steps(spec)


def shape_of(judge: Judge, spec: RubricSpec) -> ReplyShape | None:
    """What holds this judge's verdicts to their form; None until that was found out about its server."""
    if wants_text(spec):
        return ReplyShape.TEXT
    if judge.asked_as:
        return ReplyShape(judge.asked_as)
    return ReplyShape(judge.mode) if judge.mode in set(ReplyShape) else None


def sent_as_in_words(judge: Judge) -> list[str]:
    """How its requests are written so that the model takes them, as far as that is out of the ordinary."""
    found = SentAs.from_json(judge.sent_as)
    words = [LEFT_OUT_IN_WORDS.get(name, f"Without {name}: the model refuses it.") for name in found.left_out]
    if found.limit_name:
        words.append(f"The limit of tokens as {found.limit_name}.")
    if found.system_folded:
        words.append("System text in the first user message: the model has no system role.")
    return words


LEFT_OUT_IN_WORDS: Final = {
    "top_logprobs": "The 5 likeliest tokens instead of 20.",
    "native": "Through the OpenAI-compatible API: the server has no other.",
}


def texts_of(subject: Comparison | Response) -> PairTexts | ResponseTexts:
    """What a judge of either is asked about."""
    return pair_texts(subject) if isinstance(subject, Comparison) else response_texts(subject)


def pair_texts(comparison: Comparison) -> PairTexts:
    query = comparison.query
    return PairTexts(
        messages=cast("list[Message]", query.messages),
        response_a=cast("list[Message]", comparison.response_a.messages),
        response_b=cast("list[Message]", comparison.response_b.messages),
        context=query.context,
        reference=query.reference,
    )


def response_texts(response: Response) -> ResponseTexts:
    query = response.query
    return ResponseTexts(
        messages=cast("list[Message]", query.messages),
        response=cast("list[Message]", response.messages),
        context=query.context,
        reference=query.reference,
    )

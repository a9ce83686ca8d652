"""The state that a worker holds while it works on one run."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Final

from django.conf import settings
from django.db.models import Max

from evaluations.domain.choices import Choice, ShownOrder
from evaluations.domain.json_values import JsonDict, JsonMapping
from evaluations.domain.judges import AttemptStep, CallState, ReplyShape, RequestShape, RunChannel, RunState
from evaluations.domain.rubrics import RubricSpec
from evaluations.domain.texts import Message, PairTexts, ResponseTexts
from evaluations.judge_prompts.prompt_builder import build_system_text
from evaluations.judges.endpoints.prices import find_judge_price, max_reply_tokens
from evaluations.llm.retry_policy import RetryPolicy
from evaluations.models.judges import Judge, Price, Rater
from evaluations.models.runs import Attempt, Run
from evaluations.replies.reply_format import (
    asks_verdict_alone,
    build_reply_schema,
    build_score_schema,
    known_reply_shape,
    only_aspect,
    wants_two_steps,
)
from evaluations.replies.reply_parser import ParsedReply

LEASE_TIME: Final = timedelta(seconds=settings.LEASE_SECONDS)
# So many replies of a reasoning model must have kept to the limit before a budget relies on it; until then a
# budget reserves this multiple of the limit per request.
RELIABLE_AFTER_REQUESTS: Final = 32
UNRELIABLE_FACTOR: Final = 8
DEFAULT_IN_FLIGHT: Final = 32  # assumed by estimates for endpoints without a limit


@dataclass
class WorkSession:
    """One worker's session on one run, with what all its calls need."""

    run: Run
    judge: Judge
    spec: RubricSpec
    rater_id: int
    aspect_ids: Mapping[str, int]
    aspect_places: Mapping[str, int]
    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)
    price: Price | None = None
    # Whether the endpoint ever answered; None until somebody asks.
    knows_endpoint: bool | None = None
    # Whether a budget of the run, of its evaluation at the endpoint or of the day bounds what it spends.
    has_budget: bool = False
    # Nano-USD of this run's most expensive request so far: no less is reserved for the next one.
    most_expensive: int = 0
    # Of this run's replies: whether none exceeded the judge's token limit, how many kept to it, and whether the
    # model reasons, so that its replies vary a lot.
    keeps_limit: bool = True
    replies_within: int = 0
    reasons: bool = False
    schemas: dict[tuple[bool, str], JsonDict] = field(default_factory=dict)
    # Rubrics and system texts of requests by aspect; by "" if a request asks about all of them.
    specs: dict[str, RubricSpec] = field(default_factory=dict)
    systems: dict[str, str] = field(default_factory=dict)
    settings_sums: dict[ReplyShape, str] = field(default_factory=dict)

    def keep_budget(self, *, exists: bool) -> None:
        """Take note that there is a budget now, or none any longer; one needs to know what requests have cost."""
        if exists and not self.has_budget:
            vars(self).update(observe_budget_limits(self.run))
        self.has_budget = exists

    def spec_of(self, aspect: str) -> RubricSpec:
        """The rubric as a request uses it: one aspect, or all of them if ``aspect`` is empty."""
        if aspect not in self.specs:
            self.specs[aspect] = only_aspect(self.spec, aspect) if aspect else self.spec
        return self.specs[aspect]

    def system_of(self, aspect: str) -> str:
        """The system text, the same for every call."""
        if aspect not in self.systems:
            spec = self.spec_of(aspect)
            self.systems[aspect] = build_system_text(spec, self.judge.fence_key, two_steps=self.two_steps)
        return self.systems[aspect]

    @cached_property
    def aspect_names(self) -> Mapping[str, str]:
        return {aspect.key: aspect.name for aspect in self.spec.aspects}

    @property
    def two_steps(self) -> bool:
        return wants_two_steps(self.spec, self.judge.mode)

    @property
    def shape(self) -> ReplyShape | None:
        """The reply shape; None until the probe has found it."""
        return known_reply_shape(self.spec, self.judge.mode, self.judge.reply_shape)

    @property
    def is_probing(self) -> bool:
        """Whether the reply shape or the request settings still have to be found."""
        return self.shape is None or (self.judge.request_shape is None and not self.judge.reply_shape)

    def schema(self, *, alone: bool, aspect: str) -> JsonDict:
        """The strict schema of a reply, built once; ``alone``: of the second of two steps."""
        if (alone, aspect) not in self.schemas:
            spec = self.spec_of(aspect)
            self.schemas[alone, aspect] = build_score_schema(spec) if alone else build_reply_schema(spec)
        return self.schemas[alone, aspect]

    def largest_schema(self, aspect: str) -> JsonDict | None:
        """The longest schema that may be sent with the messages; None if none is sent."""
        has_no_schema = self.shape in (ReplyShape.TEXT, ReplyShape.JSON_OBJECT)
        return None if has_no_schema else self.schema(alone=False, aspect=aspect)

    @property
    def batched(self) -> bool:
        """Whether calls go out in batch files; while the probe is open they do not."""
        return self.run.channel == RunChannel.BATCH and not self.is_probing

    @property
    def bound_of_reply(self) -> int | None:
        """The most tokens that a reply can have; a limit that the model once exceeded bounds nothing."""
        longest = self.price.most_tokens_out if self.price else None
        if not self.keeps_limit:
            return longest
        bound = max_reply_tokens(self.judge, self.price)
        if bound is None or not self.reasons or self.replies_within >= RELIABLE_AFTER_REQUESTS:
            return bound
        # Whether the limit includes reasoning shows only when the model reasons for long.
        return min(UNRELIABLE_FACTOR * bound, longest or UNRELIABLE_FACTOR * bound)

    def learn_of_reply(self, tokens_out: int | None, tokens_reasoning: int | None) -> None:
        """Learn from a reply's token counts what the budget must reserve for the next claims."""
        self.reasons = self.reasons or bool(tokens_reasoning)
        if tokens_out is not None and self.judge.max_tokens is not None and tokens_out > self.judge.max_tokens:
            self.keeps_limit = False
        elif tokens_out is not None:
            self.replies_within += 1

    def form(self, step: AttemptStep, earlier_replies: Sequence[str], shape: ReplyShape, aspect: str) -> JsonDict | str:
        """The schema that is requested along with the messages, or the name of the shape that replaces it."""
        alone = asks_verdict_alone(step, earlier_replies)
        if self.two_steps and not alone:
            return ReplyShape.TEXT.value
        return self.schema(alone=alone, aspect=aspect) if shape == ReplyShape.JSON_SCHEMA else shape.value


@dataclass(frozen=True)
class AspectAnswer:
    """The answer on one aspect, for judges that ask for each aspect in a separate request."""

    aspect: str
    read: ParsedReply
    is_suspect: bool = False
    repaired: bool = False
    weight: float | None = None


ClaimKey = tuple[int, uuid.UUID]  # call and lease


@dataclass(frozen=True)
class ClaimedCall:
    """A call that this worker may send while its lease lasts, with all that will be sent.

    ``failed_requests``: this run's requests that failed. ``earlier_replies``: the model's replies in the earlier steps
    of this conversation, oldest first. ``messages``: the conversation as it is sent. ``prompt_sha256``: "" while the
    probe is open. ``reserved``: nano-USD reserved for this request. ``aspect``: the one requested, for judges that ask
    for one at a time; ``earlier_answers``: the aspects answered before.
    """

    call_id: int
    comparison_id: int | None
    lease: uuid.UUID
    shown: ShownOrder
    failed_requests: int
    texts: PairTexts | ResponseTexts
    response_id: int | None = None
    sample: int = 0
    step: AttemptStep = AttemptStep.ASK
    earlier_replies: tuple[str, ...] = ()
    unread: str = ""  # why the last of them was unreadable, if the step repairs it
    had_empty_reply: bool = False  # whether an earlier reply of this run to this call had no text
    messages: Sequence[Message] = ()
    prompt_sha256: str = ""
    reuse_key: str = ""
    reserved: int = 0
    timed_out: int = 0  # of the failed requests, at a slow server that may still work on them
    aspect: str = ""
    earlier_answers: tuple[AspectAnswer, ...] = ()

    @property
    def claim_key(self) -> ClaimKey:
        return self.call_id, self.lease

    @property
    def is_first(self) -> bool:
        """Whether this is the call's first request, by which equal calls are recognised."""
        return self.step == AttemptStep.ASK and not self.earlier_answers


@dataclass(frozen=True)
class CallOutcome:
    """The outcome of a call: its new state, with the Attempt to write (None for a rule).

    ``state`` pending: ask again after ``wait_seconds``, for ``next_step`` (None: the same step). ``stop_reason`` ends
    the run. ``busy`` pauses the whole endpoint, with a ``pause_reason`` for long pauses. ``shape_found`` and
    ``request_shape_found`` are frozen on the judge. ``unsent``: no server took the request, so it cost nothing.
    ``ceiling``: the token count at which the server cuts every prompt. ``outage``: why the endpoint is set aside.
    """

    call: ClaimedCall
    state: CallState
    attempt: JsonMapping | None = None
    error: str = ""
    choices: Mapping[str, Choice] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)
    weighted: Mapping[str, float] = field(default_factory=dict)
    rationale: str = ""
    prompt_sha256: str = ""
    next_step: AttemptStep | None = None
    repaired: bool = False
    wait_seconds: float = 0.0
    stop_reason: str = ""
    busy: bool = False
    pause_reason: str = ""
    shape_found: ReplyShape | None = None
    request_shape_found: RequestShape | None = None
    unsent: bool = False
    ceiling: int | None = None
    outage: str = ""


def begin_work_session(run_id: int, retry_policy: RetryPolicy) -> WorkSession | None:
    """A session on this run; None if it is not running."""
    related = ("judge__rubric_version__rubric", "judge__endpoint", "judge__evaluation")
    run = Run.objects.select_related(*related).filter(pk=run_id, state=RunState.RUNNING).first()
    return make_work_session(run, retry_policy) if run and run.judge.rubric_version else None


def make_work_session(run: Run, retry_policy: RetryPolicy) -> WorkSession:
    version = run.judge.rubric_version
    assert version is not None  # only imported judges have none, and these have no runs
    aspects = list(version.rubric_aspects.values_list("aspect__key", "aspect_id", "aspect__slot"))
    return WorkSession(
        run=run,
        judge=run.judge,
        spec=version.spec(),
        rater_id=Rater.objects.values_list("pk", flat=True).get(judge=run.judge),
        aspect_ids={key: pk for key, pk, _ in aspects},
        aspect_places={key: place for key, _, place in aspects},
        retry_policy=retry_policy,
        price=find_judge_price(run.judge),
    )


def observe_budget_limits(run: Run) -> JsonDict:
    """Record the most expensive request so far for the budget, and whether the server keeps to the token limit."""
    attempts = Attempt.objects.filter(run=run)
    limit = run.judge.max_tokens
    return {
        "most_expensive": attempts.aggregate(Max("cost"))["cost__max"] or 0,
        "keeps_limit": limit is None or not attempts.filter(tokens_out__gt=limit).exists(),
        "replies_within": attempts.filter(tokens_out__isnull=False)[:RELIABLE_AFTER_REQUESTS].count(),
        "reasons": attempts.filter(tokens_reasoning__gt=0).exists(),
    }

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
from evaluations.judges.selectors import is_two_step_judge, judge_reply_shape
from evaluations.llm.retry_policy import RetryPolicy
from evaluations.models.judges import Judge, Price, Rater
from evaluations.models.runs import Attempt, Run
from evaluations.replies.reply_format import asks_verdict_alone, build_reply_schema, build_score_schema, only_aspect
from evaluations.replies.reply_parser import ParsedReply

LEASE_TIME: Final = timedelta(seconds=settings.LEASE_SECONDS)
# So many replies of a model that reasons must have kept to the limit before a budget relies on it; until then it
# keeps back so many times the limit for each request.
RELIABLE_AFTER_REQUESTS: Final = 32
UNRELIABLE_FACTOR: Final = 8
DEFAULT_IN_FLIGHT: Final = 32  # what an estimate assumes at an endpoint that names no limit


@dataclass
class WorkSession:
    """One worker's session on one run, with what every call of it needs."""

    run: Run
    judge: Judge
    spec: RubricSpec
    rater_id: int
    aspect_ids: Mapping[str, int]
    aspect_places: Mapping[str, int]
    patience: RetryPolicy = field(default_factory=RetryPolicy)
    price: Price | None = None
    # Nano-USD of the dearest request of this run so far: no less is kept back for the next one.
    dearest: int = 0
    # Of this run's replies: whether none went over the judge's limit of tokens, how many kept to it, and whether the
    # model reasons, so that its replies vary by much.
    keeps_limit: bool = True
    replies_within: int = 0
    reasons: bool = False
    schemas: dict[tuple[bool, str], JsonDict] = field(default_factory=dict)
    # What one request asks, by the aspect that it is about; by "" where it is about all of them.
    specs: dict[str, RubricSpec] = field(default_factory=dict)
    systems: dict[str, str] = field(default_factory=dict)
    settings_sums: dict[ReplyShape, str] = field(default_factory=dict)

    def spec_of(self, aspect: str) -> RubricSpec:
        """The rubric as a request asks it: with one aspect, or with all of them where ``aspect`` is empty."""
        if aspect not in self.specs:
            self.specs[aspect] = only_aspect(self.spec, aspect) if aspect else self.spec
        return self.specs[aspect]

    def system_of(self, aspect: str) -> str:
        """The system text, the same in every call."""
        if aspect not in self.systems:
            spec = self.spec_of(aspect)
            self.systems[aspect] = build_system_text(spec, self.judge.fence_key, two_steps=self.two_steps)
        return self.systems[aspect]

    @cached_property
    def aspect_names(self) -> Mapping[str, str]:
        return {aspect.key: aspect.name for aspect in self.spec.aspects}

    @property
    def two_steps(self) -> bool:
        """Whether an evaluation in free text comes first, and its verdict in a second request."""
        return is_two_step_judge(self.judge, self.spec)

    @property
    def shape(self) -> ReplyShape | None:
        """What holds a verdict to its form; None until that was found out about the server."""
        return judge_reply_shape(self.judge, self.spec)

    @property
    def is_probing(self) -> bool:
        """Whether it is not known yet what the judge's server and model take: neither the shape nor the settings."""
        return self.shape is None or (self.judge.sent_as is None and not self.judge.asked_as)

    def schema(self, *, alone: bool, aspect: str = "") -> JsonDict:
        """The strict schema of a reply, built once; ``alone``: of the second of two steps."""
        if (alone, aspect) not in self.schemas:
            spec = self.spec_of(aspect)
            self.schemas[alone, aspect] = build_score_schema(spec) if alone else build_reply_schema(spec)
        return self.schemas[alone, aspect]

    def largest_schema(self, aspect: str = "") -> JsonDict | None:
        """The longest that may be sent beside the messages."""
        in_words = self.shape in (ReplyShape.TEXT, ReplyShape.JSON_OBJECT)
        return None if in_words else self.schema(alone=False, aspect=aspect)

    @property
    def batched(self) -> bool:
        """Whether its calls go out in files; what server and model take shows in one call that does not."""
        return self.run.channel == RunChannel.BATCH and not self.is_probing

    @property
    def bound_of_reply(self) -> int | None:
        """The most tokens that a reply can have; a limit that the model went over bounds nothing."""
        longest = self.price.most_tokens_out if self.price else None
        if not self.keeps_limit:
            return longest
        bound = max_reply_tokens(self.judge, self.price)
        if bound is None or not self.reasons or self.replies_within >= RELIABLE_AFTER_REQUESTS:
            return bound
        # Whether the limit holds for the reasoning, too, shows only when the model reasons for long.
        return min(UNRELIABLE_FACTOR * bound, longest or UNRELIABLE_FACTOR * bound)

    def learn_of_reply(self, tokens_out: int | None, tokens_reasoning: int | None) -> None:
        """What a reply tells about those to come, for what a budget must keep back: before any more is claimed."""
        self.reasons = self.reasons or bool(tokens_reasoning)
        if tokens_out is not None and self.judge.max_tokens is not None and tokens_out > self.judge.max_tokens:
            self.keeps_limit = False
        elif tokens_out is not None:
            self.replies_within += 1

    def form(self, step: AttemptStep, before: Sequence[str], shape: ReplyShape, aspect: str = "") -> JsonDict | str:
        """What is asked for beside the messages: a schema, or the word for what takes its place."""
        alone = asks_verdict_alone(step, before)
        if self.two_steps and not alone:
            return ReplyShape.TEXT.value
        return self.schema(alone=alone, aspect=aspect) if shape == ReplyShape.JSON_SCHEMA else shape.value


@dataclass(frozen=True)
class AspectAnswer:
    """What a stored reply says on one aspect, of a call that asks for each in a request of its own."""

    aspect: str
    read: ParsedReply
    is_suspect: bool = False
    repaired: bool = False
    weight: float | None = None


@dataclass(frozen=True)
class ClaimedCall:
    """A call that this worker may send while its lease lasts, with all that is to be sent.

    ``tried``: this run's requests that met a fault. ``before``: what the model said in the earlier
    steps of this conversation, oldest first, where ``step`` is not the first. ``messages`` is the
    conversation as it is sent; ``prompt_sha256`` is empty while it is not known what the server takes.
    ``reserved``: nano-USD that the run keeps back for this request. ``aspect``: the one that this request asks for,
    of a judge that asks for one at a time; ``earlier``: those that are answered.
    """

    call_id: int
    comparison_id: int | None
    lease: uuid.UUID
    shown: ShownOrder
    tried: int
    texts: PairTexts | ResponseTexts
    response_id: int | None = None
    sample: int = 0
    step: AttemptStep = AttemptStep.ASK
    before: tuple[str, ...] = ()
    unread: str = ""  # why the last of them could not be read, where the step repairs it
    came_empty: bool = False  # whether an earlier reply of this run to this call had no text
    messages: Sequence[Message] = ()
    prompt_sha256: str = ""
    reuse_key: str = ""
    reserved: int = 0
    timed_out: int = 0  # of those that were tried: at a slow server, which may be at work on them still
    aspect: str = ""
    earlier: tuple[AspectAnswer, ...] = ()

    @property
    def is_first(self) -> bool:
        """Whether this is the request that the call begins with: the one by which equal questions are known."""
        return self.step == AttemptStep.ASK and not self.earlier


@dataclass(frozen=True)
class CallOutcome:
    """The outcome of a call: its new state, with the Attempt to write (None for a rule).

    ``state`` pending means ask again, after ``wait_seconds``, for ``next_step``: None is the same
    step once more. A ``stop_reason`` ends the run; ``busy`` makes the whole endpoint wait, for a ``pause_reason``
    where it is for longer than a moment; ``shape_found`` and ``sent_as_found`` are frozen on the judge. ``unsent``:
    nobody was there to take the request, so that it cannot have cost anything. ``ceiling``: the count of tokens at
    which the server cuts every prompt.
    """

    held: ClaimedCall
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
    sent_as_found: RequestShape | None = None
    unsent: bool = False
    ceiling: int | None = None


def begin_work_session(run_id: int, patience: RetryPolicy) -> WorkSession | None:
    """What a worker needs to work this run; None where it is not at work."""
    related = ("judge__rubric_version__rubric", "judge__endpoint", "judge__evaluation")
    run = Run.objects.select_related(*related).filter(pk=run_id, state=RunState.RUNNING).first()
    return make_work_session(run, patience) if run and run.judge.rubric_version else None


def make_work_session(run: Run, patience: RetryPolicy) -> WorkSession:
    version = run.judge.rubric_version
    assert version is not None  # only imported judges have none, and they have no runs
    aspects = list(version.asked.values_list("aspect__key", "aspect_id", "aspect__place"))
    return WorkSession(
        run=run,
        judge=run.judge,
        spec=version.spec(),
        rater_id=Rater.objects.values_list("pk", flat=True).get(judge=run.judge),
        aspect_ids={key: pk for key, pk, _ in aspects},
        aspect_places={key: place for key, _, place in aspects},
        patience=patience,
        price=find_judge_price(run.judge),
        **(observe_budget_limits(run) if run.budget is not None else {}),
    )


def observe_budget_limits(run: Run) -> JsonDict:
    """What a budget must take into account: the dearest request so far, and whether the limit of tokens holds."""
    attempts = Attempt.objects.filter(run=run)
    limit = run.judge.max_tokens
    return {
        "dearest": attempts.aggregate(Max("cost"))["cost__max"] or 0,
        "keeps_limit": limit is None or not attempts.filter(tokens_out__gt=limit).exists(),
        "replies_within": attempts.filter(tokens_out__isnull=False)[:RELIABLE_AFTER_REQUESTS].count(),
        "reasons": attempts.filter(tokens_reasoning__gt=0).exists(),
    }

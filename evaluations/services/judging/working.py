"""A worker's stretch of work on one run: what it needs, what it holds, and what became of it."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from django.conf import settings

from evaluations.domain import (
    AttemptStep,
    CallState,
    Choice,
    PairTexts,
    ReplyShape,
    ResponseTexts,
    RubricSpec,
    RunState,
    Shown,
)
from evaluations.judge.retrying import Patience
from evaluations.models import Judge, Rater, Run
from evaluations.services.pacing import ROWS_AT_ONCE

LEASE: Final = timedelta(seconds=settings.LEASE_SECONDS)
IN_FLIGHT: Final = 32  # at an endpoint that names no limit


@dataclass
class Bout:
    """One worker's stretch of work on one run, with what every call of it needs."""

    run: Run
    judge: Judge
    spec: RubricSpec
    rater_id: int
    aspect_ids: Mapping[str, int]
    patience: Patience = field(default_factory=Patience)

    @property
    def in_flight(self) -> int:
        endpoint = self.judge.endpoint
        return endpoint.max_in_flight or IN_FLIGHT if endpoint else ROWS_AT_ONCE


@dataclass(frozen=True)
class Held:
    """A call that is ours to ask while its lease lasts.

    ``tried``: this run's requests that met a fault. ``before``: what the model said in the earlier
    steps of this conversation, oldest first, where ``step`` is not the first.
    """

    call_id: int
    comparison_id: int | None
    lease: uuid.UUID
    shown: Shown
    tried: int
    texts: PairTexts | ResponseTexts
    response_id: int | None = None
    sample: int = 0
    step: AttemptStep = AttemptStep.ASK
    before: tuple[str, ...] = ()
    unread: str = ""  # why the last of them could not be read, where the step repairs it


@dataclass(frozen=True)
class Outcome:
    """What became of a call: its state now, and the Attempt to write (None for a rule).

    ``state`` pending means ask again, after ``wait_seconds``, for ``next_step``. A ``stop_reason``
    ends the run; ``busy`` makes the whole endpoint wait; ``shape_found`` was found out about the
    server, and is frozen on the judge.
    """

    held: Held
    state: CallState
    attempt: Mapping[str, Any] | None = None
    error: str = ""
    choices: Mapping[str, Choice] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)
    weighted: Mapping[str, float] = field(default_factory=dict)
    rationale: str = ""
    prompt_sha256: str = ""
    next_step: AttemptStep = AttemptStep.ASK
    repaired: bool = False
    wait_seconds: float = 0.0
    stop_reason: str = ""
    busy: bool = False
    shape_found: ReplyShape | None = None


def begin(run_id: int, patience: Patience) -> Bout | None:
    """What a worker needs to work this run; None where it is not at work."""
    related = ("judge__rubric_version__rubric", "judge__endpoint", "judge__evaluation")
    run = Run.objects.select_related(*related).filter(pk=run_id, state=RunState.RUNNING).first()
    if run is None or run.judge.rubric_version is None:
        return None
    version = run.judge.rubric_version
    return Bout(
        run=run,
        judge=run.judge,
        spec=version.spec(),
        rater_id=Rater.objects.values_list("pk", flat=True).get(judge=run.judge),
        aspect_ids=dict(version.asked.values_list("aspect__key", "aspect_id")),
        patience=patience,
    )

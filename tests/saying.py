"""What raters say, for tests: reviews, judges' answers and imported votes."""

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from evaluations.domain import (
    AspectSpec,
    CallState,
    Choice,
    ImportState,
    PickedBy,
    ReviewState,
    RubricKind,
    RubricOrigin,
    RubricSpec,
    RunState,
    Shown,
    Stage,
)
from evaluations.judge.builtin import SIX_ASPECT
from evaluations.models import (
    Aspect,
    Ballot,
    Call,
    Comparison,
    Endpoint,
    Evaluation,
    Import,
    Judge,
    Rater,
    Response,
    Review,
    RubricVersion,
    Run,
    Score,
    Verdict,
)
from evaluations.services.balloting import keep_review, recount
from evaluations.services.preparing.preparing import add_rubric, change_evaluation, next_version

Choices = Mapping[str, str]

# The same choice on every aspect of the built-in rubric.
SIX = [aspect.key for aspect in SIX_ASPECT.aspects]
ALL_A = dict.fromkeys(SIX, Choice.A)
ALL_B = dict.fromkeys(SIX, Choice.B)
ALL_TIE = dict.fromkeys(SIX, Choice.TIE)


def aspect_of(evaluation: Evaluation, key: str) -> Aspect:
    return Aspect.objects.get_or_create(evaluation=evaluation, key=key, defaults={"name": key.title()})[0]


def person_says(
    rater: Rater,
    comparison: Comparison,
    first: Choices,
    *,
    final: Choices | None = None,
    confirmed: bool = True,
    notes: Mapping[str, str] | None = None,
    **columns: Any,
) -> Review:
    """A review: the first choices, and where it is confirmed the final ones (the same if not given)."""
    version = comparison.evaluation.review_rubric
    assert version is not None
    review = Review.objects.create(
        rater=rater,
        comparison=comparison,
        state=ReviewState.FINAL if confirmed else ReviewState.FIRST,
        **{"rubric_version": version, "shown": Shown.AS_STORED, "picked_by": PickedBy.RANDOM, **columns},
    )
    stages = [(Stage.FIRST, first), (Stage.FINAL, {**first, **(final or {})})]
    verdicts = [
        Verdict.objects.create(
            rater=rater,
            comparison=comparison,
            aspect=aspect_of(comparison.evaluation, key),
            stage=stage,
            shown=review.shown,
            choice=choice,
            review=review,
            note=(notes or {}).get(key, "") if stage == Stage.FINAL else "",
        )
        for stage, choices in (stages if confirmed else stages[:1])
        for key, choice in choices.items()
    ]
    keep_review(review, verdicts)  # those of others stay: they may be writing in the same moment
    return review


def ballot(comparison: Comparison) -> None:
    """Keep the ballots of verdicts that were written past the services."""
    Ballot.all_rows.filter(comparison=comparison).delete()
    Ballot.all_rows.bulk_create(recount([comparison]))


def another_version(evaluation: Evaluation) -> RubricVersion:
    """The rubric that people are asked by from now on: the same one with other definitions."""
    version = evaluation.review_rubric
    assert version is not None
    spec = version.spec()
    aspects = tuple(replace(one, definition=f"{one.definition} {version.number + 1}") for one in spec.aspects)
    following = next_version(version.rubric, replace(spec, aspects=aspects), user=None)
    change_evaluation(evaluation, {"review_rubric": following}, user=None)
    return following


def make_judge(evaluation: Evaluation, name: str = "longest", *, kind: str = "rule") -> Rater:
    """A judge with its rater, a rule where nothing else is said; the same one for the same name."""
    its = {"model": "longest"} if kind == "rule" else {"model": "model", "endpoint": nowhere()}
    judge, _ = Judge.objects.get_or_create(
        evaluation=evaluation,
        name=name,
        defaults={"kind": kind, "rubric_version": evaluation.review_rubric, "fingerprint": uuid.uuid4().hex, **its},
    )
    return Rater.objects.get_or_create(evaluation=evaluation, kind="judge", name=name, judge=judge)[0]


def nowhere() -> Endpoint:
    return Endpoint.objects.get_or_create(name="nowhere", defaults={"base_url": "http://127.0.0.1:9/v1"})[0]


def judge_says(
    comparison: Comparison, *, judge: str = "longest", kind: str = "rule", rationale: str = "", **orders: Choices | str
) -> Rater:
    """One call for each order named: with choices it is answered, with a word its state is that word."""
    rater = make_judge(comparison.evaluation, judge, kind=kind)
    assert rater.judge is not None
    run = run_of(rater.judge)
    for shown, said in orders.items():
        call = Call.objects.create(
            judge=rater.judge,
            run=run,
            comparison=comparison,
            shown=shown,
            state=said if isinstance(said, str) else CallState.ANSWERED,
            rationale=rationale and f"{rationale} ({shown})",
        )
        for key, choice in {} if isinstance(said, str) else said.items():
            Verdict.objects.create(
                rater=rater,
                comparison=comparison,
                aspect=aspect_of(comparison.evaluation, key),
                shown=shown,
                choice=choice,
                call=call,
            )
    ballot(comparison)
    return rater


def run_of(judge: Judge) -> Run:
    """The run that every call belongs to which came in no file."""
    defaults = {"evaluation": judge.evaluation, "batch": uuid.uuid4(), "state": RunState.DONE}
    return Run.objects.filter(judge=judge).first() or Run.objects.create(judge=judge, **defaults)


def make_scorer(evaluation: Evaluation, name: str = "scorer", *, margin: float = 0.0, aspect: str = "overall") -> Rater:
    """A judge of single responses, on a scale from 1 to 5, with its rater; the same one for the same name."""
    known = Rater.objects.filter(evaluation=evaluation, kind="judge", name=name).first()
    if known is not None:
        return known
    asked = AspectSpec(aspect, aspect.title(), "", scale_min=1, scale_max=5, scale_step=1, tie_margin=margin)
    spec = RubricSpec(RubricKind.POINTWISE, "Rate.", (asked,), (aspect,))
    version = add_rubric(evaluation, name=f"rubric of {name}", spec=spec, origin=RubricOrigin.OWN, user=None)
    judge = Judge.objects.create(
        evaluation=evaluation,
        name=name,
        kind="llm",
        model="model",
        rubric_version=version,
        endpoint=nowhere(),
        fingerprint=uuid.uuid4().hex,
    )
    return Rater.objects.create(evaluation=evaluation, kind="judge", name=name, judge=judge)


def scorer_says(
    rater: Rater, response: Response, value: float | str, *, aspect: str = "overall", **columns: Any
) -> Call:
    """A score, or where it is a word a call in that state."""
    assert rater.judge is not None
    state = value if isinstance(value, str) else CallState.ANSWERED
    call = Call.objects.create(judge=rater.judge, response=response, state=state, **columns)
    if not isinstance(value, str):
        about = aspect_of(rater.evaluation, aspect)
        Score.objects.create(rater=rater, response=response, aspect=about, value=value, sample=call.sample, call=call)
    return call


def person_scores(
    rater: Rater,
    comparison: Comparison,
    first: Mapping[str, tuple[float, float]],
    *,
    final: Mapping[str, tuple[float, float]] | None = None,
    **columns: Any,
) -> Review:
    """A confirmed review by a rubric from 1 to 5 with a margin of a half: aspect → the scores of A and of B."""
    version = RubricVersion.objects.filter(rubric__evaluation=rater.evaluation, rubric__name="scores").first()
    if version is None:
        asked = tuple(AspectSpec(key, key.title(), "", scale_min=1, scale_max=5, tie_margin=0.5) for key in first)
        spec = RubricSpec(RubricKind.POINTWISE, "Rate.", asked, tuple(first))
        version = add_rubric(rater.evaluation, name="scores", spec=spec, origin=RubricOrigin.OWN, user=None)
    review = person_says(rater, comparison, {}, **{"rubric_version": version, **columns})
    for stage, given in ((Stage.FIRST, first), (Stage.FINAL, {**first, **(final or {})})):
        for key, (a, b) in given.items():
            for response, value in ((comparison.response_a, a), (comparison.response_b, b)):
                Score.objects.create(
                    rater=rater,
                    response=response,
                    aspect=aspect_of(rater.evaluation, key),
                    value=value,
                    stage=stage,
                    review=review,
                )
    return review


def make_import(evaluation: Evaluation, state: str = ImportState.DONE) -> Import:
    return Import.objects.create(
        evaluation=evaluation, file_name="votes.jsonl", sha256="0" * 64, format="verdicts", state=state
    )


def import_votes(comparison: Comparison, name: str, choices: Choices, *, kind: str = "human", **columns: Any) -> Rater:
    """The votes of an imported person, or of the gold standard."""
    evaluation = comparison.evaluation
    rater, _ = Rater.objects.get_or_create(evaluation=evaluation, kind=kind, name=name)
    source = make_import(evaluation)
    for key, choice in choices.items():
        Verdict.objects.create(
            rater=rater,
            comparison=comparison,
            aspect=aspect_of(evaluation, key),
            choice=choice,
            source_import=source,
            **{"shown": Shown.UNKNOWN, **columns},
        )
    ballot(comparison)
    return rater

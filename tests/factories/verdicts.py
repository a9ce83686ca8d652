"""Reviews, judge verdicts and imported votes for tests."""

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from evaluations.domain.choices import Choice, ShownOrder, Stage
from evaluations.domain.files import ImportState
from evaluations.domain.judges import CallState, RunState
from evaluations.domain.reviews import ReviewState, SelectionMethod
from evaluations.domain.rubrics import AspectSpec, RubricKind, RubricOrigin, RubricSpec
from evaluations.evaluation_settings.services import change_evaluation
from evaluations.judge_prompts.builtin_rubrics import SIX_ASPECT
from evaluations.models.comparisons import Comparison, Response
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from evaluations.models.judges import Endpoint, Judge, Rater
from evaluations.models.rubrics import Aspect, RubricVersion
from evaluations.models.runs import Call, Run
from evaluations.models.verdicts import PackedVotes, Review, Score, Verdict
from evaluations.rubrics.services import add_rubric, create_next_version
from evaluations.verdicts.packed_votes import pack_review_verdicts
from tests.factories.packed_votes import repack_comparisons

Choices = Mapping[str, str]

# The same choice on every aspect of the built-in rubric.
SIX_ASPECT_KEYS = [aspect.key for aspect in SIX_ASPECT.aspects]
ALL_A = dict.fromkeys(SIX_ASPECT_KEYS, Choice.A)
ALL_B = dict.fromkeys(SIX_ASPECT_KEYS, Choice.B)
ALL_TIE = dict.fromkeys(SIX_ASPECT_KEYS, Choice.TIE)


def get_or_make_aspect(evaluation: Evaluation, key: str) -> Aspect:
    return Aspect.objects.get_or_create(evaluation=evaluation, key=key, defaults={"name": key.title()})[0]


def make_review(
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
        **{
            "rubric_version": version,
            "shown": ShownOrder.AS_STORED,
            "selection_method": SelectionMethod.RANDOM,
            **columns,
        },
    )
    stages = [(Stage.FIRST, first), (Stage.FINAL, {**first, **(final or {})})]
    verdicts = [
        Verdict.objects.create(
            rater=rater,
            comparison=comparison,
            aspect=get_or_make_aspect(comparison.evaluation, key),
            stage=stage,
            shown=review.shown,
            choice=choice,
            review=review,
            note=(notes or {}).get(key, "") if stage == Stage.FINAL else "",
        )
        for stage, choices in (stages if confirmed else stages[:1])
        for key, choice in choices.items()
    ]
    pack_review_verdicts(review, verdicts)  # those of others stay: they may be writing in the same moment
    return review


def repack_votes_of(comparison: Comparison) -> None:
    """Keep the packed votes of verdicts that were written past the services."""
    PackedVotes.all_rows.filter(comparison=comparison).delete()
    PackedVotes.all_rows.bulk_create(repack_comparisons([comparison]))


def make_next_rubric_version(evaluation: Evaluation) -> RubricVersion:
    """The rubric that people are asked by from now on: the same one with other definitions."""
    version = evaluation.review_rubric
    assert version is not None
    spec = version.spec()
    aspects = tuple(replace(aspect, definition=f"{aspect.definition} {version.number + 1}") for aspect in spec.aspects)
    following = create_next_version(version.rubric, replace(spec, aspects=aspects), user=None)
    change_evaluation(evaluation, {"review_rubric": following}, user=None)
    return following


def make_judge_rater(evaluation: Evaluation, name: str = "longest", *, kind: str = "rule") -> Rater:
    """A judge with its rater, a rule where nothing else is said; the same one for the same name."""
    its = {"model": "longest"} if kind == "rule" else {"model": "model", "endpoint": make_unreachable_endpoint()}
    judge, _ = Judge.objects.get_or_create(
        evaluation=evaluation,
        name=name,
        defaults={"kind": kind, "rubric_version": evaluation.review_rubric, "fingerprint": uuid.uuid4().hex, **its},
    )
    return Rater.objects.get_or_create(evaluation=evaluation, kind="judge", name=name, judge=judge)[0]


def make_unreachable_endpoint() -> Endpoint:
    return Endpoint.objects.get_or_create(name="nowhere", defaults={"base_url": "http://127.0.0.1:9/v1"})[0]


def make_judge_verdicts(
    comparison: Comparison, *, judge: str = "longest", kind: str = "rule", rationale: str = "", **orders: Choices | str
) -> Rater:
    """One call for each order named: with choices it is answered, with a word its state is that word."""
    rater = make_judge_rater(comparison.evaluation, judge, kind=kind)
    assert rater.judge is not None
    run = get_or_make_run(rater.judge)
    for shown, answer in orders.items():
        call = Call.objects.create(
            judge=rater.judge,
            run=run,
            comparison=comparison,
            shown=shown,
            state=answer if isinstance(answer, str) else CallState.ANSWERED,
            rationale=rationale and f"{rationale} ({shown})",
        )
        for key, choice in {} if isinstance(answer, str) else answer.items():
            Verdict.objects.create(
                rater=rater,
                comparison=comparison,
                aspect=get_or_make_aspect(comparison.evaluation, key),
                shown=shown,
                choice=choice,
                call=call,
            )
    repack_votes_of(comparison)
    return rater


def get_or_make_run(judge: Judge) -> Run:
    """The run that every call belongs to which came in no file."""
    defaults = {"evaluation": judge.evaluation, "batch": uuid.uuid4(), "state": RunState.DONE}
    return Run.objects.filter(judge=judge).first() or Run.objects.create(judge=judge, **defaults)


def make_scoring_judge(
    evaluation: Evaluation, name: str = "scorer", *, margin: float = 0.0, aspect: str = "overall"
) -> Rater:
    """A judge of single responses, on a scale from 1 to 5, with its rater; the same one for the same name."""
    existing = Rater.objects.filter(evaluation=evaluation, kind="judge", name=name).first()
    if existing is not None:
        return existing
    spec_of_aspect = AspectSpec(aspect, aspect.title(), "", scale_min=1, scale_max=5, scale_step=1, tie_margin=margin)
    spec = RubricSpec(RubricKind.POINTWISE, "Rate.", (spec_of_aspect,), (aspect,))
    version = add_rubric(evaluation, name=f"rubric of {name}", spec=spec, origin=RubricOrigin.OWN, user=None)
    judge = Judge.objects.create(
        evaluation=evaluation,
        name=name,
        kind="llm",
        model="model",
        rubric_version=version,
        endpoint=make_unreachable_endpoint(),
        fingerprint=uuid.uuid4().hex,
    )
    return Rater.objects.create(evaluation=evaluation, kind="judge", name=name, judge=judge)


def make_judge_score(
    rater: Rater, response: Response, value: float | str, *, aspect: str = "overall", **columns: Any
) -> Call:
    """A score, or where it is a word a call in that state."""
    assert rater.judge is not None
    state = value if isinstance(value, str) else CallState.ANSWERED
    call = Call.objects.create(judge=rater.judge, response=response, state=state, **columns)
    if not isinstance(value, str):
        about = get_or_make_aspect(rater.evaluation, aspect)
        Score.objects.create(rater=rater, response=response, aspect=about, value=value, sample=call.sample, call=call)
    return call


def make_scored_review(
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
        aspects = tuple(AspectSpec(key, key.title(), "", scale_min=1, scale_max=5, tie_margin=0.5) for key in first)
        spec = RubricSpec(RubricKind.POINTWISE, "Rate.", aspects, tuple(first))
        version = add_rubric(rater.evaluation, name="scores", spec=spec, origin=RubricOrigin.OWN, user=None)
    review = make_review(rater, comparison, {}, **{"rubric_version": version, **columns})
    for stage, scores in ((Stage.FIRST, first), (Stage.FINAL, {**first, **(final or {})})):
        for key, (a, b) in scores.items():
            for response, value in ((comparison.response_a, a), (comparison.response_b, b)):
                Score.objects.create(
                    rater=rater,
                    response=response,
                    aspect=get_or_make_aspect(rater.evaluation, key),
                    value=value,
                    stage=stage,
                    review=review,
                )
    return review


def make_import(evaluation: Evaluation, state: str = ImportState.DONE) -> Import:
    return Import.objects.create(
        evaluation=evaluation, file_name="votes.jsonl", sha256="0" * 64, format="verdicts", state=state
    )


def make_imported_votes(
    comparison: Comparison, name: str, choices: Choices, *, kind: str = "human", **columns: Any
) -> Rater:
    """The votes of an imported person, or of the gold standard."""
    evaluation = comparison.evaluation
    rater, _ = Rater.objects.get_or_create(evaluation=evaluation, kind=kind, name=name)
    source = make_import(evaluation)
    for key, choice in choices.items():
        Verdict.objects.create(
            rater=rater,
            comparison=comparison,
            aspect=get_or_make_aspect(evaluation, key),
            choice=choice,
            source_import=source,
            **{"shown": ShownOrder.UNKNOWN, **columns},
        )
    repack_votes_of(comparison)
    return rater

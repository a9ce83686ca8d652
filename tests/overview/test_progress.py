"""Where evaluations stand, counted by hand."""

import hashlib

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evaluations.domain.choices import Choice, ShownOrder, Stage
from evaluations.domain.judges import JudgeKind
from evaluations.domain.reviews import ReviewState
from evaluations.domain.roles import RaterKind
from evaluations.judges.services import archive_judge
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.exports import Export
from evaluations.models.imports import Import
from evaluations.models.judges import Judge, Rater
from evaluations.models.rubrics import Aspect
from evaluations.models.users import User
from evaluations.models.verdicts import Review, Verdict
from evaluations.overview.selectors import EvaluationProgress, NextStep, count_evaluation_progress
from tests.factories.evaluations import make_comparison, make_evaluation, make_human, make_user
from tests.factories.imports import import_rows, score_row
from tests.factories.verdicts import (
    make_imported_votes,
    make_judge_score,
    make_judge_verdicts,
    make_scored_review,
    make_scoring_judge,
)


def make_judge(evaluation: Evaluation, name: str = "longest") -> Rater:
    judge = Judge.objects.create(
        evaluation=evaluation,
        name=name,
        kind=JudgeKind.RULE,
        model="longest",
        rubric_version=evaluation.review_rubric,
        fingerprint=hashlib.sha256(name.encode()).hexdigest(),
    )
    return Rater.objects.create(evaluation=evaluation, kind=RaterKind.JUDGE, name=name, judge=judge)


def make_import(evaluation: Evaluation, state: str = "done") -> Import:
    return Import.objects.create(evaluation=evaluation, file_name="file.jsonl", format="comparisons", state=state)


def say(rater: Rater, comparison: Comparison, source: Import) -> None:
    Verdict.objects.create(
        rater=rater,
        comparison=comparison,
        aspect=Aspect.objects.get(evaluation=comparison.evaluation, key="factuality"),
        shown=ShownOrder.UNKNOWN,
        choice=Choice.A,
        source_import=source,
    )


def review(user: User, comparison: Comparison, state: ReviewState = ReviewState.FINAL) -> None:
    evaluation = comparison.evaluation
    assert evaluation.review_rubric is not None
    rater, _ = Rater.objects.get_or_create(
        evaluation=evaluation, user=user, defaults={"kind": RaterKind.HUMAN, "name": user.username}
    )
    made = Review.objects.create(
        rater=rater,
        comparison=comparison,
        rubric_version=evaluation.review_rubric,
        shown=ShownOrder.AS_STORED,
        state=state,
    )
    if state == ReviewState.FINAL:
        Verdict.objects.create(
            rater=rater,
            comparison=comparison,
            aspect=Aspect.objects.get(evaluation=evaluation, key="factuality"),
            shown=ShownOrder.AS_STORED,
            choice=Choice.A,
            stage=Stage.FINAL,
            review=made,
        )


@pytest.mark.django_db
def test_the_counts_of_an_evaluation() -> None:
    """Four comparisons: a judge speaks on three, people on two, one of these is mine and one a draft of mine."""
    me, other = make_user(), make_user()
    evaluation = make_evaluation(me)
    one, two, three, _ = (make_comparison(evaluation) for _ in range(4))
    source = make_import(evaluation)
    make_import(evaluation, "previewed")
    judge = make_judge(evaluation)
    for comparison in (one, two, three):
        say(judge, comparison, source)
    review(me, one)
    review(other, one)
    review(other, two)
    review(me, two, ReviewState.DRAFT)
    Export.objects.create(evaluation=evaluation, format="jsonl", label_policy="majority", state="done")

    assert count_evaluation_progress([evaluation], me)[evaluation.pk] == EvaluationProgress(
        queries=4,
        candidates=2,
        people=1,
        comparisons=4,
        judged=3,
        reviewed=2,
        reviews=3,
        reviewed_by_me=1,
        imports=1,
        imports_to_confirm=1,
        judges=1,
        exports=1,
    )


@pytest.mark.django_db
def test_scores_of_both_responses_are_judged_and_reviewed_and_scores_alone_are_ready_to_read() -> None:
    me = make_user()
    evaluation = make_evaluation(me)
    one, two, _ = (make_comparison(evaluation) for _ in range(3))
    scorer = make_scoring_judge(evaluation)
    for response in (one.response_a, one.response_b, two.response_a):  # of the second only one side
        make_judge_score(scorer, response, 3)
    make_scored_review(make_human(evaluation), two, {"overall": (2, 4)})
    standing = count_evaluation_progress([evaluation], me)[evaluation.pk]
    assert (standing.judged, standing.reviewed, standing.has_report) == (1, 1, True)
    alone = make_evaluation(me)
    import_rows(alone, {"query_id": "q1", "query": "Why?", "candidate": "alpha", "response": "So."})
    assert (
        count_evaluation_progress([alone], me)[alone.pk].next_step(
            manages=True, reviews=True, resolves=True, exports=True
        )
        == NextStep.IMPORT
    )
    import_rows(alone, score_row())
    standing = count_evaluation_progress([alone], me)[alone.pk]
    assert (standing.comparisons, standing.has_report) == (0, True)
    assert standing.next_step(manages=True, reviews=True, resolves=True, exports=True) == NextStep.REPORT


@pytest.mark.django_db
def test_an_archived_judge_has_judged_and_failed_at_nothing() -> None:
    me = make_user()
    evaluation = make_evaluation(me)
    one, two = (make_comparison(evaluation) for _ in range(2))
    make_judge_verdicts(one, as_stored={"clarity": "A"})
    make_judge_verdicts(two, as_stored="refused")
    make_imported_votes(one, "ann", {"clarity": "A"})
    standing = count_evaluation_progress([evaluation], me)[evaluation.pk]
    assert (standing.judged, standing.failed_calls, standing.judges) == (1, 1, 1)
    archive_judge(evaluation.judges.get(), user=None)
    standing = count_evaluation_progress([evaluation], me)[evaluation.pk]
    assert (standing.judged, standing.failed_calls, standing.judges) == (0, 0, 0)
    assert standing.next_step(manages=True, reviews=True, resolves=True, exports=True) == NextStep.JUDGE


@pytest.mark.django_db
def test_what_an_unfinished_import_brings_is_not_counted() -> None:
    evaluation = make_evaluation()
    comparison = make_comparison(evaluation)
    Comparison.all_rows.filter(pk=comparison.pk).update(source_import=make_import(evaluation, "storing"))
    standing = count_evaluation_progress([evaluation], make_user())[evaluation.pk]
    assert standing.comparisons == 0
    assert standing.imports_storing == 1


@pytest.mark.django_db
def test_evaluations_do_not_count_for_each_other() -> None:
    me = make_user()
    full, empty = make_evaluation(me), make_evaluation(me)
    review(me, make_comparison(full))
    found = count_evaluation_progress([full, empty], me)
    assert found[full.pk].reviewed_by_me == 1
    assert found[empty.pk] == EvaluationProgress(people=1)


@pytest.mark.django_db
def test_reviews_by_another_version_of_the_rubric_are_not_progress() -> None:
    me = make_user()
    evaluation = make_evaluation(me)
    review(me, make_comparison(evaluation))
    evaluation.review_rubric = None
    evaluation.save()
    standing = count_evaluation_progress([evaluation], me)[evaluation.pk]
    assert (standing.reviewed_by_me, standing.reviewed) == (0, 1)


@pytest.mark.django_db
def test_many_evaluations_cost_as_many_queries_as_one() -> None:
    me = make_user()
    evaluations = [make_evaluation(me) for _ in range(5)]
    for evaluation in evaluations:
        review(me, make_comparison(evaluation))
    with CaptureQueriesContext(connection) as one:
        count_evaluation_progress(evaluations[:1], me)
    with CaptureQueriesContext(connection) as five:
        count_evaluation_progress(evaluations, me)
    assert len(one) == len(five)


@pytest.mark.parametrize(
    ("standing", "step"),
    [
        (EvaluationProgress(), NextStep.IMPORT),
        (EvaluationProgress(imports_to_confirm=1), NextStep.STORE),
        (EvaluationProgress(comparisons=5), NextStep.JUDGE),
        (EvaluationProgress(comparisons=5, active_runs=1), NextStep.REVIEW),
        (EvaluationProgress(comparisons=5, judged=5), NextStep.REVIEW),
        (EvaluationProgress(comparisons=5, judged=5, reviewed=5), NextStep.EXPORT),
        (EvaluationProgress(comparisons=5, judged=5, reviewed=5, open_disagreements=1), NextStep.RESOLVE),
        (EvaluationProgress(comparisons=5, judged=5, reviewed=4, open_disagreements=1), NextStep.REVIEW),
        (EvaluationProgress(comparisons=5, judged=5, reviewed=5, reviews=5, wanted=2), NextStep.REVIEW),
        (EvaluationProgress(comparisons=5, judged=5, reviewed=5, reviews=10, wanted=2), NextStep.EXPORT),
        (EvaluationProgress(comparisons=5, judged=5, reviewed=5, reviewed_by_me=5, exports=1), NextStep.REPORT),
    ],
)
def test_what_comes_next_for_an_owner(standing: EvaluationProgress, step: NextStep) -> None:
    assert standing.next_step(manages=True, reviews=True, resolves=True, exports=True) == step


@pytest.mark.parametrize(
    ("standing", "step"),
    [
        (EvaluationProgress(), NextStep.WAIT),
        (EvaluationProgress(comparisons=5), NextStep.REVIEW),
        (EvaluationProgress(comparisons=5, reviewed=3, reviewed_by_me=3), NextStep.REVIEW),
        (EvaluationProgress(comparisons=5, reviewed=5, reviewed_by_me=5), NextStep.REPORT),
        (EvaluationProgress(comparisons=5, reviewed=5, reviewed_by_me=5, open_disagreements=1), NextStep.REPORT),
    ],
)
def test_what_comes_next_for_a_reviewer(standing: EvaluationProgress, step: NextStep) -> None:
    assert standing.next_step(manages=False, reviews=True, resolves=False, exports=False) == step


def test_a_viewer_of_untouched_material_waits() -> None:
    assert (
        EvaluationProgress(comparisons=5).next_step(manages=False, reviews=False, resolves=False, exports=True)
        == NextStep.WAIT
    )

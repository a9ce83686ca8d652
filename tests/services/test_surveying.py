"""Where evaluations stand, counted by hand."""

import hashlib

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evaluations.domain import Choice, JudgeKind, RaterKind, ReviewState, Shown, Stage
from evaluations.models import Aspect, Comparison, Evaluation, Export, Import, Judge, Rater, Review, User, Verdict
from evaluations.services.judging.archive import archive_judge
from evaluations.services.preparing.surveying import Next, Standing, State, standings
from tests.importing import bring, score
from tests.making import make_comparison, make_evaluation, make_human, make_user
from tests.saying import import_votes, judge_says, make_scorer, person_scores, scorer_says


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
        shown=Shown.UNKNOWN,
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
        rater=rater, comparison=comparison, rubric_version=evaluation.review_rubric, shown=Shown.AS_STORED, state=state
    )
    if state == ReviewState.FINAL:
        Verdict.objects.create(
            rater=rater,
            comparison=comparison,
            aspect=Aspect.objects.get(evaluation=evaluation, key="factuality"),
            shown=Shown.AS_STORED,
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
    Export.objects.create(evaluation=evaluation, format="jsonl", policy="majority", state="done")

    assert standings([evaluation], me)[evaluation.pk] == Standing(
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
    scorer = make_scorer(evaluation)
    for response in (one.response_a, one.response_b, two.response_a):  # of the second only one side
        scorer_says(scorer, response, 3)
    person_scores(make_human(evaluation), two, {"overall": (2, 4)})
    standing = standings([evaluation], me)[evaluation.pk]
    assert (standing.judged, standing.reviewed, standing.reporting) == (1, 1, State.UNDER_WAY)
    alone = make_evaluation(me)
    bring(alone, {"query_id": "q1", "query": "Why?", "candidate": "alpha", "response": "So."})
    assert standings([alone], me)[alone.pk].next_step(manages=True, reviews=True, exports=True) == Next.IMPORT
    bring(alone, score())
    standing = standings([alone], me)[alone.pk]
    assert (standing.is_scores_alone, standing.reporting) == (True, State.UNDER_WAY)
    assert standing.importing == State.DONE
    assert standing.next_step(manages=True, reviews=True, exports=True) == Next.REPORT


@pytest.mark.django_db
def test_an_archived_judge_has_judged_and_failed_at_nothing() -> None:
    me = make_user()
    evaluation = make_evaluation(me)
    one, two = (make_comparison(evaluation) for _ in range(2))
    judge_says(one, as_stored={"clarity": "A"})
    judge_says(two, as_stored="refused")
    import_votes(one, "ann", {"clarity": "A"})
    standing = standings([evaluation], me)[evaluation.pk]
    assert (standing.judged, standing.failed_calls, standing.judges) == (1, 1, 1)
    archive_judge(evaluation.judges.get(), user=None)
    standing = standings([evaluation], me)[evaluation.pk]
    assert (standing.judged, standing.failed_calls, standing.judges) == (0, 0, 0)
    assert (standing.judging, standing.reporting) == (State.TO_DO, State.TO_DO)


@pytest.mark.django_db
def test_what_an_unfinished_import_brings_is_not_counted() -> None:
    evaluation = make_evaluation()
    comparison = make_comparison(evaluation)
    Comparison.all_rows.filter(pk=comparison.pk).update(source_import=make_import(evaluation, "storing"))
    standing = standings([evaluation], make_user())[evaluation.pk]
    assert standing.comparisons == 0
    assert standing.importing == State.UNDER_WAY


@pytest.mark.django_db
def test_evaluations_do_not_count_for_each_other() -> None:
    me = make_user()
    full, empty = make_evaluation(me), make_evaluation(me)
    review(me, make_comparison(full))
    found = standings([full, empty], me)
    assert found[full.pk].reviewed_by_me == 1
    assert found[empty.pk] == Standing()


@pytest.mark.django_db
def test_reviews_by_another_version_of_the_rubric_are_not_progress() -> None:
    me = make_user()
    evaluation = make_evaluation(me)
    review(me, make_comparison(evaluation))
    evaluation.review_rubric = None
    evaluation.save()
    standing = standings([evaluation], me)[evaluation.pk]
    assert (standing.reviewed_by_me, standing.reviewed) == (0, 1)


@pytest.mark.django_db
def test_many_evaluations_cost_as_many_queries_as_one() -> None:
    me = make_user()
    evaluations = [make_evaluation(me) for _ in range(5)]
    for evaluation in evaluations:
        review(me, make_comparison(evaluation))
    with CaptureQueriesContext(connection) as one:
        standings(evaluations[:1], me)
    with CaptureQueriesContext(connection) as five:
        standings(evaluations, me)
    assert len(one) == len(five)


@pytest.mark.parametrize(
    ("standing", "step"),
    [
        (Standing(), Next.IMPORT),
        (Standing(imports_to_confirm=1), Next.STORE),
        (Standing(comparisons=5), Next.JUDGE),
        (Standing(comparisons=5, active_runs=1), Next.REVIEW),
        (Standing(comparisons=5, judged=5), Next.REVIEW),
        (Standing(comparisons=5, judged=5, reviewed=5), Next.EXPORT),
        (Standing(comparisons=5, judged=5, reviewed=5, reviews=5, wanted=2), Next.REVIEW),
        (Standing(comparisons=5, judged=5, reviewed=5, reviews=10, wanted=2), Next.EXPORT),
        (Standing(comparisons=5, judged=5, reviewed=5, reviewed_by_me=5, exports=1), Next.REPORT),
    ],
)
def test_what_comes_next_for_an_owner(standing: Standing, step: Next) -> None:
    assert standing.next_step(manages=True, reviews=True, exports=True) == step


@pytest.mark.parametrize(
    ("standing", "step"),
    [
        (Standing(), Next.WAIT),
        (Standing(comparisons=5), Next.REVIEW),
        (Standing(comparisons=5, reviewed=3, reviewed_by_me=3), Next.REVIEW),
        (Standing(comparisons=5, reviewed=5, reviewed_by_me=5), Next.REPORT),
    ],
)
def test_what_comes_next_for_a_reviewer(standing: Standing, step: Next) -> None:
    assert standing.next_step(manages=False, reviews=True, exports=False) == step


def test_a_viewer_of_untouched_material_waits() -> None:
    assert Standing(comparisons=5).next_step(manages=False, reviews=False, exports=True) == Next.WAIT


@pytest.mark.parametrize(
    ("standing", "states"),
    [
        (Standing(), ["to do", "to do", "to do", "to do", "to do"]),
        (Standing(comparisons=5, active_runs=1), ["done", "under way", "to do", "to do", "to do"]),
        (Standing(comparisons=5, judged=5, reviewed=2), ["done", "done", "under way", "under way", "to do"]),
        (
            Standing(comparisons=5, judged=5, reviewed=5, exports=1, imports_storing=1),
            ["under way", "done", "done", "under way", "done"],
        ),
    ],
)
def test_the_states_of_the_five_steps(standing: Standing, states: list[str]) -> None:
    steps = [standing.importing, standing.judging, standing.reviewing, standing.reporting, standing.exporting]
    assert steps == states

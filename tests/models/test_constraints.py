"""The database itself refuses nonsense: two doors and a worker write, and none is trusted."""

import uuid
from typing import Any

import pytest
from django.db import DataError, IntegrityError, transaction
from django.utils import timezone

from evaluations.domain.choices import ShownOrder
from evaluations.domain.files import ImportState
from evaluations.domain.texts import ComparisonOrigin
from evaluations.models.comparisons import Comparison, Query
from evaluations.models.evaluations import BAR_COLUMNS, Evaluation, Event
from evaluations.models.imports import Import
from evaluations.models.judges import Endpoint, Judge, Rater
from evaluations.models.rubrics import Aspect
from evaluations.models.runs import Attempt, Call, Run
from evaluations.models.users import Membership
from evaluations.models.verdicts import Review, Verdict
from tests.factories.evaluations import make_comparison, make_evaluation, make_human, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def comparison(evaluation: Evaluation) -> Comparison:
    return make_comparison(evaluation)


@pytest.fixture
def judge(evaluation: Evaluation) -> Judge:
    return Judge.objects.create(
        evaluation=evaluation,
        name="longest",
        kind="rule",
        model="longest",
        rubric_version=evaluation.review_rubric,
        fingerprint="f" * 64,
    )


def refused(table: Any, /, **columns: Any) -> None:
    # PostgreSQL meets a word that is too long for its column before it meets the check.
    with pytest.raises((IntegrityError, DataError)), transaction.atomic():
        table._base_manager.create(**columns)


def aspect_of(evaluation: Evaluation) -> Aspect:
    return Aspect.objects.get(evaluation=evaluation, key="clarity")


def test_a_comparison_needs_two_different_responses(comparison: Comparison) -> None:
    refused(
        Comparison,
        evaluation=comparison.evaluation,
        query=comparison.query,
        response_a=comparison.response_a,
        response_b=comparison.response_a,
        origin=ComparisonOrigin.BY_HAND,
        random_order=1,
    )


def test_the_same_two_responses_are_compared_once_whichever_stands_first(comparison: Comparison) -> None:
    refused(
        Comparison,
        evaluation=comparison.evaluation,
        query=comparison.query,
        response_a=comparison.response_b,
        response_b=comparison.response_a,
        origin=ComparisonOrigin.BY_HAND,
        random_order=1,
    )


@pytest.mark.parametrize(
    "columns",
    [
        {"choice": "C", "shown": "as_stored"},
        {"choice": "inconsistent", "shown": "as_stored"},
        {"choice": "A", "shown": ""},
        {"choice": "A", "shown": "left"},
        {"choice": "A", "shown": "as_stored", "stage": "second"},
    ],
)
def test_a_verdict_outside_the_closed_lists_is_refused(comparison: Comparison, columns: dict[str, str]) -> None:
    rater = make_human(comparison.evaluation)
    source = make_import(comparison.evaluation)
    aspect = aspect_of(comparison.evaluation)
    refused(Verdict, rater=rater, comparison=comparison, aspect=aspect, source_import=source, **columns)


def test_a_verdict_comes_from_exactly_one_of_call_review_and_import(comparison: Comparison, judge: Judge) -> None:
    evaluation = comparison.evaluation
    rater = make_human(evaluation)
    call = Call.objects.create(judge=judge, comparison=comparison)
    source = make_import(evaluation)
    common = {
        "rater": rater,
        "comparison": comparison,
        "aspect": aspect_of(evaluation),
        "shown": ShownOrder.AS_STORED,
        "choice": "A",
    }
    refused(Verdict, **common)
    refused(Verdict, **common, call=call, source_import=source)
    Verdict.objects.create(**common, call=call)


def test_one_call_gives_one_verdict_for_an_aspect(comparison: Comparison, judge: Judge) -> None:
    call = Call.objects.create(judge=judge, comparison=comparison)
    common = {
        "rater": make_human(comparison.evaluation),
        "comparison": comparison,
        "aspect": aspect_of(comparison.evaluation),
        "shown": "as_stored",
        "call": call,
    }
    Verdict.objects.create(**common, choice="A")
    refused(Verdict, **common, choice="B")


def test_a_review_holds_one_first_and_one_final_choice_for_an_aspect(comparison: Comparison) -> None:
    evaluation = comparison.evaluation
    rater = make_human(evaluation)
    review = make_review(comparison, rater)
    common = {
        "rater": rater,
        "comparison": comparison,
        "aspect": aspect_of(evaluation),
        "shown": "swapped",
        "review": review,
    }
    Verdict.objects.create(**common, stage="first", choice="A")
    Verdict.objects.create(**common, stage="final", choice="B")
    refused(Verdict, **common, stage="first", choice="tie")


def test_a_person_reviews_a_comparison_once_with_one_rubric_version(comparison: Comparison) -> None:
    rater = make_human(comparison.evaluation)
    make_review(comparison, rater)
    refused(
        Review,
        rater=rater,
        comparison=comparison,
        rubric_version=comparison.evaluation.review_rubric,
        shown="as_stored",
    )


def test_a_call_has_one_subject_and_is_asked_once_for_an_order_and_sample(comparison: Comparison, judge: Judge) -> None:
    refused(Call, judge=judge)
    refused(Call, judge=judge, comparison=comparison, response=comparison.response_a)
    Call.objects.create(judge=judge, comparison=comparison, shown="swapped")
    refused(Call, judge=judge, comparison=comparison, shown="swapped")
    Call.objects.create(judge=judge, comparison=comparison, shown="swapped", sample=1)


def test_a_calls_attempts_are_numbered_without_repeats(comparison: Comparison, judge: Judge) -> None:
    call = Call.objects.create(judge=judge, comparison=comparison)
    run = Run.objects.create(evaluation=comparison.evaluation, judge=judge, batch=uuid.uuid4())
    Attempt.objects.create(call=call, run=run, number=1, outcome="retry", latency_ms=3)
    refused(Attempt, call=call, run=run, number=1, outcome="answered", latency_ms=3)


def test_an_llm_judge_needs_an_endpoint_and_an_imported_one_has_neither(evaluation: Evaluation) -> None:
    version = evaluation.review_rubric
    refused(
        Judge, evaluation=evaluation, name="one", kind="llm", model="m", rubric_version=version, fingerprint="a" * 64
    )
    refused(Judge, evaluation=evaluation, name="two", kind="imported", rubric_version=version, fingerprint="b" * 64)


@pytest.mark.parametrize("variable", ["HOME", "DATABASE_URL", "API_KEY_OF_MINE", "JUDGEWEB_SECRET_KEY"])
def test_an_endpoint_cannot_name_any_environment_variable_as_its_key(variable: str) -> None:
    refused(Endpoint, name="away", base_url="https://example.org/v1", key_variable=variable)


def test_a_rater_is_what_its_kind_says(evaluation: Evaluation, judge: Judge) -> None:
    user = make_user()
    refused(Rater, evaluation=evaluation, kind="judge", name="no judge behind it")
    refused(Rater, evaluation=evaluation, kind="human", name="a judge posing", judge=judge)
    refused(Rater, evaluation=evaluation, kind="gold", name="gold", user=user)
    Rater.objects.create(evaluation=evaluation, kind="human", name="first", user=user)
    refused(Rater, evaluation=evaluation, kind="human", name="second", user=user)


def test_a_role_is_one_of_the_five(evaluation: Evaluation) -> None:
    refused(Membership, evaluation=evaluation, user=make_user(), role="admin")


def test_one_import_is_stored_at_a_time(evaluation: Evaluation) -> None:
    make_import(evaluation, state=ImportState.STORING)
    refused(Import, evaluation=evaluation, file_name="b", sha256="0" * 64, format="jsonl", state="storing")
    make_import(make_evaluation(), state=ImportState.STORING)


def test_rows_of_an_unfinished_import_are_hidden_until_it_is_done(evaluation: Evaluation) -> None:
    source = make_import(evaluation, state=ImportState.STORING)
    make_comparison(evaluation, key="hidden", source_import=source)
    make_comparison(evaluation, key="seen")
    assert [query.key for query in Query.objects.filter(evaluation=evaluation)] == ["seen"]
    assert Query.all_rows.filter(evaluation=evaluation).count() == 2
    source.state = ImportState.DONE
    source.save()
    assert Query.objects.filter(evaluation=evaluation).count() == 2


def test_an_event_is_neither_changed_nor_deleted(evaluation: Evaluation) -> None:
    event = Event.objects.filter(evaluation=evaluation).first()
    assert event is not None
    with pytest.raises(TypeError):
        event.save()
    with pytest.raises(TypeError):
        event.delete()


def make_import(evaluation: Evaluation, state: str = ImportState.DONE) -> Import:
    return Import.objects.create(
        evaluation=evaluation, file_name="a.jsonl", sha256="0" * 64, format="comparisons", state=state
    )


def make_review(comparison: Comparison, rater: Rater) -> Review:
    version = comparison.evaluation.review_rubric
    assert version is not None
    return Review.objects.create(rater=rater, comparison=comparison, rubric_version=version, shown="as_stored")


@pytest.mark.parametrize(
    ("column", "value"),
    [*((column, value) for column in BAR_COLUMNS for value in (0.0, -0.1, 1.0)), ("bar_half_width", 0.51)],
)
def test_a_bar_is_a_share_between_0_and_1(evaluation: Evaluation, column: str, value: float) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Evaluation.objects.filter(pk=evaluation.pk).update(**{column: value})


def test_only_a_reviewer_is_excluded_and_with_the_time_of_it(evaluation: Evaluation, judge: Judge) -> None:
    chosen = {"screening_choice": "exclude", "screening_chosen_at": timezone.now()}
    refused(Rater, evaluation=evaluation, kind="judge", name="longest", judge=judge, **chosen)
    refused(Rater, evaluation=evaluation, kind="gold", name="gold", **chosen)
    refused(Rater, evaluation=evaluation, kind="human", name="ann", screening_choice="exclude")
    refused(Rater, evaluation=evaluation, kind="human", name="ann", screening_chosen_at=timezone.now())
    refused(Rater, evaluation=evaluation, kind="human", name="ann", **{**chosen, "screening_choice": "doubt"})
    Rater.objects.create(evaluation=evaluation, kind="human", name="ann", **chosen)

"""Labels by the majority of people's final choices, worked by hand."""

import pytest
from pytest_django import DjangoAssertNumQueries

from evaluations.domain import Choice, LabelSource
from evaluations.models import Comparison, Evaluation
from evaluations.services.labelling import Label, labels
from tests.making import make_comparison, make_evaluation, make_human
from tests.saying import import_votes, judge_says, person_says

pytestmark = pytest.mark.django_db

A, B, TIE = Choice.A, Choice.B, Choice.TIE


@pytest.fixture
def evaluation() -> Evaluation:
    return make_evaluation()


@pytest.fixture
def comparison(evaluation: Evaluation) -> Comparison:
    return make_comparison(evaluation)


def label(comparison: Comparison, aspect: str = "clarity") -> Label | None:
    return labels([comparison.pk]).get(comparison.pk, {}).get(aspect)


def vote(comparison: Comparison, *choices: Choice) -> None:
    for choice in choices:
        person_says(make_human(comparison.evaluation), comparison, {"clarity": choice})


def test_one_vote_is_a_label_with_the_source_single(comparison: Comparison) -> None:
    vote(comparison, B)
    assert label(comparison) == Label(B, LabelSource.SINGLE, 1, {B: 1})


def test_the_choice_that_leads_alone_is_the_label(comparison: Comparison) -> None:
    vote(comparison, A, B, A, TIE)
    assert label(comparison) == Label(A, LabelSource.MAJORITY, 4, {A: 2, B: 1, TIE: 1})


def test_a_tie_can_be_the_label_like_any_other_choice(comparison: Comparison) -> None:
    vote(comparison, TIE, TIE, A)
    assert label(comparison) == Label(TIE, LabelSource.MAJORITY, 3, {TIE: 2, A: 1})


@pytest.mark.parametrize("choices", [(A, B), (A, TIE), (A, B, TIE), (A, A, B, B, TIE)])
def test_a_split_gives_no_label(comparison: Comparison, choices: tuple[Choice, ...]) -> None:
    vote(comparison, *choices)
    given = label(comparison)
    assert given is not None
    assert (given.choice, given.source, given.n) == (None, LabelSource.SPLIT, len(choices))


def test_a_judge_never_breaks_a_split_and_never_labels_alone(evaluation: Evaluation) -> None:
    split, untouched = make_comparison(evaluation), make_comparison(evaluation)
    vote(split, A, B)
    for one in (split, untouched):
        judge_says(one, as_stored={"clarity": A}, swapped={"clarity": A})
    assert label(split) == Label(None, LabelSource.SPLIT, 2, {A: 1, B: 1})
    assert label(untouched) is None


def test_the_final_choice_counts_and_not_the_first(comparison: Comparison) -> None:
    person_says(make_human(comparison.evaluation), comparison, {"clarity": A}, final={"clarity": B})
    assert label(comparison) == Label(B, LabelSource.SINGLE, 1, {B: 1})


def test_a_first_choice_that_was_not_confirmed_is_no_vote(comparison: Comparison) -> None:
    person_says(make_human(comparison.evaluation), comparison, {"clarity": A}, confirmed=False)
    assert label(comparison) is None


def test_imported_votes_of_people_count_as_final_and_gold_counts_not_at_all(comparison: Comparison) -> None:
    import_votes(comparison, "ann", {"clarity": B})
    import_votes(comparison, "expert", {"clarity": A}, kind="gold")
    vote(comparison, B)
    assert label(comparison) == Label(B, LabelSource.MAJORITY, 2, {B: 2})


def test_every_aspect_is_labelled_on_its_own(comparison: Comparison) -> None:
    for safety in (A, B):
        person_says(make_human(comparison.evaluation), comparison, {"clarity": A, "safety": safety})
    given = labels([comparison.pk])[comparison.pk]
    assert {aspect: (one.choice, one.source) for aspect, one in given.items()} == {
        "clarity": (A, LabelSource.MAJORITY),
        "safety": (None, LabelSource.SPLIT),
    }


def test_any_number_of_comparisons_is_labelled_in_one_query(
    evaluation: Evaluation, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    comparisons = [make_comparison(evaluation) for _ in range(4)]
    for one in comparisons:
        vote(one, A, B, A)
    with django_assert_num_queries(1):
        assert len(labels([one.pk for one in comparisons])) == 4

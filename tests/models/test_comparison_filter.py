"""From a filter to comparisons: each filter alone, and what it must not confuse."""

import pytest

from evaluations.domain.errors import InputRefused
from evaluations.domain.filters import ComparisonFilter
from evaluations.domain.judges import CallState
from evaluations.domain.reviews import ReviewState
from evaluations.models.comparison_filter import filter_evaluation
from evaluations.models.comparisons import Comparison, Tag, Tagging
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from evaluations.models.verdicts import Review
from evaluations.verdicts.votes import update_labels
from tests.factories.evaluations import make_comparison, make_evaluation, make_human
from tests.factories.verdicts import ALL_A, ALL_B, make_import, make_imported_votes, make_judge_verdicts, make_review

pytestmark = pytest.mark.django_db


def found(evaluation: Evaluation, **said: object) -> list[Comparison]:
    return list(filter_evaluation(evaluation, ComparisonFilter(**said)).order_by("pk"))  # type: ignore[arg-type]


def test_a_candidate_is_found_on_either_side_and_a_pair_in_either_order(evaluation: Evaluation) -> None:
    one = make_comparison(evaluation, candidates=("alpha", "beta"))
    other = make_comparison(evaluation, candidates=("alpha", "gamma"))
    assert found(evaluation, candidate="alpha") == [one, other]
    assert found(evaluation, candidate="gamma") == [other]
    assert found(evaluation, candidate="gamma", against="alpha") == [other]
    assert found(evaluation, candidate="gamma", against="beta") == []


def test_a_judge_chose_what_all_its_answers_say(evaluation: Evaluation) -> None:
    same, turned, silent = (make_comparison(evaluation) for _ in range(3))
    make_judge_verdicts(same, as_stored=ALL_A, swapped=ALL_A)
    make_judge_verdicts(turned, as_stored=ALL_A, swapped=ALL_B)
    make_judge_verdicts(silent, as_stored=CallState.REFUSED)
    said = {"rater": "judge:longest", "aspect": "clarity"}
    assert found(evaluation, **said, choice="A") == [same]
    assert found(evaluation, **said, choice="B") == []
    assert found(evaluation, **said, choice="differs") == [turned]
    assert found(evaluation, **said) == [same, turned]
    assert found(evaluation, rater="judge:longest") == [same, turned]


def test_a_person_chose_what_they_chose_in_the_end(evaluation: Evaluation) -> None:
    ann, changed, kept = make_human(evaluation, "ann"), make_comparison(evaluation), make_comparison(evaluation)
    make_review(ann, changed, ALL_A, final=ALL_B)
    make_review(ann, kept, ALL_A)
    assert found(evaluation, rater="human:ann", aspect="clarity", choice="A") == [kept]
    assert found(evaluation, rater="human:ann", aspect="clarity", choice="B") == [changed]


def test_without_a_rater_the_label_is_meant(evaluation: Evaluation) -> None:
    agreed, split, untouched = (make_comparison(evaluation) for _ in range(3))
    for first, second, comparison in ((ALL_A, ALL_A, agreed), (ALL_A, ALL_B, split)):
        make_imported_votes(comparison, "ann", first)
        make_imported_votes(comparison, "bob", second)
    update_labels([agreed.pk, split.pk, untouched.pk])
    assert found(evaluation, aspect="clarity", choice="A") == [agreed]
    assert found(evaluation, aspect="clarity", choice="split") == [split]
    assert found(evaluation, aspect="clarity") == [agreed, split]
    assert found(evaluation, disagreement="open") == [split]
    assert found(evaluation, disagreement="resolved") == []


def test_reviews_are_told_apart_by_how_far_they_are(evaluation: Evaluation) -> None:
    done, begun, untouched = (make_comparison(evaluation) for _ in range(3))
    make_review(make_human(evaluation), done, ALL_A)
    make_review(make_human(evaluation), begun, ALL_A)
    Review.objects.filter(comparison=begun).update(state=ReviewState.DRAFT)
    assert found(evaluation, reviews="none") == [begun, untouched]
    assert found(evaluation, reviews="begun") == [begun]
    assert found(evaluation, reviews="saved") == [done]


def test_several_tags_must_all_be_there_and_an_import_is_meant_by_its_number(evaluation: Evaluation) -> None:
    both, one, none = (make_comparison(evaluation) for _ in range(3))
    for name, those in (("hard", [both, one]), ("odd", [both])):
        tag = Tag.objects.create(evaluation=evaluation, name=name)
        for comparison in those:
            Tagging.objects.create(tag=tag, comparison=comparison)
    assert found(evaluation, tags=("hard",)) == [both, one]
    assert found(evaluation, tags=("hard", "odd")) == [both]
    brought: Import = make_import(evaluation)
    Comparison.objects.filter(pk=none.pk).update(source_import=brought, origin="imported")
    assert found(evaluation, source=brought.pk) == [none]
    assert found(evaluation, origin="imported") == [none]


@pytest.mark.parametrize(
    "said",
    [{"candidate": "nobody"}, {"tags": ("x",)}, {"rater": "human:x"}, {"aspect": "x"}, {"source": 9}],
)
def test_a_name_that_is_not_here_is_refused_in_words(evaluation: Evaluation, said: dict[str, object]) -> None:
    make_comparison(make_evaluation(), candidates=("alpha", "nobody"))
    with pytest.raises(InputRefused, match="There is no"):
        found(evaluation, **said)

"""A comparison written by hand obeys the rules of an imported one."""

import pytest

from evaluations.comparisons.manual_comparisons import ManualComparison, add_comparison
from evaluations.domain.errors import InputRefused
from evaluations.domain.texts import ComparisonOrigin, content_sha256
from evaluations.models.comparisons import Candidate, Comparison, Query
from evaluations.models.evaluations import Event
from tests.factories.evaluations import make_evaluation, make_user

pytestmark = pytest.mark.django_db


def written(**changes: str) -> ManualComparison:
    texts = {
        "query": "What is the capital of France?",
        "first_candidate": "beta",
        "first_response": "Lyon.",
        "second_candidate": "alpha",
        "second_response": "Paris.",
    }
    return ManualComparison(**{**texts, **changes})


def test_the_candidate_whose_name_sorts_first_is_a_however_it_was_written() -> None:
    comparison = add_comparison(make_evaluation(), written(), user=make_user())
    assert (comparison.response_a.candidate.name, comparison.response_a.text) == ("alpha", "Paris.")
    assert (comparison.response_b.candidate.name, comparison.response_b.text) == ("beta", "Lyon.")
    assert comparison.swapped
    assert comparison.origin == ComparisonOrigin.BY_HAND


def test_it_keeps_the_same_sums_as_an_import_of_the_same_words() -> None:
    comparison = add_comparison(make_evaluation(), written(context="Europe"), user=None)
    query = [{"role": "user", "content": "What is the capital of France?"}]
    assert comparison.query.sha256 == content_sha256([query, "Europe", None])
    assert comparison.response_a.sha256 == content_sha256([{"role": "assistant", "content": "Paris."}])


def test_a_third_candidate_on_the_same_words_shares_the_query() -> None:
    evaluation = make_evaluation()
    one = add_comparison(evaluation, written(), user=None)
    other = add_comparison(evaluation, written(first_candidate="gamma", first_response="Nice."), user=None)
    assert one.query == other.query
    assert one.response_a == other.response_a
    assert Query.objects.count() == 1


def test_another_evaluation_shares_nothing() -> None:
    one = add_comparison(make_evaluation(), written(), user=None)
    other = add_comparison(make_evaluation(), written(), user=None)
    assert one.query != other.query


def test_it_is_on_record() -> None:
    user = make_user()
    comparison = add_comparison(make_evaluation(), written(), user=user)
    event = Event.objects.get(verb="added")
    assert (event.user, event.object_type, event.object_id) == (user, "comparison", comparison.pk)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"query": " \n"}, "prompt"),
        ({"first_candidate": " "}, "Name both"),
        ({"first_candidate": "alpha"}, "Both responses are from “alpha”"),
        ({"first_candidate": "b" * 201}, "200"),
        ({"category": "c" * 121}, "120"),
        ({"first_response": "a\x00b"}, "The first response holds a NUL"),
        ({"query": "a\ud800"}, "surrogate"),
    ],
)
def test_what_cannot_be_kept_is_one_sentence_and_stores_nothing(changes: dict[str, str], said: str) -> None:
    with pytest.raises(InputRefused, match=said):
        add_comparison(make_evaluation(), written(**changes), user=None)
    assert not Query.objects.exists()
    assert not Candidate.objects.exists()


def test_the_same_comparison_twice_is_refused_by_its_number() -> None:
    evaluation = make_evaluation()
    first = add_comparison(evaluation, written(), user=None)
    swapped = written(
        first_candidate="alpha", first_response="Paris.", second_candidate="beta", second_response="Lyon."
    )
    with pytest.raises(InputRefused, match=f"number {first.pk}"):
        add_comparison(evaluation, swapped, user=None)
    assert Comparison.objects.count() == 1


def test_a_known_query_keeps_its_category() -> None:
    evaluation = make_evaluation()
    add_comparison(evaluation, written(category="facts"), user=None)
    with pytest.raises(InputRefused, match="“facts”"):
        add_comparison(evaluation, written(category="poems", first_response="Nice."), user=None)

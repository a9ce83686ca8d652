"""Passages that people mark: where they stand, what is refused, and what the record keeps."""

from typing import Any

import pytest

from evaluations.domain.errors import InputRefused
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Event
from evaluations.models.judges import find_rater_of_user
from evaluations.models.users import User
from evaluations.models.verdicts import Review, Span
from evaluations.reviews.services import get_or_create_review
from evaluations.reviews.spans import MAX_QUOTE_LENGTH, change_span, create_span, delete_span, get_own_spans
from tests.factories.evaluations import make_comparison, make_evaluation, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

TEXT = "Paris is **the capital** of France.\n\nParis is large."


@pytest.fixture
def review(owner: User) -> Review:
    return get_or_create_review(owner, make_comparison(make_evaluation(owner), response_a=TEXT))


def marked(review: Review, quote: str, **how: Any) -> Span:
    given = {"turn": None, "start": None, "end": None, "comment": "", "aspect": "", "user": review.rater.user}
    return create_span(review, quote=quote, **{"response": review.comparison.response_a, **given, **how})


def test_a_passage_is_stored_where_it_stands_in_the_text_as_shown(review: Review) -> None:
    span = marked(review, "the capital of", turn=0, start=9, end=23, comment="Right.", aspect="factuality")
    assert (span.turn, span.start, span.end, span.quote, span.comment) == (0, 9, 23, "the capital of", "Right.")
    assert span.aspect is not None
    assert span.aspect.key == "factuality"


def test_the_same_passage_sent_twice_is_one_and_recorded_once(review: Review) -> None:
    first, second = (marked(review, "the capital", comment="Right.") for _ in range(2))
    assert first == second
    assert marked(review, "the capital", comment="Another remark.") != first
    assert marked(review, "the capital", comment="Right.", aspect="factuality") != first
    assert Span.objects.count() == Event.objects.filter(verb="marked a passage").count() == 3


def test_words_without_a_place_are_found_whatever_space_stands_between_them(review: Review) -> None:
    span = marked(review, "  capital\nof   France. ")
    assert (span.turn, span.start, span.end, span.quote) == (0, 13, 31, "capital of France.")


def test_of_several_places_the_one_nearest_to_where_it_was_selected_is_taken(review: Review) -> None:
    assert marked(review, "Paris is").start == 0
    assert marked(review, "Paris is", turn=0, start=30, end=38).start == 32


def test_characters_outside_the_first_plane_are_one_each(owner: User) -> None:
    comparison = make_comparison(make_evaluation(owner), response_a="👍👍 good")
    span = marked(get_or_create_review(owner, comparison), "good", turn=0, start=3, end=7)
    assert (span.start, span.quote) == (3, "good")


def test_the_turn_is_part_of_the_place(review: Review) -> None:
    response = review.comparison.response_a
    response.messages = [{"role": "assistant", "content": "One"}, {"role": "assistant", "content": "Two"}]
    response.save()
    assert marked(review, "Two").turn == 1


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"quote": "  "}, "select words of a response"),
        ({"quote": "Lyon"}, "this text is not in the response"),
        ({"quote": "x" * (MAX_QUOTE_LENGTH + 1)}, "up to 2,000 characters"),
        ({"quote": "Paris", "turn": 0, "start": 5, "end": 5}, "ends before it begins"),
        ({"quote": "Paris", "turn": 3}, "no turn 4"),
        ({"quote": "Paris", "comment": "x" * 10_001}, "up to 10,000 characters"),
        ({"quote": "Paris", "aspect": "beauty"}, "does not ask about “beauty”"),
    ],
)
def test_what_cannot_be_a_passage_is_refused_in_a_sentence(review: Review, how: dict[str, Any], words: str) -> None:
    with pytest.raises(InputRefused, match=words):
        marked(review, **how)
    assert not Span.objects.exists()


def test_a_response_of_another_comparison_is_refused(review: Review) -> None:
    other = make_comparison(review.comparison.evaluation).response_a
    with pytest.raises(InputRefused, match="not part of this comparison"):
        marked(review, "Paris", response=other)


def test_a_comment_can_be_changed_and_the_passage_removed_and_the_record_keeps_both(review: Review) -> None:
    owner = review.rater.user
    assert owner is not None
    span = marked(review, "Paris", comment="Why?")
    change_span(span, "Because.", "depth", owner)
    span.refresh_from_db()
    assert (span.comment, span.aspect and span.aspect.key) == ("Because.", "depth")
    delete_span(span, owner)
    assert not Span.objects.exists()
    events = Event.objects.filter(object_type="span").order_by("pk")
    assert [event.verb for event in events] == [
        "marked a passage",
        "changed a comment on a passage",
        "unmarked a passage",
    ]
    assert (events[1].before["comment"], events[1].after["comment"]) == ("Why?", "Because.")
    assert events[2].before["quote"] == "Paris"


def test_everybody_finds_their_own_in_the_order_of_the_text(owner: User, review: Review) -> None:
    other = get_or_create_review(make_user(), review.comparison)
    marked(review, "large")
    marked(review, "capital")
    marked(other, "France")
    rater = find_rater_of_user(owner, review.comparison.evaluation)
    assert [span.quote for span in get_own_spans(review.comparison, rater)] == ["capital", "large"]
    assert get_own_spans(review.comparison, None) == []


def test_a_comparison_that_nobody_marked_has_none(owner: User) -> None:
    comparison: Comparison = make_comparison(make_evaluation(owner))
    assert get_own_spans(comparison, find_rater_of_user(owner, comparison.evaluation)) == []


def test_what_is_marked_in_both_responses_is_told_in_an_order_that_says_nothing_of_a_and_b(owner: User) -> None:
    review = get_or_create_review(
        owner, make_comparison(make_evaluation(owner), response_a="Not so.", response_b="Not at all.")
    )
    second = marked(review, "Not", response=review.comparison.response_b)
    first = marked(review, "Not", response=review.comparison.response_a)
    assert get_own_spans(review.comparison, find_rater_of_user(owner, review.comparison.evaluation)) == [second, first]

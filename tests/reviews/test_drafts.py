"""What was entered and not saved yet."""

import pytest

from evaluations.domain.choices import Choice
from evaluations.domain.errors import InputRefused
from evaluations.domain.reviews import ReviewState
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.users import User
from evaluations.models.verdicts import Review, Verdict
from evaluations.reviews.drafts import DraftChangedElsewhere, read_draft, save_draft
from evaluations.reviews.selectors import get_order_shown
from evaluations.reviews.services import create_or_save_draft, get_or_create_review, save_first_choices
from tests.factories.evaluations import make_comparison
from tests.factories.verdicts import SIX_ASPECT_KEYS

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

CHOSEN = {"choice_clarity": "A"}
OTHERWISE = {"choice_clarity": "B", "note": "B is shorter"}


@pytest.fixture
def comparison(evaluation: Evaluation) -> Comparison:
    return make_comparison(evaluation)


@pytest.fixture
def review(reviewer: User, comparison: Comparison) -> Review:
    return get_or_create_review(reviewer, comparison)


def test_a_draft_is_kept_as_entered_and_moves_nothing_else(review: Review) -> None:
    kept = save_draft(review, version=0, fields=CHOSEN, number=0, tab="one", active_ms=4000)
    draft = read_draft(Review.objects.get())
    assert draft is not None
    assert (draft.fields, draft.active_ms) == (CHOSEN, 4000)
    assert (kept.draft_number, kept.version, kept.state) == (1, 0, ReviewState.DRAFT)
    assert not Verdict.objects.exists()
    assert not Event.objects.filter(object_type="review").exists()


def test_the_first_draft_creates_the_review_and_another_page_does_not_overwrite_it(
    reviewer: User, comparison: Comparison
) -> None:
    kept = create_or_save_draft(reviewer, comparison, version=0, fields=CHOSEN, number=0, tab="one", active_ms=4000)
    stored = Review.objects.get()
    draft = read_draft(stored)
    assert draft is not None
    assert (draft.fields, draft.active_ms) == (CHOSEN, 4000)
    assert (stored.pk, stored.draft_number, stored.version, stored.state) == (kept.pk, 1, 0, ReviewState.DRAFT)
    assert stored.shown == get_order_shown(reviewer, comparison)
    assert stored.rubric_version.frozen_at is not None
    with pytest.raises(DraftChangedElsewhere):
        create_or_save_draft(reviewer, comparison, version=0, fields=OTHERWISE, number=0, tab="two")
    again = create_or_save_draft(reviewer, comparison, version=0, fields=OTHERWISE, number=0, tab="one")
    assert (again.pk, again.draft["fields"], again.draft_number) == (kept.pk, OTHERWISE, 2)


def test_the_same_page_may_replace_its_draft_though_an_answer_was_lost(review: Review) -> None:
    save_draft(review, version=0, fields=CHOSEN, number=0, tab="one")
    kept = save_draft(review, version=0, fields=OTHERWISE, number=0, tab="one")
    assert (kept.draft["fields"], kept.draft_number) == (OTHERWISE, 2)


def test_a_draft_of_another_page_is_not_overwritten_and_comes_back(review: Review) -> None:
    save_draft(review, version=0, fields=CHOSEN, number=0, tab="one")
    with pytest.raises(DraftChangedElsewhere) as refused:
        save_draft(review, version=0, fields=OTHERWISE, number=0, tab="two")
    assert refused.value.review.draft["fields"] == CHOSEN
    assert refused.value.review.draft_number == 1
    assert Review.objects.get().draft["fields"] == CHOSEN


def test_whoever_has_seen_a_draft_may_replace_it(review: Review) -> None:
    save_draft(review, version=0, fields=CHOSEN, number=0, tab="one")
    kept = save_draft(review, version=0, fields=OTHERWISE, number=1, tab="two")
    assert (kept.draft["fields"], kept.draft_tab) == (OTHERWISE, "two")


def test_two_pages_that_entered_the_same_agree(review: Review) -> None:
    save_draft(review, version=0, fields=CHOSEN, number=0, tab="one")
    kept = save_draft(review, version=0, fields=CHOSEN, number=0, tab="two")
    assert (kept.draft_number, kept.draft_tab) == (1, "one")


def test_a_draft_that_comes_after_the_save_is_refused(reviewer: User, comparison: Comparison, review: Review) -> None:
    save_first_choices(reviewer, comparison, choices=dict.fromkeys(SIX_ASPECT_KEYS, Choice.A), version=0)
    with pytest.raises(InputRefused, match="changed elsewhere"):
        save_draft(review, version=0, fields=CHOSEN, number=0, tab="one")
    assert read_draft(Review.objects.get()) is None


def test_a_save_clears_the_draft(reviewer: User, comparison: Comparison, review: Review) -> None:
    save_draft(review, version=0, fields=CHOSEN, number=0, tab="one")
    saved = save_first_choices(reviewer, comparison, choices=dict.fromkeys(SIX_ASPECT_KEYS, Choice.A), version=0)
    assert read_draft(Review.objects.get(pk=saved.pk)) is None

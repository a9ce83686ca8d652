"""The example is there in one go, once, and leaves no page empty."""

from collections import Counter

import pytest

from evaluations.domain.choices import Stage
from evaluations.domain.judges import JudgeKind, RunState
from evaluations.domain.reviews import ReviewState
from evaluations.domain.roles import Role
from evaluations.evaluation_settings.services import move_to_archive
from evaluations.examples.services import load_example
from evaluations.exports.comparison_rows import iterate_full_rows
from evaluations.exports.participants import load_participants
from evaluations.models.comparisons import Comparison, Query
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater, get_or_create_rater
from evaluations.models.queues import Assignment, QueueItem
from evaluations.models.runs import Call, Run
from evaluations.models.users import Membership, User
from evaluations.models.verdicts import Label, Review, Verdict
from evaluations.reviews.queues.next_comparison import reserve_next_comparison
from evaluations.verdicts.labels import decide_labels
from tests.factories.queue_state import assert_counters_are_right

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("consistent_packed_votes"), pytest.mark.any_database]


@pytest.fixture
def example(owner: User) -> Evaluation:
    evaluation = load_example(owner=owner)
    assert evaluation is not None
    return evaluation


def test_it_has_24_queries_three_of_each_of_eight_categories(example: Evaluation) -> None:
    assert Comparison.objects.filter(evaluation=example).count() == 24
    assert Counter(Query.objects.values_list("category", flat=True)) == dict.fromkeys(
        ("facts", "coding", "maths", "writing", "summaries", "advice", "safety", "data"), 3
    )


def test_its_texts_are_as_varied_as_life(example: Evaluation) -> None:
    queries = {query.key: query for query in Query.objects.all()}
    texts = {one.query.key: [one.response_a.text, one.response_b.text] for one in Comparison.objects.all()}
    assert len(queries["advice-1"].messages) == 3
    assert any("```" in text for text in texts["coding-1"])
    assert any("|---|" in text for text in texts["data-1"])
    assert any("\u0600" < letter < "\u06ff" for letter in texts["writing-3"][0])
    assert any("\u3040" < letter < "\u30ff" for letter in texts["facts-3"][0])
    assert max(len(text) for pair in texts.values() for text in pair) > 1_500
    assert all(comparison.metadata["planted"] for comparison in Comparison.objects.all())


def test_the_baseline_has_judged_everything_in_both_orders(example: Evaluation) -> None:
    run = Run.objects.get()
    assert run.state == RunState.DONE
    assert (run.judge.kind, run.judge.model) == (JudgeKind.RULE, "longest")
    assert Counter(Call.objects.values_list("state", "shown")) == {
        ("answered", "as_stored"): 24,
        ("answered", "swapped"): 24,
    }
    example.refresh_from_db()
    assert example.shown_judge == run.judge


def test_longer_is_not_always_better_in_it(example: Evaluation) -> None:
    """The planted judge and the people disagree where the longer response is the worse one."""
    of_the_pole = Comparison.objects.filter(query__key="facts-2")
    (row,) = iterate_full_rows(of_the_pole, load_participants(example))
    assert row["judges"][0]["choices"]["factuality"]["choice"] == "A"
    assert row["labels"]["factuality"]["choice"] == "B"


def test_two_invented_people_have_reviewed_a_part_of_every_category_and_say_so(example: Evaluation) -> None:
    reviews = Review.objects.select_related("rater", "comparison__query")
    assert Counter(review.rater.name for review in reviews) == {"Example reviewer 1": 12, "Example reviewer 2": 12}
    assert {review.comparison.query.category for review in reviews} == set(
        Query.objects.values_list("category", flat=True)
    )
    assert all(review.is_example and review.state == ReviewState.FINAL for review in reviews)
    assert not Rater.objects.filter(kind="human", user__isnull=False).exists()


def test_every_review_has_first_and_final_choices_for_all_six_aspects(example: Evaluation) -> None:
    given = Counter(Verdict.objects.filter(review__isnull=False).values_list("stage", "aspect__key"))
    assert len(given) == 12
    assert set(given.values()) == {24}
    changed = Verdict.objects.filter(stage=Stage.FINAL).exclude(note="")
    assert changed.exists()


def test_half_of_it_is_labelled(example: Evaluation) -> None:
    given = decide_labels(example, Comparison.objects.values_list("pk", flat=True))
    assert len(given) == 12
    assert {label.source for aspects in given.values() for label in aspects.values()} == {"majority", "split"}
    kept = Label.objects.values_list("comparison_id", "aspect__key", "choice", "source")
    assert {(pk, key): (choice, source) for pk, key, choice, source in kept} == {
        (pk, key): (label.choice or "", label.source) for pk, aspects in given.items() for key, label in aspects.items()
    }


def test_all_24_wait_for_the_new_owner(example: Evaluation, owner: User) -> None:
    assert Membership.objects.get().role == Role.OWNER
    assert example.reviews_wanted == 3
    assert reserve_next_comparison(example, get_or_create_rater(owner, example)) is not None


def test_a_second_time_changes_nothing_archived_or_not(example: Evaluation, owner: User) -> None:
    before = [model.objects.count() for model in (Evaluation, Comparison, Verdict)]
    assert load_example(owner=owner) is None
    move_to_archive(example, user=owner)
    assert load_example(owner=None) is None
    assert [model.objects.count() for model in (Evaluation, Comparison, Verdict)] == before


def test_its_reviews_have_their_places_in_the_queue_and_were_drawn_at_random(example: Evaluation) -> None:
    assert_counters_are_right(example)
    said = Review.objects.values_list("comparison", flat=True)
    drawn = QueueItem.objects.filter(drawn=True)
    assert set(drawn.values_list("comparison", flat=True)) == set(said)
    assert Assignment.objects.filter(state="done", selection_method="random").count() == len(said)

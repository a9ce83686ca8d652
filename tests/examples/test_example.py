"""The example is there in one go, once, and leaves no page empty."""

from collections import Counter
from collections.abc import Iterator

import pytest
from django.db import transaction
from pytest_django.plugin import DjangoDbBlocker

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
from evaluations.models.judges import Endpoint, Judge, Rater, get_or_create_rater
from evaluations.models.queues import Assignment, QueueItem
from evaluations.models.runs import Attempt, Call, Run
from evaluations.models.users import Membership, User
from evaluations.models.verdicts import Adjudication, Comment, Label, Review, Verdict
from evaluations.reviews.queues.next_comparison import reserve_next_comparison
from evaluations.verdicts.labels import decide_labels
from tests.factories.evaluations import make_user
from tests.factories.queue_state import assert_counters_are_right

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("consistent_packed_votes"), pytest.mark.any_database]


@pytest.fixture(scope="module")
def loaded_example(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[int]:
    """Its id. It is loaded once for all tests here, in a transaction that ends with them."""
    with django_db_blocker.unblock(), transaction.atomic():
        evaluation = load_example(owner=make_user("lovelace"))
        assert evaluation is not None
        yield evaluation.pk
        transaction.set_rollback(True)


@pytest.fixture
def example(loaded_example: int, db: None) -> Evaluation:
    return Evaluation.objects.get(pk=loaded_example)


@pytest.fixture
def its_owner(example: Evaluation) -> User:
    return User.objects.get(memberships__evaluation=example)


def test_it_has_120_queries_fifteen_of_each_of_eight_categories(example: Evaluation) -> None:
    assert Comparison.objects.filter(evaluation=example).count() == 120
    assert Counter(Query.objects.values_list("category", flat=True)) == dict.fromkeys(
        ("facts", "coding", "math", "writing", "summaries", "advice", "safety", "data"), 15
    )


def test_its_texts_are_as_varied_as_life(example: Evaluation) -> None:
    queries = {query.key: query for query in Query.objects.all()}
    texts = {one.query.key: [one.response_a.text, one.response_b.text] for one in Comparison.objects.all()}
    assert len(queries["advice-1"].messages) == 3
    assert len(queries["advice-7"].messages) == 9
    assert any("```" in text for text in texts["coding-1"])
    assert any("|---|" in text for text in texts["data-1"])
    assert any("$$" in text for text in texts["math-11"])
    assert any("\u0600" < letter < "\u06ff" for letter in texts["writing-3"][0])
    assert any("\u3040" < letter < "\u30ff" for letter in texts["facts-3"][0])
    assert max(len(text) for pair in texts.values() for text in pair) > 1_500
    assert all(comparison.metadata["planted"] for comparison in Comparison.objects.all())


def test_the_baseline_has_judged_everything_in_both_orders(example: Evaluation) -> None:
    run = Run.objects.get()
    assert run.state == RunState.DONE
    assert (run.judge.kind, run.judge.model) == (JudgeKind.RULE, "longest")
    assert Counter(Call.objects.filter(run=run).values_list("state", "shown")) == {
        ("answered", "as_stored"): 120,
        ("answered", "swapped"): 120,
    }


def test_the_replies_of_two_sample_judges_are_imported_in_both_orders_with_rationales(example: Evaluation) -> None:
    judges = Judge.objects.filter(evaluation=example, kind=JudgeKind.IMPORTED)
    assert sorted(judge.name for judge in judges) == ["sample-judge", "sample-judge-long"]
    failed = Call.objects.filter(judge__in=judges).values_list("judge__name", "state")
    assert Counter(failed) == {
        ("sample-judge", "refused"): 1,
        ("sample-judge", "unreadable"): 1,
        ("sample-judge-long", "truncated"): 2,
        ("sample-judge-long", "unreadable"): 1,
    }
    for judge in judges:
        verdicts = Verdict.objects.filter(rater__judge=judge)
        replies = 240 - Call.objects.filter(judge=judge).count()
        assert verdicts.count() == 6 * replies
        assert verdicts.exclude(rationale="").count() == replies
    example.refresh_from_db()
    assert example.shown_judge == judges.get(name="sample-judge")


def test_the_sample_judges_are_no_runs_and_cost_nothing(example: Evaluation) -> None:
    assert not Endpoint.objects.exists()
    assert not Attempt.objects.exists()
    assert Run.objects.get().spent == 0


def test_a_judge_that_answers_differently_by_order_is_inconsistent_there(example: Evaluation) -> None:
    (row,) = iterate_full_rows(Comparison.objects.filter(query__key="data-11"), load_participants(example))
    judged = next(judge for judge in row["judges"] if judge["judge"] == "sample-judge")
    assert judged["choices"]["helpfulness"]["inconsistent"]


def test_longer_is_not_always_better_in_it(example: Evaluation) -> None:
    """The planted judge and the people disagree where the longer response is the worse one."""
    about_pizza = Comparison.objects.filter(query__key="math-13")
    (row,) = iterate_full_rows(about_pizza, load_participants(example))
    choices = {judge["judge"]: judge["choices"]["helpfulness"]["choice"] for judge in row["judges"]}
    assert choices == {"longest": "A", "sample-judge": "B", "sample-judge-long": "A"}
    assert row["labels"]["helpfulness"]["choice"] == "B"


def test_three_sample_reviewers_have_reviewed_a_part_of_every_category_and_say_so(example: Evaluation) -> None:
    reviews = Review.objects.select_related("rater", "comparison__query")
    assert set(Counter(review.rater.name for review in reviews)) == {
        f"Sample reviewer {number}" for number in (1, 2, 3)
    }
    assert Counter(Counter(review.comparison_id for review in reviews).values()) == {3: 48, 2: 14, 1: 22}
    assert {review.comparison.query.category for review in reviews} == set(
        Query.objects.values_list("category", flat=True)
    )
    assert all(review.is_example and review.state == ReviewState.FINAL for review in reviews)
    assert not Rater.objects.filter(kind="human", user__isnull=False).exists()


def test_every_review_has_first_and_final_choices_for_all_six_aspects(example: Evaluation) -> None:
    given = Counter(Verdict.objects.filter(review__isnull=False).values_list("stage", "aspect__key"))
    assert len(given) == 12
    assert set(given.values()) == {194}
    changed = Verdict.objects.filter(stage=Stage.FINAL).exclude(note="")
    assert changed.exists()


def test_what_was_reviewed_is_labelled(example: Evaluation) -> None:
    kept = Label.objects.values_list("comparison_id", "aspect__key", "choice", "source")
    reviewed = {comparison for comparison, *_ in kept}
    assert len(reviewed) == 84
    assert {source for *_, source in kept} == {"adjudicated", "majority", "single", "split"}
    given = decide_labels(example, reviewed)
    assert {(pk, key): (choice, source) for pk, key, choice, source in kept} == {
        (pk, key): (label.choice or "", label.source) for pk, aspects in given.items() for key, label in aspects.items()
    }


def test_thirty_disagreements_are_open_and_a_few_are_resolved_or_discussed(example: Evaluation) -> None:
    still_open = Label.objects.filter(unanimous=False).exclude(source="adjudicated")
    assert still_open.values("comparison").distinct().count() == 30
    resolved = Adjudication.objects.values_list("comparison", flat=True).distinct()
    assert resolved.count() == 5
    assert not still_open.filter(comparison__in=resolved).exists()
    assert all(row.reason for row in Adjudication.objects.all())
    assert Comment.objects.count() == 6


def test_nobody_can_sign_in_as_the_author_of_its_resolutions(example: Evaluation) -> None:
    lead = User.objects.get(username="sample-lead")
    assert (lead.is_active, lead.has_usable_password(), lead.rights_of_account) == (False, False, 0)
    assert set(Adjudication.objects.values_list("user", flat=True)) == {lead.pk}
    assert set(Comment.objects.values_list("user", flat=True)) == {lead.pk}


def test_many_comparisons_wait_for_the_new_owner(example: Evaluation, its_owner: User) -> None:
    assert Membership.objects.get().role == Role.OWNER
    assert example.reviews_wanted == 3
    assert reserve_next_comparison(example, get_or_create_rater(its_owner, example)) is not None


def test_a_second_time_changes_nothing_archived_or_not(example: Evaluation, its_owner: User) -> None:
    before = [model.objects.count() for model in (Evaluation, Comparison, Verdict)]
    assert load_example(owner=its_owner) is None
    move_to_archive(example, user=its_owner)
    assert load_example(owner=None) is None
    assert [model.objects.count() for model in (Evaluation, Comparison, Verdict)] == before


def test_its_reviews_have_their_places_in_the_queue_and_were_drawn_at_random(example: Evaluation) -> None:
    assert_counters_are_right(example)
    said = Review.objects.values_list("comparison", flat=True)
    drawn = QueueItem.objects.filter(drawn=True)
    assert set(drawn.values_list("comparison", flat=True)) == set(said)
    assert Assignment.objects.filter(state="done", selection_method="random").count() == len(said)

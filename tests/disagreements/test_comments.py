"""A short thread for each comparison: whom it calls, and how words are taken back."""

from datetime import timedelta

import pytest
from django.utils import timezone

from evaluations.disagreements.selectors import count_new_mentions
from evaluations.disagreements.services import add_comment, find_mentioned, mark_mentions_seen, withdraw_own_comment
from evaluations.domain.errors import InputRefused
from evaluations.domain.roles import Role
from evaluations.evaluation_settings.services import move_to_archive
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.users import User
from evaluations.models.verdicts import Comment, Mention
from evaluations.visibility import list_people_who_can_see, visible_comparisons_everywhere
from tests.factories.evaluations import make_comparison, make_human, make_member, make_user
from tests.factories.verdicts import ALL_A, make_review

pytestmark = pytest.mark.django_db


@pytest.fixture
def comparison(evaluation: Evaluation) -> Comparison:
    return make_comparison(evaluation)


@pytest.fixture
def olive(evaluation: Evaluation) -> User:
    return User.objects.get(username="olive")


@pytest.mark.parametrize(
    ("text", "called", "unknown"),
    [
        ("@rita what do you say?", ["rita"], []),
        ("Ask @rita.", ["rita"], []),
        ("Ask @Rita, @rita and @ann.lee...", ["rita", "ann.lee"], []),
        ("(@rita)", ["rita"], []),
        ("@nobody and @rita-", ["rita"], ["nobody"]),
        ("mail to rita@example.org", [], []),
        ("`@rita` is code, and so is\n```\n@ann.lee\n```\n", [], []),
        ("@ alone", [], []),
    ],
)
def test_a_name_after_the_sign_calls_who_bears_it(text: str, called: list[str], unknown: list[str]) -> None:
    readers = [User(pk=1, username="rita"), User(pk=2, username="ann.lee")]
    found, others = find_mentioned(text, readers)
    assert ([one.username for one in found], others) == (called, unknown)


def test_only_who_may_see_it_is_called(evaluation: Evaluation, comparison: Comparison, olive: User) -> None:
    make_member(evaluation, Role.REVIEWER, "blind")
    ada = make_member(evaluation, Role.ADJUDICATOR, "ada")
    make_user("stranger")
    posted = add_comment(
        comparison, "@blind @ada @stranger", aspect=None, user=olive, readers=list_people_who_can_see(comparison)
    )
    assert list(posted.mentioned) == [ada]
    assert list(posted.unknown) == ["blind", "stranger"]
    assert Mention.objects.get().user == ada


def test_a_comment_sent_twice_within_a_minute_is_one_and_calls_once(
    evaluation: Evaluation, comparison: Comparison, olive: User
) -> None:
    ada = make_member(evaluation, Role.ADJUDICATOR, "ada")

    def say(text: str, user: User = olive) -> Comment:
        return add_comment(comparison, text, aspect=None, user=user, readers=[ada]).comment

    first = say("Look, @ada.")
    assert say("Look, @ada.") == first
    assert (Comment.objects.count(), Mention.objects.count()) == (1, 1)
    assert Event.objects.filter(verb="commented").count() == 1
    assert say("Look, @ada.", user=ada) != first
    assert say("Look!") != first
    Comment.objects.filter(pk=first.pk).update(created_at=timezone.now() - timedelta(minutes=2))
    assert say("Look, @ada.") != first


def test_what_was_withdrawn_can_be_said_again_at_once(comparison: Comparison, olive: User) -> None:
    first = add_comment(comparison, "Hm.", aspect=None, user=olive, readers=[]).comment
    withdraw_own_comment(first, user=olive)
    assert add_comment(comparison, "Hm.", aspect=None, user=olive, readers=[]).comment != first


def test_calling_oneself_tells_nobody(comparison: Comparison, olive: User) -> None:
    add_comment(comparison, "@olive, remember", aspect=None, user=olive, readers=[olive])
    assert not Mention.objects.exists()


def test_a_call_is_seen_when_its_thread_was_opened(evaluation: Evaluation, comparison: Comparison, olive: User) -> None:
    ada = make_member(evaluation, Role.ADJUDICATOR, "ada")
    add_comment(comparison, "@ada", aspect=None, user=olive, readers=[ada])
    readable = visible_comparisons_everywhere(ada)
    assert count_new_mentions(ada, readable) == 1
    mark_mentions_seen(olive, comparison)
    assert count_new_mentions(ada, readable) == 1
    mark_mentions_seen(ada, comparison)
    assert count_new_mentions(ada, readable) == 0


def test_who_may_no_longer_see_it_is_no_longer_called(
    evaluation: Evaluation, comparison: Comparison, olive: User
) -> None:
    rita = make_member(evaluation, Role.REVIEWER, "rita")
    rater = make_human(evaluation, "rita")
    rater.user = rita
    rater.save()
    review = make_review(rater, comparison, ALL_A)
    add_comment(comparison, "@rita", aspect=None, user=olive, readers=list_people_who_can_see(comparison))
    assert count_new_mentions(rita, visible_comparisons_everywhere(rita)) == 1
    review.state = "draft"
    review.save()
    assert count_new_mentions(rita, visible_comparisons_everywhere(rita)) == 0


def test_withdrawn_words_call_nobody_and_stay_on_record(
    evaluation: Evaluation, comparison: Comparison, olive: User
) -> None:
    ada = make_member(evaluation, Role.ADJUDICATOR, "ada")
    comment = add_comment(comparison, "@ada nonsense", aspect=None, user=olive, readers=[ada]).comment
    withdraw_own_comment(comment, user=olive)
    withdraw_own_comment(comment, user=olive)
    assert Comment.objects.get().withdrawn_at is not None
    assert count_new_mentions(ada, visible_comparisons_everywhere(ada)) == 0
    assert list(Event.objects.filter(object_type="comment").order_by("pk").values_list("verb", flat=True)) == [
        "commented",
        "withdrew comment",
    ]


def test_nobody_withdraws_the_words_of_others(evaluation: Evaluation, comparison: Comparison, olive: User) -> None:
    comment = add_comment(comparison, "so", aspect=None, user=olive, readers=[]).comment
    with pytest.raises(InputRefused, match="only your own"):
        withdraw_own_comment(comment, user=make_member(evaluation, Role.OWNER))


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_comment_is_refused(comparison: Comparison, olive: User, text: str) -> None:
    with pytest.raises(InputRefused, match="Write a comment first"):
        add_comment(comparison, text, aspect=None, user=olive, readers=[])


def test_nothing_is_said_in_an_archived_evaluation(evaluation: Evaluation, comparison: Comparison, olive: User) -> None:
    move_to_archive(evaluation, user=olive)
    comparison.refresh_from_db()
    with pytest.raises(InputRefused, match="archived"):
        add_comment(comparison, "late", aspect=None, user=olive, readers=[])

"""Where others call me: new ones first, and a count in the header of every page."""

import pytest
from django.test import Client
from django.urls import reverse

from evaluations.disagreements.services import add_comment, withdraw_own_comment
from evaluations.domain.roles import Role
from evaluations.members.services import remove_member
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User
from evaluations.models.verdicts import Comment
from evaluations.visibility import has_seen_verdicts, list_people_who_can_see
from tests.factories.evaluations import make_comparison, make_member

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada(evaluation: Evaluation, client: Client) -> User:
    user = make_member(evaluation, Role.ADJUDICATOR, "ada")
    client.force_login(user)
    return user


def called(evaluation: Evaluation, text: str) -> Comparison:
    comparison = make_comparison(evaluation)
    olive = User.objects.get(username="olive")
    add_comment(comparison, text, aspect=None, user=olive, readers=list_people_who_can_see(comparison))
    return comparison


def page(client: Client) -> str:
    return client.get(reverse("mentions")).content.decode()


def test_who_was_never_called_is_told_how_that_happens(client: Client, ada: User) -> None:
    text = page(client)
    assert "No mentions" in text
    assert "@ada" in text


def test_new_ones_stand_first_until_they_are_opened(client: Client, evaluation: Evaluation, ada: User) -> None:
    first, _ = called(evaluation, "@ada early words"), called(evaluation, "@ada later words")
    client.get(reverse("disagreement", args=["study", first.pk]))
    text = page(client)
    assert text.index("later words") < text.index('id="seen-heading"') < text.index("early words")


def test_what_was_written_as_markdown_is_told_in_plain_words(client: Client, evaluation: Evaluation, ada: User) -> None:
    called(evaluation, "@ada **Bold** <b>claim</b>\n\n- one `x < y`")
    text = page(client)
    assert "@ada Bold &lt;b&gt;claim&lt;/b&gt;" in text
    assert "one x &lt; y" in text
    assert "**" not in text.split("<main")[1]


def test_the_header_counts_what_is_new(client: Client, evaluation: Evaluation, ada: User) -> None:
    home = reverse("evaluations")
    assert 'Mentions <span class="badge' not in client.get(home).content.decode()
    opened = called(evaluation, "@ada one")
    called(evaluation, "@ada two")
    assert 'Mentions <span class="badge accent">2<' in client.get(home).content.decode()
    client.get(reverse("disagreement", args=["study", opened.pk]))
    assert 'Mentions <span class="badge accent">1<' in client.get(home).content.decode()


def test_withdrawn_words_and_evaluations_that_one_left_are_gone(
    client: Client, evaluation: Evaluation, ada: User
) -> None:
    called(evaluation, "@ada hasty words")
    withdraw_own_comment(Comment.objects.get(), user=User.objects.get(username="olive"))
    called(evaluation, "@ada other words")
    assert "hasty words" not in page(client)
    assert "other words" in page(client)
    remove_member(evaluation.memberships.get(user=ada), by=User.objects.get(username="olive"))
    assert "No mentions" in page(client)


def test_words_read_here_count_as_having_seen_what_others_chose(
    client: Client, evaluation: Evaluation, ada: User
) -> None:
    comparison = called(evaluation, "@ada I say B")
    assert not has_seen_verdicts(ada, comparison)
    page(client)
    assert has_seen_verdicts(ada, comparison)

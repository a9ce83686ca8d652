"""Invitations: who is named decides, and who names learns nothing of accounts."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from evaluations.domain.errors import InputRefused
from evaluations.domain.roles import Role
from evaluations.members.invitations.services import (
    accept_invitation,
    create_invitation,
    decline_invitation,
    withdraw_invitation,
)
from evaluations.members.selectors import list_invitations, list_invitations_for
from evaluations.members.services import create_account, disable_account, enroll_member
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.users import Invitation, Membership, User
from tests.factories.evaluations import give_rights, make_evaluation, make_user
from tests.helpers.api_client import ApiClient, token_for

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


def invite_on_page(client: Client, username: str) -> str:
    address = reverse("member_invite", args=["study"])
    page = client.post(address, {"names": username, "role": "reviewer"}, follow=True).content.decode()
    page = re.sub(r'name="csrfmiddlewaretoken" value="[^"]*"|"X-CSRFToken": "[^"]*"|/\d+/withdraw', "", page)
    return page.replace(username, "NAME")


@pytest.fixture
def invitation(evaluation: Evaluation, owner: User) -> Invitation:
    return create_invitation(evaluation, "Grace", Role.REVIEWER, by=owner)


def test_an_owner_gets_the_same_answer_whether_or_not_the_account_exists(
    owner_signed_in: Client, owner: User, evaluation: Evaluation
) -> None:
    make_user("grace")
    gone = make_user("gonny")
    disable_account(gone, by=owner)
    answers = set()
    for name in ("grace", "gonny", "nobdy"):
        answers.add(invite_on_page(owner_signed_in, name))
        Invitation.objects.all().delete()
    assert len(answers) == 1
    assert "Invited as reviewer" in answers.pop()


def test_the_api_answers_the_same_whether_or_not_the_account_exists(evaluation: Evaluation, owner: User) -> None:
    make_user("grace")
    asking, answers = ApiClient(token_for(owner)), []
    for name in ("grace", "nobody"):
        answer = asking.post("/evaluations/study/invitations", {"username": name, "role": "viewer"})
        told = answer.json()
        answers.append((answer.status_code, told["role"], told["username"] == name, sorted(told)))
    assert answers[0] == answers[1]
    assert answers[0][0] == 201


def test_an_owner_without_the_right_cannot_add_a_person_at_once(
    owner_signed_in: Client, evaluation: Evaluation
) -> None:
    make_user("grace")
    page = owner_signed_in.get(reverse("members", args=["study"])).content.decode()
    assert "Invite members" in page
    assert "Add members" not in page
    for name in ("grace", "nobody"):
        sent = {"names": name, "role": "reviewer"}
        assert owner_signed_in.post(reverse("members", args=["study"]), sent).status_code == 403
    assert Membership.objects.count() == 1


def test_only_who_accepts_takes_part(client: Client, evaluation: Evaluation, invitation: Invitation) -> None:
    grace = make_user("grace")
    assert not Membership.objects.filter(user=grace).exists()
    client.force_login(grace)
    page = client.get(reverse("evaluations")).content.decode()
    assert "invites you" in page
    answer = client.post(reverse("invitation_accept", args=[invitation.pk]))
    assert answer.headers["Location"] == reverse("evaluation", args=["study"])
    assert Membership.objects.get(user=grace).role == Role.REVIEWER
    assert not Invitation.objects.exists()


def test_nobody_accepts_what_was_offered_to_another(client: Client, invitation: Invitation) -> None:
    client.force_login(make_user("mallory"))
    for name in ("invitation_accept", "invitation_decline"):
        assert client.post(reverse(name, args=[invitation.pk])).status_code == 404
    assert "invites you" not in client.get(reverse("evaluations")).content.decode()


def test_an_owner_does_not_learn_that_somebody_declined(
    owner_signed_in: Client, evaluation: Evaluation, invitation: Invitation
) -> None:
    grace = make_user("grace")
    before, events = owner_signed_in.get(reverse("members", args=["study"])), Event.objects.count()
    client = Client()
    client.force_login(grace)
    client.post(reverse("invitation_decline", args=[invitation.pk]))
    assert not list_invitations_for(grace).exists()
    assert list(list_invitations(evaluation)) == [invitation]
    after = owner_signed_in.get(reverse("members", args=["study"]))
    assert len(after.content) == len(before.content)
    assert Event.objects.count() == events
    assert client.post(reverse("invitation_accept", args=[invitation.pk])).status_code == 404


def test_a_withdrawn_invitation_cannot_be_accepted(invitation: Invitation, owner: User) -> None:
    grace = make_user("grace")
    withdraw_invitation(invitation, by=owner)
    with pytest.raises(InputRefused, match="already accepted or withdrawn"):
        accept_invitation(invitation, by=grace)
    assert not Membership.objects.filter(user=grace).exists()


def test_an_invitation_is_accepted_once(invitation: Invitation) -> None:
    grace = make_user("grace")
    accept_invitation(invitation, by=grace)
    with pytest.raises(InputRefused, match="already accepted or withdrawn"):
        accept_invitation(invitation, by=grace)


def test_a_role_that_was_changed_meanwhile_is_kept(invitation: Invitation, evaluation: Evaluation) -> None:
    grace = make_user("grace")
    Membership.objects.create(evaluation=evaluation, user=grace, role=Role.VIEWER)
    assert accept_invitation(invitation, by=grace).role == Role.VIEWER


def test_a_name_is_invited_once_and_a_member_not_at_all(
    invitation: Invitation, evaluation: Evaluation, owner: User
) -> None:
    with pytest.raises(InputRefused, match="is already invited"):
        create_invitation(evaluation, "GRACE", Role.OWNER, by=owner)
    decline_invitation(invitation)
    with pytest.raises(InputRefused, match="is already invited"):
        create_invitation(evaluation, "grace", Role.OWNER, by=owner)
    with pytest.raises(InputRefused, match="is already a member"):
        create_invitation(evaluation, owner.username.upper(), Role.VIEWER, by=owner)


@pytest.mark.parametrize("username", ["two words", "nul\x00", "a" * 151])
def test_what_cannot_be_a_username_is_not_invited(evaluation: Evaluation, owner: User, username: str) -> None:
    with pytest.raises(InputRefused, match="is not a valid username"):
        create_invitation(evaluation, username, Role.VIEWER, by=owner)


def test_adding_a_person_at_once_ends_their_invitation(
    invitation: Invitation, evaluation: Evaluation, owner: User
) -> None:
    enroll_member(evaluation, "grace", Role.VIEWER, by=give_rights(owner))
    assert not Invitation.objects.exists()


def test_an_invitation_waits_for_an_account_that_is_made_later(invitation: Invitation) -> None:
    assert list(list_invitations_for(create_account("grace", by=None))) == [invitation]


def test_an_invitation_of_another_evaluation_cannot_be_withdrawn(
    owner_signed_in: Client, evaluation: Evaluation
) -> None:
    other = make_evaluation()
    elsewhere = create_invitation(other, "grace", Role.VIEWER, by=make_user())
    assert owner_signed_in.post(reverse("invitation_withdraw", args=["study", elsewhere.pk])).status_code == 404
    mine = create_invitation(evaluation, "grace", Role.VIEWER, by=make_user())
    owner_signed_in.post(reverse("invitation_withdraw", args=["study", mine.pk]))
    assert list(Invitation.objects.all()) == [elsewhere]


def test_the_api_accepts_and_declines(invitation: Invitation, evaluation: Evaluation) -> None:
    grace = make_user("grace")
    asking = ApiClient(token_for(grace))
    (offered,) = asking.get("/me/invitations").json()["items"]
    assert (offered["evaluation"], offered["role"]) == ("Study study", "reviewer")
    assert asking.post(f"/me/invitations/{offered['id']}/accept").json() == {"slug": "study", "role": "reviewer"}
    second = create_invitation(make_evaluation(slug="second"), "grace", Role.VIEWER, by=make_user())
    assert asking("DELETE", f"/me/invitations/{second.pk}").status_code == 204
    assert asking.get("/me/invitations").json()["items"] == []

"""What site policy lets an account do: nothing until a site administrator says otherwise."""

import pytest
from django.db import transaction
from django.http import Http404
from django.test import Client
from django.urls import reverse

from evaluations.access import RIGHT_COLUMNS, Right, RightRefused, has_right, list_rights, require_right
from evaluations.domain.errors import InputRefused
from evaluations.domain.roles import Role
from evaluations.domain.security import SecurityEventKind
from evaluations.members.accounts.services import change_account_rights, change_site_policy
from evaluations.members.services import create_account, create_sign_in_link, enroll_member
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.sign_ins import SecurityEvent
from evaluations.models.users import Membership, SignInLink, SitePolicy, User
from evaluations.overview.services import create_evaluation
from tests.factories.evaluations import give_rights, make_evaluation, make_member, make_user
from tests.helpers.api_client import ApiClient, token_for

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


@pytest.fixture
def administrator() -> User:
    return make_user("admin", is_superuser=True)


def test_a_new_account_has_no_right_and_an_administrator_has_all(administrator: User) -> None:
    assert list_rights(make_user()) == frozenset()
    assert list_rights(administrator) == frozenset(Right)


@pytest.mark.parametrize("right", list(Right))
def test_a_right_is_given_to_one_account_or_to_all_and_taken_back(administrator: User, right: Right) -> None:
    ada, grace = make_user("ada"), make_user("grace")
    change_account_rights(ada, {right: True}, by=administrator)
    ada.refresh_from_db()
    assert (list_rights(ada), list_rights(grace)) == (frozenset([right]), frozenset())
    change_account_rights(ada, {right: False}, by=administrator)
    change_site_policy({right: True}, by=administrator)
    ada.refresh_from_db()
    assert (list_rights(ada), list_rights(grace)) == (frozenset([right]), frozenset([right]))
    change_site_policy({right: False}, by=administrator)
    assert not has_right(ada, right)


def test_only_a_site_administrator_changes_rights(administrator: User) -> None:
    ada = give_rights(make_user("ada"))
    with pytest.raises(Http404):
        change_site_policy({Right.CREATE_EVALUATIONS: True}, by=ada)
    with pytest.raises(Http404):
        change_account_rights(ada, {Right.CREATE_EVALUATIONS: True}, by=ada)
    User.objects.filter(pk=administrator.pk).update(is_superuser=False)  # since the page was opened
    with pytest.raises(Http404):
        change_site_policy({Right.CREATE_EVALUATIONS: True}, by=administrator)


def test_a_right_that_was_taken_back_since_the_page_was_opened_is_refused() -> None:
    ada = give_rights(make_user("ada"))
    User.objects.filter(pk=ada.pk).update(can_create_evaluations=False)
    assert has_right(ada, Right.CREATE_EVALUATIONS)  # as the request read it
    with pytest.raises(RightRefused):
        create_evaluation(slug="new", name="New", owner=ada, by=ada)
    assert not Evaluation.objects.exists()


def test_a_disabled_account_has_no_right_left() -> None:
    ada = give_rights(make_user("ada"))
    User.objects.filter(pk=ada.pk).update(is_active=False)
    with transaction.atomic(), pytest.raises(RightRefused):
        require_right(ada, Right.CREATE_EVALUATIONS)


@pytest.mark.django_db(transaction=True)
def test_a_right_is_checked_in_the_transaction_of_what_it_allows() -> None:
    with pytest.raises(transaction.TransactionManagementError):
        require_right(make_user(), Right.CREATE_EVALUATIONS)


def test_without_a_right_the_services_themselves_refuse(evaluation: Evaluation, owner: User) -> None:
    """So no page, operation or other caller can forget to ask."""
    with pytest.raises(RightRefused, match=r"may not create evaluations\. Ask a site administrator"):
        create_evaluation(slug="new", name="New", owner=owner, by=owner)
    with pytest.raises(RightRefused, match="may not create accounts"):
        create_account("grace", by=owner)
    with pytest.raises(RightRefused, match="may not create accounts"):
        enroll_member(evaluation, "grace", Role.OWNER, by=owner)
    grace = create_account("grace", by=None, evaluation=evaluation)
    with pytest.raises(RightRefused, match="may not make sign-in links"):
        create_sign_in_link(grace, by=owner)
    assert not SignInLink.objects.exists()
    assert Membership.objects.count() == 1


def test_a_maker_of_links_makes_none_for_an_account_that_has_a_password(evaluation: Evaluation, owner: User) -> None:
    give_rights(owner)
    membership, _ = enroll_member(evaluation, "grace", Role.REVIEWER, by=owner)
    create_sign_in_link(membership.user, by=owner)
    membership.user.set_password("a long pass phrase")
    membership.user.save()
    with pytest.raises(InputRefused, match="has a password"):
        create_sign_in_link(membership.user, by=owner)


def test_every_change_of_policy_is_on_record(administrator: User) -> None:
    change_site_policy({Right.CREATE_EVALUATIONS: True}, by=administrator)
    change_site_policy({Right.CREATE_EVALUATIONS: True}, by=administrator)  # changes nothing
    event = Event.objects.get(verb="changed site policy")
    assert (event.before, event.after) == (
        {"everyone_creates_evaluations": False},
        {"everyone_creates_evaluations": True},
    )
    assert SecurityEvent.objects.get().detail == "everyone: may create evaluations"


def test_the_pages_of_policy_save_what_an_administrator_ticks(client: Client, administrator: User) -> None:
    ada = make_user("ada")
    client.force_login(administrator)
    client.post(reverse("site_policy"), {"everyone_makes_links": "on"})
    assert SitePolicy.objects.get().everyone_makes_links
    client.post(reverse("account_rights", args=[ada.pk]), {f"{ada.pk}-can_create_accounts": "on"})
    ada.refresh_from_db()
    assert [getattr(ada, columns.account) for columns in RIGHT_COLUMNS.values()] == [False, True, False]
    page = client.get(reverse("accounts")).content.decode()
    assert "Rights (1)" in page
    client.force_login(ada)
    for address in (reverse("site_policy"), reverse("account_rights", args=[ada.pk])):
        assert client.post(address, {f"{ada.pk}-can_create_evaluations": "on"}).status_code == 404


def test_the_api_reads_and_changes_policy_for_administrators_alone(administrator: User) -> None:
    ada = make_user("ada")
    asking = ApiClient(token_for(administrator))
    assert asking.get("/policy").json() == {
        "everyone_creates_evaluations": False,
        "everyone_creates_accounts": False,
        "everyone_makes_links": False,
    }
    assert asking.patch("/policy", {"everyone_makes_links": True}).json()["everyone_makes_links"]
    answer = asking.patch(f"/accounts/{ada.pk}", {"can_create_evaluations": True}).json()
    assert (answer["can_create_evaluations"], answer["can_create_accounts"]) == (True, False)
    theirs = ApiClient(token_for(ada))
    assert theirs.get("/me").json()["rights"] == ["create_evaluations", "make_links"]
    assert theirs.get("/policy").status_code == 404
    assert theirs.patch("/policy", {"everyone_creates_accounts": True}).status_code == 404
    assert theirs.patch(f"/accounts/{ada.pk}", {"can_create_accounts": True}).status_code == 404


def test_a_refused_right_is_recorded_on_pages_and_in_the_api(client: Client) -> None:
    ada = make_user("ada")
    client.force_login(ada)
    client.post(reverse("evaluation_new"), {"name": "Mine"})
    answer = ApiClient(token_for(ada)).post("/evaluations", {"name": "Mine"})
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    refused = SecurityEvent.objects.filter(kind=SecurityEventKind.RIGHT_REFUSED)
    assert list(refused.values_list("user", "detail")) == [(ada.pk, "create evaluations")] * 2


def test_a_stranger_with_one_account_cannot_create_or_enroll_anybody(evaluation: Evaluation, stranger: User) -> None:
    make_user("grace")
    asking = ApiClient(token_for(stranger))
    assert asking.post("/evaluations", {"name": "Mine"}).status_code == 403
    assert asking.post("/evaluations/study/members", {"username": "grace"}).status_code == 404
    assert asking.post("/evaluations/study/invitations", {"username": "grace"}).status_code == 404
    assert (Evaluation.objects.count(), Membership.objects.count(), User.objects.count()) == (1, 1, 3)


def test_a_member_of_no_rights_sees_neither_accounts_nor_policy(client: Client) -> None:
    member = make_member(make_evaluation(), Role.MANAGER)
    client.force_login(member)
    for name in ("accounts", "security_events"):
        assert client.get(reverse(name)).status_code == 404

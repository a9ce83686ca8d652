"""Join links: who makes them, who gets in by them, and when they stop working."""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from evaluations.access import Right, RightRefused
from evaluations.domain.errors import InputRefused
from evaluations.domain.roles import JOINABLE_ROLES, Role
from evaluations.domain.security import SecurityEventKind
from evaluations.evaluation_settings.services import move_to_archive
from evaluations.members.join_links.services import (
    JoinLinkRefused,
    create_join_link,
    find_join_link,
    join_with_new_account,
    join_with_own_account,
    revoke_join_link,
)
from evaluations.members.services import disable_account, set_role
from evaluations.models.evaluations import Evaluation
from evaluations.models.sign_ins import SecurityEvent
from evaluations.models.users import JoinLink, Membership, User, hash_token
from tests.factories.evaluations import give_rights, make_evaluation, make_member, make_user
from tests.helpers.browser_client import sign_in_client

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


@pytest.fixture
def maker(evaluation: Evaluation, owner: User) -> User:
    return give_rights(owner, Right.CREATE_ACCOUNTS)


@pytest.fixture
def token(evaluation: Evaluation, maker: User) -> str:
    return create_join_link(evaluation, Role.REVIEWER, days=7, max_uses=2, by=maker)[1]


def join_address(token: str) -> str:
    return reverse("join", args=[token])


def test_an_owner_makes_a_link_that_is_shown_once_and_stored_hashed(evaluation: Evaluation, maker: User) -> None:
    client = sign_in_client(maker)
    sent = {"role": "viewer", "days": 1, "max_uses": 3}
    page = client.post(reverse("join_link_new", args=["study"]), sent).content.decode()
    found = re.search(r'value="http://testserver/join/([^"]+)"', page)
    assert found
    link = JoinLink.objects.get()
    assert (link.token_sha256, link.role, link.max_uses) == (hash_token(found[1]), Role.VIEWER, 3)
    listed = client.get(reverse("members", args=["study"])).content.decode()
    assert "0 of 3" in listed
    assert "/join/" not in listed


def test_a_link_takes_the_right_to_create_accounts_and_gives_no_power(evaluation: Evaluation, owner: User) -> None:
    with pytest.raises(RightRefused):
        create_join_link(evaluation, Role.REVIEWER, days=7, max_uses=2, by=owner)
    give_rights(owner, Right.CREATE_ACCOUNTS)
    for role in set(Role) - set(JOINABLE_ROLES):
        with pytest.raises(InputRefused, match="can’t give the role"):
            create_join_link(evaluation, role, days=7, max_uses=2, by=owner)
    assert not JoinLink.objects.exists()


def test_a_visitor_gives_a_name_and_is_in(evaluation: Evaluation, maker: User, token: str) -> None:
    visitor = Client()
    assert evaluation.name in visitor.get(join_address(token)).content.decode()
    answer = visitor.post(join_address(token), {"name": "Grace Hopper"})
    assert answer.headers["Location"] == reverse("evaluation", args=["study"])
    grace = User.objects.get(display_name="Grace Hopper")
    assert re.fullmatch(r"grace-hopper-\d{6}", grace.username)
    assert (grace.created_by, grace.created_for, grace.has_usable_password()) == (maker, evaluation, False)
    assert Membership.objects.get(user=grace).role == Role.REVIEWER
    assert visitor.get(reverse("evaluation", args=["study"])).status_code == 200
    assert SecurityEvent.objects.filter(kind=SecurityEventKind.JOINED_BY_LINK, user=grace, by=maker).exists()


def test_a_name_that_is_none_makes_nothing(token: str) -> None:
    before = User.objects.count()
    for name in ("", "  ", "x" * 121):
        assert Client().post(join_address(token), {"name": name}).status_code == 422
    assert (User.objects.count(), JoinLink.objects.get().uses) == (before, 0)


def test_who_is_signed_in_joins_and_a_member_keeps_their_role(evaluation: Evaluation, token: str) -> None:
    ada, manager = make_user("ada"), make_member(evaluation, Role.MANAGER)
    for user, role in ((ada, Role.REVIEWER), (manager, Role.MANAGER)):
        sign_in_client(user).post(join_address(token))
        assert Membership.objects.get(evaluation=evaluation, user=user).role == role
    assert JoinLink.objects.get().uses == 1


def test_looking_at_a_link_uses_nothing_and_the_last_use_is_the_last(token: str) -> None:
    assert Client().get(join_address(token)).status_code == 200
    for name in ("Ann", "Bob"):
        join_with_new_account(token, name)
    with pytest.raises(JoinLinkRefused, match="used up"):
        join_with_own_account(token, make_user())
    before = User.objects.count()
    assert Client().post(join_address(token), {"name": "Carla"}).status_code == 410
    assert User.objects.count() == before


def test_a_link_stops_when_it_is_revoked_replaced_expired_or_its_maker_loses_the_right(
    evaluation: Evaluation, maker: User, token: str
) -> None:
    replaced = token
    stops: list[Callable[[JoinLink], object]] = [
        lambda link: revoke_join_link(link, by=maker),
        lambda link: JoinLink.objects.filter(pk=link.pk).update(expires_at=timezone.now() - timedelta(seconds=1)),
        lambda link: User.objects.filter(pk=maker.pk).update(can_create_accounts=False),
    ]
    for stop in stops:
        link, token = create_join_link(evaluation, Role.REVIEWER, days=7, max_uses=2, by=maker)
        with pytest.raises(JoinLinkRefused, match="no longer works"):
            find_join_link(replaced)
        find_join_link(token)
        stop(link)
        assert Client().get(join_address(token)).status_code == 410
    with pytest.raises(JoinLinkRefused, match="not valid"):
        find_join_link("x" * 43)


@pytest.mark.parametrize("change", ["disabled", "no owner", "archived"])
def test_a_link_stops_with_its_maker_and_its_evaluation(
    evaluation: Evaluation, maker: User, token: str, change: str
) -> None:
    other = make_member(evaluation, Role.OWNER)
    if change == "disabled":
        disable_account(maker, by=other)
    elif change == "no owner":
        set_role(evaluation, maker, Role.VIEWER, by=other)
    else:
        move_to_archive(evaluation, user=other)
    with pytest.raises(JoinLinkRefused, match="no longer works"):
        join_with_new_account(token, "Ann")


def test_only_owners_of_the_evaluation_make_and_revoke_links(evaluation: Evaluation, token: str) -> None:
    link = JoinLink.objects.get()
    sent = {"role": "viewer", "days": 1, "max_uses": 3}
    for user, status in ((make_member(evaluation, Role.MANAGER), 403), (make_user(), 404)):
        client = sign_in_client(give_rights(user))
        assert client.post(reverse("join_link_new", args=["study"]), sent).status_code == status
        assert client.post(reverse("join_link_revoke", args=["study", link.pk])).status_code == status
    stranger = give_rights(make_user())
    make_evaluation(stranger, slug="theirs")
    assert sign_in_client(stranger).post(reverse("join_link_revoke", args=["theirs", link.pk])).status_code == 404
    assert JoinLink.objects.get(revoked_at__isnull=True) == link


def test_links_that_do_not_work_are_throttled_by_address(token: str) -> None:
    client = Client(REMOTE_ADDR="192.0.2.7")
    answers = [client.get(join_address("x" * 43)).status_code for _ in range(31)]
    assert answers == [410] * 30 + [429]
    assert Client(REMOTE_ADDR="192.0.2.8").get(join_address(token)).status_code == 200

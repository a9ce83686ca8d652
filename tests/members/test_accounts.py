"""Accounts and sign-in links: who gets in, once, and who does not."""

from datetime import timedelta

import pytest
from django.utils import timezone

from evaluations.access import list_invitees
from evaluations.audit.events import record_event
from evaluations.domain.errors import InputRefused
from evaluations.domain.roles import Role
from evaluations.members import services as members_services
from evaluations.members.services import (
    SignInLinkRefused,
    create_account,
    create_sign_in_link,
    disable_account,
    enable_account,
    enroll_member,
    make_administrator,
    redeem_sign_in_link,
    set_password,
    set_role,
)
from evaluations.models.evaluations import Event
from evaluations.models.users import SignInLink, User
from tests.factories.evaluations import give_rights, make_evaluation, make_member, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


def test_only_the_hash_of_a_token_is_stored() -> None:
    token = create_sign_in_link(make_user(), by=None)
    link = SignInLink.objects.get()
    assert token not in (link.token_sha256, str(Event.objects.values_list("after", flat=True)))
    assert len(token) >= 43  # 32 random bytes


def test_a_link_lets_its_person_in_once() -> None:
    ada = make_user("ada")
    token = create_sign_in_link(ada, by=None)
    assert redeem_sign_in_link(token) == ada
    with pytest.raises(SignInLinkRefused, match="already used"):
        redeem_sign_in_link(token)


def test_of_two_clicks_at_once_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    token = create_sign_in_link(make_user(), by=None)
    stale = members_services.find_sign_in_link(token)
    redeem_sign_in_link(token)
    # The second click looked at the link before the first one used it up.
    monkeypatch.setattr(members_services, "find_sign_in_link", lambda token: stale)
    with pytest.raises(SignInLinkRefused, match="already used"):
        redeem_sign_in_link(token)


def test_looking_at_a_link_does_not_use_it_up() -> None:
    token = create_sign_in_link(make_user(), by=None)
    for _ in range(3):
        members_services.find_sign_in_link(token)
    assert SignInLink.objects.get().used_at is None


def test_an_expired_link_is_refused() -> None:
    token = create_sign_in_link(make_user(), by=None)
    SignInLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    with pytest.raises(SignInLinkRefused, match="expired"):
        redeem_sign_in_link(token)


def test_a_disabled_account_is_refused_by_old_links_and_gets_no_new_one() -> None:
    ada = make_user("ada")
    token = create_sign_in_link(ada, by=None)
    disable_account(ada, by=make_user())
    with pytest.raises(SignInLinkRefused, match="disabled"):
        redeem_sign_in_link(token)
    ada.refresh_from_db()
    with pytest.raises(InputRefused, match="disabled"):
        create_sign_in_link(ada, by=None)


def test_enabling_an_account_does_not_bring_its_old_links_back() -> None:
    ada, administrator = make_user("ada"), make_user()
    token = create_sign_in_link(ada, by=None)
    disable_account(ada, by=administrator)
    enable_account(ada, by=administrator)
    with pytest.raises(SignInLinkRefused):
        redeem_sign_in_link(token)


def test_nobody_disables_their_own_account() -> None:
    ada = make_user("ada")
    with pytest.raises(InputRefused, match="your own"):
        disable_account(ada, by=ada)


def test_a_new_password_closes_open_links() -> None:
    ada = make_user("ada")
    token = create_sign_in_link(ada, by=None)
    set_password(ada, "a long pass phrase", by=ada)
    with pytest.raises(SignInLinkRefused):
        redeem_sign_in_link(token)


@pytest.mark.parametrize("password", ["short", "password123", "ada-lovelace"])
def test_a_password_that_is_easily_guessed_is_refused(password: str) -> None:
    ada = make_user("ada-lovelace")
    with pytest.raises(InputRefused):
        set_password(ada, password, by=ada)


@pytest.mark.parametrize("username", ["", "two words", "a" * 151, "semi;colon", "nul\x00"])
def test_what_cannot_be_a_username_is_refused_in_one_line(username: str) -> None:
    with pytest.raises(InputRefused) as refused:
        create_account(username, by=None)
    assert "\n" not in str(refused.value)


def test_two_accounts_do_not_differ_in_capitals_alone() -> None:
    create_account("Ada", by=None)
    with pytest.raises(InputRefused, match="already"):
        create_account("ada", by=None)


def test_of_two_who_make_one_account_at_once_the_second_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    create_account("ada", by=None)
    monkeypatch.setattr(members_services, "find_account", lambda name: None)  # not there yet when the second looked
    with pytest.raises(InputRefused, match="already"):
        create_account("ada", by=None)
    assert User.objects.filter(username="ada").count() == 1


def test_adding_someone_new_makes_the_account_and_adding_them_twice_is_refused() -> None:
    owner = give_rights(make_user())
    evaluation = make_evaluation(owner)
    membership, is_new = enroll_member(evaluation, "grace", Role.REVIEWER, by=owner)
    assert is_new
    assert membership.role == Role.REVIEWER
    assert not membership.user.has_usable_password()
    with pytest.raises(InputRefused, match="is already a member"):
        enroll_member(evaluation, "Grace", Role.VIEWER, by=owner)


def test_an_owner_makes_links_for_accounts_made_for_the_evaluation() -> None:
    owner = give_rights(make_user())
    evaluation = make_evaluation(owner)
    membership, _ = enroll_member(evaluation, "grace", Role.REVIEWER, by=owner)
    assert list(list_invitees(owner)) == [membership.user]


def test_an_owner_of_a_restored_evaluation_makes_no_links_for_accounts_of_this_site() -> None:
    """Else a backup that names somebody would open their account."""
    owner, ada = give_rights(make_user()), create_account("ada", by=None)
    evaluation = make_evaluation(owner)
    set_role(evaluation, ada, Role.REVIEWER, by=owner)
    record_event("made account", ada, user=owner, evaluation=evaluation)
    assert not list_invitees(owner).exists()


def test_an_owner_cannot_sign_in_as_someone_whose_account_opens_more() -> None:
    """Else anyone could make an evaluation, add the administrator to it and walk in as them."""
    owner = give_rights(make_user())
    mine, theirs = make_evaluation(owner), make_evaluation()
    administrator = make_user("admin", is_superuser=True)
    enroll_member(mine, "admin", Role.VIEWER, by=owner)
    make_member(mine, Role.REVIEWER, "was-here-before")
    grace = enroll_member(mine, "grace", Role.REVIEWER, by=owner)[0].user
    enroll_member(theirs, "grace", Role.VIEWER, by=administrator)
    assert not list_invitees(owner).exists()
    assert grace in list_invitees(administrator)


def test_a_manager_makes_no_links() -> None:
    owner = give_rights(make_user())
    evaluation = make_evaluation(owner)
    enroll_member(evaluation, "grace", Role.REVIEWER, by=owner)
    manager = give_rights(make_member(evaluation, Role.MANAGER))
    assert not list_invitees(manager).exists()


def test_everything_done_to_an_account_is_on_record() -> None:
    ada, administrator = create_account("ada", by=None), make_user()
    make_administrator(ada)
    redeem_sign_in_link(create_sign_in_link(ada, by=None))
    set_password(ada, "a long pass phrase", by=ada)
    disable_account(ada, by=administrator)
    enable_account(ada, by=administrator)
    assert list(Event.objects.order_by("pk").values_list("verb", flat=True)) == [
        "made account",
        "made administrator",
        "made sign-in link",
        "signed in by link",
        "set password",
        "disabled account",
        "enabled account",
    ]
    assert User.objects.get(username="ada").is_superuser

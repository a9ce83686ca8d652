"""What lets somebody in ends when it should: sessions, links and tokens."""

import io
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import NoReturn

import pytest
from django.conf import LazySettings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.base import UpdateError
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from evaluations.domain.errors import InputRefused
from evaluations.domain.roles import Role, Scope
from evaluations.domain.security import SecurityEventKind
from evaluations.management.commands import changepassword
from evaluations.members import services
from evaluations.members.selectors import describe_unclaimed
from evaluations.members.services import (
    create_account,
    create_sign_in_link,
    create_token,
    delete_ended_sessions,
    disable_account,
    enable_account,
    enroll_member,
    redeem_sign_in_link,
    set_password,
)
from evaluations.models.evaluations import Evaluation
from evaluations.models.sign_ins import SecurityEvent, Session
from evaluations.models.users import ApiToken, SignInLink, User
from evaluations.web.sessions import SessionStore
from tests.factories.evaluations import give_rights, make_evaluation, make_user
from tests.helpers.api_client import ApiClient, token_for
from tests.helpers.browser_client import sign_in_client

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

OLD, NEW = "a long pass phrase", "an even longer phrase"


def is_signed_in(client: Client) -> bool:
    return client.get(reverse("account")).status_code == 200


@pytest.fixture
def ada() -> User:
    return make_user("ada", password=OLD)


# ---- how long a session lasts


def test_a_session_that_was_idle_for_too_long_opens_nothing(ada: User, settings: LazySettings) -> None:
    client = sign_in_client(ada)
    Session.objects.update(last_seen_at=timezone.now() - timedelta(hours=settings.SESSION_IDLE_HOURS))
    assert not is_signed_in(client)


def test_a_session_in_use_lasts_until_it_is_too_old(ada: User, settings: LazySettings) -> None:
    client = sign_in_client(ada)
    Session.objects.update(last_seen_at=timezone.now() - timedelta(hours=settings.SESSION_IDLE_HOURS - 1))
    assert is_signed_in(client)
    assert Session.objects.get().last_seen_at > timezone.now() - timedelta(minutes=1)
    Session.objects.update(expire_date=timezone.now())
    assert not is_signed_in(client)


def test_a_session_and_its_user_take_one_statement(ada: User) -> None:
    client = sign_in_client(ada)
    with CaptureQueriesContext(connection) as statements:
        assert client.get(reverse("help")).status_code == 200
    assert ["evaluations_user" in statement["sql"] for statement in statements].count(True) == 1


def test_a_session_signed_with_an_earlier_key_of_the_site_stays(ada: User, settings: LazySettings) -> None:
    client = sign_in_client(ada)
    earlier, settings.SECRET_KEY = settings.SECRET_KEY, "another key of this site, as long as the one before"
    settings.SECRET_KEY_FALLBACKS = [earlier]
    assert is_signed_in(client)
    settings.SECRET_KEY_FALLBACKS = []
    assert is_signed_in(client)


@pytest.mark.parametrize(
    ("key", "value"), [(HASH_SESSION_KEY, "0" * 64), (BACKEND_SESSION_KEY, "another.Backend"), (SESSION_KEY, "0")]
)
def test_a_session_with_anything_amiss_opens_nothing(ada: User, key: str, value: str) -> None:
    client = sign_in_client(ada)
    data = {**dict(client.session.items()), key: value}
    Session.objects.update(session_data=SessionStore().encode(data))
    assert not is_signed_in(client)


def test_a_session_of_an_account_that_is_no_longer_active_opens_nothing(ada: User) -> None:
    client = sign_in_client(ada)
    User.objects.update(is_active=False)
    assert not is_signed_in(client)


def test_changed_data_does_not_make_a_session_younger(ada: User) -> None:
    client = sign_in_client(ada)
    end, begin = timezone.now() + timedelta(hours=1), timezone.now() - timedelta(days=2)
    Session.objects.update(expire_date=end, created_at=begin)
    session = client.session
    session["anything"] = 1
    session.save()
    row = Session.objects.get()
    assert (row.expire_date, row.created_at) == (end, begin)
    assert client.session["anything"] == 1


def test_a_page_writes_at_most_every_few_minutes_that_a_session_is_in_use(ada: User) -> None:
    client = sign_in_client(ada)
    with CaptureQueriesContext(connection) as captured:
        client.get(reverse("help"))
    assert not [query["sql"] for query in captured if query["sql"].startswith("UPDATE")]
    assert sum("evaluations_session" in query["sql"] for query in captured) == 1


def test_a_database_that_is_busy_takes_no_page_from_a_signed_in_person(
    ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = sign_in_client(ada)
    Session.objects.update(last_seen_at=timezone.now() - timedelta(hours=1))

    def refuse(milliseconds: int) -> NoReturn:
        raise OperationalError("database is locked")

    monkeypatch.setattr("evaluations.web.sessions.limit_write_wait", refuse)
    assert is_signed_in(client)


def test_ended_sessions_are_deleted_by_the_sweep(ada: User, settings: LazySettings) -> None:
    for _ in range(3):
        sign_in_client(ada)
    idle, old, kept = Session.objects.all()
    Session.objects.filter(pk=idle.pk).update(
        last_seen_at=timezone.now() - timedelta(hours=settings.SESSION_IDLE_HOURS)
    )
    Session.objects.filter(pk=old.pk).update(expire_date=timezone.now())
    delete_ended_sessions()
    assert Session.objects.get() == kept


# ---- the list of sessions


def test_the_account_page_lists_the_browsers_and_marks_this_one(ada: User) -> None:
    firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
    client = Client(headers={"User-Agent": firefox}, REMOTE_ADDR="192.0.2.7")
    client.post(reverse("sign_in"), {"username": "ada", "password": OLD})
    Client().post(reverse("sign_in"), {"username": "ada", "password": OLD})
    page = client.get(reverse("account")).content.decode()
    assert "Firefox on Linux" in page
    assert "192.0.2.7" in page
    assert '<td data-label="Address">127.0.0.1</td>' in page
    assert page.count("this browser") == 1
    assert all(key not in page for key in Session.objects.values_list("pk", flat=True))


def test_one_session_is_ended_and_the_others_stay(ada: User) -> None:
    client, other = sign_in_client(ada), sign_in_client(ada)
    row = Session.objects.get(pk=other.session.session_key)
    client.post(reverse("session_end", args=[row.public_id]))
    assert (is_signed_in(client), is_signed_in(other)) == (True, False)


def test_nobody_ends_the_session_of_somebody_else(ada: User) -> None:
    client, mallory = sign_in_client(ada), sign_in_client(make_user("mallory"))
    row = Session.objects.get(user=ada)
    assert mallory.post(reverse("session_end", args=[row.public_id])).status_code == 404
    asking = ApiClient(token_for(User.objects.get(username="mallory")))
    assert asking("DELETE", f"/me/sessions/{row.public_id}").status_code == 404
    assert is_signed_in(client)


def test_signing_out_everywhere_ends_this_session_the_others_and_open_links(ada: User) -> None:
    client, other = sign_in_client(ada), sign_in_client(ada)
    link = reverse("sign_in_link", args=[create_sign_in_link(ada, by=None)])
    client.post(reverse("sessions_end"))
    assert not Session.objects.filter(user=ada).exists()
    assert not is_signed_in(client)
    assert not is_signed_in(other)
    assert Client().post(link).status_code == 410


def test_the_api_lists_and_ends_sessions(ada: User) -> None:
    clients = [sign_in_client(ada), sign_in_client(ada)]
    asking = ApiClient(token_for(ada))
    first, _ = asking.get("/me/sessions").json()["items"]
    assert asking("DELETE", f"/me/sessions/{first['id']}").status_code == 204
    assert asking.post("/me/sessions/end").json() == {"ended": 1}
    assert not any(map(is_signed_in, clients))


def test_a_session_that_was_ended_while_a_page_was_made_does_not_come_back(ada: User) -> None:
    client = sign_in_client(ada)
    session = client.session
    session["anything"] = 1
    Session.objects.all().delete()
    with pytest.raises(UpdateError):
        session.save()
    assert not Session.objects.exists()


# ---- a new password


def test_a_new_password_ends_other_sessions_links_and_tokens(client: Client, ada: User) -> None:
    client.force_login(ada)
    elsewhere, asking = sign_in_client(ada), ApiClient(token_for(ada))
    link = reverse("sign_in_link", args=[create_sign_in_link(ada, by=None)])
    client.post(reverse("account_password"), {"present": OLD, "password": NEW, "again": NEW})
    assert is_signed_in(client)
    assert not is_signed_in(elsewhere)
    assert Client().post(link).status_code == 410
    assert asking.get("/me").status_code == 401


def test_a_person_may_keep_the_tokens_when_the_password_changes(client: Client, ada: User) -> None:
    client.force_login(ada)
    asking = ApiClient(token_for(ada))
    sent = {"present": OLD, "password": NEW, "again": NEW, "keep_tokens": "on"}
    client.post(reverse("account_password"), sent)
    assert asking.get("/me").status_code == 200


def test_a_password_set_by_the_command_ends_what_let_somebody_in(
    client: Client, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.force_login(ada)
    asking, link = ApiClient(token_for(ada)), reverse("sign_in_link", args=[create_sign_in_link(ada, by=None)])
    answers = iter([NEW, "another one", "short", "short", NEW, NEW])
    monkeypatch.setattr(changepassword, "getpass", lambda prompt: next(answers))
    for refusal in ("don’t match", "too short"):
        with pytest.raises(CommandError, match=refusal):
            call_command("changepassword", "ada")
    assert is_signed_in(client)
    call_command("changepassword", "ada", stdout=io.StringIO())
    assert User.objects.get().check_password(NEW)
    assert not is_signed_in(client)
    assert asking.get("/me").status_code == 401
    assert Client().post(link).status_code == 410
    assert SecurityEvent.objects.filter(user=ada, kind=SecurityEventKind.PASSWORD_SET).count() == 1


def test_of_two_changes_of_password_at_once_the_second_is_refused(ada: User) -> None:
    stale = User.objects.get(pk=ada.pk)
    set_password(ada, NEW, by=ada)
    with pytest.raises(InputRefused, match="changed in the meantime"):
        set_password(stale, "the phrase of somebody else", by=stale)
    assert User.objects.get(pk=ada.pk).check_password(NEW)


def test_a_session_by_link_sets_a_password_without_the_old_one_only_at_first(ada: User) -> None:
    client = Client()
    client.post(reverse("sign_in_link", args=[create_sign_in_link(ada, by=None)]))
    Session.objects.update(created_at=timezone.now() - timedelta(hours=2))
    answer = client.post(reverse("account_password"), {"password": NEW, "again": NEW})
    assert answer.status_code == 422
    assert User.objects.get().check_password(OLD)


# ---- an account that somebody made for a name


def test_an_account_belongs_to_the_person_who_sets_its_first_password(evaluation: Evaluation, owner: User) -> None:
    give_rights(owner)
    grace = enroll_member(evaluation, "grace", Role.REVIEWER, by=owner)[0].user
    maker, person = Client(), Client()
    for browser in (maker, person):
        browser.post(reverse("sign_in_link", args=[create_sign_in_link(grace, by=owner)]))
    asking, open_link = ApiClient(token_for(grace)), create_sign_in_link(grace, by=owner)
    person.post(reverse("account_password"), {"password": NEW, "again": NEW, "keep_tokens": "on"})
    assert (is_signed_in(person), is_signed_in(maker)) == (True, False)
    assert asking.get("/me").status_code == 401
    assert Client().post(reverse("sign_in_link", args=[open_link])).status_code == 410
    with pytest.raises(InputRefused, match="has a password"):
        create_sign_in_link(User.objects.get(pk=grace.pk), by=owner)


def test_who_adds_an_account_without_a_password_sees_who_could_sign_in_as_it(
    evaluation: Evaluation, owner: User
) -> None:
    maker = give_rights(make_user("maker"))
    theirs = make_evaluation(maker, slug="theirs")
    grace = enroll_member(theirs, "grace", Role.REVIEWER, by=maker)[0].user
    Client().post(reverse("sign_in_link", args=[create_sign_in_link(grace, by=maker)]))
    token_for(grace)
    create_sign_in_link(grace, by=maker)
    client = sign_in_client(give_rights(owner))
    added = client.post(reverse("members", args=["study"]), {"names": "grace", "role": "viewer"}, follow=True)
    assert "Created by maker, who could sign in as this member" in " ".join(added.content.decode().split())
    page = " ".join(client.get(reverse("members", args=["study"])).content.decode().split())
    assert "no password yet" in page
    assert "Created by maker, who could sign in as this member" in page  # of which evaluation is not told
    assert "1 session, 1 token, 1 sign-in link" in page
    people = ApiClient(token_for(owner)).get("/evaluations/study/members").json()["items"]
    assert people[1]["unclaimed"] == {"maker": "maker", "made_for": "", "sessions": 1, "tokens": 1, "links": 1}


def test_who_made_an_account_is_not_told_to_who_may_not_see_accounts(evaluation: Evaluation, owner: User) -> None:
    grace = create_account("grace", by=give_rights(make_user("maker")))
    assert describe_unclaimed([grace], owner)[grace.pk].maker == ""
    set_password(grace, NEW, by=grace)
    assert describe_unclaimed([grace], owner) == {}


# ---- a disabled account


def test_disabling_ends_sessions_links_and_tokens_and_enabling_brings_none_back(ada: User) -> None:
    administrator = make_user("admin", is_superuser=True)
    client, asking = sign_in_client(ada), ApiClient(token_for(ada))
    link = reverse("sign_in_link", args=[create_sign_in_link(ada, by=None)])
    disable_account(ada, by=administrator)
    assert not Session.objects.filter(user=ada).exists()
    enable_account(ada, by=administrator)
    assert not is_signed_in(client)
    assert asking.get("/me").status_code == 401
    assert Client().post(link).status_code == 410


def test_disabling_ends_the_access_to_accounts_that_the_person_could_be_signed_in_to(
    evaluation: Evaluation, owner: User
) -> None:
    administrator = make_user("admin", is_superuser=True)
    give_rights(owner)
    made, other = make_user("made", created_by=owner), make_user("other", created_by=administrator)
    linked, claimed = make_user("linked"), make_user("claimed", password=OLD, created_by=owner)
    for account in (made, linked):
        account.created_for = evaluation
        account.save()
    create_sign_in_link(linked, by=owner)
    browsers = [sign_in_client(account) for account in (made, linked, other, claimed)]
    asking = ApiClient(token_for(made))
    disable_account(owner, by=administrator)
    assert [is_signed_in(browser) for browser in browsers] == [False, False, True, True]
    assert asking.get("/me").status_code == 401


def test_a_sign_in_that_was_under_way_when_the_account_was_disabled_does_not_outlive_enabling(ada: User) -> None:
    administrator = make_user("admin", is_superuser=True)
    disable_account(ada, by=administrator)
    client = sign_in_client(ada)  # its session was written after those of the account were deleted
    enable_account(ada, by=administrator)
    assert not is_signed_in(client)


def test_a_token_or_link_that_is_made_while_the_account_is_disabled_is_refused(ada: User) -> None:
    disable_account(User.objects.get(pk=ada.pk), by=make_user())
    with pytest.raises(InputRefused, match="disabled"):
        create_token(ada, name="nightly", scopes=[Scope.READ], days=1)  # `ada` was read before
    with pytest.raises(InputRefused, match="disabled"):
        create_sign_in_link(ada, by=None)
    assert not ApiToken.objects.exists()
    assert not SignInLink.objects.exists()


def test_an_administrator_ends_what_lets_somebody_in_and_the_password_stays(ada: User) -> None:
    administrator = make_user("admin", is_superuser=True)
    browser, asking = sign_in_client(ada), ApiClient(token_for(ada))
    client = sign_in_client(administrator)
    client.post(reverse("account_end_access", args=[ada.pk]))
    assert not is_signed_in(browser)
    assert asking.get("/me").status_code == 401
    assert browser.post(reverse("sign_in"), {"username": "ada", "password": OLD}).status_code == 302
    assert sign_in_client(ada).post(reverse("account_end_access", args=[administrator.pk])).status_code == 404
    ApiClient(token_for(administrator)).post(f"/accounts/{ada.pk}/end-access")
    assert not is_signed_in(browser)


# ---- tokens


@pytest.mark.django_db(transaction=True)
def test_two_tokens_at_once_do_not_pass_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    grace = make_user("grace")
    monkeypatch.setattr(services, "MAX_TOKENS", 3)

    def make(number: int) -> bool:
        try:
            create_token(grace, name=f"token {number}", scopes=[Scope.READ], days=1)
        except InputRefused:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(6) as threads:
        assert sum(threads.map(make, range(6))) == 3
    assert ApiToken.objects.count() == 3


@pytest.mark.django_db(transaction=True)
def test_of_many_uses_of_a_link_at_once_one_signs_in() -> None:
    token = create_sign_in_link(make_user("grace"), by=None)

    def use(_: int) -> bool:
        try:
            redeem_sign_in_link(token)
        except InputRefused:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(6) as threads:
        assert sum(threads.map(use, range(6))) == 1


def test_a_session_alone_makes_no_token(client: Client, ada: User) -> None:
    client.force_login(ada)
    sent = {"name": "nightly", "scopes": ["read"], "days": "30"}
    for present in ({}, {"present": "wrong"}):
        assert client.post(reverse("tokens"), {**sent, **present}).status_code == 422
    assert not ApiToken.objects.exists()
    client.post(reverse("tokens"), {**sent, "present": OLD})
    assert ApiToken.objects.get().name == "nightly"


def test_an_account_without_a_password_makes_a_token_soon_after_signing_in(client: Client) -> None:
    client.force_login(make_user("grace"))
    sent = {"name": "nightly", "scopes": ["read"], "days": "30"}
    Session.objects.update(created_at=timezone.now() - timedelta(hours=1))
    answer = client.post(reverse("tokens"), sent)
    assert answer.status_code == 422
    assert "Set a password first, or sign in again" in answer.content.decode()
    Session.objects.update(created_at=timezone.now())
    assert client.post(reverse("tokens"), sent).status_code == 200


def test_the_list_of_tokens_shows_where_each_was_used_last(client: Client, ada: User) -> None:
    token = token_for(ada)
    Client().get("/api/v1/me", headers={"Authorization": f"Bearer {token}"}, REMOTE_ADDR="192.0.2.7")
    client.force_login(ada)
    assert "from 192.0.2.7" in client.get(reverse("tokens")).content.decode()


def test_all_tokens_are_revoked_at_once(client: Client, ada: User) -> None:
    mine = [ApiClient(token_for(ada)) for _ in range(2)]
    other = ApiClient(token_for(make_user("grace")))
    client.force_login(ada)
    client.post(reverse("tokens_revoke"))
    assert [asking.get("/me").status_code for asking in (*mine, other)] == [401, 401, 200]

import io

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from evaluations.domain.roles import Role
from evaluations.models.users import Membership, SignInLink, User
from tests.factories.evaluations import make_evaluation, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


def link_for(*arguments: str) -> str:
    out = io.StringIO()
    call_command("sign_in_link", *arguments, stdout=out)
    return out.getvalue().strip()


def test_it_prints_one_link_to_this_site_and_nothing_else() -> None:
    make_user("ada")
    link = link_for("ada")
    assert link.startswith(f"{settings.ADDRESS}/sign-in/")
    assert "\n" not in link


def test_the_address_of_the_site_can_be_named() -> None:
    make_user("ada")
    assert link_for("ada", "--base-url", "https://judge.example.org/").startswith("https://judge.example.org/sign-in/")


def test_it_makes_the_account_with_its_role_and_rights() -> None:
    evaluation = make_evaluation(slug="study")
    link_for("grace", "--create", "--superuser", "--evaluation", "study", "--role", "manager")
    grace = User.objects.get(username="grace")
    assert grace.is_superuser
    assert Membership.objects.get(evaluation=evaluation, user=grace).role == Role.MANAGER


def test_creating_someone_who_is_there_makes_a_link_for_them() -> None:
    ada = make_user("ada")
    link_for("ada", "--create")
    assert SignInLink.objects.get().user == ada


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nobody"], "--create"),
        (["two words", "--create"], "username"),
        (["new", "--create", "--evaluation", "study"], "--evaluation and --role together"),
        (["new", "--create", "--role", "viewer"], "--evaluation and --role together"),
        (["new", "--create", "--evaluation", "nowhere", "--role", "viewer"], "no evaluation"),
        (["new", "--create", "--base-url", "ftp://x"], "is not a URL such as"),
        (["gone"], "disabled"),
    ],
)
def test_what_it_cannot_do_is_one_clear_line_and_makes_nothing(arguments: list[str], said: str) -> None:
    make_evaluation(make_user("owner"), slug="study")
    make_user("gone", is_active=False)
    with pytest.raises(CommandError, match=said) as refused:
        call_command("sign_in_link", *arguments)
    assert "\n" not in str(refused.value)
    assert not User.objects.filter(username="new").exists()
    assert not SignInLink.objects.exists()

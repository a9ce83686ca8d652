"""Who takes part, as what, and who decides it."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evaluations.domain.reviews import AssignmentState
from evaluations.domain.roles import Role
from evaluations.members.services import enroll_member, set_role
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.queues import Assignment
from evaluations.models.users import Membership, SignInLink, User
from evaluations.reviews.queues.services import assign_comparisons
from evaluations.reviews.services import skip_comparison
from tests.factories.evaluations import give_rights, make_comparison, make_evaluation, make_member, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


@pytest.fixture
def as_owner(client: Client, owner: User, evaluation: Evaluation) -> Client:
    """An owner who may create accounts and sign-in links."""
    give_rights(owner)
    client.force_login(owner)
    return client


def add(client: Client, username: str, role: Role = Role.REVIEWER) -> str:
    answer = client.post(reverse("members", args=["study"]), {"names": username, "role": role}, follow=True)
    return answer.content.decode()


def test_a_new_person_gets_an_account_and_a_link_that_works(as_owner: Client) -> None:
    page = add(as_owner, "grace")
    link = re.search(r'value="http://testserver(/sign-in/[^"]+)"', page)
    assert link
    grace = Client()
    grace.post(link.group(1))
    assert grace.get(reverse("members", args=["study"])).status_code == 200


def test_a_link_is_shown_once(as_owner: Client) -> None:
    add(as_owner, "grace")
    assert "/sign-in/" not in as_owner.get(reverse("members", args=["study"])).content.decode()


def test_someone_with_an_account_is_added_without_a_link(as_owner: Client) -> None:
    make_user("grace")
    assert "Signs in as before" in add(as_owner, "grace")
    assert not SignInLink.objects.exists()


def test_adding_somebody_twice_says_so_on_the_form(as_owner: Client) -> None:
    add(as_owner, "grace")
    answer = as_owner.post(reverse("members", args=["study"]), {"names": "grace", "role": "viewer"})
    assert answer.status_code == 422
    assert "is already a member" in answer.content.decode()


def test_a_new_link_is_made_for_an_account_of_this_evaluation_only(as_owner: Client, evaluation: Evaluation) -> None:
    add(as_owner, "grace")
    make_member(evaluation, Role.VIEWER, "was-here-before")
    SignInLink.objects.all().delete()
    grace, other = (Membership.objects.get(user__username=name) for name in ("grace", "was-here-before"))
    assert as_owner.post(reverse("member_link", args=["study", grace.pk])).status_code == 200
    answer = as_owner.post(reverse("member_link", args=["study", other.pk]), follow=True)
    assert "manage.py sign_in_link was-here-before" in answer.content.decode()
    assert SignInLink.objects.count() == 1


def test_the_last_owner_stays(as_owner: Client, owner: User) -> None:
    mine = Membership.objects.get(user=owner)
    for address, data in (("member_role", {"role": "viewer"}), ("member_remove", {})):
        answer = as_owner.post(reverse(address, args=["study", mine.pk]), data, follow=True)
        assert "needs an owner" in answer.content.decode()
    assert Membership.objects.get(user=owner).role == Role.OWNER


def test_an_owner_who_is_not_the_last_may_leave(as_owner: Client, owner: User, evaluation: Evaluation) -> None:
    make_member(evaluation, Role.OWNER)
    mine = Membership.objects.get(user=owner)
    answer = as_owner.post(reverse("member_remove", args=["study", mine.pk]))
    assert answer.headers["Location"] == reverse("evaluations")
    assert not Membership.objects.filter(user=owner).exists()


def test_roles_change_and_the_record_says_from_what_to_what(as_owner: Client, evaluation: Evaluation) -> None:
    grace = make_member(evaluation, Role.VIEWER, "grace")
    membership = Membership.objects.get(user=grace)
    as_owner.post(reverse("member_role", args=["study", membership.pk]), {"role": "manager"})
    event = Event.objects.filter(verb="set role").latest("pk")
    assert (event.before, event.after) == (
        {"role": "viewer"},
        {"person": "grace", "role": "manager"},
    )
    as_owner.post(reverse("member_role", args=["study", membership.pk]), {"role": "emperor"})
    membership.refresh_from_db()
    assert membership.role == Role.MANAGER


@pytest.mark.parametrize("role", [role for role in Role if role != Role.OWNER])
def test_others_see_the_list_and_change_nothing(client: Client, evaluation: Evaluation, role: Role) -> None:
    member = make_member(evaluation, role, "grace")
    client.force_login(member)
    page = client.get(reverse("members", args=["study"])).content.decode()
    assert "olive" in page
    assert "<form" not in page.split("<main", 1)[1]
    mine = Membership.objects.get(user=member)
    assert client.post(reverse("members", args=["study"]), {"names": "new", "role": "owner"}).status_code == 403
    for address in ("member_role", "member_remove", "member_link"):
        assert client.post(reverse(address, args=["study", mine.pk]), {"role": "owner"}).status_code == 403
    assert Membership.objects.get(user=member).role == role


def test_who_sees_all_reads_how_often_each_skipped_and_why(
    client: Client, as_owner: Client, evaluation: Evaluation
) -> None:
    rita = make_member(evaluation, Role.REVIEWER, "rita")
    for reason in ("not <my> field", "", "not <my> field"):
        skip_comparison(rita, make_comparison(evaluation), reason=reason, version=0)
    page = re.sub(r"\s+", " ", as_owner.get(reverse("members", args=["study"])).content.decode())
    assert "<summary>3<" in page
    assert '2 × <span dir="auto">not &lt;my&gt; field</span>' in page
    assert "no reason" in page
    client.force_login(rita)
    assert "field" not in client.get(reverse("members", args=["study"])).content.decode().split("<main")[1]


def test_a_member_of_another_evaluation_cannot_be_reached_through_this_one(as_owner: Client) -> None:
    elsewhere = Membership.objects.get(evaluation=make_evaluation(make_user("victor")))
    for address in ("member_role", "member_remove", "member_link"):
        assert as_owner.post(reverse(address, args=["study", elsewhere.pk]), {"role": "viewer"}).status_code == 404


def test_the_list_costs_the_same_however_many_take_part(as_owner: Client, owner: User, evaluation: Evaluation) -> None:
    enroll_member(evaluation, "first", Role.VIEWER, by=owner)
    few = queries(as_owner)
    for number in range(30):
        enroll_member(evaluation, f"person-{number}", Role.VIEWER, by=owner)
    assert queries(as_owner) == few


def queries(client: Client) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(reverse("members", args=["study"])).status_code == 200
    return len(captured)


def test_a_long_list_goes_on_after_the_last_row_seen(as_owner: Client, evaluation: Evaluation) -> None:
    for number in range(60):
        set_role(evaluation, make_user(f"person-{number:02}"), Role.VIEWER, by=None)
    first = as_owner.get(reverse("members", args=["study"])).content.decode()
    following = re.search(r'rel="next" href="([^"]+)"', first)
    assert following
    second = as_owner.get(reverse("members", args=["study"]) + following.group(1)).content.decode()
    assert "person-48" in first
    assert "person-49" not in first
    assert "person-49" in second
    assert "person-48" not in second


def test_only_site_administrators_see_all_accounts(client: Client) -> None:
    ada, administrator = make_user("ada"), make_user("admin", is_superuser=True)
    client.force_login(ada)
    assert client.get(reverse("accounts")).status_code == 404
    assert client.post(reverse("account_disable", args=[administrator.pk])).status_code == 404
    client.force_login(administrator)
    assert "ada" in client.get(reverse("accounts")).content.decode()
    client.post(reverse("account_disable", args=[ada.pk]))
    assert not User.objects.get(pk=ada.pk).is_active
    client.post(reverse("account_enable", args=[ada.pk]))
    assert User.objects.get(pk=ada.pk).is_active
    assert "/sign-in/" in client.post(reverse("account_link", args=[ada.pk])).content.decode()


def test_who_is_removed_gives_back_what_was_given_to_them(
    as_owner: Client, owner: User, evaluation: Evaluation
) -> None:
    ann = make_member(evaluation, Role.REVIEWER, "ann")
    assign_comparisons(evaluation, [make_comparison(evaluation)], [ann], owner)
    as_owner.post(reverse("member_remove", args=["study", Membership.objects.get(user=ann).pk]))
    assert Assignment.objects.get().state == AssignmentState.EXPIRED
    put_back = Event.objects.get(verb="put back")
    assert (put_back.user, put_back.after) == (owner, {"person": "ann", "comparisons": 1})


def test_a_role_that_does_not_review_gives_back_what_was_given(
    as_owner: Client, owner: User, evaluation: Evaluation
) -> None:
    ann = make_member(evaluation, Role.REVIEWER, "ann")
    assign_comparisons(evaluation, [make_comparison(evaluation)], [ann], owner)
    address = reverse("member_role", args=["study", Membership.objects.get(user=ann).pk])
    as_owner.post(address, {"role": Role.ADJUDICATOR})
    assert Assignment.objects.get().state == AssignmentState.ASSIGNED
    as_owner.post(address, {"role": Role.VIEWER})
    assert Assignment.objects.get().state == AssignmentState.EXPIRED


def test_pasted_names_are_added_with_a_link_for_each_new_account(as_owner: Client, evaluation: Evaluation) -> None:
    make_user("known")
    text = "ann, bob@example.org; known\n“Carla Diaz” <carla@example.org>, not/a/name ANN olive"
    page = add(as_owner, text, Role.ADJUDICATOR)
    members = Membership.objects.filter(evaluation=evaluation, role=Role.ADJUDICATOR).order_by("pk")
    names = [member.user.username for member in members.select_related("user")]
    assert names == ["ann", "bob@example.org", "known", "carla@example.org"]
    assert User.objects.get(username="carla@example.org").display_name == "Carla Diaz"
    assert len(re.findall(r'value="http://testserver/sign-in/[^"]+"', page)) == 3
    assert "“not/a/name” is not a valid username" in page
    assert "“olive” is already a member" in page


def test_pasted_names_are_invited_by_who_may_not_create_accounts(
    client: Client, owner: User, evaluation: Evaluation
) -> None:
    client.force_login(owner)
    address = reverse("member_invite", args=["study"])
    page = client.post(address, {"names": "ann\nbob", "role": "viewer"}).content.decode()
    assert page.count("Invited as viewer") == 2
    assert "/sign-in/" not in page
    assert Membership.objects.filter(evaluation=evaluation).count() == 1


@pytest.mark.parametrize(("names", "words"), [(" ,; ", "required"), (",;", "at least one"), ("x " * 301, "")])
def test_names_that_add_nobody_are_refused_on_the_form(as_owner: Client, names: str, words: str) -> None:
    names = " ".join(f"n{number}" for number in range(301)) if not words else names
    answer = as_owner.post(reverse("members", args=["study"]), {"names": names, "role": "viewer"})
    assert answer.status_code == 422
    assert (words or "Add up to 300 at a time") in answer.content.decode()
    assert Membership.objects.count() == 1


def test_a_change_of_role_can_be_undone(as_owner: Client, evaluation: Evaluation) -> None:
    grace = Membership.objects.get(user=make_member(evaluation, Role.VIEWER, "grace"))
    address = reverse("member_role", args=["study", grace.pk])
    page = as_owner.post(address, {"role": "manager"}, follow=True).content.decode()
    assert "grace is now manager" in page
    assert re.search(r'name="role" value="viewer"', page)

import pytest
from django.test import Client
from django.urls import reverse

from evaluations.domain.roles import Role
from evaluations.models.comparisons import Candidate
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.judges import Judge
from tests.factories.evaluations import make_comparison, make_member
from tests.factories.verdicts import make_judge_rater

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


@pytest.fixture(autouse=True)
def comparison_and_judge(evaluation: Evaluation) -> None:
    make_comparison(evaluation)
    make_judge_rater(evaluation)


def entered(evaluation: Evaluation, family: str) -> dict[str, str]:
    rows = [("candidate", row) for row in Candidate.objects.filter(evaluation=evaluation)]
    return {f"{kind}_{row.pk}": family for kind, row in [*rows, ("judge", evaluation.judges.get())]}


def test_families_are_kept_and_the_record_says_who_changed_them(evaluation: Evaluation, client: Client) -> None:
    client.force_login(evaluation.memberships.get().user)
    address = reverse("families", args=["study"])
    assert "Candidates" in client.get(address).content.decode()
    answer = client.post(address, entered(evaluation, " acme "), follow=True)
    assert "Saved: 3 changed." in answer.content.decode()
    assert set(Candidate.objects.values_list("family", flat=True)) == {"acme"}
    assert Judge.objects.get().family == "acme"
    event = Event.objects.filter(verb="changed families").get()
    assert set(event.after.values()) == {"acme"}
    client.post(address, entered(evaluation, "acme"))
    assert Event.objects.filter(verb="changed families").count() == 1


def test_a_candidate_and_a_judge_of_one_name_are_two(evaluation: Evaluation, client: Client) -> None:
    Candidate.objects.filter(evaluation=evaluation, name="alpha").update(name="same")
    Judge.objects.update(name="same")
    Candidate.objects.filter(evaluation=evaluation).exclude(name="same").update(family="acme")
    client.force_login(evaluation.memberships.get().user)
    answer = client.post(reverse("families", args=["study"]), entered(evaluation, "acme"), follow=True)
    assert "Saved: 2 changed." in answer.content.decode()
    event = Event.objects.filter(verb="changed families").get()
    assert event.before == {"candidate same": "", "judge same": ""}
    assert event.after == {"candidate same": "acme", "judge same": "acme"}


def test_a_name_that_is_too_long_changes_nothing(evaluation: Evaluation, client: Client) -> None:
    client.force_login(evaluation.memberships.get().user)
    answer = client.post(reverse("families", args=["study"]), entered(evaluation, "x" * 81))
    assert answer.status_code == 422
    assert not Candidate.objects.exclude(family="").exists()


def test_reviewers_may_not_say_who_is_kin(evaluation: Evaluation, client: Client) -> None:
    client.force_login(make_member(evaluation, Role.REVIEWER))
    assert client.get(reverse("families", args=["study"])).status_code == 403

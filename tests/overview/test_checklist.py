"""The checklist on the overview of the example."""

import pytest
from django.test import Client
from django.urls import reverse

from evaluations.domain.files import ExportState
from evaluations.domain.roles import Role
from evaluations.models.evaluations import Evaluation
from evaluations.models.exports import Export
from evaluations.models.users import Membership, User
from evaluations.models.verdicts import Adjudication
from evaluations.overview.checklist import ChecklistStep, build_checklist, record_step
from evaluations.overview.selectors import EvaluationProgress
from tests.factories.evaluations import make_comparison, make_evaluation, make_member
from tests.factories.verdicts import get_or_make_aspect

pytestmark = pytest.mark.django_db


@pytest.fixture
def example(owner: User) -> Evaluation:
    return make_evaluation(owner, slug="study", is_example=True)


def list_done(example: Evaluation, user: User, progress: EvaluationProgress) -> list[bool]:
    membership = Membership.objects.get(user=user, evaluation=example)
    return [item.is_done for item in build_checklist(example, membership, progress)]


def test_items_are_ticked_by_what_was_done(example: Evaluation, owner: User) -> None:
    assert list_done(example, owner, EvaluationProgress(reviewed_by_me=2)) == [False] * 5
    assert list_done(example, owner, EvaluationProgress(reviewed_by_me=3, exports=1)) == [
        True,
        False,
        False,
        False,
        True,
    ]
    comparison = make_comparison(example)
    aspect = get_or_make_aspect(example, "clarity")
    Adjudication.objects.create(comparison=comparison, aspect=aspect, user=owner, choice="A", reason="Clear.")
    record_step(owner, example, ChecklistStep.BIAS)
    record_step(owner, example, ChecklistStep.BIAS)
    record_step(owner, example, ChecklistStep.RESULTS)
    assert list_done(example, owner, EvaluationProgress()) == [False, True, True, True, False]


def test_what_others_resolved_ticks_nothing(example: Evaluation, owner: User) -> None:
    other = make_member(example, Role.ADJUDICATOR)
    aspect = get_or_make_aspect(example, "clarity")
    Adjudication.objects.create(
        comparison=make_comparison(example), aspect=aspect, user=other, choice="A", reason="Clear."
    )
    assert not any(list_done(example, owner, EvaluationProgress()))


def test_a_click_is_recorded_and_leads_on(client: Client, example: Evaluation, owner: User) -> None:
    client.force_login(owner)
    answer = client.post(reverse("checklist", args=["study"]), {"step": "bias"})
    assert answer["Location"] == reverse("report_part", args=["study", "bias"])
    assert owner.memberships.get().checklist_steps == "bias"
    assert client.post(reverse("checklist", args=["study"]), {"step": "nonsense"}).status_code == 404


def test_it_is_dismissed_for_one_person(client: Client, example: Evaluation, owner: User) -> None:
    other = make_member(example, Role.REVIEWER)
    client.force_login(owner)
    assert "Try the example" in client.get(reverse("evaluation", args=["study"])).content.decode()
    client.post(reverse("checklist", args=["study"]), {"step": "dismiss"})
    text = client.get(reverse("evaluation", args=["study"])).content.decode()
    assert "Try the example" not in text
    assert "This is sample data with synthetic reviews." in text
    client.force_login(other)
    assert "Try the example" in client.get(reverse("evaluation", args=["study"])).content.decode()


def test_only_the_example_has_one(evaluation: Evaluation, owner: User) -> None:
    Export.objects.create(evaluation=evaluation, format="jsonl", label_policy="majority", state=ExportState.DONE)
    assert list_done(evaluation, owner, EvaluationProgress()) == []

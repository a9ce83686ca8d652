"""The rubrics of an evaluation, word for word."""

from dataclasses import replace

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evaluations.domain.rubrics import RubricKind, RubricOrigin, RubricSpec
from evaluations.judge_prompts.builtin_rubrics import SIX_ASPECT
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Judge
from evaluations.models.rubrics import Rubric
from evaluations.rubrics.services import add_rubric, create_builtin_rubric, create_next_version
from tests.factories.evaluations import make_evaluation, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("owner_signed_in"), pytest.mark.any_database]


@pytest.fixture
def rubric(evaluation: Evaluation) -> Rubric:
    return Rubric.objects.get(evaluation=evaluation)


def test_the_list_says_which_version_people_are_asked_by(client: Client, rubric: Rubric) -> None:
    create_next_version(rubric, replace(SIX_ASPECT, instructions="Two."), user=None)
    assert "version 1 in use" in client.get(reverse("rubrics", args=["study"])).content.decode()


def test_the_newest_version_is_shown_and_earlier_ones_can_be_read(client: Client, rubric: Rubric) -> None:
    create_next_version(rubric, replace(SIX_ASPECT, instructions="Two <words>."), user=None)
    address = reverse("rubric", args=["study", rubric.pk])
    assert "Two &lt;words&gt;." in client.get(address).content.decode()
    assert "You are an impartial judge" in client.get(f"{address}?version=1").content.decode()
    assert client.get(f"{address}?version=9").status_code == 404
    assert client.get(f"{address}?version=two").status_code == 404


def test_the_judges_of_a_version_are_named_and_a_baseline_is_marked(client: Client, rubric: Rubric) -> None:
    Judge.objects.create(
        evaluation=rubric.evaluation,
        name="longest one",
        kind="rule",
        model="longest",
        rubric_version=rubric.versions.get(),
        fingerprint="f" * 64,
    )
    page = client.get(reverse("rubric", args=["study", rubric.pk])).content.decode()
    assert "longest one" in page
    assert ">rule-based</span>" in page


def test_an_imported_rubric_is_shown_but_not_continued(client: Client, evaluation: Evaluation) -> None:
    spec = RubricSpec(RubricKind.PAIRWISE, "", SIX_ASPECT.aspects[:1], ("helpfulness",))
    version = add_rubric(evaluation, name="imported", spec=spec, origin=RubricOrigin.IMPORTED, user=None)
    page = client.get(reverse("rubric", args=["study", version.rubric_id])).content.decode()
    assert "Imported: lists the aspects" in page
    assert "New version" not in page
    assert client.get(reverse("rubric_next", args=["study", version.rubric_id])).status_code == 404


def test_a_rubric_is_found_in_its_own_evaluation_only(client: Client, rubric: Rubric) -> None:
    elsewhere = Rubric.objects.get(evaluation=make_evaluation())
    assert client.get(reverse("rubric", args=["study", elsewhere.pk])).status_code == 404
    client.force_login(make_user())
    for address in ("rubrics", "rubric", "rubric_next"):
        args = ["study"] if address == "rubrics" else ["study", rubric.pk]
        assert client.get(reverse(address, args=args)).status_code == 404


def test_pages_cost_the_same_however_many_versions_and_rubrics_there_are(
    client: Client, evaluation: Evaluation, rubric: Rubric
) -> None:
    addresses = [reverse("rubrics", args=["study"]), reverse("rubric", args=["study", rubric.pk])]
    few = [queries(client, address) for address in addresses]
    for number in range(5):
        create_next_version(rubric, replace(SIX_ASPECT, instructions=f"Version {number}."), user=None)
        add_rubric(evaluation, name=f"rubric {number}", spec=SIX_ASPECT, origin=RubricOrigin.OWN, user=None)
    assert [queries(client, address) for address in addresses] == few


def queries(client: Client, address: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(address).status_code == 200
    return len(captured)


def test_worked_examples_are_shown_under_the_names_of_their_form(client: Client, evaluation: Evaluation) -> None:
    example = {"input": "Say <a>.", "output": "b", "reasoning": "It is not.", "score": 0.25}
    version = create_builtin_rubric(evaluation, builtin="reference-metric", few_shot=[example], user=None)
    page = client.get(reverse("rubric", args=["study", version.rubric_id])).content.decode()
    shown = page.partition("Few-shot examples")[2]
    for words in ("<dt>Query</dt>", "Say &lt;a&gt;.", "<dt>Response</dt>", "<dt>Score</dt>", "0.25"):
        assert words in shown

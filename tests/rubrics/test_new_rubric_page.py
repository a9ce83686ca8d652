"""Beginning a rubric: the built-in ones, and the ways to others."""

import pytest
from django.test import Client
from django.urls import reverse

from evaluations.judge_prompts.builtin_rubrics import BUILTIN_RUBRICS
from evaluations.models.evaluations import Evaluation
from evaluations.models.rubrics import Rubric
from evaluations.rubrics.forms import BUILTIN_CHOICES
from tests.rubrics.test_next_version_page import Values

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("owner_signed_in"), pytest.mark.any_database]


@pytest.fixture
def address(evaluation: Evaluation) -> str:
    return reverse("rubric_new", args=["study"])


def test_every_built_in_rubric_is_offered(client: Client, address: str) -> None:
    assert {name for name, _ in BUILTIN_CHOICES} == set(BUILTIN_RUBRICS)
    page = client.get(address).content.decode()
    assert all(words in page for _, words in BUILTIN_CHOICES)
    for way in ("rubric_paste", "rubric_write"):
        assert reverse(way, args=["study"]) in page


@pytest.mark.parametrize("builtin", [name for name in BUILTIN_RUBRICS if name != "six-aspect"])
def test_a_built_in_rubric_is_taken_and_shown_whole(client: Client, address: str, builtin: str) -> None:
    answer = client.post(address, {"builtin": builtin}, follow=True)
    rubric = Rubric.objects.get(name=builtin)
    assert (rubric.kind, rubric.origin) == (BUILTIN_RUBRICS[builtin].kind, "builtin")
    page = answer.content.decode()
    for aspect in BUILTIN_RUBRICS[builtin].aspects:
        assert all(meaning in page for meaning in aspect.scale_labels.values())
        assert f"<code>{aspect.reply_key or aspect.key}</code>" in page


def test_the_metric_and_its_reason_have_names_of_their_own(client: Client, address: str) -> None:
    client.post(address, {"builtin": "reference-metric", "metric": "Faithfulness", "reason_key": "because"})
    spec = Rubric.objects.get(name="Faithfulness").versions.get().spec()
    assert (spec.aspects[0].reply_key, spec.rationale_key) == ("Faithfulness", "because")


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({}, "This field is required"),
        ({"builtin": "none"}, "Select a valid choice"),
        ({"builtin": "six-aspect"}, "A rubric named “six-aspect” already exists"),
        ({"builtin": "qa-pairwise", "metric": "tone"}, "Only the reference metric"),
        ({"builtin": "reference-metric", "metric": "事実"}, "plain letters"),
    ],
)
def test_what_cannot_be_taken_comes_back_with_the_reason(
    client: Client, address: str, sent: Values, words: str
) -> None:
    answer = client.post(address, sent)
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert Rubric.objects.count() == 1

"""Writing a rubric's first version: pairwise or pointwise, with everything a version can hold."""

import pytest
from django.test import Client
from django.urls import reverse

from evaluations.domain.roles import Role
from evaluations.domain.rubrics import RubricKind
from evaluations.models.evaluations import Evaluation
from evaluations.models.rubrics import Rubric, RubricVersion
from tests.factories.evaluations import make_comparison, make_member, make_user
from tests.rubrics.test_next_version_page import Values, form_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("owner_signed_in"), pytest.mark.any_database]


@pytest.fixture
def address(evaluation: Evaluation) -> str:
    return reverse("rubric_write", args=["study"])


def blank(client: Client, address: str, kind: str) -> Values:
    return form_of(client.get(address, {"kind": kind}).content) | {"name": "mine", "instructions": "Judge it."}


def written() -> RubricVersion:
    return RubricVersion.objects.get(rubric__name="mine")


def step(client: Client, address: str, values: Values, word: str) -> Values:
    return form_of(client.post(address, {**values, "step": word}).content)


def test_a_blank_page_becomes_a_pairwise_rubric(client: Client, address: str) -> None:
    answer = client.post(address, blank(client, address, "pairwise"))
    assert answer["Location"] == reverse("rubric", args=["study", written().rubric_id])
    spec = written().spec()
    assert (spec.kind, spec.output_order, spec.choices_key) == (RubricKind.PAIRWISE, ("overall",), "choices")
    assert written().rubric.origin == "own"


def test_a_scale_with_all_that_belongs_to_it(client: Client, address: str) -> None:
    values = blank(client, address, "pointwise")
    scale = {
        "form-0-scale_max": "2",
        "form-0-scale_step": "0.5",
        "form-0-tie_margin": "0.25",
        "form-0-scale_labels": "2 = good\r\n0.5 - 1.5 = fair = so so",
        "form-0-reply_key": "score",
    }
    client.post(address, {**values, **scale, "form-0-scale_min": "0", "rationale_key": "why", "choices_key": ""})
    spec = written().spec()
    (aspect,) = spec.aspects
    assert (aspect.scale_min, aspect.scale_max, aspect.scale_step, aspect.tie_margin) == (0, 2, 0.5, 0.25)
    assert aspect.scale_labels == {"2": "good", "0.5 - 1.5": "fair = so so"}
    assert (aspect.reply_key, spec.rationale_key, spec.choices_key) == ("score", "why", "")
    page = client.get(reverse("rubric", args=["study", written().rubric_id])).content.decode()
    for words in (
        "pointwise",
        "0 to 2, in steps of 0.5",
        "fair = so so",
        "within 0.25 count as a tie",
        "<code>why</code>",
    ):
        assert words in page


def test_an_answer_in_two_steps(client: Client, address: str) -> None:
    client.post(address, {**blank(client, address, "pointwise"), "answer": "two_step"})
    assert written().answer_format == "two_step"
    page = client.get(reverse("rubric", args=["study", written().rubric_id])).content.decode()
    assert "two steps: free text" in page


def test_examples_are_added_filled_in_and_taken_away(client: Client, address: str) -> None:
    values = blank(client, address, "pointwise")
    for _ in range(2):
        values = step(client, address, values, "example add")
    assert (values["name"], values["instructions"]) == ("mine", "Judge it.")
    given = {"input": "Say a.", "output": "b", "reasoning": "It is\r\nnot a.", "verdict": "1"}
    values |= {f"example-1-{name}": text for name, text in given.items()}
    values = step(client, address, values, "example remove 0")
    assert values["example-0-reasoning"] == "It is\r\nnot a."
    client.post(address, values)
    (example,) = written().few_shot
    assert example == {"input": "Say a.", "output": "b", "reasoning": "It is\nnot a.", "score": 1.0}
    page = client.get(reverse("rubric_next", args=["study", written().rubric_id])).content
    assert form_of(page)["example-0-verdict"] == "1"


def test_an_example_of_several_aspects_names_each(client: Client, address: str) -> None:
    values = step(client, address, blank(client, address, "pairwise"), "add") | {"form-1-name": "Tone"}
    values = step(client, address, values, "example add")
    given = {"input": "q", "output_a": "a", "output_b": "b", "verdict": "overall = A\r\ntone = tie"}
    client.post(address, values | {f"example-0-{name}": text for name, text in given.items()})
    assert written().few_shot[0]["choices"] == {"overall": "A", "tone": "tie"}
    page = client.get(reverse("rubric_next", args=["study", written().rubric_id])).content
    assert form_of(page)["example-0-verdict"] == "overall = A\r\ntone = tie"


@pytest.mark.parametrize(
    ("kind", "changed", "words"),
    [
        ("pairwise", {"name": "six-aspect"}, "A rubric named “six-aspect” already exists"),
        ("pairwise", {"name": ""}, "This field is required"),
        ("pairwise", {"rationale_key": ""}, "This field is required"),
        ("pairwise", {"form-0-key": "depth", "form-0-name": "Deep"}, "is already named “Depth” in this evaluation"),
        ("pointwise", {"form-0-scale_min": ""}, "This field is required"),
        ("pointwise", {"form-0-scale_labels": "5"}, "not of the form"),
        ("pointwise", {"form-0-scale_labels": "5 = a\n5 = b"}, "is listed twice"),
        ("pointwise", {"form-0-tie_margin": "-1"}, "greater than or equal to 0"),
    ],
)
def test_what_cannot_be_taken_comes_back_with_the_reason(
    client: Client, address: str, kind: str, changed: Values, words: str
) -> None:
    answer = client.post(address, {**blank(client, address, kind), **changed})
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert Rubric.objects.count() == 1


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        ("good", "“good” is not a number"),
        ("nan", "“nan” is not a number"),
        ("tone = inf", "“inf” is not a number"),
        ("6", "Example 1"),
        ("tone = 3", "Example 1"),
        ("overall = 3\noverall = 4", "is listed twice"),
        ("", "This field is required"),
    ],
)
@pytest.mark.parametrize("step_word", ["look", None])
def test_an_example_with_an_odd_score_comes_back(
    client: Client, address: str, verdict: str, words: str, step_word: str | None
) -> None:
    values = step(client, address, blank(client, address, "pointwise"), "example add")
    sent = values | {"example-0-input": "q", "example-0-output": "r", "example-0-verdict": verdict}
    answer = client.post(address, sent | ({"step": step_word} if step_word else {}))
    assert answer.status_code == (200 if step_word else 422)
    assert words in answer.content.decode()


def test_the_prompt_is_shown_as_it_is_being_written(client: Client, evaluation: Evaluation, address: str) -> None:
    values = blank(client, address, "pairwise") | {"instructions": "Weigh <both>."}
    sample = client.post(address, {**values, "step": "look"}).content.decode()
    assert "Weigh &lt;both&gt;." in sample.partition('id="look"')[2]
    assert "sample comparison" in " ".join(sample.split())
    make_comparison(evaluation, response_a="Certainly.")
    fragment = client.post(address, {**values, "step": "look"}, headers={"HX-Request": "true"}).content.decode()
    assert "Certainly." in fragment
    assert "<html" not in fragment
    assert not Rubric.objects.filter(name="mine").exists()


def test_what_is_not_whole_yet_shows_no_prompt(client: Client, address: str) -> None:
    values = blank(client, address, "pairwise") | {"instructions": ""}
    answer = client.post(address, {**values, "step": "look"})
    assert answer.status_code == 200
    assert "Fill in the required fields" in answer.content.decode()


def test_a_kind_that_is_none_is_not_found(client: Client, address: str) -> None:
    assert client.get(address, {"kind": "listwise"}).status_code == 404
    assert client.post(address, {"kind": "listwise"}).status_code == 404


@pytest.mark.parametrize("role", [Role.REVIEWER, Role.VIEWER, Role.ADJUDICATOR])
@pytest.mark.parametrize("name", ["rubric_new", "rubric_write"])
def test_only_owners_and_managers_begin_a_rubric(client: Client, evaluation: Evaluation, role: Role, name: str) -> None:
    address = reverse(name, args=["study"])
    client.force_login(make_member(evaluation, role))
    assert client.get(address, {"kind": "pairwise"}).status_code == 403
    assert client.post(address, {"kind": "pairwise", "builtin": "six-aspect"}).status_code == 403
    client.force_login(make_user())
    assert client.get(address, {"kind": "pairwise"}).status_code == 404

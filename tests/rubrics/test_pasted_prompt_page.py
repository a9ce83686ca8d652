"""A pasted prompt on its way to a rubric that a judge can be made of."""

from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from evaluations.domain.roles import Role
from evaluations.judge_prompts.placeholders import FIELDS
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Judge
from evaluations.models.rubrics import RubricVersion
from evaluations.rubrics.forms import PLACEHOLDER_CHOICES
from tests.factories.evaluations import make_comparison, make_member, make_user
from tests.factories.judges import make_llm_judge
from tests.helpers.page_text import html_of
from tests.rubrics.test_next_version_page import Values, form_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("owner_signed_in"), pytest.mark.any_database]

PASTED = "Query: {question}\r\nOne: {answer_a}\r\nTwo: {answer_b}\r\nBe {tone}. Say [[A]] or [[B]]."


@pytest.fixture
def address(evaluation: Evaluation) -> str:
    return reverse("rubric_paste", args=["study"])


@pytest.fixture
def seeds(acceptance_data: Path) -> Path:
    folder = acceptance_data.parent / "seeds"
    if not folder.is_dir():
        pytest.skip("there is no folder seeds beside the acceptance data")
    return folder


def test_every_field_can_be_chosen() -> None:
    assert [field for field, _ in PLACEHOLDER_CHOICES] == sorted(
        FIELDS, key=[field for field, _ in PLACEHOLDER_CHOICES].index
    )
    assert {field for field, _ in PLACEHOLDER_CHOICES} == set(FIELDS)


def test_placeholders_are_guessed_and_unknown_ones_named_in_one_sentence(client: Client, address: str) -> None:
    answer = client.post(address, {"text": PASTED})
    page = html_of(answer)
    assert answer.status_code == 200
    assert "Choose a meaning for <code>{tone}</code>" in page
    values = form_of(answer.content)
    assert [values[f"placeholder_{place}"] for place in range(4)] == ["query", "response_a", "response_b", ""]


def test_a_prompt_of_mustache_becomes_a_rubric_with_its_own_form(client: Client, address: str) -> None:
    form = 'Answer with JSON {"why": "...", "winner": "A or B or tie"}'
    text = f"Q: {{{{input}}}} A: {{{{ output_a }}}} B: {{{{{{output_b}}}}}} {form}"
    values = form_of(client.post(address, {"text": text}).content)
    assert [values[f"placeholder_{place}"] for place in range(3)] == ["query", "response_a", "response_b"]
    editor = form_of(client.post(address, {**values, "mapped": ""}).content)
    assert editor["instructions"] == text
    assert editor["placeholders"].splitlines() == [
        "{{input}} = query",
        "{{ output_a }} = response_a",
        "{{{output_b}}} = response_b",
    ]
    answer = client.post(reverse("rubric_write", args=["study"]), {**editor, "name": "mustache"}, follow=True)
    assert answer.status_code == 200
    version = RubricVersion.objects.latest("pk")
    assert (version.instructions, version.rationale_key) == (text, "why")


def test_an_unresolved_placeholder_is_refused_by_the_editor(client: Client, address: str) -> None:
    values = form_of(
        client.post(address, {"text": "Q: {{ question }} {{ answer_a }} {{ answer_b }} [[A]] [[B]]"}).content
    )
    editor = form_of(client.post(address, {**values, "mapped": ""}).content)
    before = RubricVersion.objects.count()
    for placeholders in ("", "{{ question }} = query"):
        sent = {**editor, "name": "open", "placeholders": placeholders}
        answer = client.post(reverse("rubric_write", args=["study"]), sent)
        assert answer.status_code == 422
        assert "{{ answer_a }}, {{ answer_b }}. Map each to one of query, context" in html_of(answer)
    assert RubricVersion.objects.count() == before


PAGE = f"Skip to content\r\n\r\n{PASTED}\r\nCopy\r\nEdit this page"


def test_lines_of_the_page_round_a_prompt_are_shown_and_stay_until_they_are_removed(
    client: Client, address: str
) -> None:
    first = client.post(address, {"text": PAGE})
    page = html_of(first)
    assert "3 lines look like" in page
    assert [f"<del>{line}</del>" in page for line in ("Skip to content", "Copy", "Edit this page")] == [True] * 3
    values = form_of(first.content) | {"placeholder_3": "literal"}
    kept = form_of(client.post(address, values).content)
    assert kept["instructions"] == PAGE
    second = client.post(address, values | {"clean": "1"})
    assert second.status_code == 200
    assert "look like" not in html_of(second)
    values = form_of(second.content)
    assert values["placeholder_3"] == "literal"  # what was chosen before stays
    assert form_of(client.post(address, values).content)["instructions"] == PASTED


def test_a_page_of_nothing_else_leaves_nothing_to_paste(client: Client, address: str) -> None:
    answer = client.post(address, {"text": "Skip to content\nCopy", "clean": "1"})
    assert answer.status_code == 422


def test_the_prompts_of_python_code_need_no_cleaning(client: Client, address: str) -> None:
    page = html_of(client.post(address, {"text": f'Skip to content\nMY_PROMPT = """{PASTED}"""\nCopy'}))
    assert "look like" not in page


def test_a_prompt_without_a_place_for_what_the_data_has_is_warned_of_on_every_page_on_its_way(
    client: Client, evaluation: Evaluation, address: str
) -> None:
    make_comparison(evaluation, context="Light.")
    words = "The rubric has no placeholder for the context"
    first = client.post(address, {"text": PASTED})
    assert words in html_of(first)
    values = form_of(first.content) | {"placeholder_3": "literal"}
    second = client.post(address, values)
    assert words in html_of(second)
    written = client.post(
        reverse("rubric_write", args=["study"]), form_of(second.content) | {"name": "mine"}, follow=True
    )
    assert words in html_of(written)
    without = values | {"placeholder_3": "context"}
    assert words not in html_of(client.post(address, without))


def test_what_is_not_said_is_asked_again(client: Client, address: str) -> None:
    values = form_of(client.post(address, {"text": PASTED}).content)
    answer = client.post(address, values)
    assert answer.status_code == 422
    assert "Choose a meaning for {tone}." in html_of(answer)


def test_a_literal_stays_and_the_editor_is_filled_in_with_everything(client: Client, address: str) -> None:
    values = form_of(client.post(address, {"text": PASTED}).content) | {"placeholder_3": "literal"}
    page = client.post(address, values).content
    editor = form_of(page)
    assert editor["instructions"] == PASTED
    assert "{tone} = literal" in editor["placeholders"]
    assert editor["answer"] == "text"
    assert "Be {tone}." in page.decode().partition('id="look"')[2]
    client.post(reverse("rubric_write", args=["study"]), editor | {"name": "mine"})
    version = RubricVersion.objects.get(rubric__name="mine")
    assert version.placeholders["{tone}"] == "literal"


def test_what_a_person_says_of_the_placeholders_decides_the_kind(client: Client, address: str) -> None:
    values = form_of(client.post(address, {"text": "{x} against {y}"}).content)
    one = form_of(client.post(address, values | {"placeholder_0": "query", "placeholder_1": "response"}).content)
    assert one["kind"] == "pointwise"
    two = form_of(client.post(address, values | {"placeholder_0": "response_a", "placeholder_1": "response_b"}).content)
    assert two["kind"] == "pairwise"


def test_a_place_that_is_missing_is_said_above_the_editor(client: Client, address: str) -> None:
    values = form_of(client.post(address, {"text": "Only {response_a}"}).content)
    page = html_of(client.post(address, values))
    assert "no placeholder for response_b" in page[: page.index('id="id_instructions"')]


def test_a_text_without_placeholders_becomes_instructions(client: Client, address: str) -> None:
    answer = client.post(address, {"text": "Be fair."})
    assert "No placeholders such as" in html_of(answer)
    editor = form_of(client.post(address, form_of(answer.content)).content)
    assert (editor["instructions"], editor["placeholders"], editor["kind"]) == ("Be fair.", "", "pairwise")


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "This field is required"), (" \n", "Paste a prompt."), ("x" * 200_001, "too long")],
)
def test_a_text_that_cannot_be_taken_comes_back_with_the_reason(
    client: Client, address: str, text: str, words: str
) -> None:
    answer = client.post(address, {"text": text})
    assert answer.status_code == 422
    assert words in html_of(answer)


# ---- the documents that the product was asked for, as they are


def pasted(client: Client, address: str, text: str, **chosen: str) -> Values:
    """The editor at the end of the way, everything left as it was guessed."""
    values = form_of(client.post(address, {"text": text, **chosen}).content)
    assert "mapped" in values
    return form_of(client.post(address, values).content)


def judge_of(client: Client, evaluation: Evaluation, editor: Values) -> Judge:
    """The rubric is written as the editor stands, a judge is made of it, and its page shows what it is sent."""
    answer = client.post(reverse("rubric_write", args=["study"]), editor | {"name": "pasted"})
    assert answer.status_code == 302, html_of(answer)
    make_comparison(evaluation, query="Why is the sky blue?", response_a="Rayleigh.", response_b="The sea.")
    judge = make_llm_judge(
        evaluation, "http://127.0.0.1:9/v1", version=RubricVersion.objects.get(rubric__name="pasted")
    )
    page = html_of(client.get(reverse("judge", args=["study", judge.pk])))
    assert "Why is the sky blue?" in page
    assert "Rayleigh." in page
    return judge


@pytest.mark.data
def test_the_six_aspect_template_becomes_a_judge(
    client: Client, evaluation: Evaluation, address: str, seeds: Path
) -> None:
    (path,) = seeds.glob("003_*")
    judge = judge_of(client, evaluation, pasted(client, address, path.read_text()))
    assert judge.rubric_version is not None
    spec = judge.rubric_version.spec()
    assert spec.instructions == path.read_text()
    assert spec.output_order == ("engagement", "clarity", "helpfulness", "factuality", "depth", "safety")


@pytest.mark.data
def test_the_reference_metric_becomes_a_judge(
    client: Client, evaluation: Evaluation, address: str, seeds: Path
) -> None:
    (path,) = seeds.glob("002_*")
    judge = judge_of(client, evaluation, pasted(client, address, path.read_text()))
    assert judge.rubric_version is not None
    (aspect,) = judge.rubric_version.spec().aspects
    assert (aspect.scale_min, aspect.scale_max, aspect.scale_step) == (0, 1, None)
    assert list(aspect.scale_labels) == ["0.0", "0.1 - 0.3", "0.4 - 0.6", "0.7 - 0.9", "1.0"]


@pytest.mark.data
@pytest.mark.parametrize(("place", "kind", "answer"), [("0", "pointwise", "two_step"), ("1", "pairwise", "json")])
def test_each_prompt_of_the_notes_becomes_a_judge(
    client: Client, evaluation: Evaluation, address: str, seeds: Path, place: str, kind: str, answer: str
) -> None:
    (path,) = seeds.glob("004_*")
    first = html_of(client.post(address, {"text": path.read_text()}))
    assert "2 prompts found." in first
    judge = judge_of(client, evaluation, pasted(client, address, path.read_text(), prompt=place))
    assert judge.rubric_version is not None
    assert (judge.rubric_version.rubric.kind, judge.rubric_version.answer_format) == (kind, answer)


@pytest.mark.parametrize("role", [Role.REVIEWER, Role.VIEWER, Role.ADJUDICATOR])
def test_only_owners_and_managers_paste(client: Client, evaluation: Evaluation, address: str, role: Role) -> None:
    client.force_login(make_member(evaluation, role))
    assert client.post(address, {"text": "x"}).status_code == 403
    client.force_login(make_user())
    assert client.get(address).status_code == 404

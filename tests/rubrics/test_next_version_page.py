"""Writing a rubric's next version, with and without a change, by forms alone."""

from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from evaluations.domain.roles import Role
from evaluations.domain.rubrics import FIRST_LAYOUT, AspectSpec
from evaluations.exports.options import suggest_choice
from evaluations.judge_prompts.builtin_rubrics import BUILTIN_RUBRICS, SIX_ASPECT, put_overall_first
from evaluations.models.evaluations import Evaluation
from evaluations.models.rubrics import Rubric, RubricVersion
from evaluations.rubrics.services import create_builtin_rubric
from tests.factories.evaluations import make_member

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("owner_signed_in"), pytest.mark.any_database]

Values = dict[str, str]


class FormReader(HTMLParser):
    """What a browser would send for the form of a page, line ends and all."""

    def __init__(self) -> None:
        super().__init__()
        self.values: Values = {}
        self.textarea = ""
        self.select = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "textarea":
            self.textarea = given["name"]
            self.values[self.textarea] = ""
        if tag == "select":
            self.select = given["name"]
            self.values.setdefault(self.select, "")
        if tag == "option" and "selected" in given:
            self.values[self.select] = given["value"]
        if tag != "input" or "name" not in given:
            return
        ticked = given.get("type") in ("checkbox", "radio")
        if not ticked or "checked" in given:
            self.values[given["name"]] = given.get("value", "on" if ticked else "")

    def handle_data(self, data: str) -> None:
        if self.textarea:
            self.values[self.textarea] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            text = self.values[self.textarea].removeprefix("\n").removeprefix("\r\n")
            self.values[self.textarea] = text.replace("\r\n", "\n").replace("\n", "\r\n")
            self.textarea = ""


def form_of(page: bytes) -> Values:
    reader = FormReader()
    reader.feed(page.decode())
    return reader.values


@pytest.fixture
def address(evaluation: Evaluation) -> str:
    return reverse("rubric_next", args=["study", Rubric.objects.get(evaluation=evaluation).pk])


@pytest.fixture
def values(client: Client, address: str) -> Values:
    return form_of(client.get(address).content)


def newest() -> RubricVersion:
    return RubricVersion.objects.latest("number")


def names(values: Values) -> list[str]:
    return [values[f"form-{row}-name"] for row in range(int(values["form-TOTAL_FORMS"]))]


def test_the_form_sent_back_untouched_is_no_new_version(client: Client, address: str, values: Values) -> None:
    answer = client.post(address, values)
    assert answer.status_code == 422
    assert "Nothing changed" in answer.content.decode()
    assert newest().number == 1


EXAMPLES: dict[str, dict[str, Any]] = {
    "six-aspect": {
        "input": "q",
        "output_a": "a",
        "output_b": "b",
        "choices": dict.fromkeys(SIX_ASPECT.output_order, "A"),
    },
    "overall": {"input": "q", "output_a": "a", "output_b": "b", "choices": {"overall": "A"}},
    "qa-pairwise": {"input": "q", "context": "c", "output_a": "a", "output_b": "b", "reasoning": "r", "choice": "SAME"},
    "summary-rating": {"input": "q", "output": "a\nb", "score": 4.0},
    "reference-metric": {"input": "q", "output": "a", "expected_output": "e", "reasoning": "r", "score": 0.25},
}


@pytest.mark.parametrize("builtin", BUILTIN_RUBRICS)
def test_every_built_in_rubric_comes_through_the_form_unchanged(
    client: Client, evaluation: Evaluation, builtin: str
) -> None:
    version = create_builtin_rubric(evaluation, builtin=builtin, name="mine", few_shot=[EXAMPLES[builtin]], user=None)
    address = reverse("rubric_next", args=["study", version.rubric_id])
    untouched = form_of(client.get(address).content)
    assert "Nothing changed" in client.post(address, untouched).content.decode()
    client.post(address, untouched | {"instructions": "  Two.\n"})
    latest = RubricVersion.objects.get(rubric=version.rubric, number=2).spec()
    assert latest == replace(version.spec(), instructions="  Two.\n")


def test_a_new_wording_keeps_all_the_rest(client: Client, address: str, values: Values) -> None:
    answer = client.post(address, {**values, "instructions": "One.\r\nTwo."})
    assert answer["Location"].endswith("?version=2")
    spec = newest().spec()
    assert spec.instructions == "One.\nTwo."
    assert (spec.aspects, spec.output_order) == (SIX_ASPECT.aspects, SIX_ASPECT.output_order)


def test_people_are_asked_by_it_unless_that_is_unticked(
    client: Client, evaluation: Evaluation, address: str, values: Values
) -> None:
    ticked = values.pop("for_reviews")
    client.post(address, {**values, "instructions": "2"})
    evaluation.refresh_from_db()
    assert evaluation.review_rubric != newest()
    client.post(address, {**values, "instructions": "3", "for_reviews": ticked})
    evaluation.refresh_from_db()
    assert evaluation.review_rubric == newest()


def test_aspects_are_added_moved_and_removed_by_buttons_and_nothing_is_stored_meanwhile(
    client: Client, address: str, values: Values
) -> None:
    values = form_of(client.post(address, {**values, "instructions": "Kept.", "step": "add"}).content)
    assert len(names(values)) == 7
    values |= {"form-6-name": "Tone of voice", "form-6-definition": "Whether it is friendly."}
    values = form_of(client.post(address, {**values, "step": "up 6"}).content)
    values = form_of(client.post(address, {**values, "step": "remove 0"}).content)
    values = form_of(client.post(address, {**values, "step": "down 0"}).content)
    assert names(values) == ["Clarity", "Factuality", "Depth", "Engagement", "Tone of voice", "Safety"]
    assert values["instructions"] == "Kept."
    assert newest().number == 1

    client.post(address, values)
    spec = newest().spec()
    assert [aspect.key for aspect in spec.aspects] == [
        "clarity",
        "factuality",
        "depth",
        "engagement",
        "tone_of_voice",
        "safety",
    ]
    assert spec.aspects[4] == AspectSpec("tone_of_voice", "Tone of voice", "Whether it is friendly.")
    assert spec.output_order == ("engagement", "clarity", "factuality", "depth", "safety", "tone_of_voice")


@pytest.mark.parametrize("step", ["", "up 0", "down 5", "remove 99", "remove -1", "remove x", "explode 3", "up ²"])
def test_an_odd_step_changes_nothing(client: Client, address: str, values: Values, step: str) -> None:
    answer = client.post(address, {**values, "step": step})
    assert answer.status_code == 200
    assert names(form_of(answer.content)) == names(values)


def test_a_form_without_its_count_of_aspects_is_refused_not_a_fault(client: Client, address: str) -> None:
    assert client.post(address, {"step": "add"}).status_code == 200
    assert client.post(address, {"instructions": "x"}).status_code == 422


def test_choices_and_labels_are_per_aspect(client: Client, address: str, values: Values) -> None:
    del values["form-0-offers_tie"]
    client.post(address, {**values, "form-1-offers_both_bad": "on", "form-1-labels": "tie = SAME; both_bad=NEITHER"})
    helpfulness, factuality, *_ = newest().spec().aspects
    assert helpfulness.choices == ("A", "B")
    assert factuality.choices == ("A", "tie", "both_bad", "B")
    assert factuality.labels == {"tie": "SAME", "both_bad": "NEITHER"}


def test_a_pasted_prompt_with_its_placeholders(client: Client, address: str, values: Values) -> None:
    pasted = {
        "instructions": "Query: {$instruction}\nA: {$candidate_A}\nB: {$candidate_B}",
        "placeholders": "{$instruction} = query\r\n{$candidate_A} = response_a\r\n\r\n{$candidate_B}=response_b",
    }
    client.post(address, {**values, **pasted})
    assert newest().placeholders == {
        "{$instruction}": "query",
        "{$candidate_A}": "response_a",
        "{$candidate_B}": "response_b",
    }


def test_an_answer_in_plain_text_with_its_pattern(client: Client, address: str, values: Values) -> None:
    for _ in range(5):
        values = form_of(client.post(address, {**values, "step": "remove 1"}).content)
    client.post(address, {**values, "answer": "text", "pattern": r"Winner: (\w+)"})
    assert newest().answer_format == r"text:Winner: (\w+)"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"instructions": ""}, "This field is required"),
        ({"form-0-name": ""}, "This field is required"),
        ({"form-1-key": "helpfulness"}, "is listed twice"),
        ({"form-0-name": "Usefulness"}, "is already named “Helpfulness” in this evaluation"),
        ({"form-0-key": "no good"}, "slug"),
        ({"form-0-name": "事実", "form-0-key": ""}, "No key can be generated from this name"),
        ({"form-0-labels": "draw = SAME"}, "unknown choice “draw”"),
        ({"form-0-labels": "tie"}, "not of the form"),
        ({"form-0-labels": "tie = A"}, "a different label"),
        ({"placeholders": "{one}"}, "not of the form"),
        ({"placeholders": "{one} = response_a"}, "no placeholder for response_b"),
        ({"answer": "text"}, "supports one aspect"),
        ({"form-TOTAL_FORMS": "0"}, "Add at least one aspect"),
        ({"form-TOTAL_FORMS": "41"}, "at most 40"),
    ],
)
def test_what_cannot_be_taken_comes_back_with_the_reason(
    client: Client, address: str, values: Values, changed: Values, words: str
) -> None:
    answer = client.post(address, {**values, **changed})
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert newest().number == 1


@pytest.mark.parametrize("role", [Role.REVIEWER, Role.VIEWER, Role.ADJUDICATOR])
def test_only_owners_and_managers_write_versions(
    client: Client, evaluation: Evaluation, address: str, values: Values, role: Role
) -> None:
    client.force_login(make_member(evaluation, role))
    assert client.post(address, {**values, "instructions": "Mine."}).status_code == 403
    assert newest().number == 1


def test_overall_is_added_as_the_first_aspect_and_answered_last_by_judges(
    client: Client, evaluation: Evaluation, address: str
) -> None:
    rubric = Rubric.objects.get(evaluation=evaluation)
    page, settings = reverse("rubric", args=["study", rubric.pk]), reverse("evaluation_settings", args=["study"])
    offer = f"{address}?text=overall"
    assert all(offer in client.get(where).content.decode() for where in (page, settings))
    client.post(address, form_of(client.get(offer).content))
    spec = newest().spec()
    assert [aspect.key for aspect in spec.aspects] == ["overall", *(aspect.key for aspect in SIX_ASPECT.aspects)]
    assert spec.output_order == (*SIX_ASPECT.output_order, "overall")
    evaluation.refresh_from_db()
    assert evaluation.review_rubric == newest()
    assert suggest_choice(evaluation) == ("overall", "")
    assert not any(offer in client.get(where).content.decode() for where in (page, settings))
    assert "aspects-7-key" not in form_of(client.get(offer).content)


@pytest.mark.parametrize("name", [name for name in BUILTIN_RUBRICS if name != "six-aspect"])
def test_overall_is_not_offered_where_it_is_there_already_or_responses_are_scored(
    client: Client, evaluation: Evaluation, name: str
) -> None:
    version = create_builtin_rubric(evaluation, builtin=name, user=None)
    assert "?text=overall" not in client.get(reverse("rubric", args=["study", version.rubric_id])).content.decode()


def test_overall_offers_what_the_first_aspect_offers() -> None:
    first = replace(SIX_ASPECT.aspects[0], offers_tie=False, labels={"A": "1", "B": "2"}, reply_key="useful")
    spec = put_overall_first(replace(SIX_ASPECT, aspects=(first, *SIX_ASPECT.aspects[1:])))
    assert spec is not None
    overall = spec.aspects[0]
    assert (overall.key, overall.offers_tie, overall.labels, overall.reply_key) == ("overall", False, first.labels, "")


def test_a_built_in_rubric_of_the_first_layout_can_be_continued_with_the_current_text(
    client: Client, evaluation: Evaluation
) -> None:
    offer, rubric = "?text=builtin", Rubric.objects.get(evaluation=evaluation)
    page, editor = (reverse(name, args=["study", rubric.pk]) for name in ("rubric", "rubric_next"))
    assert offer not in client.get(page).content.decode()
    RubricVersion.objects.filter(rubric=rubric).update(
        layout=FIRST_LAYOUT, instructions="Compare them.", sha256="0" * 64
    )
    assert offer in client.get(page).content.decode()
    assert form_of(client.get(editor).content)["instructions"] == "Compare them."
    first = client.get(editor + offer)
    assert "uses the current prompt layout" in first.content.decode()
    values = form_of(first.content)
    client.post(editor, values)
    newest = RubricVersion.objects.filter(rubric=rubric).latest("number")
    assert (newest.number, newest.spec()) == (2, SIX_ASPECT)
    assert "uses the current prompt layout" not in client.get(editor).content.decode()
    assert offer not in client.get(page).content.decode()

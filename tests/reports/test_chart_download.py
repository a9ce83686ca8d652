"""A plot to take away: as a picture, as a table, by the filters of its page, by whoever may see its numbers."""

import csv
import io
import json

import pytest
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from evaluations.domain.reviews import Reveal
from evaluations.domain.roles import Role
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.users import User
from tests.factories.evaluations import make_comparison, make_human, make_member, make_user
from tests.factories.verdicts import make_judge_verdicts, make_review

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


@pytest.fixture(autouse=True)
def votes_by_category(evaluation: Evaluation) -> None:
    """alpha wins in math, beta in chess, as people and the judge say; on safety people see a tie."""
    people = [make_human(evaluation, name) for name in ("ann", "ben")]
    for category, winner in (("math", "A"), ("chess", "B")):
        made = make_comparison(evaluation, category=category)
        for person in people:
            make_review(person, made, {"clarity": winner, "safety": "tie"})
        make_judge_verdicts(made, as_stored={"clarity": winner}, swapped={"clarity": winner})


def file(user: User, name: str, status: int = 200, **query: str) -> HttpResponse:
    """``form``: what the address calls ``as``."""
    query = {"as" if key == "form" else key: value for key, value in query.items()}
    client = Client()
    client.force_login(user)
    answer = client.get(reverse("report_plot", args=["study", name]), query)
    assert answer.status_code == status
    assert isinstance(answer, HttpResponse)
    return answer


def rows(user: User, name: str, **query: str) -> list[dict[str, str]]:
    text = file(user, name, 200, form="csv", **query).content.decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text)))


def of_people(table: list[dict[str, str]]) -> dict[str, float]:
    return {row["candidate"]: float(row["value"]) for row in table if row["series"] == "reviewers" and row["value"]}


def test_the_table_holds_what_the_page_shows(owner: User, evaluation: Evaluation) -> None:
    assert of_people(rows(owner, "wins-rates-1-longest")) == {"alpha": 0.5, "beta": 0.5}


def test_filters_of_the_page_hold_for_its_files(owner: User, evaluation: Evaluation) -> None:
    assert of_people(rows(owner, "wins-rates-1-longest", category="math")) == {"alpha": 1.0, "beta": 0.0}


def test_the_aspect_of_the_page_holds_for_its_files(owner: User, evaluation: Evaluation) -> None:
    answer = file(owner, "people-reviewers", form="json", aspect="safety")
    assert "on Safety" in json.loads(answer.content)["description"]


def test_a_picture_is_one_of_paper(owner: User, evaluation: Evaluation) -> None:
    answer = file(owner, "wins-rates-1-longest", form="svg")
    assert answer["Content-Type"] == "image/svg+xml"
    assert 'filename="wins-rates-1-longest.svg"' in answer["Content-Disposition"]
    assert b"<svg" in answer.content
    assert b"var(--" not in answer.content


def subtitle(answer: HttpResponse) -> list[str]:
    said: list[str] = json.loads(answer.content)["title"]["subtitle"]
    return said


def test_a_picture_says_which_evaluation_it_is_of_and_by_which_filters(owner: User, evaluation: Evaluation) -> None:
    everything = file(owner, "wins-rates-1-longest", form="json")
    assert subtitle(everything)[-1] == "Study study."
    filtered = file(owner, "wins-rates-1-longest", form="json", category="math", split_rule="drop")
    assert subtitle(filtered)[-1] == "Study study; Category: math; Split votes: excluded."


def test_a_picture_of_a_reviewer_says_that_it_is_of_a_part(evaluation: Evaluation) -> None:
    user = make_member(evaluation, Role.REVIEWER, "rea")
    Rater.objects.filter(name="ann").update(user=user)
    said = subtitle(file(user, "agreement-aspects", form="json"))
    assert said[-1] == "Study study; only comparisons that rea has reviewed."


@pytest.mark.parametrize("name", ["wins-rates-2-other", "wins", "weather-map", "agreement-aspects-2"])
def test_a_plot_that_there_is_not_is_not_found(owner: User, evaluation: Evaluation, name: str) -> None:
    file(owner, name, status=404)


def test_a_format_that_there_is_not_is_not_found(owner: User, evaluation: Evaluation) -> None:
    file(owner, "agreement-aspects", 404, form="exe")


def test_a_filter_that_cannot_be_is_refused_in_words(owner: User, evaluation: Evaluation) -> None:
    answer = file(owner, "agreement-aspects", status=422, category="go")
    assert "There is no category “go”." in answer.content.decode()


def test_strangers_find_nothing(evaluation: Evaluation) -> None:
    file(make_user("eve"), "agreement-aspects", status=404)


def test_whoever_may_not_see_judges_finds_none_in_a_plot(evaluation: Evaluation) -> None:
    evaluation.reveal = Reveal.NEVER
    evaluation.save()
    user = make_member(evaluation, Role.REVIEWER, "rea")
    Rater.objects.filter(name="ann").update(user=user)
    file(user, "bias-preferences", status=404)
    file(user, "wins-rates-1-longest", status=404)
    assert {row["series"] for row in rows(user, "agreement-aspects")} == {"reviewers"}
    assert of_people(rows(user, "wins-rates")) == {"alpha": 0.5, "beta": 0.5}

"""The report of a program is that of the command, and asks no more of a reviewer than the page does."""

import json
from io import StringIO

import pytest
from django.core.management import call_command

from evaluations.domain.reviews import Reveal
from evaluations.domain.roles import Role
from evaluations.models.evaluations import Evaluation
from tests.factories.evaluations import make_comparison, make_human, make_member
from tests.factories.imports import comparison_row, import_rows, verdict_row
from tests.factories.verdicts import make_judge_verdicts, make_review
from tests.helpers.api_client import ApiClient, token_for

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


@pytest.fixture
def votes(evaluation: Evaluation) -> Evaluation:
    keys = [f"q{number}" for number in range(12)]
    import_rows(evaluation, *(comparison_row(key, category=("math", "prose")[len(key) % 2]) for key in keys))
    for rater, choices in (("ann", "AABBAABBAABB"), ("bob", "AABBBBBBAAAA"), ("cleo", "BBBBAAAABBBB")):
        import_rows(
            evaluation,
            *(verdict_row(key, rater=rater, choice=choice) for key, choice in zip(keys, choices, strict=True)),
        )
    return evaluation


def said_by_command(*options: str) -> object:
    told = StringIO()
    call_command("report", "study", "--json", *options, stdout=told)
    return json.loads(told.getvalue())


@pytest.mark.parametrize(
    ("asked", "options"),
    [
        ("", ()),
        ("?part=train", ("--part", "train")),
        ("?raters=[ab]*", ("--raters", "[ab]*")),
        ("?where=category=math", ("--where", "category=math")),
        (
            "?where=category=math&where=candidate=alpha&split_rule=drop",
            ("--where", "category=math", "candidate=alpha", "--split-rule", "drop"),
        ),
    ],
)
def test_it_is_that_of_the_command(asking: ApiClient, votes: Evaluation, asked: str, options: tuple[str, ...]) -> None:
    answer = asking.get(f"/evaluations/study/report{asked}")
    assert answer.status_code == 200, answer.content
    assert answer.json() == said_by_command(*options)


def test_what_is_asked_for_changes_what_is_counted(asking: ApiClient, votes: Evaluation) -> None:
    reports = [asking.get(f"/evaluations/study/report{asked}").json() for asked in ("", "?part=train", "?raters=[ab]*")]
    assert len({json.dumps(report) for report in reports}) == 3


def test_one_part_alone(asking: ApiClient, votes: Evaluation) -> None:
    whole, one = (asking.get(f"/evaluations/study/report{asked}").json() for asked in ("", "?only=wins"))
    assert (list(whole["aspects"]), list(one["aspects"])) == (["overall"], [])
    assert asking.get("/evaluations/study/report?only=everything").status_code == 404


@pytest.mark.parametrize(
    ("asked", "field"), [("where=math", "query.where"), ("part=bias", "query.part"), ("word=1", "query.word")]
)
def test_what_cannot_be_is_named(asking: ApiClient, votes: Evaluation, asked: str, field: str) -> None:
    answer = asking.get(f"/evaluations/study/report?{asked}")
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)


@pytest.mark.parametrize("asked", ["raters=ann", "where=candidate=alpha"])
def test_a_reviewer_names_no_rater_and_no_candidate(votes: Evaluation, asked: str) -> None:
    reviewer = ApiClient(token_for(make_member(votes, Role.REVIEWER, "rita")))
    assert reviewer.get("/evaluations/study/report").status_code == 200
    assert reviewer.get(f"/evaluations/study/report?{asked}").status_code == 422


# ---- one cell of a judge's confusion matrix


CELL = "/evaluations/study/report/cell?aspect=clarity&judge=longest"


@pytest.fixture
def judged(evaluation: Evaluation) -> list[int]:
    """Judge and people: A and A, B and A, A and B, and A and A again."""
    made = [make_comparison(evaluation, query=f"Question {number}") for number in range(4)]
    for one, judge, person in zip(made, "ABAA", "AABA", strict=True):
        make_judge_verdicts(one, as_stored={"clarity": judge}, swapped={"clarity": judge})
        make_review(make_human(evaluation), one, {"clarity": person})
    return [one.pk for one in made]


def test_a_cell_lists_the_comparisons_that_it_counts(asking: ApiClient, judged: list[int]) -> None:
    first = asking.get(f"{CELL}&judge_choice=A&human_choice=A&limit=1").json()
    second = asking.get(f"{CELL}&judge_choice=A&human_choice=A&limit=1&cursor={first['next']}").json()
    assert [one["id"] for one in (*first["items"], *second["items"])] == [judged[0], judged[3]]
    assert second["next"] is None
    other = asking.get(f"{CELL}&judge_choice=A&human_choice=B").json()
    assert [one["id"] for one in other["items"]] == [judged[2]]


@pytest.mark.parametrize(
    "asked",
    [
        "aspect=clarity&judge_choice=A&human_choice=A",
        "aspect=clarity&judge=longest&judge_choice=C&human_choice=A",
        "aspect=charm&judge=longest&judge_choice=A&human_choice=A",
        "aspect=clarity&judge=longest&judge_choice=A&human_choice=A&failed=x",
        "aspect=clarity&judge=longest&judge_choice=A&human_choice=A&colour=red",
    ],
)
def test_a_cell_that_no_report_has_is_refused(asked: str, asking: ApiClient, judged: list[int]) -> None:
    assert asking.get(f"/evaluations/study/report/cell?{asked}").status_code == 422


def test_a_cell_is_of_judges_and_so_not_for_those_who_may_not_see_them(
    judged: list[int], evaluation: Evaluation
) -> None:
    Evaluation.objects.update(reveal=Reveal.NEVER)
    reviewing = ApiClient(token_for(make_member(evaluation, Role.REVIEWER)))
    assert reviewing.get(f"{CELL}&judge_choice=A&human_choice=A").status_code == 403

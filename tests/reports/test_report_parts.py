"""The parts of the report beside agreement: each a page that answers one question, aspect by aspect."""

import pytest
from django.test import Client
from django.urls import reverse

from evaluations.domain.reports import ReportPart
from evaluations.domain.reviews import Reveal, SelectionMethod
from evaluations.domain.roles import Role
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.users import User
from tests.factories.evaluations import make_comparison, make_human, make_member
from tests.factories.imports import import_rows, score_row
from tests.factories.verdicts import (
    make_judge_score,
    make_judge_verdicts,
    make_review,
    make_scored_review,
    make_scoring_judge,
)
from tests.helpers.page_text import html_of

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

BESIDE = [part.value for part in ReportPart if part not in (ReportPart.DECISIONS, ReportPart.AGREEMENT)]


@pytest.fixture
def reviewed(evaluation: Evaluation) -> Evaluation:
    """On four comparisons ann and ben choose A twice and B twice for clarity; the judge chooses what is shown first."""
    people = [make_human(evaluation, name) for name in ("ann", "ben")]
    for number in range(4):
        made = make_comparison(evaluation, category="math")
        for person in people:
            make_review(person, made, {"clarity": "A" if number < 2 else "B", "safety": "tie"})
        make_judge_verdicts(made, judge="first", as_stored={"clarity": "A"}, swapped={"clarity": "B"})
        make_judge_verdicts(made, judge="longest", as_stored={"clarity": "A"}, swapped={"clarity": "A"})
    return evaluation


def page(user: User, part: str, *, status: int = 200, **filters: str) -> str:
    client = Client()
    client.force_login(user)
    answer = client.get(reverse("report_part", args=["study", part]), filters)
    assert answer.status_code == status
    return html_of(answer)


@pytest.mark.parametrize("part", BESIDE)
def test_every_part_has_its_rules_below(owner: User, reviewed: Evaluation, part: str) -> None:
    shown = page(owner, part)
    assert shown.count('id="rules"') == 1
    assert "{%" not in shown
    assert "{{" not in shown


@pytest.mark.parametrize(
    ("part", "says"),
    [
        ("bias", "No judge verdicts yet"),
        ("wins", "longest"),
        ("people", "No reviews yet"),
        ("judges", "Fewer than two judges"),
        ("scores", "No scores yet"),
    ],
)
def test_an_empty_part_says_how_to_fill_it(owner: User, evaluation: Evaluation, part: str, says: str) -> None:
    made = make_comparison(evaluation)
    if part == "bias":
        make_review(make_human(evaluation, "ann"), made, {"clarity": "A"})
    else:
        make_judge_verdicts(made, as_stored={"clarity": "A"}, swapped={"clarity": "A"})
    assert says in page(owner, part)


def test_where_filters_leave_nothing_the_page_does_not_say_that_there_is_nothing(
    owner: User, reviewed: Evaluation
) -> None:
    shown = page(owner, "people", since="2100-01-01")
    assert "No results for these filters" in shown
    assert "No reviews yet" not in shown
    assert f'href="{reverse("report_part", args=["study", "people"])}">Clear filters' in shown


def test_people_without_votes_are_not_helped_by_a_judge(owner: User, evaluation: Evaluation) -> None:
    make_judge_verdicts(
        make_comparison(evaluation), judge="first", as_stored={"clarity": "A"}, swapped={"clarity": "A"}
    )
    shown = page(owner, "people")
    assert "No reviews yet" in shown
    assert "Run a judge" not in shown


def test_the_first_aspect_with_data_is_shown_and_another_one_on_demand(owner: User, reviewed: Evaluation) -> None:
    first = page(owner, "people", category="math")
    assert 'href="/e/study/results/people?category=math&amp;aspect=clarity" aria-current="page"' in first
    other = page(owner, "people", category="math", aspect="safety")
    assert 'href="/e/study/results/people?category=math&amp;aspect=safety" aria-current="page"' in other
    assert "Agreement of each reviewer on Safety" in other


def test_a_judge_that_always_takes_the_first_shown_is_seen_at_once(owner: User, reviewed: Evaluation) -> None:
    rows = page(owner, "bias").partition('id="position"')[2].partition("</table>")[0]
    first, longest = rows.partition("<tbody>")[2].split("</tr>")[:2]
    # Both orders of all 4 comparisons: the first shown all 8 times; the other one A every time, which is half of them.
    assert "100%" in first.split("<td")[4]
    assert "50%" in longest.split("<td")[4]
    assert "rule-based" in first


def test_win_rates_stand_side_by_side_and_name_the_judges_error(owner: User, reviewed: Evaluation) -> None:
    shown = page(owner, "wins")
    for column in ("Reviewers", "Judge alone", "Corrected", "Judge’s weight λ", "CI width vs. human-only"):
        assert f">{column}</th>" in shown
    assert "typically 4–15% narrower" in shown


def test_judges_are_compared_and_none_is_called_better_without_a_test_part(owner: User, reviewed: Evaluation) -> None:
    shown = page(owner, "judges")
    assert "exploratory" in shown
    assert "no judge is called better" in shown
    assert "Better</th>" not in shown


def test_what_holds_for_all_pairs_of_judges_is_said_once(owner: User, reviewed: Evaluation) -> None:
    for comparison in Comparison.objects.all():
        make_judge_verdicts(comparison, judge="random", as_stored={"clarity": "A"}, swapped={"clarity": "A"})
    shown = page(owner, "judges")
    assert shown.count('<span class="badge warn">exploratory</span>') == 3
    assert shown.count("These p-values are exploratory") == 1


def test_formatting_that_no_response_has_alone_is_no_row(owner: User, reviewed: Evaluation) -> None:
    shown = page(owner, "bias")
    assert "Longer response" in shown
    assert "With a list" not in shown


def test_of_scores_alone_other_parts_lead_to_the_scores(owner: User, evaluation: Evaluation) -> None:
    import_rows(evaluation, score_row("q1", "alpha", 4, query="Why?", response="So."))
    for part in ("wins", "bias", "people", "judges"):
        shown = page(owner, part)
        assert "Scores only" in shown
        assert 'href="/e/study/results/scores">See scores</a>' in shown
        assert "Import the responses first" not in shown


def test_the_alternative_annotator_test_says_which_condition_is_not_met(owner: User, reviewed: Evaluation) -> None:
    shown = page(owner, "people")
    assert "Not enough data: needs 3 reviewers with ≥ 30 comparisons each" in shown
    assert "Not enough data: Not enough data" not in shown


def test_scores_of_judges_and_people_stand_in_one_table(owner: User, evaluation: Evaluation) -> None:
    scorer = make_scoring_judge(evaluation)
    people = [make_human(evaluation, name) for name in ("ann", "ben")]
    for number in range(4):
        made = make_comparison(evaluation)
        for response in (made.response_a, made.response_b):
            make_judge_score(scorer, response, 1 + number)
        for person in people:
            make_scored_review(person, made, {"overall": (1 + number, 4 - number)})
    shown = page(owner, "scores")
    assert "scorer <span" in shown
    assert "Each reviewer <span" in shown
    assert "Krippendorff’s alpha, interval" in shown


def test_where_only_others_of_the_query_were_scored_the_page_says_that_there_is_nothing(
    owner: User, evaluation: Evaluation
) -> None:
    make_comparison(evaluation, key="q1")
    other = make_comparison(evaluation, key="q1", candidates=("delta", "gamma"))
    for name in ("ann", "ben"):
        make_scored_review(make_human(evaluation, name), other, {"depth": (3, 2)})
    assert "Aspect: <b>Depth</b>" in page(owner, "scores")
    assert "No results for these filters" in page(owner, "scores", candidate_1="alpha", candidate_2="beta")


def test_the_scores_page_says_which_scores_count(owner: User, evaluation: Evaluation) -> None:
    made = make_comparison(evaluation)
    make_judge_score(make_scoring_judge(evaluation), made.response_a, 3)
    make_scored_review(make_human(evaluation, "ann"), made, {"overall": (4, 2)})
    make_scored_review(make_human(evaluation, "ben"), made, {"overall": (4, 2)}, blind=False, judge_first=True)
    make_scored_review(
        make_human(evaluation, "cem"), made, {"overall": (4, 2)}, selection_method=SelectionMethod.CALIBRATION
    )
    shown = page(owner, "scores").partition('id="mean-scores"')[2]
    for told in ("2 blind scores", "2 saw the judge first", "2 calibration scores excluded"):
        assert f">{told}</span>" in shown
    apart = shown.partition("Judge-first reviews")[2].partition("</details>")[0]
    assert "2 scores, excluded elsewhere" in apart
    assert 'scorer <span class="report-against">vs. mean of these reviewers' in apart
    assert "Human scores of single responses follow the rules for votes." in page(owner, "scores")


def test_a_part_about_judges_is_hidden_from_whoever_may_not_see_them(reviewed: Evaluation) -> None:
    reviewed.reveal = Reveal.NEVER
    reviewed.save()
    user = make_member(reviewed, Role.REVIEWER, "rea")
    Rater.objects.filter(name="ann").update(user=user)
    person = Rater.objects.get(name="ann")
    made = Comparison.objects.order_by("pk")[0]
    make_scored_review(person, made, {"overall": (4, 2)})
    make_scored_review(Rater.objects.get(name="ben"), made, {"overall": (5, 1)})
    make_judge_score(make_scoring_judge(reviewed), made.response_a, 3)
    for part in ("bias", "judges"):
        page(user, part, status=404)
    for part, says in (("wins", "alpha"), ("people", "ben"), ("scores", "Each reviewer <span")):
        shown = page(user, part).partition("<main")[2]
        assert says in shown
        assert "longest" not in shown
        assert "scorer" not in shown


def test_a_reviewer_sees_scores_of_the_reviewed_comparisons_and_of_no_others(evaluation: Evaluation) -> None:
    reviewed_one = make_comparison(evaluation, key="q1")
    other = make_comparison(evaluation, key="q1", candidates=("delta", "gamma"))
    ann = make_human(evaluation, "ann")
    ann.user = make_member(evaluation, Role.REVIEWER, "rea")
    ann.save()
    make_scored_review(ann, reviewed_one, {"overall": (5, 1)})
    make_scored_review(make_human(evaluation, "ben"), reviewed_one, {"overall": (4, 2)})
    for name in ("cemile", "dora"):
        make_scored_review(make_human(evaluation, name), other, {"overall": (3, 2)})
    shown = page(ann.user, "scores").partition("<main")[2]
    assert "over the 1 comparison that you have reviewed" in shown
    row = shown.partition("Each reviewer <span")[2].partition("</tr>")[0]
    # Two people beside each other on two responses: 5 and 4, 1 and 2, each way.
    assert [cell.partition("<")[0].strip() for cell in row.split('<td class="number">')[1:]] == ["4"]
    assert "ann" in shown
    assert "ben" in shown
    for stranger in ("cemile", "dora"):
        assert stranger not in shown.partition('id="judges-people"')[2]

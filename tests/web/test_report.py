"""What the report page tells whom."""

from html.parser import HTMLParser

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evaluations.domain import CallState, Reveal, Role
from evaluations.models import Comparison, Evaluation, Rater, User
from tests.making import make_comparison, make_evaluation, make_human, make_member, make_user
from tests.saying import import_votes, judge_says, person_says

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner() -> User:
    return make_user("ada")


@pytest.fixture
def evaluation(owner: User) -> Evaluation:
    return make_evaluation(owner, slug="study")


@pytest.fixture
def comparison(evaluation: Evaluation) -> Comparison:
    """ann and ben choose A for clarity, the baseline chooses B."""
    made = make_comparison(evaluation, category="math")
    for name in ("ann", "ben"):
        person_says(make_human(evaluation, name), made, {"clarity": "A"})
    judge_says(made, as_stored={"clarity": "B"}, swapped={"clarity": "B"})
    return made


def page(user: User, *, status: int = 200, **filters: str) -> str:
    client = Client()
    client.force_login(user)
    answer = client.get(reverse("report", args=["study"]), filters)
    assert answer.status_code == status
    return answer.content.decode()


class Links(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if tag == "a" and name == "href"]


def test_it_shows_numbers_reasons_rules_and_labels_the_baseline(owner: User, comparison: Comparison) -> None:
    shown = page(owner)
    assert "longest (baseline, not an LLM) agrees with the majority of people on 0 of 1 comparisons (0%)" in shown
    assert '<span class="badge warn">baseline, not an LLM</span>' in shown
    assert "Both sides made the same one choice throughout" in shown  # ann and ben, both always A
    assert "Where no single choice leads among the votes, the majority counts as a tie." in shown


def test_a_cell_opens_the_comparisons_behind_it(owner: User, comparison: Comparison) -> None:
    client = Client()
    client.force_login(owner)
    rater = Rater.objects.get(name="longest")
    (cell,) = [link for link in Links(page(owner)).found if "judge_choice" in link]
    assert f"aspect=clarity&judge={rater.pk}&judge_choice=B&human_choice=A" in cell
    answer = client.get(cell)
    assert answer.status_code == 200
    assert reverse("comparison", args=["study", comparison.pk]) in answer.content.decode()


def test_first_and_second_shown_open_no_comparisons(owner: User, comparison: Comparison) -> None:
    assert not [link for link in Links(page(owner, coding="shown")).found if "judge_choice" in link]


def test_the_filters_stand_in_the_address(owner: User, evaluation: Evaluation, comparison: Comparison) -> None:
    judge_says(make_comparison(evaluation, category="chess"), judge="first", as_stored={"clarity": "A"})
    assert "first (baseline" in page(owner)
    one_judge = page(owner, judge=str(Rater.objects.get(name="longest").pk))
    assert "first (baseline" not in one_judge
    assert "longest (baseline" in one_judge
    chess = page(owner, category="chess", split_rule="drop", failed="tie")
    assert "Only comparisons where category is “chess”." in chess
    assert "the comparison is left out" in chess
    assert "counts as a tie, and as failed all the same" in chess


@pytest.mark.parametrize("filters", [{"judge": "9999"}, {"category": "go"}, {"coding": "x"}, {"split_rule": "x"}])
def test_a_filter_that_cannot_be_is_an_error_of_the_form(
    owner: User, comparison: Comparison, filters: dict[str, str]
) -> None:
    assert "Select a valid choice" in page(owner, status=422, **filters)


def test_a_category_of_which_a_reviewer_may_see_nothing_is_an_error_of_the_form(
    evaluation: Evaluation, comparison: Comparison
) -> None:
    user = make_member(evaluation, Role.REVIEWER, "rea")
    assert "No comparison has category=math" in page(user, status=422, category="math")


def test_reviews_that_saw_the_judge_first_are_shown_apart(
    owner: User, evaluation: Evaluation, comparison: Comparison
) -> None:
    person_says(make_human(evaluation, "cem"), comparison, {"clarity": "B"}, blind=False)
    shown = page(owner)
    assert "1 saw the judge first" in shown
    assert "majority of these people" in shown


def test_imported_verdicts_without_any_review_make_a_report(owner: User, evaluation: Evaluation) -> None:
    made = make_comparison(evaluation)
    import_votes(made, "ann", {"overall": "A"})
    import_votes(made, "label", {"overall": "A"}, kind="gold")
    judge_says(made, as_stored={"overall": "A"}, swapped=CallState.UNREADABLE.value)
    shown = page(owner)
    assert "1 imported vote" in shown
    assert "1 unreadable" in shown


def test_aspects_without_any_verdict_are_named_in_one_line(owner: User, evaluation: Evaluation) -> None:
    person_says(make_human(evaluation, "ann"), make_comparison(evaluation), {"clarity": "A"})
    assert "Nobody has a verdict yet on Helpfulness, Factuality, Depth, Engagement, Safety." in page(owner)


def test_an_empty_report_says_how_to_fill_it(owner: User, evaluation: Evaluation) -> None:
    assert "No comparisons yet" in page(owner)
    make_comparison(evaluation)
    assert "No verdicts yet" in page(owner)


def test_a_reviewer_reads_numbers_over_what_they_reviewed_alone(evaluation: Evaluation, comparison: Comparison) -> None:
    user = make_member(evaluation, Role.REVIEWER, "rea")
    assert "Nothing to report to you yet" in page(user)
    own = make_comparison(evaluation)
    rater = make_human(evaluation, "rea")
    rater.user = user
    rater.save()
    person_says(rater, own, {"clarity": "B"})
    judge_says(own, as_stored={"clarity": "B"}, swapped={"clarity": "B"})
    shown = page(user)
    assert "over the 1 comparison that you have reviewed" in shown
    assert "on 1 of 1 comparisons (100%)" in shown


def test_where_judges_are_never_shown_a_reviewer_reads_of_people_alone(
    owner: User, evaluation: Evaluation, comparison: Comparison
) -> None:
    evaluation.reveal = Reveal.NEVER
    evaluation.save()
    user = make_member(evaluation, Role.REVIEWER, "rea")
    rater = make_human(evaluation, "rea")
    rater.user = user
    rater.save()
    person_says(rater, comparison, {"clarity": "A"})
    shown = page(user)
    assert "longest" not in shown
    assert "Each person" in shown
    assert "longest" in page(owner)
    assert "Select a valid choice" not in page(user, judge=str(Rater.objects.get(name="longest").pk))


def test_it_costs_the_same_queries_however_much_there_is(owner: User, evaluation: Evaluation) -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            page(owner)
        return len(queries)

    def more() -> None:
        made = make_comparison(evaluation, category="math")
        person_says(make_human(evaluation), made, {"clarity": "A"})
        judge_says(made, as_stored={"clarity": "A"})

    more()
    few = cost()
    for _ in range(4):
        more()
    assert cost() == few

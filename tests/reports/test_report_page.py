"""What the report page tells whom."""

from html.parser import HTMLParser
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evaluations.domain.judges import CallState
from evaluations.domain.reviews import Reveal
from evaluations.domain.roles import Role
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.users import User
from tests.factories.evaluations import make_comparison, make_human, make_member
from tests.factories.imports import comparison_row, import_rows, verdict_row
from tests.factories.verdicts import make_imported_votes, make_judge_verdicts, make_review

pytestmark = pytest.mark.django_db


@pytest.fixture
def comparison(evaluation: Evaluation) -> Comparison:
    """ann and ben choose A for clarity, the baseline chooses B."""
    made = make_comparison(evaluation, category="math")
    for name in ("ann", "ben"):
        make_review(make_human(evaluation, name), made, {"clarity": "A"})
    make_judge_verdicts(made, as_stored={"clarity": "B"}, swapped={"clarity": "B"})
    return made


def page(user: User, part: str = "agreement", *, status: int = 200, **filters: str | list[str]) -> str:
    client = Client()
    client.force_login(user)
    answer = client.get(reverse("report_part", args=["study", part]), filters)
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
    assert "longest (rule-based) agrees with the reviewer majority on 0 of 1 comparison (0%)" in shown
    assert '<span class="badge warn">rule-based</span>' in shown
    assert "Both sides always made the same choice" in page(owner, "methodology")  # ann and ben, both always A
    assert "If no single choice leads, the majority is a tie." in shown


def test_a_cell_opens_the_comparisons_behind_it(owner: User, comparison: Comparison) -> None:
    client = Client()
    client.force_login(owner)
    rater = Rater.objects.get(name="longest")
    (cell,) = [link for link in Links(page(owner)).found if "judge_choice" in link]
    assert f"aspect=clarity&judge={rater.pk}&judge_choice=B&human_choice=A" in cell
    answer = client.get(cell)
    assert answer.status_code == 200
    assert reverse("comparison", args=["study", comparison.pk]) in answer.content.decode()


def test_a_cell_opens_its_comparisons_by_the_filters_in_force(owner: User, evaluation: Evaluation) -> None:
    """ann chose A and ben B, so together they tie; the judge chose B. Of other candidates there is one like it."""
    ann, ben = make_human(evaluation, "ann"), make_human(evaluation, "ben")
    wanted, other = make_comparison(evaluation), make_comparison(evaluation, candidates=("alpha", "gamma"))
    for comparison in (wanted, other):
        make_review(ann, comparison, {"clarity": "A"})
        make_review(ben, comparison, {"clarity": "B"})
        make_judge_verdicts(comparison, as_stored={"clarity": "B"}, swapped={"clarity": "B"})
    shown = page(owner, reviewer="ann", candidate_1="beta", candidate_2="alpha")
    (cell,) = [link for link in Links(shown).found if "judge_choice" in link]
    assert "human_choice=A" in cell
    client = Client()
    client.force_login(owner)
    listed = Links(client.get(cell).content.decode()).found
    assert reverse("comparison", args=["study", wanted.pk]) in listed
    assert reverse("comparison", args=["study", other.pk]) not in listed


def test_first_and_second_shown_open_no_comparisons(owner: User, comparison: Comparison) -> None:
    assert not [link for link in Links(page(owner, coding="shown")).found if "judge_choice" in link]


def test_the_filters_stand_in_the_address(owner: User, evaluation: Evaluation, comparison: Comparison) -> None:
    make_judge_verdicts(make_comparison(evaluation, category="chess"), judge="first", as_stored={"clarity": "A"})
    assert "first (rule-based" in page(owner)
    one_judge = page(owner, judge="longest")
    assert "first (rule-based" not in one_judge
    assert "longest (rule-based" in one_judge
    both = page(owner, judge=["longest", "first"])
    assert "first (rule-based" in both
    assert "longest (rule-based" in both
    chess = page(owner, category="chess", split_rule="drop", failed="tie")
    assert "Only comparisons where category is “chess”." in chess
    assert "the comparison is excluded" in chess
    assert "counts as a tie and as failed" in chess


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        ({"judge": "nobody"}, "There is no judge “nobody”."),
        ({"reviewer": ["ann", "nobody"]}, "There is no reviewer “nobody”."),
        ({"category": "go"}, "There is no category “go”."),
        ({"candidate_1": "x"}, "There is no model “x”."),
        ({"aspect": "x"}, "There is no aspect “x”."),
        ({"coding": "x"}, "“x” is not a value of “Sides”."),
        ({"split_rule": "x"}, "“x” is not a value of “Split votes”."),
        ({"measure": "x"}, "“x” is not a value of “Measure”."),
        ({"since": "yesterday"}, "“Votes from” is not a date. Use the form 2026-01-31."),
        ({"since": "2026-02-01", "until": "2026-01-31"}, "The end date is before the start date."),
        ({"candidate_1": "alpha", "candidate_2": "alpha"}, "Choose two different models."),
    ],
)
def test_a_filter_that_cannot_be_is_told_in_one_sentence(
    owner: User, comparison: Comparison, filters: dict[str, str | list[str]], said: str
) -> None:
    shown = page(owner, "agreement", status=422, failed="tie", **filters)
    assert shown.count(said) == 1
    assert '<option value="tie" selected>' in shown  # what else was chosen is kept


def test_two_candidates_name_one_pair_in_either_order(
    owner: User, evaluation: Evaluation, comparison: Comparison
) -> None:
    other = make_comparison(evaluation, candidates=("alpha", "gamma"))
    make_review(make_human(evaluation, "cem"), other, {"clarity": "A"})
    for one, two in (("alpha", "beta"), ("beta", "alpha")):
        shown = page(owner, candidate_1=one, candidate_2=two)
        assert "Only comparisons where candidate_a is “alpha” and candidate_b is “beta”." in shown
    assert "Only comparisons where candidate is “alpha”." in page(owner, candidate_1="alpha")
    assert "There are no" not in page(owner, candidate_2="gamma")


def test_two_candidates_who_never_met_are_named_together(
    owner: User, evaluation: Evaluation, comparison: Comparison
) -> None:
    make_comparison(evaluation, candidates=("delta", "gamma"))
    for second in ("delta", "gamma"):  # of which no comparison has delta as B, and one has gamma
        shown = page(owner, status=422, candidate_1="alpha", candidate_2=second)
        assert f"No comparison has candidate_a=alpha and candidate_b={second}." in shown
        assert "Keys are" not in shown  # the page asks for none


def test_what_is_in_force_is_said_and_taken_out_one_by_one(owner: User, comparison: Comparison) -> None:
    shown = page(owner, reviewer=["ann", "ben"], split_rule="drop", ties="without", seen="nothing", category="")
    links = [
        link for link in Links(shown).found if link.startswith(reverse("report_part", args=["study", "agreement"]))
    ]
    agreement = reverse("report_part", args=["study", "agreement"])
    assert f"{agreement}?reviewer=ben&split_rule=drop&ties=without" in links
    assert f"{agreement}?reviewer=ann&reviewer=ben&ties=without" in links
    assert "Reviewers: ann" in shown
    assert "Split votes: excluded" in shown
    assert "People had seen:" not in shown  # it holds anyway
    assert "<details open>\n    <summary>More filters" in shown


def test_tabs_carry_the_filters_to_every_part(owner: User, comparison: Comparison) -> None:
    links = Links(page(owner, category="math", sort="people", measure="gwet_ac1")).found
    for part in ("wins", "bias", "people", "judges", "scores"):
        assert f"{reverse('report_part', args=['study', part])}?category=math" in links


def test_a_part_that_is_none_is_not_found(owner: User, evaluation: Evaluation) -> None:
    client = Client()
    client.force_login(owner)
    assert client.get(reverse("report_part", args=["study", "nonsense"])).status_code == 404


def test_numbers_stand_with_and_without_ties(owner: User, evaluation: Evaluation, comparison: Comparison) -> None:
    tied = make_comparison(evaluation, category="math")
    for person in Rater.objects.filter(kind="human"):
        make_review(person, tied, {"clarity": "tie"})
    make_judge_verdicts(tied, as_stored={"clarity": "tie"}, swapped={"clarity": "tie"})
    assert "Weighted kappa" in page(owner, "methodology")
    without = page(owner, "methodology", ties="without")
    assert "Weighted kappa" not in without
    assert "Prevalence" in without
    assert '<td class="number">50%<sup' in without  # dropped: one of two


def test_the_overview_is_sorted_by_what_was_asked(owner: User, evaluation: Evaluation, comparison: Comparison) -> None:
    """The judge differs from people on clarity and agrees with them on depth."""
    make_review(make_human(evaluation, "cem"), comparison, {"depth": "B"})
    make_judge_verdicts(comparison, judge="first", as_stored={"depth": "B", "clarity": "B"})

    def aspects(shown: str) -> list[str]:
        about = ("#aspect-clarity", "#aspect-depth")
        return list(dict.fromkeys(link for link in Links(shown).found if link in about))

    assert aspects(page(owner)) == ["#aspect-clarity", "#aspect-depth"]
    assert aspects(page(owner, sort="judge")) == ["#aspect-depth", "#aspect-clarity"]


def test_matrices_come_first_and_the_table_and_its_sentences_are_a_click_away(
    owner: User, comparison: Comparison
) -> None:
    shown = page(owner)
    folded = '<details class="report-numbers">'
    assert "Agreement 0%, n = 1" in " ".join(shown.partition(folded)[0].split())
    for part in ('aria-label="Summary"', 'id="overview"'):
        assert shown.index('<figure class="report-matrix">') < shown.index(folded) < shown.index(part)


@pytest.mark.parametrize("layout", [{"sort": "judge"}, {"ties": "without"}, {"measure": "cohen_kappa"}])
def test_the_table_is_open_once_it_is_sorted_or_shows_another_number(
    owner: User, comparison: Comparison, layout: dict[str, str]
) -> None:
    assert '<details class="report-numbers" open>' in page(owner, "agreement", status=200, **layout)


def test_an_aspect_leads_to_all_its_coefficients_by_the_same_filters(owner: User, comparison: Comparison) -> None:
    methodology = reverse("report_part", args=["study", "methodology"])
    link = f"{methodology}?judge=longest&aspect=clarity#aspect-clarity"
    assert link in Links(page(owner, judge="longest")).found
    assert 'id="aspect-clarity"' in page(owner, "methodology", judge="longest", aspect="clarity")


def test_a_comparison_with_gold_is_a_matrix_of_its_own(owner: User, comparison: Comparison) -> None:
    make_imported_votes(comparison, "label", {"clarity": "B"}, kind="gold")
    shown = " ".join(page(owner).split())
    assert "Agreement with gold 100%" in shown
    assert "judge&nbsp;↓ gold&nbsp;→" in shown


def test_of_many_aspects_twelve_are_in_sight_and_the_others_a_click_away(owner: User, evaluation: Evaluation) -> None:
    aspects = [f"aspect-{number:02}" for number in range(14)]
    rows = [
        verdict_row(rater=name, rater_kind=kind, aspect=aspect)
        for aspect in aspects
        for name, kind in (("ann", "human"), ("gpt", "judge"))
    ]
    import_rows(evaluation, comparison_row())
    import_rows(evaluation, *rows)
    first, _, others = page(owner).partition("<summary>2 more aspects</summary>")
    assert first.count('<figure class="report-matrix">') == 12
    assert others.count('<figure class="report-matrix">') == 2


def test_one_aspect_can_be_looked_at_alone(owner: User, evaluation: Evaluation, comparison: Comparison) -> None:
    make_review(make_human(evaluation, "cem"), comparison, {"depth": "B"})
    shown = page(owner, aspect="depth")
    assert 'id="aspect-depth"' in shown
    assert 'id="aspect-clarity"' not in shown


def test_every_reason_stands_once_below_its_table(owner: User, comparison: Comparison) -> None:
    shown = page(owner)
    listed = shown.partition('<ol class="report-notes">')[2].partition("</ol>")[0]
    assert listed.count("&lt; 40).") == 1


def test_a_category_of_which_a_reviewer_may_see_nothing_is_an_error_of_the_form(
    evaluation: Evaluation, comparison: Comparison
) -> None:
    user = make_member(evaluation, Role.REVIEWER, "rea")
    assert "No comparison has category=math" in page(user, status=422, category="math")


def test_reviews_that_saw_the_judge_first_are_shown_apart(
    owner: User, evaluation: Evaluation, comparison: Comparison
) -> None:
    make_review(make_human(evaluation, "cem"), comparison, {"clarity": "B"}, blind=False)
    shown = page(owner)
    assert "1 saw the judge first" in shown
    assert "majority of these reviewers" in page(owner, "methodology")


def test_imported_verdicts_without_any_review_make_a_report(owner: User, evaluation: Evaluation) -> None:
    made = make_comparison(evaluation)
    make_imported_votes(made, "ann", {"overall": "A"})
    make_imported_votes(made, "label", {"overall": "A"}, kind="gold")
    make_judge_verdicts(made, as_stored={"overall": "A"}, swapped=CallState.UNREADABLE.value)
    shown = page(owner)
    assert "1 imported vote" in shown
    assert "1 unreadable" in shown


def test_aspects_without_any_verdict_are_named_in_one_line(owner: User, evaluation: Evaluation) -> None:
    make_review(make_human(evaluation, "ann"), make_comparison(evaluation), {"clarity": "A"})
    assert "No verdicts yet: Helpfulness, Factuality, Depth, Engagement, Safety." in page(owner)


def test_an_empty_report_says_how_to_fill_it(owner: User, evaluation: Evaluation) -> None:
    assert "No comparisons yet" in page(owner)
    make_comparison(evaluation)
    assert "No verdicts yet" in page(owner)


def test_a_reviewer_reads_numbers_over_what_they_reviewed_alone(evaluation: Evaluation, comparison: Comparison) -> None:
    user = make_member(evaluation, Role.REVIEWER, "rea")
    assert "No results yet" in page(user)
    own = make_comparison(evaluation)
    rater = make_human(evaluation, "rea")
    rater.user = user
    rater.save()
    make_review(rater, own, {"clarity": "B"})
    make_judge_verdicts(own, as_stored={"clarity": "B"}, swapped={"clarity": "B"})
    shown = page(user)
    assert "over the 1 comparison that you have reviewed" in shown
    assert "on 1 of 1 comparison (100%)" in shown


def test_where_judges_are_never_shown_a_reviewer_reads_of_people_alone(
    owner: User, evaluation: Evaluation, comparison: Comparison
) -> None:
    evaluation.reveal = Reveal.NEVER
    evaluation.save()
    user = make_member(evaluation, Role.REVIEWER, "rea")
    rater = make_human(evaluation, "rea")
    rater.user = user
    rater.save()
    make_review(rater, comparison, {"clarity": "A"})
    shown = page(user)
    assert "longest" not in shown
    assert "Each reviewer" in shown
    assert '<details class="report-numbers" open>' in shown  # without judges there are no matrices
    assert "longest" in page(owner)
    assert "longest" not in page(user, judge="longest").partition("<main")[2]


def test_it_costs_the_same_queries_however_much_there_is(owner: User, evaluation: Evaluation) -> None:
    def cost() -> int:
        page(owner)  # the first time it is put on record which few comparisons it is on
        with CaptureQueriesContext(connection) as queries:
            page(owner)
        return len(queries)

    def more() -> None:
        made = make_comparison(evaluation, category="math")
        make_review(make_human(evaluation), made, {"clarity": "A"})
        make_judge_verdicts(made, as_stored={"clarity": "A"})

    more()
    few = cost()
    for _ in range(4):
        more()
    assert cost() == few


def test_a_report_that_nothing_changed_is_remembered(
    owner: User, comparison: Comparison, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "report"}
    settings.CACHES = {**settings.CACHES, "reports": local}
    page(owner)  # that it was looked at is put on record, which is a change
    first = page(owner)
    monkeypatch.setattr("evaluations.reports.selectors.build_report", None)
    assert "Agreement with ties" in first
    assert "Cohen’s kappa without ties" in page(owner, measure="cohen_kappa", ties="without")

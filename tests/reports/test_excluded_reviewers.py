"""A reviewer whom the owner excludes is in no number of a report, unless the rules include them; nothing else changes.

Three reviewers on ten comparisons: ann and bob always choose A, rand always B; the judge always chooses A.
"""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.http import QueryDict
from django.test import Client
from django.urls import reverse

from evaluations.comparisons.forms import CellForm
from evaluations.domain.choices import Choice
from evaluations.domain.errors import InputRefused
from evaluations.domain.reports import ReportRules
from evaluations.domain.reviews import ScreeningChoice
from evaluations.domain.roles import Role
from evaluations.evaluation_settings.services import record_first_look
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.judges import Rater
from evaluations.models.users import User
from evaluations.models.verdicts import Label
from evaluations.reports.cells.selectors import find_comparisons_in_cell
from evaluations.reports.selectors import build_report, get_full_report
from evaluations.reports.served_reports import read_report_state
from evaluations.reports.services import choose_reviewer
from evaluations.stats.methods_paragraph import describe_excluded_reviewers
from tests.factories.evaluations import make_comparison, make_human, make_member, make_user
from tests.factories.verdicts import make_judge_rater, make_judge_verdicts, make_review
from tests.helpers.api_client import ApiClient
from tests.helpers.page_text import html_of

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

COMPARISONS = 10
EXCLUDE, KEEP = ScreeningChoice.EXCLUDE.value, ScreeningChoice.KEEP.value
FOR_A, FOR_B = {"clarity": Choice.A}, {"clarity": Choice.B}
PLAIN, WITH = ReportRules(), ReportRules(with_excluded=True)


@pytest.fixture
def rand(evaluation: Evaluation) -> Rater:
    ann, bob, rand = (make_human(evaluation, name) for name in ("ann", "bob", "rand"))
    for _ in range(COMPARISONS):
        comparison = make_comparison(evaluation)
        for rater, choices in ((ann, FOR_A), (bob, FOR_A), (rand, FOR_B)):
            make_review(rater, comparison, choices)
        make_judge_verdicts(comparison, as_stored=FOR_A, swapped=FOR_A)
    return rand


def reported(evaluation: Evaluation, rules: ReportRules = PLAIN) -> Any:
    return build_report(evaluation, None, rules)


def address(rater: Rater) -> str:
    return reverse("reviewer_screening", args=["study", rater.pk])


def choice_of(rater: Rater) -> str:
    return Rater.objects.get(pk=rater.pk).screening_choice


# ---- numbers


def test_an_excluded_reviewer_is_in_no_number(evaluation: Evaluation, rand: Rater) -> None:
    choose_reviewer(evaluation, rand, EXCLUDE, user=None)
    report = reported(evaluation)
    clarity = report.aspects["clarity"]
    # Single votes: ann and bob on ten comparisons each, all A like the judge's.
    votes = clarity.judges["longest"].judge_human.votes.with_ties
    assert (votes.agree, votes.n) == (20, 20)
    assert {(pair.rater_1, pair.rater_2) for pair in clarity.human_human.pairs} == {("ann", "bob")}
    assert clarity.human_human.multi.krippendorff_alpha.n == COMPARISONS
    assert {reviewer.rater for reviewer in report.people["clarity"].reviewers} == {"ann", "bob"}
    assert '"rand"' not in json.dumps({**report.as_json(), "rules": {}, "screening": None})


def test_an_excluded_reviewer_leaves_win_rates(evaluation: Evaluation, rand: Rater) -> None:
    """Only rand reviewed an eleventh comparison."""
    make_review(rand, make_comparison(evaluation), FOR_B)
    before = reported(evaluation).wins["clarity"].people["alpha"]
    choose_reviewer(evaluation, rand, EXCLUDE, user=None)
    after = reported(evaluation).wins["clarity"].people["alpha"]
    assert (before.n, before.value) == (11, pytest.approx(10 / 11))
    assert (after.n, after.value) == (10, 1.0)


def test_the_same_numbers_as_if_the_reviewer_had_never_been(evaluation: Evaluation, rand: Rater) -> None:
    only_others = reported(evaluation, ReportRules(reviewers=("ann", "bob"))).as_json()
    choose_reviewer(evaluation, rand, EXCLUDE, user=None)
    without = reported(evaluation).as_json()
    # The first two say that somebody is excluded; the others are of all reviewers.
    with_both = ("rules", "methods", "screening", "decisions_with_excluded")
    assert {**without, **dict.fromkeys(with_both)} == {**only_others, **dict.fromkeys(with_both)}
    assert without["decisions_with_excluded"].keys() == without["decisions"].keys()


def test_excluded_reviewers_are_included_on_request(evaluation: Evaluation, rand: Rater) -> None:
    before = reported(evaluation).as_json()
    choose_reviewer(evaluation, rand, EXCLUDE, user=None)
    included = reported(evaluation, WITH).as_json()
    in_words = {"rules": {}, "methods": ""}
    assert {**included, **in_words} == {**before, **in_words}


@pytest.mark.parametrize("choice", [KEEP, ""])
def test_a_kept_or_undecided_reviewer_counts(evaluation: Evaluation, rand: Rater, choice: str) -> None:
    before = reported(evaluation).as_json()
    choose_reviewer(evaluation, rand, EXCLUDE, user=None)
    choose_reviewer(evaluation, rand, choice, user=None)
    assert reported(evaluation).as_json() == before


def test_a_cell_holds_the_comparisons_that_its_report_counts(evaluation: Evaluation, rand: Rater) -> None:
    """Without rand the majority of each is A, and so is that of all three; with an eleventh only rand's B counts."""
    judge = Rater.objects.get(evaluation=evaluation, kind="judge")
    own = make_comparison(evaluation)
    make_review(rand, own, FOR_B)
    make_judge_verdicts(own, as_stored=FOR_A, swapped=FOR_A)
    choose_reviewer(evaluation, rand, EXCLUDE, user=None)
    cell = (evaluation, Comparison.objects.filter(evaluation=evaluation), "clarity", judge.pk, "A", "B")
    assert find_comparisons_in_cell(*cell) == []
    assert find_comparisons_in_cell(*cell, WITH) == [own.pk]


@pytest.mark.parametrize(("query", "rules"), [("", PLAIN), ("&with_excluded=true", WITH)])
def test_the_list_behind_a_cell_takes_the_rule(query: str, rules: ReportRules) -> None:
    form = CellForm(QueryDict(f"aspect=clarity&judge=1&judge_choice=A&human_choice=B{query}"))
    assert form.is_valid()
    assert form.rules() == rules


def test_a_filter_by_an_excluded_reviewer_is_refused(evaluation: Evaluation, rand: Rater) -> None:
    choose_reviewer(evaluation, rand, EXCLUDE, user=None)
    with pytest.raises(InputRefused, match="“rand” is excluded from results"):
        reported(evaluation, ReportRules(reviewers=("rand",)))
    only = reported(evaluation, ReportRules(reviewers=("rand",), with_excluded=True))
    assert {reviewer.rater for reviewer in only.people["clarity"].reviewers} == {"rand"}


# ---- in words


def test_the_rules_say_who_is_left_out_or_included(evaluation: Evaluation, rand: Rater) -> None:
    assert "by the owner" not in reported(evaluation).rules["raters"]
    choose_reviewer(evaluation, rand, EXCLUDE, user=None)
    Rater.objects.filter(pk=rand.pk).update(screening_chosen_at="2026-11-27T10:00:00Z")
    all_raters = "All raters count, except archived judges."
    assert reported(evaluation).rules["raters"] == f"{all_raters} Excluded by the owner: “rand” (Nov 27, 2026)."
    included = f"{all_raters} Included, but excluded by the owner: “rand” (Nov 27, 2026)."
    assert reported(evaluation, WITH).rules["raters"] == included
    # Among reviewers who are selected without rand nobody is excluded.
    assert "owner" not in reported(evaluation, ReportRules(reviewers=("ann",))).rules["raters"]


def test_the_methods_paragraph_counts_who_was_excluded_and_says_that_both_results_are_reported(
    evaluation: Evaluation, rand: Rater
) -> None:
    def methods(rules: ReportRules = PLAIN) -> str:
        return str(reported(evaluation, rules).methods)

    assert "after screening" not in methods().lower()
    choose_reviewer(evaluation, rand, EXCLUDE, user=None)
    after = "After screening reviewers for copied, random, inverted, one-sided and too fast choices, we excluded "
    assert f"{after}1 reviewer; decisions are reported with and without them." in methods()
    assert methods().startswith("We compared 10 pairs")
    assert "2 reviewers cast" in methods()
    assert "These numbers include 1 reviewer whom we excluded from the main results" in methods(WITH)
    assert after not in methods(ReportRules(reviewers=("ann",)))
    choose_reviewer(evaluation, Rater.objects.get(evaluation=evaluation, name="bob"), EXCLUDE, user=None)
    assert f"{after}2 reviewers; decisions" in methods()
    out = StringIO()
    call_command("report", "study", "--json", stdout=out)
    assert json.loads(out.getvalue())["methods"] == methods()


def test_of_scores_alone_the_methods_paragraph_claims_no_second_decision() -> None:
    words = list(describe_excluded_reviewers(2, PLAIN, is_decided=False))
    assert [sentence.endswith("we excluded 2 reviewers.") for sentence in words] == [True]


def test_who_sees_only_their_own_comparisons_reads_a_number(evaluation: Evaluation, rand: Rater) -> None:
    choose_reviewer(evaluation, rand, EXCLUDE, user=None)
    own = Comparison.objects.filter(evaluation=evaluation)
    assert "Excluded by the owner: 1 reviewer." in build_report(evaluation, own, ReportRules()).rules["raters"]


# ---- what else there is


@pytest.mark.parametrize("written_as", ["verdicts", "jsonl", "hugging-face"])
def test_labels_and_exports_count_an_excluded_reviewer(rand: Rater, tmp_path: Path, written_as: str) -> None:
    """Byte by byte, with the agreement on the card of a data set."""

    def exported(name: str) -> bytes:
        file = tmp_path / name
        call_command("export", "study", "--format", written_as, "--out", str(file), stdout=StringIO())
        return file.read_bytes()

    labels, before = list(Label.objects.values_list("choice", "votes")), exported("before")
    choose_reviewer(rand.evaluation, rand, EXCLUDE, user=None)
    assert list(Label.objects.values_list("choice", "votes")) == labels
    assert exported("after") == before


def test_stored_reports_notice_the_choice_and_its_undo(evaluation: Evaluation, rand: Rater) -> None:
    def votes() -> int:
        report = get_full_report(Evaluation.objects.get(pk=evaluation.pk), ReportRules())
        return int(report.aspects["clarity"].judges["longest"].judge_human.votes.with_ties.n)

    assert votes() == 30
    choose_reviewer(evaluation, rand, EXCLUDE, user=None)
    assert votes() == 20
    choose_reviewer(evaluation, rand, "", user=None)
    assert votes() == 30


def test_a_first_look_makes_no_stored_report_stale(evaluation: Evaluation) -> None:
    before = read_report_state(evaluation)
    record_first_look(evaluation)
    assert read_report_state(Evaluation.objects.get(pk=evaluation.pk)) == before != ""


# ---- the choice


def test_a_choice_is_dated_and_recorded_and_undone(evaluation: Evaluation, owner: User, rand: Rater) -> None:
    chosen = choose_reviewer(evaluation, rand, EXCLUDE, user=owner)
    assert chosen.is_excluded
    assert (choice_of(rand), chosen.screening_chosen_by) == (EXCLUDE, owner)
    assert chosen.screening_chosen_at is not None
    event = Event.objects.latest("pk")
    assert (event.verb, event.user, event.object_id) == ("excluded reviewer", owner, rand.pk)
    assert (event.before, event.after) == (
        {"reviewer": "rand", "choice": ""},
        {"reviewer": "rand", "choice": "exclude"},
    )
    events = Event.objects.count()
    choose_reviewer(evaluation, rand, EXCLUDE, user=owner)
    assert Event.objects.count() == events
    undone = choose_reviewer(evaluation, rand, "", user=owner)
    assert (undone.screening_choice, undone.screening_chosen_at, undone.screening_chosen_by) == ("", None, None)
    assert Event.objects.latest("pk").verb == "undid screening"


def test_only_reviewers_can_be_excluded(evaluation: Evaluation, rand: Rater) -> None:
    with pytest.raises(InputRefused, match="Only reviewers can be excluded"):
        choose_reviewer(evaluation, make_judge_rater(evaluation), EXCLUDE, user=None)
    with pytest.raises(InputRefused, match="Choose “keep” or “exclude”"):
        choose_reviewer(evaluation, rand, "doubt", user=None)


def test_the_page_excludes_and_its_notice_undoes(client: Client, owner_signed_in: Client, rand: Rater) -> None:
    answer = client.post(address(rand), {"choice": EXCLUDE})
    assert (answer.status_code, answer.headers["Location"]) == (302, reverse("report_part", args=["study", "people"]))
    assert choice_of(rand) == EXCLUDE
    told = client.get(reverse("report_part", args=["study", "people"])).content.decode()
    assert "“rand” is excluded from results. Labels and exports are unchanged." in told
    assert f'action="{address(rand)}"' in told
    assert client.post(address(rand)).status_code == 302
    assert choice_of(rand) == EXCLUDE, "a choice that is missing undoes nothing"
    client.post(address(rand), {"choice": ""})
    assert choice_of(rand) == ""
    assert client.get(address(rand)).status_code == 405


def test_excluding_and_undoing_keep_the_filters_of_the_page(
    client: Client, owner_signed_in: Client, rand: Rater
) -> None:
    people = reverse("report_part", args=["study", "people"])
    filters = "reviewer=ann&reviewer=bob&split_rule=drop&aspect=clarity"
    choose_reviewer(rand.evaluation, rand, EXCLUDE, user=None)
    shown = html_of(client.get(f"{people}?{filters}"))
    assert f'hx-post="{address(rand)}?{filters}"' in shown.replace("&amp;", "&")
    answer = client.post(f"{address(rand)}?{filters}", {"choice": ""})
    assert answer.headers["Location"] == f"{people}?{filters}"
    undo = f'action="{address(rand)}?{filters}"'
    assert undo in html_of(client.get(answer.headers["Location"])).replace("&amp;", "&")
    by_htmx = client.post(f"{address(rand)}?{filters}", {"choice": EXCLUDE}, headers={"hx-request": "true"})
    assert by_htmx.headers["HX-Redirect"] == f"{people}?{filters}"


@pytest.mark.usefixtures("owner_signed_in")
def test_a_filter_by_the_reviewer_goes_when_they_are_excluded(client: Client, rand: Rater) -> None:
    """Results without them cannot be filtered by them; those that include them can."""
    people = reverse("report_part", args=["study", "people"])
    excluded = client.post(f"{address(rand)}?reviewer=ann&reviewer=rand", {"choice": EXCLUDE})
    assert excluded.headers["Location"] == f"{people}?reviewer=ann"
    assert client.get(excluded.headers["Location"]).status_code == 200
    included = client.post(f"{address(rand)}?reviewer=rand&with_excluded=true", {"choice": EXCLUDE})
    assert included.headers["Location"] == f"{people}?reviewer=rand&with_excluded=true"
    kept = client.post(f"{address(rand)}?reviewer=rand", {"choice": KEEP})
    assert kept.headers["Location"] == f"{people}?reviewer=rand"


def test_only_owners_and_managers_exclude(client: Client, evaluation: Evaluation, rand: Rater) -> None:
    for role in (Role.REVIEWER, Role.ADJUDICATOR, Role.VIEWER):
        client.force_login(make_member(evaluation, role))
        assert client.post(address(rand), {"choice": EXCLUDE}).status_code == 403
    client.force_login(make_user())
    assert client.post(address(rand), {"choice": EXCLUDE}).status_code == 404
    assert choice_of(rand) == ""


@pytest.mark.usefixtures("owner_signed_in")
def test_a_judge_has_no_such_page(client: Client, evaluation: Evaluation) -> None:
    assert client.post(address(make_judge_rater(evaluation)), {"choice": EXCLUDE}).status_code == 404


# ---- where the rule is set


@pytest.mark.usefixtures("owner_signed_in")
def test_the_filter_is_offered_where_somebody_is_excluded(client: Client, evaluation: Evaluation, rand: Rater) -> None:
    page = reverse("report_part", args=["study", "people"])
    assert "Excluded reviewers" not in client.get(page).content.decode()
    choose_reviewer(evaluation, rand, EXCLUDE, user=None)
    assert "Excluded reviewers" in client.get(page).content.decode()
    assert "Excluded by the owner: “rand”" in client.get(page).content.decode()
    assert "Included, but excluded by the owner: “rand”" in client.get(f"{page}?with_excluded=true").content.decode()


def test_the_command_and_a_program_include_them(asking: ApiClient, evaluation: Evaluation, rand: Rater) -> None:
    choose_reviewer(evaluation, rand, EXCLUDE, user=None)

    def by_command(*options: str) -> Any:
        output = StringIO()
        call_command("report", "study", "--json", *options, stdout=output)
        return json.loads(output.getvalue())

    def votes(report: Any) -> int:
        return int(report["aspects"]["clarity"]["judges"]["longest"]["judge_human"]["votes"]["with_ties"]["n"])

    only = "/evaluations/study/report?only=agreement"
    assert [votes(by_command()), votes(by_command("--with-excluded"))] == [20, 30]
    assert [votes(asking.get(only).json()), votes(asking.get(f"{only}&with_excluded=true").json())] == [20, 30]


def test_a_program_lists_and_screens_reviewers(asking: ApiClient, owner: User, rand: Rater) -> None:
    listed = asking.get("/evaluations/study/reviewers").json()["items"]
    assert [(row["name"], row["choice"], row["chosen_at"]) for row in listed] == [
        ("ann", "", None),
        ("bob", "", None),
        ("rand", "", None),
    ]
    screening = f"/evaluations/study/reviewers/{rand.pk}/screening"
    told = asking("PUT", screening, {"choice": "exclude"}).json()
    assert (told["id"], told["choice"], told["chosen_by"]["username"]) == (rand.pk, "exclude", owner.username)
    assert asking.get("/evaluations/study/reviewers").json()["items"][2] == told
    assert asking("PUT", screening, {"choice": "doubt"}).status_code == 422
    assert asking("PUT", screening, {}).status_code == 422
    assert asking("PUT", screening, {"choice": ""}).json()["chosen_by"] is None

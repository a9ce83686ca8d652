"""What a report says of a judge that judged a part, failed, or folded its orders, and of scores alone."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from evaluations.domain.choices import ShownOrder
from evaluations.domain.judges import CallState
from evaluations.domain.reports import FailedRule, ReportPart, ReportRules
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User
from evaluations.reports.selectors import build_report, get_full_report
from evaluations.stats.full_report import Report
from tests.factories.evaluations import make_comparison, make_evaluation, make_human
from tests.factories.imports import comparison_row, import_rows, score_row, verdict_row
from tests.factories.verdicts import ALL_A, ALL_B, ALL_TIE, make_judge_verdicts, make_review

pytestmark = pytest.mark.django_db


def made(evaluation: Evaluation, number: int) -> list[Comparison]:
    ann = make_human(evaluation, "ann")
    comparisons = [make_comparison(evaluation) for _ in range(number)]
    for one in comparisons:
        make_review(ann, one, ALL_A)
    return comparisons


def reported(evaluation: Evaluation, rules: ReportRules | None = None) -> Report:
    return build_report(evaluation, None, rules or ReportRules())


def page(owner: User, part: str = "agreement") -> str:
    client = Client()
    client.force_login(owner)
    return client.get(reverse("report_part", args=["study", part]), follow=True).content.decode()


# ---- judges without an answer ------------------------------------------------------------------


def test_a_judge_whose_calls_all_failed_has_one_line_and_no_numbers(evaluation: Evaluation, owner: User) -> None:
    for one in made(evaluation, 3):
        make_judge_verdicts(one, judge="gpt", kind="llm", as_stored=CallState.UNREADABLE, swapped=CallState.REFUSED)
    line = "gpt: 6 of 6 calls failed (3 unreadable, 3 refused)."
    for rules in (ReportRules(), ReportRules(failed=FailedRule.TIE)):
        found = reported(evaluation, rules)
        assert found.unanswered == {"gpt": line}
        assert "gpt" not in found.judges
        assert found.aspects["clarity"].judges["gpt"].failed.calls == 6
        assert all(won.judges == {} for won in found.wins.values())
        assert all(board == {} for board in found.bias.values())
        assert all(people.alt_tests == {} for people in found.people.values())
    for part in ("agreement", "wins", "bias", "people"):
        assert page(owner, part).count("gpt") <= page(owner, part).count(line) + 3  # its filter names it too
        assert line in page(owner, part)
    out = StringIO()
    call_command("report", "study", stdout=out)
    assert line in out.getvalue()
    assert "gpt, people" not in out.getvalue()


def test_a_judge_whose_calls_wait_or_were_cancelled_is_named_with_them(evaluation: Evaluation) -> None:
    first, second, _ = made(evaluation, 3)
    make_judge_verdicts(first, judge="gpt", kind="llm", as_stored=CallState.PENDING)
    make_judge_verdicts(second, judge="gpt", kind="llm", as_stored=CallState.CANCELLED)
    assert reported(evaluation).unanswered == {"gpt": "gpt: 1 call waiting, 1 call cancelled."}


def test_the_sentence_of_a_judge_names_its_failures_by_kind_and_what_it_covers(evaluation: Evaluation) -> None:
    comparisons = made(evaluation, 5)
    for one in comparisons[:2]:
        make_judge_verdicts(one, judge="gpt", kind="llm", as_stored=ALL_A)
    make_judge_verdicts(comparisons[2], judge="gpt", kind="llm", as_stored=CallState.TOO_LONG)
    said = reported(evaluation).judges["gpt"].sentence
    assert said.endswith("It has a verdict on 2 of 5 comparisons. 1 of 3 calls failed (1 too long).")


def test_failures_on_an_aspect_without_any_verdict_are_told(evaluation: Evaluation) -> None:
    import_rows(evaluation, *[comparison_row(f"q{number}") for number in range(4)])
    import_rows(
        evaluation, *[verdict_row(f"q{number}", aspect=key) for number in range(4) for key in ("tone", "depth")]
    )
    of_judge = {"rater": "gpt", "rater_kind": "judge"}
    import_rows(evaluation, *[verdict_row(f"q{number}", aspect="tone", **of_judge) for number in range(4)])
    import_rows(
        evaluation, *[verdict_row(f"q{number}", aspect="depth", choice="truncated", **of_judge) for number in range(3)]
    )
    found = reported(evaluation)
    assert "3 calls failed on aspects without a verdict." in found.judges["gpt"].sentence
    failed = found.aspects["tone"].judges["gpt"].failed
    assert (failed.calls, failed.elsewhere, failed.in_words) == (0, 3, "")
    out = StringIO()
    call_command("report", "study", stdout=out)
    assert "gpt: 3 calls failed on aspects without a verdict" in out.getvalue()


def test_the_sentence_says_that_missing_verdicts_count_as_ties(evaluation: Evaluation) -> None:
    for number, one in enumerate(made(evaluation, 24)):
        make_judge_verdicts(one, judge="gpt", kind="llm", as_stored=CallState.REFUSED if number % 2 else ALL_TIE)
    ties = "It has a verdict on 12 of 24 comparisons, and missing verdicts of failed calls count as ties."
    found = reported(evaluation, ReportRules(failed=FailedRule.TIE)).judges["gpt"].sentence
    assert ties in found
    assert "It chose" not in found
    found = reported(evaluation).judges["gpt"].sentence
    assert "It has a verdict on 12 of 24 comparisons. 12 of 24 calls failed" in found
    assert "It chose tie on all 12 of these comparisons for" in found


@pytest.mark.parametrize("items", [60, 61])
def test_what_does_not_vary_but_for_rounding_has_no_interval_and_no_claim(evaluation: Evaluation, items: int) -> None:
    """Two people always disagree, and the judge always agrees with one of them."""
    keys = [f"q{number}" for number in range(items)]
    import_rows(evaluation, *[comparison_row(key) for key in keys])
    import_rows(evaluation, *[verdict_row(key, rater=name, choice=name) for key in keys for name in "AB"])
    of_judge = {"rater": "gpt", "rater_kind": "judge"}
    import_rows(evaluation, *[verdict_row(key, choice="AB"[n % 3 == 0], **of_judge) for n, key in enumerate(keys)])
    found = reported(evaluation)
    level = found.aspects["overall"].judges["gpt"].ceiling.s1
    assert level.difference.value == pytest.approx(0.5)
    assert level.difference.ci95 is None
    said = found.judges["gpt"].sentence
    assert "none with a reviewer majority or a gold label." in said
    assert "agrees on 50% and a reviewer on 0%" in said.replace(" [0–6]", "")
    assert "difference not tested. There is no variation between clusters" in said


# ---- coverage ----------------------------------------------------------------------------------


def test_the_first_of_the_random_order_are_a_random_selection_and_others_are_not(evaluation: Evaluation) -> None:
    comparisons = sorted(made(evaluation, 10), key=lambda one: one.random_order)
    for one in comparisons[:4]:
        make_judge_verdicts(one, judge="limited", kind="llm", as_stored=ALL_A)
    for one in comparisons[3:8]:
        make_judge_verdicts(one, judge="picked", kind="llm", as_stored=ALL_A)
    judges = reported(evaluation).wins["clarity"].judges
    covered = {name: (one.coverage.judged, one.coverage.selected) for name, one in judges.items()}
    assert covered == {"limited": (4, 4), "picked": (5, 10)}
    assert judges["limited"].coverage.why is None
    assert "5 of 10 comparisons" in (judges["picked"].ranking.why or "")


def test_a_run_that_was_cancelled_early_gets_no_ranking(evaluation: Evaluation) -> None:
    comparisons = sorted(made(evaluation, 10), key=lambda one: one.random_order)
    make_judge_verdicts(comparisons[0], judge="gpt", kind="llm", as_stored=ALL_A)
    for one in comparisons[1:]:
        make_judge_verdicts(one, judge="gpt", kind="llm", as_stored=CallState.CANCELLED)
    judge = reported(evaluation).wins["clarity"].judges["gpt"]
    assert (judge.coverage.judged, judge.coverage.selected) == (1, 10)
    assert (judge.ranking.standings, judge.rates.candidates["alpha"].corrected.value) == ({}, None)
    assert judge.rates.candidates["alpha"].judge.n == 1


def test_verdicts_from_files_are_not_taken_for_a_random_selection(evaluation: Evaluation) -> None:
    import_rows(evaluation, *[comparison_row(f"q{number}") for number in range(10)])
    import_rows(evaluation, *[verdict_row(f"q{number}") for number in range(10)])
    first = Comparison.objects.order_by("random_order", "pk").values_list("query__key", flat=True)[:3]
    import_rows(evaluation, *[verdict_row(key, rater="gpt", rater_kind="judge") for key in first])
    covered = reported(evaluation).wins["overall"].judges["gpt"].coverage
    assert (covered.judged, covered.selected) == (3, 10)


# ---- failures as ties, and folded verdicts -------------------------------------------------------


def test_failed_calls_count_as_ties_in_each_order_and_in_position(evaluation: Evaluation) -> None:
    import_rows(evaluation, *[comparison_row(f"q{number}") for number in range(4)])
    import_rows(evaluation, *[verdict_row(f"q{number}", rater="gold", rater_kind="gold") for number in range(4)])
    said = {0: ("A", "A"), 1: ("A", "unreadable"), 2: ("unreadable", "unreadable"), 3: ("B", "A")}
    rows = [
        verdict_row(f"q{number}", rater="gpt", rater_kind="judge", choice=choice, shown_swapped=swapped)
        for number, choices in said.items()
        for swapped, choice in enumerate(choices)
    ]
    import_rows(evaluation, *[{**row, "shown_swapped": bool(row["shown_swapped"])} for row in rows])

    def numbers(rule: FailedRule) -> tuple[Any, ...]:
        judge = reported(evaluation, ReportRules(failed=rule)).aspects["overall"].judges["gpt"]
        each, place = judge.each_order, judge.position
        first, second = (each.by_order[one].value for one in (ShownOrder.AS_STORED, ShownOrder.SWAPPED))
        return first, second, each.accuracy.n, place.consistency.agree, place.consistency.n

    assert numbers(FailedRule.EXCLUDE) == (pytest.approx(2 / 3), 1, 5, 1, 2)
    # As ties: A, A, tie, B and A, tie, tie, A against A; the orders agree on the first and the third.
    assert numbers(FailedRule.TIE) == (0.5, 0.5, 8, 2, 4)


def test_folded_verdicts_that_a_file_calls_inconsistent_are_counted(evaluation: Evaluation, owner: User) -> None:
    import_rows(evaluation, *[comparison_row(f"q{number}") for number in range(5)])
    folded = {"rater": "gpt", "rater_kind": "judge", "shown_swapped": "folded"}
    choices = ("A", "inconsistent", "B", "inconsistent", "tie")
    import_rows(
        evaluation, *[verdict_row(f"q{number}", choice=choice, **folded) for number, choice in enumerate(choices)]
    )
    judge = reported(evaluation).aspects["overall"].judges["gpt"]
    assert (judge.inconsistent.agree, judge.inconsistent.n, judge.inconsistent.share.value) == (2, 5, 0.4)
    assert judge.position.consistency.n == 0
    out = StringIO()
    call_command("report", "study", stdout=out)
    assert "gpt: inconsistent on 2 of 5 comparisons judged in both orders" in out.getvalue()
    assert "Inconsistent" in page(owner, "methodology")


def test_choices_derived_from_scores_are_never_inconsistent(evaluation: Evaluation) -> None:
    import_rows(evaluation, *[comparison_row()])
    import_rows(evaluation, *[score_row(candidate=name, rater="gpt", rater_kind="judge") for name in ("alpha", "beta")])
    aspect = next(iter(reported(evaluation).aspects.values()))
    assert aspect.judges["gpt"].inconsistent.n == 0


# ---- methods and plot ----------------------------------------------------------------------------


def test_the_methods_paragraph_says_how_choices_were_derived(evaluation: Evaluation) -> None:
    import_rows(evaluation, *[comparison_row()])
    rows = [score_row(candidate=name, value=value, aspect="rank") for name, value in (("alpha", 1), ("beta", 3))]
    import_rows(evaluation, *rows, lower_is_better=True, derive_pairs=0.5)
    methods = reported(evaluation).methods
    assert "Choices on rank were derived from scores of the two responses: the lower score wins" in methods
    assert "scores that differ by 0.5 or less make a tie" in methods
    other = make_evaluation(slug="other")
    import_rows(other, *[comparison_row()])
    import_rows(other, *[verdict_row()])
    assert "derived" not in reported(other).methods


def test_the_plot_of_agreement_compares_against_the_same_majorities(evaluation: Evaluation, owner: User) -> None:
    raters = [make_human(evaluation, name) for name in ("ann", "ben", "cem")]
    for number in range(6):
        one = make_comparison(evaluation)
        for place, rater in enumerate(raters):
            make_review(rater, one, ALL_B if number == place else ALL_A)
        make_judge_verdicts(one, judge="gpt", kind="llm", as_stored=ALL_A)
    client = Client()
    client.force_login(owner)
    text = client.get(reverse("report_plot", args=["study", "agreement-aspects"]), {"as": "csv"}).content.decode()
    rows = [line.split(",") for line in text.splitlines() if line.startswith("Clarity")]
    judge = reported(evaluation).aspects["clarity"].judges["gpt"]
    level = judge.ceiling.s1
    shown = {row[1]: float(row[2]) for row in rows}
    assert shown == {"reviewers": pytest.approx(level.people.value), "gpt": pytest.approx(level.judge.value)}
    assert shown["gpt"] != judge.judge_human.majority.with_ties.agreement.value


# ---- scores alone --------------------------------------------------------------------------------


@pytest.fixture
def scored(evaluation: Evaluation) -> Evaluation:
    """One candidate, no comparison; two people and a judge score each response."""
    rows = [
        {"query_id": f"q{number}", "query": f"Why {number}?", "category": "odd" if number % 2 else "even"}
        | {"candidate": "alpha", "response": f"Because {number}."}
        for number in range(6)
    ]
    import_rows(evaluation, *rows)
    values = [
        score_row(f"q{number}", value=number % 5 + extra, rater=rater, rater_kind=kind, aspect="quality")
        for number in range(6)
        for rater, kind, extra in (("ann", "human", 0), ("ben", "human", 1), ("gpt", "judge", 2))
    ]
    import_rows(evaluation, *values)
    return evaluation


def test_a_study_of_scores_alone_has_its_numbers(scored: Evaluation) -> None:
    found = get_full_report(scored, ReportRules())
    assert (found.comparisons, found.aspects) == (0, {})
    scores = found.scores["quality"]
    # 0 to 4 and 0 again: 10/6; the second person one more, the judge two more.
    assert scores.candidates["alpha"].people.value == pytest.approx(10 / 6 + 0.5)
    assert scores.candidates["alpha"].judges["gpt"].value == pytest.approx(10 / 6 + 2)
    assert scores.judges["gpt"].people.pearson.value == pytest.approx(1)
    assert scores.human_human.multi.units == 6
    assert "Scores of 6 single responses in 6 clusters on quality were compared." in found.methods


def test_the_page_the_command_and_the_filters_show_scores_alone(scored: Evaluation, owner: User) -> None:
    shown = page(owner)
    assert "Mean score" in shown
    assert "Krippendorff" in shown
    out = StringIO()
    call_command("report", "study", stdout=out)
    assert "alpha, mean score: reviewers 2.167" in out.getvalue()
    assert "No verdicts yet" not in out.getvalue()
    call_command("report", "study", "--json", "--where", "category=even", stdout=(narrowed := StringIO()))
    scores = json.loads(narrowed.getvalue())["scores"]["quality"]
    assert scores["human_human"]["multi"]["units"] == 3


def test_a_reviewer_sees_no_scores_of_responses_that_they_did_not_review(scored: Evaluation) -> None:
    nothing = Comparison.objects.filter(evaluation=scored)
    assert build_report(scored, nothing, ReportRules(), parts=(ReportPart.SCORES,)).scores == {}

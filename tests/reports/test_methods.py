from io import StringIO

import pytest
from django.core.management import call_command

from evaluations.domain.reports import FailedRule, ReportPart, ReportRules, SplitRule
from evaluations.domain.reviews import SelectionMethod
from evaluations.reports.selectors import build_report
from tests.factories.evaluations import make_comparison, make_evaluation, make_human
from tests.factories.imports import comparison_row, import_rows, score_row, verdict_row
from tests.factories.verdicts import make_imported_votes, make_judge_verdicts, make_review

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


def test_the_paragraph_says_what_there_is_and_by_which_rules() -> None:
    evaluation = make_evaluation()
    comparison = make_comparison(evaluation)
    for name in ("ann", "ben"):
        make_review(make_human(evaluation, name), comparison, {"clarity": "A"})
    make_judge_verdicts(comparison, as_stored={"clarity": "A"}, swapped="unreadable")
    rules = ReportRules(split_rule=SplitRule.DROP, failed=FailedRule.TIE)
    told = build_report(evaluation, None, rules, parts=(ReportPart.AGREEMENT,)).methods
    assert told.startswith("We compared 1 pair of responses in 1 cluster on helpfulness,")
    assert "2 reviewers cast up to 2 votes" in told
    assert "the comparison was excluded." in told
    assert "Choices were recorded before a judge's answer was shown." in told
    assert "imported" not in told
    assert "Up to 1 call of a judge failed; verdicts missing for this reason were counted as ties." in told
    assert "2,000 resamples" in told


def test_failures_are_told_whatever_the_part() -> None:
    evaluation = make_evaluation()
    comparison = make_comparison(evaluation)
    make_judge_verdicts(comparison, as_stored={"clarity": "A"}, swapped="unreadable")
    for part in ReportPart:
        told = build_report(evaluation, None, ReportRules(), parts=(part,)).methods
        assert "Up to 1 call of a judge failed; verdicts missing for this reason were excluded." in told


def test_a_judge_that_answered_nothing_is_named_and_no_verdict_is_claimed_of_it() -> None:
    evaluation = make_evaluation()
    comparison = make_comparison(evaluation)
    make_review(make_human(evaluation, "ann"), comparison, {"clarity": "A"})
    make_judge_verdicts(comparison, as_stored="unreadable")
    told = build_report(evaluation, None, ReportRules(), parts=(ReportPart.AGREEMENT,)).methods
    assert "No call of longest was answered." in told
    assert "The verdict of a judge" not in told
    assert "To compare a judge with people" not in told


def test_people_are_those_who_voted() -> None:
    evaluation = make_evaluation()
    make_review(make_human(evaluation, "ann"), make_comparison(evaluation), {"clarity": "A"})
    make_human(evaluation, "ben")
    assert (
        "1 reviewer cast up to 1 vote on"
        in build_report(evaluation, None, ReportRules(), parts=(ReportPart.AGREEMENT,)).methods
    )


def test_without_votes_nothing_is_said_of_people() -> None:
    evaluation = make_evaluation()
    make_human(evaluation, "ben")
    make_judge_verdicts(make_comparison(evaluation), as_stored={"clarity": "A"})
    told = build_report(evaluation, None, ReportRules(), parts=(ReportPart.AGREEMENT,)).methods
    assert "gave up to" not in told
    assert "plurality of their votes" not in told


def test_each_part_says_how_its_own_intervals_were_made() -> None:
    evaluation = make_evaluation()
    make_review(make_human(evaluation, "ann"), make_comparison(evaluation), {"clarity": "A"})
    told = {part: build_report(evaluation, None, ReportRules(), parts=(part,)).methods for part in ReportPart}
    assert all("All intervals are 95% and treat clusters" in words for words in told.values())
    assert [part for part, words in told.items() if "bootstrap" not in words] == [ReportPart.BIAS]
    assert [part for part, words in told.items() if "Wilson" not in words] == [ReportPart.DECISIONS, ReportPart.SCORES]
    with_coefficients = [part for part, words in told.items() if "Cohen's kappa" in words]
    assert with_coefficients == [ReportPart.AGREEMENT, ReportPart.METHODOLOGY]
    assert "one-sided t test" in told[ReportPart.PEOPLE]
    every = build_report(evaluation, None, ReportRules()).methods
    assert every.count("The bootstrap is of clusters") == every.count("Wilson 1927") == 1


def test_the_paragraph_names_only_what_the_material_has() -> None:
    evaluation = make_evaluation()
    first, second = (make_comparison(evaluation) for _ in range(2))
    make_imported_votes(first, "ann", {"overall": "A"})
    make_judge_verdicts(first, as_stored={"overall": "A"})
    told = build_report(evaluation, None, ReportRules(), parts=(ReportPart.AGREEMENT,)).methods
    assert "For imported choices it is unknown whether a judge's answer was seen first; they count." in told
    assert "1 reviewer cast up to 1 vote on an aspect of up to 1 pair." in told
    assert "The reference is their vote; no pair has two." in told
    assert "Not all of the 2 pairs have a verdict: on an aspect as few as 1 from longest." in told
    for absent in ("Krippendorff", "leave out one reviewer", "gold", "failed", "panel", "plurality of their votes"):
        assert absent not in told
    make_imported_votes(first, "ben", {"overall": "B"})
    make_imported_votes(second, "truth", {"overall": "B"}, kind="gold")
    told = build_report(evaluation, None, ReportRules(), parts=(ReportPart.AGREEMENT,)).methods
    for present in ("Krippendorff", "leave out one reviewer", "gold labels, on up to 1 pair an aspect"):
        assert present in told


def test_votes_that_are_left_out_are_counted() -> None:
    evaluation = make_evaluation(slug="study")
    ann = make_human(evaluation, "ann")
    make_review(ann, make_comparison(evaluation), {"clarity": "A"}, blind=False, judge_first=True, reveal="shown")
    make_review(ann, make_comparison(evaluation), {"clarity": "A"}, selection_method=SelectionMethod.BY_HAND)
    told = build_report(evaluation, None, ReportRules(), parts=(ReportPart.AGREEMENT,)).methods
    assert (
        "Excluded on an aspect are up to 1 vote of reviewers who saw a judge's answer first and up to 1 vote on "
        "comparisons that were not drawn at random."
    ) in told
    call_command("report", "study", stdout=(out := StringIO()))
    assert "excluded: 1 votes of reviewers who saw the judge first" in out.getvalue()


def test_where_no_tie_is_offered_the_paragraph_says_that_splits_are_left_out() -> None:
    evaluation = make_evaluation()
    import_rows(evaluation, comparison_row("q1"))
    import_rows(evaluation, verdict_row("q1"), verdict_row("q1", rater="ben", choice="B"))
    left_out = "the comparison was excluded from agreement, since no tie was offered, and counted as a tie elsewhere."
    assert left_out in build_report(evaluation, None, ReportRules()).methods
    assert (
        "excluded from agreement" not in build_report(evaluation, None, ReportRules(split_rule=SplitRule.FIRST)).methods
    )
    import_rows(evaluation, *[verdict_row("q1", aspect="tone", choice=choice, rater=choice) for choice in ("tie", "B")])
    told = build_report(evaluation, None, ReportRules()).methods
    assert "counted as a tie, and excluded from agreement on overall, which offered no tie." in told


def test_samples_and_orders_are_named_only_of_judges_that_chose() -> None:
    evaluation = make_evaluation()
    import_rows(evaluation, comparison_row("q1"))
    scored = [score_row(candidate=name, rater="gpt", rater_kind="judge") for name in ("alpha", "beta")]
    import_rows(evaluation, *scored)
    assert "plurality of its samples" not in build_report(evaluation, None, ReportRules()).methods


def test_an_empty_evaluation_has_none() -> None:
    assert build_report(make_evaluation(), None, ReportRules()).methods == ""

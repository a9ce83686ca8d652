from io import StringIO

import pytest
from django.core.management import call_command

from evaluations.domain import FailedRule, Part, PickedBy, Rules, SplitRule
from evaluations.services.reporting.reporting import make_report
from tests.importing import bring, comparison, score, verdict
from tests.making import make_comparison, make_evaluation, make_human
from tests.saying import import_votes, judge_says, person_says

pytestmark = pytest.mark.django_db


def test_the_paragraph_says_what_there_is_and_by_which_rules() -> None:
    evaluation = make_evaluation()
    comparison = make_comparison(evaluation)
    for name in ("ann", "ben"):
        person_says(make_human(evaluation, name), comparison, {"clarity": "A"})
    judge_says(comparison, as_stored={"clarity": "A"}, swapped="unreadable")
    rules = Rules(split_rule=SplitRule.DROP, failed=FailedRule.TIE)
    told = make_report(evaluation, None, rules, parts=(Part.AGREEMENT,)).methods
    assert told.startswith("We compared 1 pair of responses in 1 cluster on helpfulness,")
    assert "2 people gave up to 2 votes" in told
    assert "the comparison was left out." in told
    assert "Choices were recorded before a judge's answer was shown." in told
    assert "imported" not in told
    assert "Up to 1 call of a judge failed; verdicts that are missing for that were counted as ties." in told
    assert "2,000 resamples" in told


def test_failures_are_told_whatever_the_part() -> None:
    evaluation = make_evaluation()
    comparison = make_comparison(evaluation)
    judge_says(comparison, as_stored={"clarity": "A"}, swapped="unreadable")
    for part in Part:
        told = make_report(evaluation, None, Rules(), parts=(part,)).methods
        assert "Up to 1 call of a judge failed; verdicts that are missing for that were left out." in told


def test_a_judge_that_answered_nothing_is_named_and_no_verdict_is_claimed_of_it() -> None:
    evaluation = make_evaluation()
    comparison = make_comparison(evaluation)
    person_says(make_human(evaluation, "ann"), comparison, {"clarity": "A"})
    judge_says(comparison, as_stored="unreadable")
    told = make_report(evaluation, None, Rules(), parts=(Part.AGREEMENT,)).methods
    assert "Of longest no call was answered." in told
    assert "The verdict of a judge" not in told
    assert "To compare a judge with people" not in told


def test_people_are_those_who_voted() -> None:
    evaluation = make_evaluation()
    person_says(make_human(evaluation, "ann"), make_comparison(evaluation), {"clarity": "A"})
    make_human(evaluation, "ben")
    assert "1 person gave up to 1 vote on" in make_report(evaluation, None, Rules(), parts=(Part.AGREEMENT,)).methods


def test_without_votes_nothing_is_said_of_people() -> None:
    evaluation = make_evaluation()
    make_human(evaluation, "ben")
    judge_says(make_comparison(evaluation), as_stored={"clarity": "A"})
    told = make_report(evaluation, None, Rules(), parts=(Part.AGREEMENT,)).methods
    assert "gave up to" not in told
    assert "plurality of their votes" not in told


def test_each_part_says_how_its_own_intervals_were_made() -> None:
    evaluation = make_evaluation()
    person_says(make_human(evaluation, "ann"), make_comparison(evaluation), {"clarity": "A"})
    told = {part: make_report(evaluation, None, Rules(), parts=(part,)).methods for part in Part}
    assert all("All intervals are 95% and treat clusters" in words for words in told.values())
    assert [part for part, words in told.items() if "bootstrap" not in words] == [Part.BIAS]
    assert [part for part, words in told.items() if "Wilson" not in words] == [Part.SCORES]
    assert [part for part, words in told.items() if "Cohen's kappa" in words] == [Part.AGREEMENT]
    assert "one-sided t test" in told[Part.PEOPLE]
    every = make_report(evaluation, None, Rules()).methods
    assert every.count("The bootstrap is of clusters") == every.count("Wilson 1927") == 1


def test_the_paragraph_names_only_what_the_material_has() -> None:
    evaluation = make_evaluation()
    first, second = (make_comparison(evaluation) for _ in range(2))
    import_votes(first, "ann", {"overall": "A"})
    judge_says(first, as_stored={"overall": "A"})
    told = make_report(evaluation, None, Rules(), parts=(Part.AGREEMENT,)).methods
    assert "Of imported choices it is not known whether a judge's answer was seen first; they count." in told
    assert "1 person gave up to 1 vote on an aspect of up to 1 pair." in told
    assert "The reference is their vote: no pair has two." in told
    assert "Not all of the 2 pairs have a verdict: on an aspect as few as 1 from longest." in told
    for absent in ("Krippendorff", "leave out one person", "gold", "failed", "panel", "plurality of their votes"):
        assert absent not in told
    import_votes(first, "ben", {"overall": "B"})
    import_votes(second, "truth", {"overall": "B"}, kind="gold")
    told = make_report(evaluation, None, Rules(), parts=(Part.AGREEMENT,)).methods
    for present in ("Krippendorff", "leave out one person", "gold labels, on up to 1 pair an aspect"):
        assert present in told


def test_votes_that_are_left_out_are_counted() -> None:
    evaluation = make_evaluation(slug="study")
    ann = make_human(evaluation, "ann")
    person_says(ann, make_comparison(evaluation), {"clarity": "A"}, blind=False, judge_first=True, reveal="shown")
    person_says(ann, make_comparison(evaluation), {"clarity": "A"}, picked_by=PickedBy.BY_HAND)
    told = make_report(evaluation, None, Rules(), parts=(Part.AGREEMENT,)).methods
    assert (
        "Left out on an aspect are up to 1 vote of reviews that saw a judge's answer first and up to 1 vote on "
        "comparisons that were picked and not drawn at random."
    ) in told
    call_command("report", "study", stdout=(out := StringIO()))
    assert "left out: 1 votes of reviews that saw the judge first" in out.getvalue()


def test_where_no_tie_is_offered_the_paragraph_says_that_splits_are_left_out() -> None:
    evaluation = make_evaluation()
    bring(evaluation, comparison("q1"))
    bring(evaluation, verdict("q1"), verdict("q1", rater="ben", choice="B"))
    left_out = "the comparison was left out of agreement, for no tie was offered, and counted as a tie elsewhere."
    assert left_out in make_report(evaluation, None, Rules()).methods
    assert "left out of agreement" not in make_report(evaluation, None, Rules(split_rule=SplitRule.FIRST)).methods
    bring(evaluation, *[verdict("q1", aspect="tone", choice=choice, rater=choice) for choice in ("tie", "B")])
    told = make_report(evaluation, None, Rules()).methods
    assert "counted as a tie, and left out of agreement on overall, where no tie was offered." in told


def test_samples_and_orders_are_named_only_of_judges_that_chose() -> None:
    evaluation = make_evaluation()
    bring(evaluation, comparison("q1"))
    scored = [score(candidate=name, rater="gpt", rater_kind="judge") for name in ("alpha", "beta")]
    bring(evaluation, *scored)
    assert "plurality of its samples" not in make_report(evaluation, None, Rules()).methods


def test_an_empty_evaluation_has_none() -> None:
    assert make_report(make_evaluation(), None, Rules()).methods == ""

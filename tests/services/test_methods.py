import pytest

from evaluations.domain import FailedRule, Part, Rules, SplitRule
from evaluations.services.reporting.reporting import make_report
from tests.making import make_comparison, make_evaluation, make_human
from tests.saying import judge_says, person_says

pytestmark = pytest.mark.django_db


def test_the_paragraph_says_what_there_is_and_by_which_rules() -> None:
    evaluation = make_evaluation()
    comparison = make_comparison(evaluation)
    for name in ("ann", "ben"):
        person_says(make_human(evaluation, name), comparison, {"clarity": "A"})
    judge_says(comparison, as_stored={"clarity": "A"}, swapped="unreadable")
    rules = Rules(split_rule=SplitRule.DROP, failed=FailedRule.TIE)
    told = make_report(evaluation, None, rules, parts=(Part.AGREEMENT,)).methods
    assert told.startswith("We compared 1 pairs of responses in 1 clusters on helpfulness,")
    assert "2 people gave up to 2 votes" in told
    assert "the comparison was left out" in told
    assert "(up to 1 of a judge) were counted as ties" in told
    assert "2,000 resamples" in told


def test_an_empty_evaluation_has_none() -> None:
    assert make_report(make_evaluation(), None, Rules()).methods == ""

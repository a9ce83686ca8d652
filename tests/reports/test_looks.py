"""One judge may be called better: on the test part, under the default rules, at one of three looks."""

import pytest

from evaluations.domain.reports import FailedRule, ReportPart, ReportRules
from evaluations.domain.splits import SplitPart
from evaluations.models.evaluations import Evaluation, JudgeComparisonLook
from evaluations.models.selection import build_part_lookup, get_default_split
from evaluations.reports.selectors import get_full_report
from evaluations.stats.judge_comparison import ComparedJudges
from tests.factories.evaluations import make_evaluation
from tests.factories.imports import comparison_row, import_rows, verdict_row

pytestmark = pytest.mark.django_db

ON_TEST = ReportRules(part=SplitPart.TEST)


@pytest.fixture(autouse=True)
def votes_of_a_judge_that_differs_on_the_test_part(evaluation: Evaluation) -> None:
    """400 comparisons on which the reviewer says A: one judge says A everywhere, the other says B on the test part."""
    keys = [f"q{number}" for number in range(400)]
    import_rows(evaluation, *[comparison_row(key, query=f"What is {key}?") for key in keys])
    part_of = build_part_lookup(evaluation, get_default_split(evaluation))
    rows = [verdict_row(key) for key in keys]
    rows += [verdict_row(key, rater="steady", rater_kind="judge") for key in keys]
    for key in keys:
        choice = "B" if part_of(key) == SplitPart.TEST else "A"
        rows.append(verdict_row(key, rater="broken", rater_kind="judge", choice=choice))
    import_rows(evaluation, *rows)


def compared(evaluation: Evaluation, rules: ReportRules) -> ComparedJudges:
    (found,) = get_full_report(evaluation, rules, parts=(ReportPart.JUDGES,)).compared_judges
    return found


def test_a_judge_that_is_better_on_the_test_part_is_called_better_there_and_nowhere_else(
    evaluation: Evaluation,
) -> None:
    found = compared(evaluation, ON_TEST)
    assert (found.exploratory, found.look, found.looks) == (False, 1, 3)
    assert found.aspects["overall"].better == "steady"
    for rules in (ReportRules(), ReportRules(part=SplitPart.TRAIN)):
        assert compared(evaluation, rules).exploratory
        assert compared(evaluation, rules).aspects["overall"].better is None
    assert JudgeComparisonLook.objects.count() == 1


def test_the_same_result_is_the_same_look(evaluation: Evaluation) -> None:
    assert [compared(evaluation, ON_TEST).look for _ in range(3)] == [1, 1, 1]


def test_rules_that_someone_chose_are_no_look(evaluation: Evaluation) -> None:
    assert compared(evaluation, ReportRules(part=SplitPart.TEST, failed=FailedRule.TIE)).exploratory
    assert not JudgeComparisonLook.objects.exists()


def test_after_three_looks_nobody_is_called_better(evaluation: Evaluation) -> None:
    for number in range(1, 4):
        JudgeComparisonLook.objects.create(evaluation=evaluation, number=number, results_sha256=str(number))
    import_rows(evaluation, *[verdict_row(f"q{number}", rater="zoe") for number in range(400)])
    found = compared(evaluation, ON_TEST)
    assert (found.exploratory, found.look) == (True, 4)
    assert found.aspects["overall"].better is None


def test_where_nothing_can_be_tested_no_look_is_used(evaluation: Evaluation) -> None:
    other = make_evaluation(slug="other")
    import_rows(other, *[comparison_row("q1")])
    import_rows(other, *[verdict_row("q1", rater=name, rater_kind="judge") for name in ("one", "two")])
    get_full_report(other, ON_TEST, parts=(ReportPart.JUDGES,))
    assert not JudgeComparisonLook.objects.exists()

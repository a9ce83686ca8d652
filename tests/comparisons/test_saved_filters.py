"""Filters with a name: saved, renamed, deleted, and what a report on one says."""

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from evaluations.comparisons.selectors import get_saved_filter
from evaluations.comparisons.services import create_saved_filter, delete_saved_filter, rename_saved_filter
from evaluations.domain.errors import InputRefused
from evaluations.domain.filters import ComparisonFilter, NamedFilter
from evaluations.domain.reports import ReportRules
from evaluations.exports.options import parse_export_request
from evaluations.judges.runs.planner import plan_next_calls
from evaluations.judges.runs.selection import run_selection
from evaluations.judges.runs.services import start_run
from evaluations.models.comparisons import SavedFilter
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.exports import Export
from evaluations.models.runs import Call, Run
from evaluations.reports.selectors import get_full_report
from tests.factories.evaluations import make_comparison
from tests.factories.verdicts import ALL_A, make_imported_votes, make_judge_rater, make_judge_verdicts

pytestmark = pytest.mark.django_db
MATH = ComparisonFilter(category="math")


@pytest.fixture(autouse=True)
def votes_by_category(evaluation: Evaluation) -> None:
    for category in ("math", "math", "poems"):
        comparison = make_comparison(evaluation, category=category)
        make_judge_verdicts(comparison, as_stored=ALL_A, swapped=ALL_A)
        make_imported_votes(comparison, "ann", ALL_A)


def test_a_saved_filter_is_saved_renamed_and_deleted_and_all_of_it_is_on_record(evaluation: Evaluation) -> None:
    made = create_saved_filter(evaluation, " hard ", MATH, user=None)
    assert get_saved_filter(evaluation, "hard").comparison_filter == MATH
    rename_saved_filter(made, "harder", user=None)
    delete_saved_filter(get_saved_filter(evaluation, "harder"), user=None)
    verbs = Event.objects.filter(object_type="savedfilter").order_by("pk").values_list("verb", flat=True)
    assert list(verbs) == ["saved", "renamed", "deleted"]
    assert not SavedFilter.objects.exists()


def test_a_name_is_taken_once_and_a_saved_filter_of_everything_is_none(evaluation: Evaluation) -> None:
    create_saved_filter(evaluation, "hard", MATH, user=None)
    for name, wanted in (("hard", MATH), ("", MATH), ("x" * 81, MATH), ("a\nb", MATH), ("all", ComparisonFilter())):
        with pytest.raises(InputRefused):
            create_saved_filter(evaluation, name, wanted, user=None)
    with pytest.raises(InputRefused, match="There is no candidate"):
        create_saved_filter(evaluation, "of nobody", ComparisonFilter(candidate="nobody"), user=None)


def test_a_saved_filter_that_is_not_there_is_refused_with_those_that_are(evaluation: Evaluation) -> None:
    with pytest.raises(InputRefused, match="none is saved yet"):
        get_saved_filter(evaluation, "hard")
    create_saved_filter(evaluation, "hard", MATH, user=None)
    with pytest.raises(InputRefused, match="there are “hard”"):
        get_saved_filter(evaluation, "easy")


def test_a_report_on_a_saved_filter_is_about_its_comparisons_and_says_so(evaluation: Evaluation) -> None:
    named = create_saved_filter(evaluation, "hard", MATH, user=None).named
    report = get_full_report(evaluation, ReportRules(saved_filter=named))
    assert report.comparisons == 2
    assert report.rules["comparisons"] == "Only comparisons of the saved filter “hard”: category is “math”."
    assert get_full_report(evaluation, ReportRules()).comparisons == 3


def test_a_saved_filter_without_comparisons_is_refused_by_the_report(evaluation: Evaluation) -> None:
    named = create_saved_filter(evaluation, "none", ComparisonFilter(category="songs"), user=None).named
    with pytest.raises(InputRefused, match="matches no comparisons"):
        get_full_report(evaluation, ReportRules(saved_filter=named))


def test_the_command_takes_a_saved_filter_by_its_name(
    evaluation: Evaluation, capsys: pytest.CaptureFixture[str]
) -> None:
    create_saved_filter(evaluation, "hard", MATH, user=None)
    call_command("report", "study", "--saved-filter", "hard")
    assert "study: 2 comparisons" in capsys.readouterr().out
    with pytest.raises(CommandError, match="There is no saved filter"):
        call_command("report", "study", "--saved-filter", "easy")


def test_a_run_asks_about_the_saved_filter_alone_and_keeps_what_it_meant(evaluation: Evaluation) -> None:
    named = create_saved_filter(evaluation, "poems", ComparisonFilter(category="poems"), user=None).named
    judge = make_judge_rater(evaluation, "first", kind="rule").judge
    assert judge is not None
    run = start_run(judge, user=None, saved_filter=named)
    plan_next_calls(run.pk)
    about = set(Call.objects.filter(run=run).values_list("comparison__category", flat=True))
    assert about == {"poems"}
    assert run_selection(run).saved_filter == named


def test_a_run_on_a_saved_filter_that_is_empty_is_refused(evaluation: Evaluation) -> None:
    judge = make_judge_rater(evaluation, "first", kind="rule").judge
    assert judge is not None
    with pytest.raises(InputRefused, match="matches no comparisons"):
        start_run(judge, user=None, saved_filter=NamedFilter("songs", ComparisonFilter(category="songs")))


def test_runs_and_exports_of_earlier_versions_keep_their_saved_filter(evaluation: Evaluation) -> None:
    judge = make_judge_rater(evaluation, "first", kind="rule").judge
    assert judge is not None
    stored = {"name": "hard", "filter": MATH.as_json()}
    run = Run(judge=judge, filters={"slice": stored})
    export = Export(label_policy="people", filters={"slice": "hard", "filter": MATH.as_json()})
    assert run_selection(run).saved_filter == parse_export_request(export).saved_filter == NamedFilter("hard", MATH)


def test_an_old_address_keeps_its_saved_filter(admin_client: Client) -> None:
    moved = admin_client.get("/e/study/report?judge=gpt&slice=hard+ones")
    assert moved["Location"] == "/e/study/results?judge=gpt&saved_filter=hard+ones"

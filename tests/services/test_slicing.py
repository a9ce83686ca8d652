"""Filters with a name: saved, renamed, deleted, and what a report on one says."""

import pytest
from django.core.management import CommandError, call_command

from evaluations.domain import Filter, InputRefused, NamedFilter, Rules
from evaluations.models import Call, Evaluation, Event, Slice
from evaluations.services.judging.running import plan_some, start_run
from evaluations.services.judging.selecting import selection_of
from evaluations.services.preparing.slicing import delete_slice, rename_slice, save_slice, slice_of
from evaluations.services.reporting.reporting import report_for
from tests.making import make_comparison, make_evaluation
from tests.saying import ALL_A, import_votes, judge_says, make_judge

pytestmark = pytest.mark.django_db
MATH = Filter(category="math")


@pytest.fixture
def evaluation() -> Evaluation:
    made = make_evaluation(slug="study")
    for category in ("math", "math", "poems"):
        comparison = make_comparison(made, category=category)
        judge_says(comparison, as_stored=ALL_A, swapped=ALL_A)
        import_votes(comparison, "ann", ALL_A)
    return made


def test_a_slice_is_saved_renamed_and_deleted_and_all_of_it_is_on_record(evaluation: Evaluation) -> None:
    made = save_slice(evaluation, " hard ", MATH, user=None)
    assert slice_of(evaluation, "hard").wanted == MATH
    rename_slice(made, "harder", user=None)
    delete_slice(slice_of(evaluation, "harder"), user=None)
    verbs = Event.objects.filter(object_type="slice").order_by("pk").values_list("verb", flat=True)
    assert list(verbs) == ["saved", "renamed", "deleted"]
    assert not Slice.objects.exists()


def test_a_name_is_taken_once_and_a_slice_of_everything_is_none(evaluation: Evaluation) -> None:
    save_slice(evaluation, "hard", MATH, user=None)
    for name, wanted in (("hard", MATH), ("", MATH), ("x" * 81, MATH), ("a\nb", MATH), ("all", Filter())):
        with pytest.raises(InputRefused):
            save_slice(evaluation, name, wanted, user=None)
    with pytest.raises(InputRefused, match="There is no candidate"):
        save_slice(evaluation, "of nobody", Filter(candidate="nobody"), user=None)


def test_a_slice_that_is_not_there_is_refused_with_those_that_are(evaluation: Evaluation) -> None:
    with pytest.raises(InputRefused, match="none is saved yet"):
        slice_of(evaluation, "hard")
    save_slice(evaluation, "hard", MATH, user=None)
    with pytest.raises(InputRefused, match="there are “hard”"):
        slice_of(evaluation, "easy")


def test_a_report_on_a_slice_is_about_its_comparisons_and_says_so(evaluation: Evaluation) -> None:
    named = save_slice(evaluation, "hard", MATH, user=None).named
    report = report_for(evaluation, Rules(sliced=named))
    assert report.comparisons == 2
    assert report.rules["comparisons"] == "Only comparisons of the slice “hard”: category is “math”."
    assert report_for(evaluation, Rules()).comparisons == 3


def test_a_slice_without_comparisons_is_refused_by_the_report(evaluation: Evaluation) -> None:
    named = save_slice(evaluation, "none", Filter(category="songs"), user=None).named
    with pytest.raises(InputRefused, match="has no comparison"):
        report_for(evaluation, Rules(sliced=named))


def test_the_command_takes_a_slice_by_its_name(evaluation: Evaluation, capsys: pytest.CaptureFixture[str]) -> None:
    save_slice(evaluation, "hard", MATH, user=None)
    call_command("report", "study", "--slice", "hard")
    assert "study: 2 comparisons" in capsys.readouterr().out
    with pytest.raises(CommandError, match="There is no slice"):
        call_command("report", "study", "--slice", "easy")


def test_a_run_asks_about_the_slice_alone_and_keeps_what_it_meant(evaluation: Evaluation) -> None:
    named = save_slice(evaluation, "poems", Filter(category="poems"), user=None).named
    judge = make_judge(evaluation, "first", kind="rule").judge
    assert judge is not None
    run = start_run(judge, user=None, sliced=named)
    plan_some(run.pk)
    about = set(Call.objects.filter(run=run).values_list("comparison__category", flat=True))
    assert about == {"poems"}
    assert selection_of(run).sliced == named


def test_a_run_on_a_slice_that_is_empty_is_refused(evaluation: Evaluation) -> None:
    judge = make_judge(evaluation, "first", kind="rule").judge
    assert judge is not None
    with pytest.raises(InputRefused, match="has no comparison"):
        start_run(judge, user=None, sliced=NamedFilter("songs", Filter(category="songs")))

"""Finding comparisons, and how far raters have come with them."""

import pytest

from evaluations.domain import CallState, Filter, ImportState
from evaluations.models import Query
from evaluations.models.filtering import comparisons_in
from evaluations.services.reporting.browsing import Progress, categories, progress
from tests.making import make_comparison, make_evaluation, make_human
from tests.saying import ALL_A, ALL_B, import_votes, judge_says, make_import, person_says

pytestmark = pytest.mark.django_db


def test_categories_are_told_once_in_order_and_only_of_finished_imports() -> None:
    evaluation = make_evaluation()
    for category in ("poems", "facts", "facts", ""):
        make_comparison(evaluation, category=category)
    make_comparison(make_evaluation(), category="elsewhere")
    for state, category in ((ImportState.DONE, "done"), (ImportState.STORING, "storing")):
        hidden = make_comparison(evaluation, category=category).query
        Query.objects.filter(pk=hidden.pk).update(source_import=make_import(evaluation, state))
    assert categories(evaluation) == ["done", "facts", "poems"]
    assert categories(evaluation, limit=1) == ["done"]


def test_filters_hold_together() -> None:
    evaluation = make_evaluation()
    wanted = make_comparison(evaluation, query="Sing of Troy", category="poems", candidates=("alpha", "gamma"))
    make_comparison(evaluation, query="Sing of Troy", category="facts", candidates=("alpha", "gamma"))
    make_comparison(evaluation, query="Sing of Rome", category="poems", candidates=("alpha", "gamma"))
    make_comparison(evaluation, query="Sing of Troy", category="poems", candidates=("alpha", "beta"))
    assert list(comparisons_in(evaluation, Filter(text="TROY", category="poems", candidate="gamma"))) == [wanted]


def test_raters_are_counted_once_however_much_they_said() -> None:
    evaluation = make_evaluation()
    comparison, untouched = make_comparison(evaluation), make_comparison(evaluation)
    person_says(make_human(evaluation), comparison, ALL_A, final=ALL_B)
    import_votes(comparison, "expert", ALL_A, kind="gold")
    judge_says(comparison, as_stored=ALL_A, swapped=ALL_B)
    judge_says(comparison, judge="slow", as_stored=CallState.RUNNING, swapped=CallState.FAILED)
    told = progress([comparison.pk, untouched.pk])
    assert told[comparison.pk] == Progress(people=1, gold=1, judges=1, waiting=1, failed=1)
    assert told[untouched.pk] == Progress()

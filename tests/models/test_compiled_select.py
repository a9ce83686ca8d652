"""Compiled selects return the same rows as the query sets that they are made of, for any ids."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evaluations.models.bulk import insert_objects
from evaluations.models.compiled_select import CompiledSelect
from evaluations.models.evaluations import Evaluation
from evaluations.models.verdicts import Label, Review, Verdict
from evaluations.verdicts.votes import CHOSEN_VOTES, LABELS, select_chosen_votes, update_labels
from tests.factories.evaluations import make_comparison, make_human
from tests.factories.verdicts import ALL_A, ALL_B, make_judge_verdicts, make_review

pytestmark = pytest.mark.django_db
NO_COMPARISON = 2**40


@pytest.fixture
def reviewed(evaluation: Evaluation) -> list[int]:
    """Three comparisons: one that two people disagree on, one with a judge and one person, one with nothing."""
    contested, single, empty = (make_comparison(evaluation) for _ in range(3))
    for name, choices in (("ann", ALL_A), ("ben", ALL_B)):
        make_review(make_human(evaluation, name), contested, choices)
    make_judge_verdicts(single, as_stored=ALL_B)
    make_review(make_human(evaluation, "cem"), single, ALL_A)
    ids = [contested.pk, single.pk, empty.pk]
    update_labels(ids)
    return ids


def test_rows_are_those_of_the_query_it_was_made_of(reviewed: list[int]) -> None:
    for ids in (reviewed, reviewed[:1], reviewed[2:], [], [NO_COMPARISON], [*reviewed, NO_COMPARISON]):
        expected = list(select_chosen_votes().filter(comparison__in=ids))
        assert CHOSEN_VOTES.read(ids) == expected, ids
    assert len(CHOSEN_VOTES.read(reviewed)) == 3 * len(ALL_A)


def test_values_are_converted_as_django_converts_them(reviewed: list[int]) -> None:
    rows = LABELS.read(reviewed)
    columns = ("pk", "comparison_id", "aspect_id", "choice", "source", "votes", "unanimous")
    assert sorted(rows) == sorted(Label.objects.values_list(*columns))
    assert {type(unanimous) for *_, unanimous in rows} == {bool}
    assert {unanimous for *_, unanimous in rows} == {True, False}


def test_the_statement_is_put_together_once(reviewed: list[int]) -> None:
    built = []

    def build() -> object:
        built.append(1)
        return Verdict.all_rows.values_list("pk")

    select = CompiledSelect("comparison_id", build)  # type: ignore[arg-type]
    with CaptureQueriesContext(connection) as captured:
        rows = [select.read(reviewed[:1]), select.read(reviewed[1:2]), select.read(reviewed)]
    assert len(built) == 1
    assert len(captured) == 3
    assert len(rows[0]) + len(rows[1]) == len(rows[2]) == Verdict.all_rows.count()


def test_objects_are_inserted_as_bulk_create_does(reviewed: list[int]) -> None:
    verdict = Verdict.objects.filter(review__isnull=False).order_by("pk").first()
    assert verdict is not None
    names = [field.attname for field in Verdict._meta.concrete_fields if field.attname not in ("id", "created_at")]
    before = {name: getattr(verdict, name) for name in names}
    Verdict.all_rows.filter(pk=verdict.pk).delete()
    insert_objects([Verdict(**before)])
    stored = Verdict.all_rows.order_by("-pk")[0]
    assert {name: getattr(stored, name) for name in names} == before
    assert stored.created_at is not None
    insert_objects([])
    assert Review.objects.count() == 3

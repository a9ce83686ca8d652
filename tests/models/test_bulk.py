"""Many rows at once: what the databases are told of them, and which index they take."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evaluations.exports.participants import read_available_data
from evaluations.models.bulk import insert_many, refresh_statistics
from evaluations.models.comparisons import Candidate
from evaluations.models.runs import Call
from evaluations.verdicts.judge_choices import load_judge_choices
from tests.factories.evaluations import make_comparison, make_evaluation
from tests.factories.verdicts import make_judge_rater
from tests.helpers.postgres_statistics import expected_rows, keep_autovacuum_away

pytestmark = pytest.mark.django_db


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite keeps no count of a table's rows")
def test_postgresql_knows_how_much_was_filled_in() -> None:
    keep_autovacuum_away("evaluations_candidate")
    evaluation = make_evaluation()
    names = [(evaluation.created_at, evaluation.pk, f"candidate {number}", "", "") for number in range(2_000)]
    insert_many(Candidate, ("created_at", "evaluation_id", "name", "first_name", "family"), names)
    refresh_statistics(Candidate, Call)
    assert expected_rows("evaluations_candidate") == Candidate.objects.count() == 2_000


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL plans by what the tables hold")
def test_sqlite_reads_of_a_judge_only_what_it_is_asked_about() -> None:
    """Without statistics it would take the first index that begins with the judge, and read all its verdicts."""
    evaluation = make_evaluation()
    some = [make_comparison(evaluation).pk for _ in range(2)]
    with CaptureQueriesContext(connection) as asked:
        load_judge_choices(make_judge_rater(evaluation), some)
    statement = next(one["sql"] for one in asked if 'FROM "evaluations_verdict"' in one["sql"])
    assert "verdict_of_rater (rater_id=? AND comparison_id=?)" in plan_of(statement)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL plans by what the tables hold")
@pytest.mark.parametrize("said", ["comment", "adjudication"])
def test_sqlite_reads_no_comparisons_to_find_that_nothing_was_said_of_them(said: str) -> None:
    """An export asks this before its first byte: of a million comparisons it took half a second."""
    evaluation = make_evaluation()
    with CaptureQueriesContext(connection) as asked:
        read_available_data(evaluation)
    statement = next(one["sql"] for one in asked if f'FROM "evaluations_{said}"' in one["sql"])
    assert plan_of(statement).startswith(f"SCAN evaluations_{said}")


def plan_of(statement: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {statement}")
        return "\n".join(str(row[-1]) for row in cursor.fetchall())

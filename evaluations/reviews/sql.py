"""SQL of the review page: the comparison with all that is shown of it."""

from datetime import datetime
from typing import Final

from django.db import connection

from evaluations.models.comparisons import Comparison, Query, Response
from evaluations.models.evaluations import Evaluation
from evaluations.models.joined_rows import JoinedRow
from evaluations.models.judges import Rater
from evaluations.models.rubrics import RubricVersion
from evaluations.models.verdicts import Review

COMPARISON: Final = JoinedRow(Comparison, "c")
QUERY: Final = JoinedRow(Query, "q")
RESPONSE_A: Final = JoinedRow(Response, "a")
RESPONSE_B: Final = JoinedRow(Response, "b")
REVIEW: Final = JoinedRow(Review, "r")
MAX_ID: Final = 2**63 - 1

# As `Comparison.objects` and `Review.objects` have it: rows of an import that is not done are hidden.
IS_FINISHED: Final = """({row}.source_import_id IS NULL OR EXISTS (
  SELECT 1 FROM evaluations_import i WHERE i.id = {row}.source_import_id AND i.state = 'done'))"""

SELECT_COMPARISON: Final = f"""
SELECT {COMPARISON.columns} FROM evaluations_comparison c
WHERE c.id = %s AND c.evaluation_id = %s AND {IS_FINISHED.format(row="c")}
"""

SELECT_COMPARISON_WITH_TEXTS: Final = f"""
SELECT {", ".join(row.columns for row in (COMPARISON, QUERY, RESPONSE_A, RESPONSE_B, REVIEW))}
FROM evaluations_comparison c JOIN evaluations_query q ON q.id = c.query_id
JOIN evaluations_response a ON a.id = c.response_a_id JOIN evaluations_response b ON b.id = c.response_b_id
LEFT JOIN evaluations_review r ON r.comparison_id = c.id AND r.rater_id = %s AND r.rubric_version_id = %s
  AND {IS_FINISHED.format(row="r")}
WHERE c.id = %s AND c.evaluation_id = %s AND {IS_FINISHED.format(row="c")}
"""


def find_comparison(evaluation: Evaluation, pk: int) -> Comparison | None:
    if pk > MAX_ID:
        return None
    with connection.cursor() as cursor:
        cursor.execute(SELECT_COMPARISON, [pk, evaluation.pk])
        row = cursor.fetchone()
    if row is None:
        return None
    comparison = COMPARISON.build(iter(row))
    comparison.evaluation = evaluation
    return comparison


def find_comparison_with_texts(
    evaluation: Evaluation, pk: int, rubric: RubricVersion, rater: Rater | None
) -> tuple[Comparison | None, Review | None]:
    """The comparison with its query and responses, and the rater's review of it."""
    if pk > MAX_ID:
        return None, None
    with connection.cursor() as cursor:
        cursor.execute(SELECT_COMPARISON_WITH_TEXTS, [rater.pk if rater else None, rubric.pk, pk, evaluation.pk])
        row = cursor.fetchone()
    if row is None:
        return None, None
    values = iter(row)
    comparison = COMPARISON.build(values)
    comparison.evaluation = evaluation
    comparison.query, comparison.response_a, comparison.response_b = (
        QUERY.build(values),
        RESPONSE_A.build(values),
        RESPONSE_B.build(values),
    )
    review = REVIEW.build_if_any(values)
    if review is not None:
        review.comparison = comparison
    return comparison, review


# What “Previous” and “Undo” need, and the time that the reviewer takes.
EARLIER_REVIEW: Final = JoinedRow(Review, "r", ("id", "comparison_id", "state", "version", "finished_at", "active_ms"))
MAX_EARLIER_REVIEWS: Final = 21

SELECT_EARLIER_REVIEW: Final = f"""
SELECT {EARLIER_REVIEW.columns} FROM evaluations_review r
WHERE r.rater_id = %s AND r.rubric_version_id = %s AND r.finished_at """

LAST_FINISHED: Final = f"IS NOT NULL ORDER BY r.finished_at DESC LIMIT {MAX_EARLIER_REVIEWS}"
LAST_FINISHED_BEFORE: Final = f"< %s ORDER BY r.finished_at DESC LIMIT {MAX_EARLIER_REVIEWS}"


def find_earlier_reviews(rater: Rater, version_id: int | None, before: datetime | None) -> list[Review]:
    """The reviews that the rater finished last, or last before that time, newest first."""
    parameters = [rater.pk, version_id]
    with connection.cursor() as cursor:
        if before is None:
            cursor.execute(SELECT_EARLIER_REVIEW + LAST_FINISHED, parameters)
        else:
            adapted = connection.ops.adapt_datetimefield_value(before)
            cursor.execute(SELECT_EARLIER_REVIEW + LAST_FINISHED_BEFORE, [*parameters, adapted])
        return [EARLIER_REVIEW.build(iter(row)) for row in cursor.fetchall()]

"""The membership that a request begins with, in one statement with what nearly every page needs of it."""

from typing import Final

from django.db import connection

from evaluations.models.evaluations import Evaluation
from evaluations.models.joined_rows import JoinedRow
from evaluations.models.judges import Rater
from evaluations.models.rubrics import Rubric, RubricVersion
from evaluations.models.users import Membership, User

MEMBERSHIP: Final = JoinedRow(Membership, "m")
EVALUATION: Final = JoinedRow(Evaluation, "e")
VERSION: Final = JoinedRow(RubricVersion, "v")
RUBRIC: Final = JoinedRow(Rubric, "u")
OWN_RATER: Final = JoinedRow(Rater, "r", ("id", "kind", "name"))

SELECT_MEMBERSHIP: Final = f"""
SELECT {", ".join(row.columns for row in (MEMBERSHIP, EVALUATION, VERSION, RUBRIC, OWN_RATER))}
FROM evaluations_membership m JOIN evaluations_evaluation e ON e.id = m.evaluation_id
LEFT JOIN evaluations_rubricversion v ON v.id = e.review_rubric_id
LEFT JOIN evaluations_rubric u ON u.id = v.rubric_id
LEFT JOIN evaluations_rater r ON r.evaluation_id = e.id AND r.user_id = m.user_id
WHERE m.user_id = %s AND e.slug = %s
"""


def find_membership(user: User, slug: str) -> tuple[Membership | None, Rater | None]:
    """The user's membership in the evaluation with this slug, and their rater there if they have one."""
    with connection.cursor() as cursor:
        cursor.execute(SELECT_MEMBERSHIP, [user.pk, slug])
        row = cursor.fetchone()
    if row is None:
        return None, None
    values = iter(row)
    membership, evaluation = MEMBERSHIP.build(values), EVALUATION.build(values)
    version, rubric = VERSION.build_if_any(values), RUBRIC.build_if_any(values)
    if version is not None and rubric is not None:
        version.rubric = rubric
    membership.evaluation, evaluation.review_rubric = evaluation, version
    rater = OWN_RATER.build_if_any(values)
    if rater is not None:
        rater.evaluation, rater.user = evaluation, user
    return membership, rater

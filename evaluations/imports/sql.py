"""SQL that imports run past the ORM."""

import json
from collections.abc import Mapping
from typing import Final

from django.db import connection

from evaluations.domain.files import ImportState
from evaluations.imports.row_sketches import OutcomeCounts
from evaluations.jobs.kinds import LeaseLost
from evaluations.models.imports import Import

ADD_STORED_ROWS: Final = """
UPDATE evaluations_import SET rows_stored = rows_stored + %s,
rows_unchanged = rows_unchanged + %s, rows_skipped = rows_skipped + %s, rows_bad = rows_bad + %s, summary = %s
WHERE id = %s AND state = %s
"""


def add_stored_rows(importing: Import, counted: OutcomeCounts, summary: Mapping[str, object]) -> None:
    """Renew the claim and add to the counts of the import; past the ORM, which took as long as writing fifty rows."""
    if importing.lease:
        importing.lease.heartbeat()
    told = counted.stored, counted.unchanged, counted.skipped, counted.bad, json.dumps(summary)
    with connection.cursor() as cursor:
        cursor.execute(ADD_STORED_ROWS, (*told, importing.pk, ImportState.STORING.value))
        if not cursor.rowcount:
            raise LeaseLost(f"{importing} is no longer being stored.")


# ---- at once: nobody sees any of it --------------------------------------------------------------

DELETE_EXPIRED_ASSIGNMENTS: Final = """
DELETE FROM evaluations_assignment WHERE item_id IN (
  SELECT q.id FROM evaluations_queueitem q JOIN evaluations_comparison c ON c.id = q.comparison_id
  WHERE c.source_import_id = %s)
"""

DELETE_QUEUE_ITEMS: Final = """
DELETE FROM evaluations_queueitem
WHERE comparison_id IN (SELECT id FROM evaluations_comparison WHERE source_import_id = %s)
"""

"""SQL of imports."""

import json
from typing import Final

from django.db import connection

from evaluations.domain.files import ImportState
from evaluations.domain.imports import CreatedIds
from evaluations.imports.row_sketches import OutcomeCounts
from evaluations.jobs.kinds import LeaseLost
from evaluations.models.imports import COUNTED_ROWS, Import

ADD_STORED_ROWS: Final = f"""
UPDATE evaluations_import SET rows_stored = rows_stored + %s, rows_unchanged = rows_unchanged + %s,
rows_skipped = rows_skipped + %s, rows_bad = rows_bad + %s, created_json = %s,
{", ".join(f"new_{kind} = new_{kind} + %s" for kind in COUNTED_ROWS)}
WHERE id = %s AND state = %s
"""


def add_stored_rows(importing: Import, counted: OutcomeCounts, created: CreatedIds) -> None:
    """Renew the claim and add to the counts of the import. The ORM took as long as writing fifty rows."""
    if importing.lease:
        importing.lease.heartbeat()
    rows = [counted.stored, counted.unchanged, counted.skipped, counted.bad]
    new_rows = [counted.new[kind] for kind in COUNTED_ROWS]
    with connection.cursor() as cursor:
        cursor.execute(
            ADD_STORED_ROWS, (*rows, json.dumps(created.to_json()), *new_rows, importing.pk, ImportState.STORING.value)
        )
        if not cursor.rowcount:
            raise LeaseLost(f"{importing} is no longer being stored.")


def delete_queue_items(importing: Import) -> None:
    """Take the comparisons of an import out of all queues, with expired assignments."""
    with connection.cursor() as cursor:
        cursor.execute(DELETE_EXPIRED_ASSIGNMENTS, [importing.pk])
        cursor.execute(DELETE_QUEUE_ITEMS, [importing.pk])


DELETE_EXPIRED_ASSIGNMENTS: Final = """
DELETE FROM evaluations_assignment WHERE item_id IN (
  SELECT q.id FROM evaluations_queueitem q JOIN evaluations_comparison c ON c.id = q.comparison_id
  WHERE c.source_import_id = %s)
"""

DELETE_QUEUE_ITEMS: Final = """
DELETE FROM evaluations_queueitem
WHERE comparison_id IN (SELECT id FROM evaluations_comparison WHERE source_import_id = %s)
"""

"""The reserve of free space: what is written to the data folder and to an SQLite database leaves it free."""

from pathlib import Path

from django.conf import settings
from django.db import connection

from evaluations.domain.disk_space import DiskFull, has_room


def require_room(needed_bytes: int = 0) -> None:
    """Raises DiskFull where these bytes, written to the data folder, would leave less than the reserve."""
    if not has_room(settings.DATA_DIR, needed_bytes, settings.DISK_RESERVE_BYTES):
        raise DiskFull


def require_room_for_rows(text_bytes: int = 0) -> None:
    """Raises DiskFull where rows with texts of this size would leave less than the reserve."""
    if not has_room_for_rows(text_bytes):
        raise DiskFull


def has_room_for_rows(text_bytes: int = 0) -> bool:
    """Whether rows with texts of this size leave the reserve free. A PostgreSQL server looks after its own disk.

    SQLite writes rows to its log first. What the log holds needs room once more, in the database's file.
    """
    if not settings.USES_SQLITE:
        return True
    path = Path(connection.settings_dict["NAME"])
    log = path.with_name(f"{path.name}-wal")
    log_bytes = log.stat().st_size if log.exists() else 0
    return has_room(path.parent, 2 * text_bytes + log_bytes, settings.DISK_RESERVE_BYTES)

"""Failures of the database and the disk that no input causes and that pass."""

from collections.abc import Iterator
from typing import Final

from django.db import InterfaceError, InternalError, OperationalError

from evaluations.domain.disk_space import DiskFull, is_no_space_left

SQLITE_AWAY: Final = ("is locked", "unable to open database file", "disk i/o error")
SQLITE_FULL: Final = "database or disk is full"
# PostgreSQL's classes of states: connection lost, resources short, stopped by an operator, transaction to be repeated,
# transaction idle for too long, and a server that only reads, as it does while another one takes over.
POSTGRES_AWAY: Final = ("08", "53", "57P", "40", "25P03", "25006")
POSTGRES_FULL: Final = "53100"


def is_database_away(error: BaseException | None) -> bool:
    """Whether the database could not be reached, or let go of the connection: a later attempt may succeed."""
    return any(
        isinstance(cause, (OperationalError, InterfaceError, InternalError)) and is_away(cause)
        for cause in list_causes(error)
    ) and not is_disk_full(error)


def is_disk_full(error: BaseException | None) -> bool:
    for cause in list_causes(error):
        if is_no_space_left(cause) or isinstance(cause, DiskFull):
            return True
        if isinstance(cause, OperationalError) and (
            SQLITE_FULL in str(cause) or get_postgres_state(cause) == POSTGRES_FULL
        ):
            return True
    return False


def is_away(error: OperationalError | InterfaceError | InternalError) -> bool:
    if type(error.__cause__).__module__.startswith("sqlite3"):
        return any(words in str(error).lower() for words in SQLITE_AWAY)
    state = get_postgres_state(error)
    return state.startswith(POSTGRES_AWAY) if state else not isinstance(error, InternalError)


def get_postgres_state(error: BaseException) -> str | None:
    """The SQLSTATE; None if the server said nothing, because there is no connection."""
    return getattr(error.__cause__, "sqlstate", None)


def list_causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error, and those that led to it."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)

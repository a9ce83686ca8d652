"""What the log says of failures whose cause is known."""

import logging
from collections.abc import Collection

from evaluations.web.failures import is_database_away, is_disk_full


class KnownFailures(logging.Filter):
    """Logs a database that is away or a full disk in one line for each request or task, without the traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and (is_database_away(error) or is_disk_full(error)):
            reason = str(error).strip().partition("\n")[0]
            message = record.getMessage()
            record.msg, record.args = message if reason in message else f"{message}: {reason}", ()
            record.exc_info = record.exc_text = None
        return True


class MonitorAnswers(logging.Filter):
    """Leaves out the 503 of addresses that monitors ask every few seconds: it is an answer. Errors in it are logged."""

    def __init__(self, paths: Collection[str]) -> None:
        super().__init__()
        self.paths = paths

    def filter(self, record: logging.LogRecord) -> bool:
        path = getattr(getattr(record, "request", None), "path_info", None)
        return path not in self.paths or bool(record.exc_info)

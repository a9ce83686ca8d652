"""What a file said before: an index on disk, so that a long file needs no more memory than a short one."""

import sqlite3
from collections.abc import Iterable
from types import TracebackType


class Seen:
    """Remembers one word for each key, and counts. Lives in a temporary file that removes itself."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._database.execute("PRAGMA journal_mode=OFF")
        self._database.execute("PRAGMA synchronous=OFF")
        self._database.execute("CREATE TABLE seen (key TEXT PRIMARY KEY, word TEXT, line INTEGER) WITHOUT ROWID")
        self._database.execute("BEGIN")

    def __enter__(self) -> "Seen":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()

    def find(self, key: Iterable[str]) -> tuple[str, int] | None:
        """The word and the line that this key was remembered with."""
        found = self._database.execute("SELECT word, line FROM seen WHERE key = ?", ("\x00".join(key),)).fetchone()
        return (found[0], found[1]) if found else None

    def remember(self, key: Iterable[str], word: str, line: int) -> None:
        self._database.execute("INSERT OR IGNORE INTO seen VALUES (?, ?, ?)", ("\x00".join(key), word, line))

    def ordinal(self, key: Iterable[str]) -> int:
        """How often this key was counted before: 0, then 1, and so on."""
        counted = self._database.execute(
            "INSERT INTO seen VALUES (?, '', 0) ON CONFLICT (key) DO UPDATE SET line = line + 1 RETURNING line",
            ("\x00".join(("#", *key)),),
        )
        return int(counted.fetchone()[0])

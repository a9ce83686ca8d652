"""An index on disk of what a file said before, so that long files need little memory."""

import sqlite3
from collections.abc import Collection, Hashable
from types import TracebackType
from typing import Final

ASKED_AT_ONCE: Final = 500
TABLES: Final = (
    "CREATE TABLE named (name TEXT PRIMARY KEY, owner INTEGER, word TEXT, line INTEGER) WITHOUT ROWID",
    "CREATE TABLE said (owner INTEGER, mark INTEGER, word TEXT, line INTEGER, PRIMARY KEY (owner, mark)) WITHOUT ROWID",
    "CREATE TABLE counted (name TEXT, mark INTEGER, number INTEGER, PRIMARY KEY (name, mark)) WITHOUT ROWID",
)


class SeenIndex:
    """Remembers names, what was said under each, and counts. Lives in a temporary file that removes itself.

    What is said is kept by its hash, a whole number, beside that of its owner: the rows of a file about one
    thing mostly stand together, and then so do their entries here. Two of a million things said under one
    name share a hash with a chance of one in thirty million.

    What was remembered since the last `flush` is not found yet: whoever asks knows it still.
    """

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._database.execute("PRAGMA journal_mode=OFF")
        self._database.execute("PRAGMA synchronous=OFF")
        for table in TABLES:
            self._database.execute(table)
        self._database.execute("BEGIN")
        self._last_owner = 0
        self._names: list[tuple[str, int, str, int]] = []
        self._sayings: list[tuple[int, int, str, int]] = []

    def __enter__(self) -> "SeenIndex":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._database.close()

    # ---- what was said under a name

    def owners(self, names: Collection[str]) -> dict[str, tuple[int, str, int]]:
        """Those of these names that were remembered, each with its owner's number, its word and its line."""
        asked, found = list(names), {}
        for start in range(0, len(asked), ASKED_AT_ONCE):
            some = asked[start : start + ASKED_AT_ONCE]
            marks = ",".join("?" * len(some))
            for name, *rest in self._database.execute(f"SELECT * FROM named WHERE name IN ({marks})", some):
                found[name] = tuple(rest)
        return found

    def name(self, name: str, word: str, line: int) -> int:
        """Remember a new name. Its number is below 0: those from 1 up are whoever asks's own."""
        self._last_owner -= 1
        self._names.append((name, self._last_owner, word, line))
        return self._last_owner

    def has_said(self, owner: int) -> bool:
        return self._database.execute("SELECT 1 FROM said WHERE owner = ? LIMIT 1", (owner,)).fetchone() is not None

    def find(self, owner: int, key: Hashable) -> tuple[str, int] | None:
        """The word and the line that this was remembered with."""
        asked = "SELECT word, line FROM said WHERE owner = ? AND mark = ?"
        found: tuple[str, int] | None = self._database.execute(asked, (owner, hash(key))).fetchone()
        return found

    def remember(self, owner: int, key: Hashable, word: str, line: int) -> None:
        self._sayings.append((owner, hash(key), word, line))

    def flush(self) -> None:
        self._database.executemany("INSERT OR IGNORE INTO named VALUES (?, ?, ?, ?)", self._names)
        self._database.executemany("INSERT OR IGNORE INTO said VALUES (?, ?, ?, ?)", self._sayings)
        self._names.clear()
        self._sayings.clear()

    # ---- counting

    def ordinal(self, key: tuple[str, ...]) -> int:
        """How often this key was counted before: 0, then 1, and so on. It begins with what stands together in files."""
        counted = self._database.execute(
            "INSERT INTO counted VALUES (?, ?, 0) ON CONFLICT DO UPDATE SET number = number + 1 RETURNING number",
            (key[0], hash(key)),
        )
        return int(counted.fetchone()[0])

"""An index on disk of the earlier rows of a file, so that long files need little memory."""

import sqlite3
from collections.abc import Collection, Hashable
from typing import Final, Self

ASKED_AT_ONCE: Final = 500
TABLES: Final = (
    "CREATE TABLE named (name TEXT PRIMARY KEY, owner INTEGER, word TEXT, line INTEGER) WITHOUT ROWID",
    "CREATE TABLE seen (owner INTEGER, mark INTEGER, word TEXT, line INTEGER, PRIMARY KEY (owner, mark)) WITHOUT ROWID",
    "CREATE TABLE counted (name TEXT, mark INTEGER, number INTEGER, PRIMARY KEY (name, mark)) WITHOUT ROWID",
)


class TemporaryDatabase:
    """An SQLite file that is deleted on close."""

    def __init__(self, *tables: str) -> None:
        self.database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        for statement in ("PRAGMA journal_mode=OFF", "PRAGMA synchronous=OFF", *tables, "BEGIN"):
            self.database.execute(statement)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self.database.close()


class SeenIndex(TemporaryDatabase):
    """Names, the entries of each name, and counts of keys, in a temporary database.

    Entries are stored by owner and hash: rows on one thing are mostly adjacent in a file, and then so are their entries
    here. Among a million entries of one name, two share a hash with a chance of one in thirty million. Entries since
    the last `flush` are not found yet; the caller still has them.
    """

    def __init__(self) -> None:
        super().__init__(*TABLES)
        self._last_owner = 0
        self._names: list[tuple[str, int, str, int]] = []
        self._entries: list[tuple[int, int, str, int]] = []

    def owners(self, names: Collection[str]) -> dict[str, tuple[int, str, int]]:
        """The known ones of these names, each with its owner's number, its word and its line."""
        listed, owners = list(names), {}
        for start in range(0, len(listed), ASKED_AT_ONCE):
            some = listed[start : start + ASKED_AT_ONCE]
            marks = ",".join("?" * len(some))
            for name, *rest in self.database.execute(f"SELECT * FROM named WHERE name IN ({marks})", some):
                owners[name] = tuple(rest)
        return owners

    def name(self, name: str, word: str, line: int) -> int:
        """Add a new name. Its number is below 0; numbers from 1 on belong to the caller."""
        self._last_owner -= 1
        self._names.append((name, self._last_owner, word, line))
        return self._last_owner

    def has_entries(self, owner: int) -> bool:
        return self.database.execute("SELECT 1 FROM seen WHERE owner = ? LIMIT 1", (owner,)).fetchone() is not None

    def find(self, owner: int, key: Hashable) -> tuple[str, int] | None:
        """The word and the line of an entry, or None."""
        query = "SELECT word, line FROM seen WHERE owner = ? AND mark = ?"
        entry: tuple[str, int] | None = self.database.execute(query, (owner, hash(key))).fetchone()
        return entry

    def remember(self, owner: int, key: Hashable, word: str, line: int) -> None:
        self._entries.append((owner, hash(key), word, line))

    def flush(self) -> None:
        self.database.executemany("INSERT OR IGNORE INTO named VALUES (?, ?, ?, ?)", self._names)
        self.database.executemany("INSERT OR IGNORE INTO seen VALUES (?, ?, ?, ?)", self._entries)
        self._names.clear()
        self._entries.clear()

    def ordinal(self, key: tuple[str, ...]) -> int:
        """How often this key was counted before, from 0. Its first part is one that adjacent rows of a file share."""
        counted = self.database.execute(
            "INSERT INTO counted VALUES (?, ?, 0) ON CONFLICT DO UPDATE SET number = number + 1 RETURNING number",
            (key[0], hash(key)),
        )
        return int(counted.fetchone()[0])

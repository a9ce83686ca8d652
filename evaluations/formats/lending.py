"""A file lent to a library that would close it."""

from typing import BinaryIO


class Lent:
    """Reads somebody else's file; closing it closes nothing."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self.read = file.read
        self.seek = file.seek
        self.tell = file.tell

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

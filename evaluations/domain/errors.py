"""Errors that say what was refused and why."""

from evaluations.domain.secrets import mask_keys


class InputRefused(Exception):
    """Input that is refused. The message is a sentence on what is wrong, where, and what to do.

    Pages, the API and commands show it unchanged, so API keys in it are masked here.
    ``field``: the input's field at fault, if it is a single one.
    """

    def __init__(self, sentence: str = "", *, field: str = "") -> None:
        super().__init__(mask_keys(sentence))
        self.field = field


class ColumnsUnknown(InputRefused):
    """The file is readable, but its columns match no known format: a user can map them."""


class NamesMissing(ColumnsUnknown):
    """The columns are known from an earlier file, but the models or raters of this file are not named."""

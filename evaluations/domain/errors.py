"""Errors that tell a user what was refused."""

from evaluations.domain.secrets import mask_keys


class InputRefused(Exception):
    """Input that cannot be accepted; the message is one sentence that says what, where, and what to do.

    Every door shows it as it stands: a page as an error on its form, a command as its last line. So a key that it would
    repeat is left out here.
    """

    def __init__(self, sentence: str = "") -> None:
        super().__init__(mask_keys(sentence))


class ColumnsUnknown(InputRefused):
    """The file can be read, but its columns are nothing that is known: a person may say what they mean."""


class NamesMissing(ColumnsUnknown):
    """The columns are known from an earlier file, and the models or raters that were named for it are not."""

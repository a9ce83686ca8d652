"""What is refused."""


class InputRefused(Exception):
    """What was given cannot be taken; the one sentence says what, where, and what to do.

    Every door shows it as it stands: a page as an error on its form, a command as its last line.
    """

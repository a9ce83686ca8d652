"""How the threads of a process take turns in Python."""

import sys
from typing import Final

# After each statement a thread waits for the interpreter behind those that compute, by default 5 ms for each of them:
# thirty statements, as of a saved review, may then take up to a second.
TURN_SECONDS: Final = 0.0005


def shorten_turns() -> None:
    """Let threads that wait for a database or a server go on soon while others compute."""
    sys.setswitchinterval(TURN_SECONDS)

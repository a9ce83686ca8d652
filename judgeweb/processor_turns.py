"""Who has the processor next: threads of one process, and workers beside pages."""

import os
import sys
from typing import Final

# After each statement a thread waits for the interpreter behind those that compute, by default 5 ms for each of them:
# thirty statements, as of a saved review, may then take up to a second.
TURN_SECONDS: Final = 0.0005


def shorten_turns() -> None:
    """Let threads that wait for a database or a server go on soon while others compute."""
    sys.setswitchinterval(TURN_SECONDS)


def give_way(niceness: int) -> None:
    """Let pages go first where the processors are busy. Call it before threads begin: they inherit it."""
    own = os.getpriority(os.PRIO_PROCESS, 0)
    if own < niceness:
        os.setpriority(os.PRIO_PROCESS, 0, niceness)

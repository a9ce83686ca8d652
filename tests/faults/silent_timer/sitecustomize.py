"""Python imports this at its start: the thread of a worker that does its periodic work ends at once."""

import threading

run_well = threading.Thread.run


def run(self: threading.Thread) -> None:
    if self.name != "timer":
        run_well(self)


threading.Thread.run = run  # type: ignore[method-assign]

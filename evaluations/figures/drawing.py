"""SVG and PNG of a plot, drawn in a process of its own.

vl-convert holds Python's lock while it draws (0.1 s; 1.5 s the first time) and keeps 120 MB: in the
web server it would stop every other answer. In a process that ends it costs 0.8 s and nothing after.
It opens no address (``allowed_base_urls``), and our specifications name neither addresses nor files.
"""

import json
import subprocess
import sys
from pathlib import Path
from threading import BoundedSemaphore
from typing import Final, Literal

from evaluations.figures.media import Json

Picture = Literal["svg", "png"]

ROOT: Final = Path(__file__).resolve().parent.parent.parent
MOST_SECONDS: Final = 60
PNG_PIXELS: Final = 2  # to one of the specification: sharp in print
AT_ONCE: Final = BoundedSemaphore(2)


class NotDrawn(Exception):
    """The drawing process failed or took too long. Asking again may help."""


def drawn(spec: Json, picture: Picture) -> bytes:
    """The picture as a file. Waits while two others are drawn."""
    command = [sys.executable, "-m", __name__, picture]
    given = json.dumps(spec, allow_nan=False).encode()
    with AT_ONCE:
        try:
            done = subprocess.run(command, input=given, capture_output=True, cwd=ROOT, timeout=MOST_SECONDS, check=True)
        except subprocess.TimeoutExpired:
            raise NotDrawn(f"drawing took more than {MOST_SECONDS} s") from None
        except subprocess.CalledProcessError as error:
            raise NotDrawn(error.stderr.decode(errors="replace")) from None
    return done.stdout


def draw(spec: Json, picture: Picture) -> bytes:
    """In this process."""
    import vl_convert  # noqa: PLC0415 - 85 MB that only this process is to load

    if picture == "svg":
        return vl_convert.vegalite_to_svg(spec, allowed_base_urls=[]).encode()
    return vl_convert.vegalite_to_png(spec, scale=PNG_PIXELS, allowed_base_urls=[])


if __name__ == "__main__":
    asked: Picture = "png" if sys.argv[1] == "png" else "svg"
    sys.stdout.buffer.write(draw(json.load(sys.stdin), asked))

"""Charts as SVG or PNG, drawn in a separate process."""

import json
import subprocess
import sys
from pathlib import Path
from threading import BoundedSemaphore
from typing import Final, Literal

from evaluations.charts.themes import Json

ImageFormat = Literal["svg", "png"]
PROJECT_ROOT: Final = Path(__file__).resolve().parent.parent.parent
RENDER_TIMEOUT_SECONDS: Final = 60
PNG_SCALE: Final = 2  # to one of the specification: sharp in print
RENDER_SLOTS: Final = BoundedSemaphore(2)


class RenderFailed(Exception):
    """The drawing process failed or took too long. Asking again may help."""


def render_image(spec: Json, picture: ImageFormat) -> bytes:
    """The picture as a file. Waits while two others are drawn."""
    command = [sys.executable, "-m", __name__, picture]
    spec_json = json.dumps(spec, allow_nan=False).encode()
    with RENDER_SLOTS:
        try:
            done = subprocess.run(
                command,
                input=spec_json,
                capture_output=True,
                cwd=PROJECT_ROOT,
                timeout=RENDER_TIMEOUT_SECONDS,
                check=True,
            )
        except subprocess.TimeoutExpired:
            raise RenderFailed(f"drawing took more than {RENDER_TIMEOUT_SECONDS} s") from None
        except subprocess.CalledProcessError as error:
            raise RenderFailed(error.stderr.decode(errors="replace")) from None
    return done.stdout


def render_in_this_process(spec: Json, picture: ImageFormat) -> bytes:
    """Render the chart without starting another process."""
    import vl_convert  # noqa: PLC0415 - 85 MB that only this process is to load

    if picture == "svg":
        return vl_convert.vegalite_to_svg(spec, allowed_base_urls=[]).encode()
    return vl_convert.vegalite_to_png(spec, scale=PNG_SCALE, allowed_base_urls=[])


if __name__ == "__main__":
    image_format: ImageFormat = "png" if sys.argv[1] == "png" else "svg"
    sys.stdout.buffer.write(render_in_this_process(json.load(sys.stdin), image_format))

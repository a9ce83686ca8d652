"""Pictures of plots, and the script that draws them in a browser."""

import subprocess
import sys
from pathlib import Path

import pytest

from evaluations.figures import bundle, drawing
from evaluations.figures.drawing import NotDrawn, drawn
from evaluations.figures.media import PAPER
from tests.figures.making import every_plot

SPEC = every_plot(PAPER)[0].spec or {}


def test_a_picture_is_drawn_in_a_process_of_its_own() -> None:
    asked = (
        "import sys; from tests.figures.test_drawing import SPEC; from evaluations.figures.drawing import drawn;"
        "assert drawn(SPEC, 'svg').startswith(b'<svg '); sys.exit('vl_convert' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", asked], cwd=drawing.ROOT, check=False).returncode == 0


def test_a_picture_for_print_has_two_pixels_to_one() -> None:
    picture = drawn(SPEC, "png")
    assert picture.startswith(b"\x89PNG\r\n")
    assert int.from_bytes(picture[16:20]) == 1440  # the width stands in the first chunk


def test_what_cannot_be_drawn_is_told() -> None:
    with pytest.raises(NotDrawn, match="conversion failed"):
        drawn({"data": {"values": []}, "mark": "no such mark"}, "svg")


def test_a_drawing_that_takes_too_long_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "MOST_SECONDS", 0.01)
    with pytest.raises(NotDrawn, match="took more than"):
        drawn(SPEC, "svg")


def test_the_script_is_made_once_and_again_for_another_version(tmp_path: Path) -> None:
    path = bundle.made(tmp_path / "made" / "vega.js")
    text = path.read_text()
    assert text.startswith(bundle.MADE_BY)
    assert text.rstrip().endswith("as vegaEmbed};")
    path.write_text(f"{bundle.MADE_BY}kept")
    assert bundle.made(path).read_text() == f"{bundle.MADE_BY}kept"
    path.write_text("// vl-convert 0.0.1\nold")
    assert bundle.made(path).read_text() == text
    assert list(path.parent.iterdir()) == [path]

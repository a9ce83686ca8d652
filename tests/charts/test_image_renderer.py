"""Pictures of plots, and the script that draws them in a browser."""

import subprocess
import sys
from pathlib import Path

import pytest

from evaluations.charts import image_renderer
from evaluations.charts.browser_bundle import BUNDLE_HEADER, build_browser_bundle
from evaluations.charts.image_renderer import PROJECT_ROOT, RenderFailed, render_image
from evaluations.charts.themes import PAPER_THEME
from tests.helpers.chart_samples import make_every_chart

SPEC = make_every_chart(PAPER_THEME)[0].spec or {}


def test_a_picture_is_drawn_in_a_process_of_its_own() -> None:
    asked = (
        "import sys; from tests.charts.test_image_renderer import SPEC; from "
        "evaluations.charts.image_renderer import render_image;"
        "assert render_image(SPEC, 'svg').startswith(b'<svg '); sys.exit('vl_convert' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", asked], cwd=PROJECT_ROOT, check=False).returncode == 0


def test_a_picture_for_print_has_two_pixels_to_one() -> None:
    picture = render_image(SPEC, "png")
    assert picture.startswith(b"\x89PNG\r\n")
    assert int.from_bytes(picture[16:20]) == 1440  # the width stands in the first chunk


def test_what_cannot_be_drawn_is_told() -> None:
    with pytest.raises(RenderFailed, match="conversion failed"):
        render_image({"data": {"values": []}, "mark": "no such mark"}, "svg")


def test_a_drawing_that_takes_too_long_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_renderer, "RENDER_TIMEOUT_SECONDS", 0.01)
    with pytest.raises(RenderFailed, match="took more than"):
        render_image(SPEC, "svg")


def test_the_script_is_made_once_and_again_for_another_version(tmp_path: Path) -> None:
    path = build_browser_bundle(tmp_path / "made" / "vega.js")
    text = path.read_text()
    assert text.startswith(BUNDLE_HEADER)
    assert text.rstrip().endswith("as vegaEmbed};")
    path.write_text(f"{BUNDLE_HEADER}kept")
    assert build_browser_bundle(path).read_text() == f"{BUNDLE_HEADER}kept"
    path.write_text("// vl-convert 0.0.1\nold")
    assert build_browser_bundle(path).read_text() == text
    assert list(path.parent.iterdir()) == [path]

"""The script that draws plots: made on this machine, served like any other static file."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.core.management import call_command
from pytest_django.fixtures import Settings


@pytest.fixture(autouse=True)
def data_dir(tmp_path: Path, settings: Settings) -> Iterator[Path]:
    settings.DATA_DIR = tmp_path
    settings.STATIC_ROOT = tmp_path / "static"
    forget_finders()
    yield tmp_path
    forget_finders()


def forget_finders() -> None:
    """Each is made once, and looks where the settings said then."""
    finders.get_finder.cache_clear()  # type: ignore[attr-defined]


def test_it_is_found_while_developing_and_nothing_else_is_made(data_dir: Path) -> None:
    assert finders.find("made/other.js") is None
    assert not (data_dir / "made").exists()
    assert finders.find("made/vega.js") == str(data_dir / "made" / "vega.js")
    assert "vegaEmbed" in (data_dir / "made" / "vega.js").read_text()


def test_it_is_collected_under_a_name_that_may_be_kept_for_ever(data_dir: Path, settings: Settings) -> None:
    settings.STORAGES = settings.STORAGES | {"staticfiles": {"BACKEND": "judgeweb.static_files.HashedFiles"}}
    call_command("collectstatic", interactive=False, verbosity=0)
    (hashed,) = (path for path in (data_dir / "static" / "made").glob("vega.*.js"))
    assert re.fullmatch(r"vega\.[0-9a-f]{12}\.js", hashed.name)
    assert Path(f"{hashed}.gz").stat().st_size < 320_000
    (plots,) = (path for path in (data_dir / "static" / "js").glob("plots.*.js"))
    assert f'import("../made/{hashed.name}")' in plots.read_text()

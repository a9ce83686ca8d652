"""Making the environment on machines that lack something, and after a start that was cut off."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.running_product import ROOT

pytestmark = pytest.mark.any_database

TOOLS = ("sh", "uname", "cat", "cmp", "rm", "mkdir", "touch")


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A PATH with the shell's own tools and no Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in TOOLS:
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return folder


def fake_python(folder: Path, name: str, version: str, *, new_enough: bool, has_venv: bool = True) -> None:
    """Answers the questions that the script asks of an interpreter, and makes no environment."""
    program = folder / name
    program.write_text(f"""#!/bin/sh
case "$*" in
*sys.exit*version_info*) exit {0 if new_enough else 1} ;;
*ensurepip*) exit {0 if has_venv else 1} ;;
*print*version_info*) echo {version} ;;
--version) echo "Python {version}" ;;
*) echo "{name} asked: $*" >&2; exit 9 ;;
esac
""")
    program.chmod(0o755)


def run(folder: Path, tools: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "requirements.txt").touch()
    command = [str(ROOT / "bin" / "venv"), "requirements.txt"]
    return subprocess.run(
        command, cwd=folder, env={"PATH": str(tools), **environment}, capture_output=True, text=True, timeout=120
    )


def test_a_python_that_is_too_old_is_named_with_what_to_install(tmp_path: Path, tools: Path) -> None:
    fake_python(tools, "python3", "3.9.2", new_enough=False)
    made = run(tmp_path, tools)
    assert made.returncode == 1
    assert made.stderr.startswith("judgeweb needs Python 3.11 or newer; found here: Python 3.9.2.\nInstall it: ")
    assert not (tmp_path / ".venv").exists()


def test_no_python_at_all_is_said(tmp_path: Path, tools: Path) -> None:
    assert "found here: none." in run(tmp_path, tools).stderr


def test_a_newer_python_under_another_name_is_found(tmp_path: Path, tools: Path) -> None:
    fake_python(tools, "python3", "3.9.2", new_enough=False)
    fake_python(tools, "python3.12", "3.12.1", new_enough=True)
    assert "python3.12 asked: -m venv .venv" in run(tmp_path, tools).stderr


def test_python_can_be_chosen(tmp_path: Path, tools: Path) -> None:
    fake_python(tools, "python3", "3.11.2", new_enough=True)
    fake_python(tools, "mine", "3.13.0", new_enough=True)
    assert "mine asked: -m venv .venv" in run(tmp_path, tools, PYTHON="mine").stderr


def test_a_missing_venv_module_is_named_with_its_package(tmp_path: Path, tools: Path) -> None:
    fake_python(tools, "python3", "3.11", new_enough=True, has_venv=False)
    made = run(tmp_path, tools)
    assert made.returncode == 1
    assert made.stderr.startswith("Python 3.11 is here, but its venv or ensurepip module is missing.\nInstall it: ")


def test_a_half_made_environment_is_made_again_and_a_whole_one_left_alone(tmp_path: Path, tools: Path) -> None:
    (tools / "python3").symlink_to(os.path.realpath(sys.executable))
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "unfinished").touch()
    (tmp_path / ".venv" / "half").touch()
    made = run(tmp_path, tools)
    assert made.returncode == 0, made.stderr
    assert "Making .venv with Python 3." in made.stderr
    assert not (tmp_path / ".venv" / "half").exists()
    again = run(tmp_path, tools)
    assert (again.returncode, again.stderr) == (0, "")
    (tmp_path / "requirements.txt").write_text("# changed\n")
    assert "Installing packages" in run(tmp_path, tools).stderr

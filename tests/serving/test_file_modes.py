"""What the product writes, no other account of the machine can read."""

import subprocess
import sys
from pathlib import Path

import pytest

from evaluations.management.commands.make_ready import close_files_to_others
from judgeweb.environment import close_to_others
from tests.helpers.running_product import ROOT, environment_for


def others_may(path: Path) -> int:
    return path.stat().st_mode & 0o077


@pytest.mark.parametrize(
    "start", ["import django; django.setup()", "import judgeweb.serving; judgeweb.serving.settings.DEBUG"]
)
def test_every_start_closes_the_data_folder_and_writes_for_its_owner_alone(tmp_path: Path, start: str) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    write = f"{start}; open('{folder}/new', 'w').close()"
    environment = {**environment_for(folder), "DJANGO_SETTINGS_MODULE": "judgeweb.settings"}
    subprocess.run([sys.executable, "-c", write], cwd=ROOT, env=environment, check=True)
    assert [path for path in (folder, *folder.rglob("*")) if others_may(path)] == []


def test_what_an_earlier_version_wrote_is_closed(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir(mode=0o755)
    file = tmp_path / "files" / "upload"
    file.touch(mode=0o644)
    file.chmod(0o644)
    close_files_to_others(tmp_path)
    assert (others_may(file), others_may(file.parent)) == (0, 0)


def test_a_folder_that_all_share_is_left_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    close_to_others(tmp_path)
    assert others_may(tmp_path) == 0o077

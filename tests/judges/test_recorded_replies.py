"""Texts and completions from outside: read, pasted, and served again over HTTP the whole way to the report."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from evaluations.domain.choices import Choice, ShownOrder
from evaluations.domain.rubrics import AspectSpec, RubricKind, RubricSpec
from evaluations.judge_prompts.builtin_rubrics import SIX_ASPECT
from evaluations.models.evaluations import Evaluation
from evaluations.models.verdicts import Verdict
from evaluations.replies.linear_patterns import find_matches
from evaluations.replies.reply_parser import ParsedReply, RawReply, parse_reply
from tests.factories.evaluations import make_comparison, make_evaluation
from tests.factories.judges import make_llm_judge, make_pasted_rubric, run_judge_here
from tests.helpers.llm_server import ServerAnswer, answer_recorded, llm_server

pytestmark = [pytest.mark.data, pytest.mark.any_database]

LABELS = {"A": "Output (a)", "B": "Output (b)"}
OVERALL = AspectSpec("overall", "Overall", "", offers_tie=False, labels=LABELS)
ORDERS = {"swap = False": ShownOrder.AS_STORED, "swap = True": ShownOrder.SWAPPED}
TEMPLATE = (
    "Which is better, Output (a) or Output (b)?\n\n{input}\n\n# (a)\n{output_1}\n\n# (b)\n{output_2}\n\nName one."
)
FIELDS = {"{input}": "query", "{output_1}": "response_a", "{output_2}": "response_b"}


def completions(folder: Path) -> Iterator[tuple[ShownOrder, str, str, str | None]]:
    """(order shown, text, finish reason, winner as published: "1", "2" or None) of every kept judge run."""
    for path in sorted(folder.glob("llmbar/Dataset/**/result.json")):
        for row in json.loads(path.read_text()):
            for asked in row["results"]:
                for order, said in asked.items():
                    yield ORDERS[order], *said["completion"], said["winner"]


def read_all(folder: Path, answer_format: str) -> Counter[str]:
    spec = RubricSpec(RubricKind.PAIRWISE, "", (OVERALL,), ("overall",), answer_format=answer_format)
    counts: Counter[str] = Counter()
    for shown, text, finish_reason, winner in completions(folder):
        told = parse_reply(spec, shown, RawReply(text, finish_reason))
        if isinstance(told, ParsedReply):
            said = {Choice.A: "1", Choice.B: "2"}[told.choices["overall"]]
            counts["right" if said == winner else "wrong"] += 1
        else:
            counts[told.state] += 1
    return counts


def test_no_completion_becomes_a_wrong_choice_where_the_form_of_the_verdict_is_declared(acceptance_data: Path) -> None:
    counts = read_all(acceptance_data, r"text:(Output \([ab]\)) is better")
    assert counts["wrong"] == 0
    assert counts["right"] > 4000
    assert counts["unreadable"] < counts["right"] / 500


def test_every_completion_gives_the_same_matches_as_by_pythons_own_engine(acceptance_data: Path) -> None:
    patterns = (
        r"Output \([ab]\)",
        r"\b(better|worse)\b",
        r"(Output \([ab]\))[\s.\"'*]*\Z",
        r"(?i)(\w+)\W*$",
        r"^(\S+)",
    )
    texts = {text for _, text, _, _ in completions(acceptance_data)}
    assert len(texts) > 2_000
    for pattern in patterns:
        for text in texts:
            found = [(one.text, one.label) for one in find_matches(pattern, text)]
            assert found == [(one[0], one[one.re.groups]) for one in re.finditer(pattern, text, re.MULTILINE)]


def test_without_a_declared_form_reasoning_is_left_unread_and_bare_labels_are_read(acceptance_data: Path) -> None:
    counts = read_all(acceptance_data, "text")
    assert counts["wrong"] == 0
    bare = sum(text in LABELS.values() for _, text, _, _ in completions(acceptance_data))
    assert counts["right"] >= bare > 1000


def served(results: list[dict[str, Any]]) -> dict[str, ServerAnswer]:
    """Prompt → what was once said to it, in both orders."""
    replies = {}
    for row in results:
        outputs = (row["output_1"], row["output_2"])
        for order, (first, second) in (("swap = False", outputs), ("swap = True", outputs[::-1])):
            text, finish_reason = row["results"][0][order]["completion"]
            prompt = TEMPLATE.replace("{input}", row["input"], 1)
            prompt = prompt.replace("{output_1}", first, 1).replace("{output_2}", second, 1)
            replies[prompt] = ServerAnswer(text, finish_reason=finish_reason)
    return replies


@pytest.mark.django_db(transaction=True)
def test_gpt_4_on_llmbar_natural_comes_out_as_published_over_http(
    acceptance_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    natural = acceptance_data / "llmbar" / "Dataset" / "LLMBar" / "Natural"
    results = json.loads((natural / "evaluators" / "GPT-4" / "Vanilla_NoRules" / "result.json").read_text())
    make_pasted_rubric(make_evaluation(slug="study"), TEMPLATE, FIELDS, OVERALL, answer_format="text")
    call_command("import_comparisons", "study", str(natural / "dataset.json"), id_prefix="natural-")
    with llm_server(answer_recorded(served(results))) as server:
        call_command("create_judge", "study", name="gpt-4", model="gpt-4", base_url=server.base_url, rubric="pasted")
        call_command("run_judge", "study", judge="gpt-4", wait=True)
    assert list(server.asked.values()) == [1] * 200
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["answered"] == 200
    call_command("report", "study", json=True)
    judge = json.loads(capsys.readouterr().out)["aspects"]["overall"]["judges"]["gpt-4"]
    each_order, gold = judge["each_order"], judge["judge_gold"]
    assert each_order["accuracy"]["value"] == pytest.approx(0.935)
    assert (each_order["orders_agree"]["agree"], each_order["orders_agree"]["n"]) == (97, 100)
    assert gold["with_ties"]["agreement"]["value"] == pytest.approx(0.92)
    assert gold["without_ties"]["agreement"]["value"] == pytest.approx(0.948, abs=0.0005)
    assert Evaluation.objects.get(slug="study").shown_judge is not None


@pytest.mark.django_db(transaction=True)
def test_the_original_six_aspect_text_works_the_whole_way_when_it_is_pasted(acceptance_data: Path) -> None:
    (path,) = (acceptance_data.parent / "seeds").glob("003_*.txt")
    text = path.read_text()
    filled = text[text.rindex('{\n   "rationale"') :].replace("[A or B or tie]", "A")
    evaluation = make_evaluation()
    comparison = make_comparison(evaluation, query="Name a river.", response_a="The Rhine.", response_b="The Alps.")
    fields = {"{$instruction}": "query", "{$candidate_A}": "response_a", "{$candidate_B}": "response_b"}
    version = make_pasted_rubric(evaluation, text, fields, *SIX_ASPECT.aspects)
    with llm_server(lambda question: ServerAnswer(f"Both are short.\n{filled}")) as server:
        run = run_judge_here(make_llm_judge(evaluation, server.base_url, version=version))
    assert run.state == "done"
    first = text.replace("{$candidate_A}", "The Rhine.").replace("{$candidate_B}", "The Alps.")
    second = text.replace("{$candidate_A}", "The Alps.").replace("{$candidate_B}", "The Rhine.")
    assert set(server.asked) == {one.replace("{$instruction}", "Name a river.") for one in (first, second)}
    verdicts = Verdict.objects.filter(comparison=comparison).values_list("aspect__key", "shown", "choice")
    keys = [aspect.key for aspect in SIX_ASPECT.aspects]
    assert set(verdicts) == {(key, "as_stored", "A") for key in keys} | {(key, "swapped", "B") for key in keys}

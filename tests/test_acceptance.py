"""Published figures of real data sets, through import and report as a person types them."""

import json
import os
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from django.core.management import call_command

from evaluations.models.comparisons import Comparison, Response
from evaluations.models.verdicts import Verdict
from tests.factories.evaluations import make_evaluation

pytestmark = [pytest.mark.django_db, pytest.mark.data]

VANILLA = "Vanilla_NoRules"


def reported(capsys: pytest.CaptureFixture[str], slug: str, *options: str) -> Any:
    capsys.readouterr()
    call_command("report", slug, "--json", *options)
    return json.loads(capsys.readouterr().out)["aspects"]["overall"]


# ---- PandaLM: 999 pairs, three people, gpt-3.5-turbo ------------------------------------------


@pytest.fixture(scope="module")
def pandalm(acceptance_data: Path, rows_for_module: None) -> str:
    folder = acceptance_data / "pandalm"
    make_evaluation(slug="pandalm")
    call_command("import_comparisons", "pandalm", str(folder / "testset-v1.json"))
    verdicts = str(folder / "gpt-3.5-turbo-testset-v1.json")
    call_command("import_verdicts", "pandalm", verdicts, rater="gpt-3.5-turbo", rater_kind="judge")
    return "pandalm"


def test_pandalm_people_agree_as_published(pandalm: str, capsys: pytest.CaptureFixture[str]) -> None:
    people = reported(capsys, pandalm)["human_human"]
    kappas = {(pair["rater_1"][-1], pair["rater_2"][-1]): pair["with_ties"]["cohen_kappa"] for pair in people["pairs"]}
    assert {two: round(kappa["value"], 4) for two, kappa in kappas.items()} == {
        ("1", "2"): 0.8520,
        ("1", "3"): 0.8789,
        ("2", "3"): 0.8617,
    }
    assert round(people["multi"]["krippendorff_alpha"]["value"], 4) == 0.8642
    assert round(people["multi"]["gwet_ac1"]["value"], 4) == 0.8864
    assert people["multi"]["units"] == 999
    # The first response of the file belongs to the candidate whose name sorts first, in every row.
    assert people["majority_choices"]["choices"] == {"tie": 105, "A": 422, "B": 472, "both_bad": 0}


def test_pandalm_judge_agrees_as_published(pandalm: str, capsys: pytest.CaptureFixture[str]) -> None:
    judge = reported(capsys, pandalm, "--failed", "tie")["judges"]["gpt-3.5-turbo"]
    with_ties = judge["judge_human"]["majority"]["with_ties"]
    assert with_ties["n"] == 999
    assert round(with_ties["agreement"]["value"], 4) == 0.7107
    assert round(with_ties["cohen_kappa"]["value"], 4) == 0.4958


def test_pandalm_macro_averages_of_the_judge_are_as_published(pandalm: str, capsys: pytest.CaptureFixture[str]) -> None:
    macro = reported(capsys, pandalm, "--failed", "tie")["judges"]["gpt-3.5-turbo"]["confusion"]["macro"]
    found = {name: round(number["value"], 4) for name, number in macro.items()}
    assert found == {"precision": 0.5879, "recall": 0.5736, "f1": 0.5755}


def test_pandalm_failures_are_left_out_and_shown_by_default(pandalm: str, capsys: pytest.CaptureFixture[str]) -> None:
    judge = reported(capsys, pandalm)["judges"]["gpt-3.5-turbo"]
    with_ties = judge["judge_human"]["majority"]["with_ties"]
    assert (with_ties["n"], judge["failed"]["unreadable"], judge["failed"]["incomplete"]) == (974, 25, 25)
    assert round(with_ties["agreement"]["value"], 4) == 0.7156
    # 169 instructions, not 974 pairs, are what could have been others.
    assert with_ties["cohen_kappa"]["ci95"] == pytest.approx([0.428, 0.558], abs=0.003)
    assert with_ties["cohen_kappa"]["ci95_rule"] == "bootstrap, 2,000 resamples of 169 clusters"


def test_pandalm_traps_are_all_kept(pandalm: str) -> None:
    comparisons = Comparison.objects.filter(evaluation__slug=pandalm)
    responses = Response.objects.filter(query__evaluation__slug=pandalm)
    assert comparisons.count() == 999
    assert Verdict.objects.filter(comparison__in=comparisons, rater__kind="human").count() == 999 * 3
    booleans = [row for row in responses.filter(characters__in=(4, 5)) if row.text in ("true", "false")]
    assert len(booleans) == 6
    empty = responses.filter(characters=0).values("query")
    assert comparisons.filter(query__in=empty).count() == 54


# ---- LLMBar: gold labels, judges in both orders -----------------------------------------------


def llmbar(folder: Path, part: str, *judges: str) -> str:
    make_evaluation(slug="llmbar")
    part_of = folder / "llmbar" / "Dataset" / "LLMBar" / part
    call_command("import_comparisons", "llmbar", str(part_of / "dataset.json"), id_prefix="part-")
    for judge in judges:
        result = part_of / "evaluators" / judge / VANILLA / "result.json"
        call_command("import_verdicts", "llmbar", str(result), rater=judge, rater_kind="judge", id_prefix="part-")
    return "llmbar"


def percent(number: dict[str, Any], places: int) -> float:
    return float(round(number["value"] * 100, places))


def test_llmbar_natural_comes_out_as_published(acceptance_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judge = reported(capsys, llmbar(acceptance_data, "Natural", "GPT-4"))["judges"]["GPT-4"]
    assert percent(judge["each_order"]["accuracy"], 1) == 93.5
    assert (judge["each_order"]["orders_agree"]["agree"], judge["each_order"]["orders_agree"]["n"]) == (97, 100)
    gold = judge["judge_gold"]
    assert percent(gold["with_ties"]["agreement"], 1) == 92.0
    assert percent(gold["without_ties"]["agreement"], 1) == 94.8
    assert (gold["with_ties"]["n"], gold["without_ties"]["n"]) == (100, 97)


@pytest.mark.parametrize(("name", "accuracy", "agree"), [("GPT-4", 76.63, 83), ("ChatGPT", 29.35, 48)])
def test_llmbar_gptinst_comes_out_as_published(
    acceptance_data: Path, capsys: pytest.CaptureFixture[str], name: str, accuracy: float, agree: int
) -> None:
    judge = reported(capsys, llmbar(acceptance_data, "Adversarial/GPTInst", name))["judges"][name]
    assert percent(judge["each_order"]["accuracy"], 2) == accuracy
    assert (judge["each_order"]["orders_agree"]["agree"], judge["each_order"]["orders_agree"]["n"]) == (agree, 92)


def evaluators() -> list[tuple[str, str, str]]:
    """Every subset, model and prompt whose replies and published statistics are among the data."""
    folder = Path(os.environ.get("JUDGEWEB_ACCEPTANCE_DATA", "")) / "llmbar" / "Dataset" / "LLMBar"
    found = sorted(folder.glob("**/evaluators/*/*/statistics.json"))
    return [(str(one.parents[3].relative_to(folder)), one.parts[-3], one.parts[-2]) for one in found]


@pytest.mark.parametrize(("part", "model", "prompt"), evaluators())
def test_every_llmbar_evaluator_comes_out_as_published_with_failures_as_ties(
    acceptance_data: Path, capsys: pytest.CaptureFixture[str], part: str, model: str, prompt: str
) -> None:
    slug = llmbar(acceptance_data, part)
    folder = acceptance_data / "llmbar" / "Dataset" / "LLMBar" / part / "evaluators" / model / prompt
    result = str(folder / "result.json")
    call_command("import_verdicts", slug, result, rater="judge", rater_kind="judge", id_prefix="part-")
    published = json.loads((folder / "statistics.json").read_text())
    each = reported(capsys, slug, "--failed", "tie")["judges"]["judge"]["each_order"]
    assert percent(each["accuracy"], 4) == round(float(published["correct_average"].rstrip("%")), 4)
    agree, n = (int(number) for number in published["equal"].split("=")[0].split("/"))
    assert (each["orders_agree"]["agree"], each["orders_agree"]["n"]) == (agree, n)
    shares = {"as_stored": "correct_False", "swapped": "correct_True"}
    for shown, key in shares.items():
        right, _ = published[key].split("=")[0].split("/")
        assert round(each["by_order"][shown]["value"] * n) == int(right)


def test_gold_is_never_counted_among_people(acceptance_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    people = reported(capsys, llmbar(acceptance_data, "Natural", "GPT-4"))["human_human"]
    assert people["multi"]["units"] == people["votes"]["with_ties"]["n"] == 0


# ---- SQuALITY: three reviewers rank three responses to each of 100 questions -------------------


def alphas(capsys: pytest.CaptureFixture[str], slug: str) -> dict[str, float]:
    capsys.readouterr()
    call_command("report", slug, "--json")
    aspects = json.loads(capsys.readouterr().out)["aspects"]
    multi = {key: one["human_human"]["multi"] for key, one in aspects.items()}
    assert {one["units"] for one in multi.values()} == {300}
    return {key: round(one["krippendorff_alpha"]["value"], 4) for key, one in multi.items()}


RANKED = {"correctness": 0.2730, "selection": 0.4003, "overall": 0.4390}


def test_squality_reviewers_agree_on_ranks_as_published(
    acceptance_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_evaluation(slug="squality")
    file = acceptance_data / "squality_human_eval" / "all-responses.jsonl"
    call_command("import_scores", "squality", str(file), derive_pairs=0.0)
    assert Comparison.objects.filter(evaluation__slug="squality").count() == 300
    assert {key: alpha for key, alpha in alphas(capsys, "squality").items() if key in RANKED} == RANKED


def test_squality_candidates_have_the_mean_rank_of_the_file(
    acceptance_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_evaluation(slug="squality")
    file = acceptance_data / "squality_human_eval" / "all-responses.jsonl"
    call_command("import_scores", "squality", str(file), derive_pairs=0.0)
    ranks: dict[str, list[float]] = {}
    for story in map(json.loads, file.read_text().splitlines()):
        for question in story["questions"].values():
            for name, told in question.items():
                ranks.setdefault(name, []).extend(float(review["overall-rank"]) for review in told["reviews"])
    capsys.readouterr()
    call_command("report", "squality", "--json")
    candidates = json.loads(capsys.readouterr().out)["scores"]["overall"]["candidates"]
    means = {name: round(one["people"]["value"], 6) for name, one in candidates.items()}
    assert means == {name: round(fmean(values), 6) for name, values in ranks.items()}
    assert all(one["people"]["ci95"] for one in candidates.values())


def test_squality_ranks_as_rows_of_ones_own_come_out_the_same(
    acceptance_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_evaluation(slug="squality")
    responses, scores = tmp_path / "responses.jsonl", tmp_path / "scores.csv"
    stories = (acceptance_data / "squality_human_eval" / "all-responses.jsonl").read_text().splitlines()
    with responses.open("w") as first, scores.open("w") as second:
        second.write("query_id,candidate,rater,rater_kind,aspect,value\n")
        for story in map(json.loads, stories):
            for number, question in story["questions"].items():
                key = f"{story['passage-id']}-{number}"
                for name, told in question.items():
                    row = {"query_id": key, "query": key, "candidate": name, "response": told["response"]}
                    first.write(json.dumps(row) + "\n")
                    for review in told["reviews"]:
                        for aspect in RANKED:
                            rank = review[f"{aspect}-rank"]
                            second.write(f"{key},{name},{review['worker_id']},human,{aspect},{rank}\n")
    call_command("import_comparisons", "squality", str(responses), pair="baseline:human")
    call_command("import_scores", "squality", str(scores), lower_is_better=True, derive_pairs=0.0)
    assert alphas(capsys, "squality") == RANKED


# ---- just-eval: six items, five aspects, one run that failed ------------------------------------


def test_just_eval_judges_come_in_with_what_they_judged(
    acceptance_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three responses to each of six items: one judge on two pairs of them, another that failed on one pair."""
    outputs = acceptance_data / "just_eval" / "eval_outputs"
    make_evaluation(slug="just-eval")
    for name in ("0-2.pairwise_multi.gpt-4", "1-2.pairwise_multi.gpt-4", "pairwise_multi.gpt-3.5-turbo"):
        call_command("import_verdicts", "just-eval", str(outputs / f"{name}.json"))
    call_command("import_comparisons", "just-eval", str(acceptance_data / "just_eval" / "example_generation_0.json"))
    call_command("import_scores", "just-eval", str(outputs / "1.score_multi.gpt-4.json"), rater="gpt-4 alone")
    mine = {"query__evaluation__slug": "just-eval"}
    comparisons = Comparison.objects.filter(**mine)
    assert (comparisons.count(), Response.objects.filter(**mine).count()) == (18, 18)
    assert Verdict.objects.filter(comparison__in=comparisons).count() == 60
    capsys.readouterr()
    call_command("report", "just-eval", "--json")
    aspects = json.loads(capsys.readouterr().out)["aspects"]
    assert set(aspects) == {"helpfulness", "clarity", "factuality", "depth", "engagement"}
    for aspect in aspects.values():
        assert aspect["judges"]["gpt-3.5-turbo"]["failed"]["unreadable"] == 6

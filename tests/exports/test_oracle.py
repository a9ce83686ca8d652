"""Every format against a reckoning of its own: what people, a judge and an adjudicator said, as plain Python has it.

Nothing here asks the product what it thinks. A study is dealt out at random, as names of who won; it comes in as files
do, half of its rows with the sides exchanged; what each export must hold is reckoned from the names.
"""

import io
import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from evaluations.backups.selectors import build_backup
from evaluations.backups.services import restore_backup
from evaluations.disagreements.services import resolve_aspect
from evaluations.domain.roles import Role
from evaluations.domain.splits import Split
from evaluations.exports.options import ExportRequest
from evaluations.exports.services import start_export
from evaluations.exports.writer import stream_export
from evaluations.imports.lifecycle import continue_import
from evaluations.imports.services import start_storing
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.exports import Export
from tests.factories.evaluations import make_evaluation, make_member
from tests.factories.imports import comparison_row, import_rows, preview_rows, score_row, verdict_row
from tests.factories.verdicts import get_or_make_aspect
from tests.helpers.job_work import work_all
from tests.helpers.shared_rows import rows_taken_back

pytestmark = pytest.mark.django_db

ALPHA, BETA, TIE, BAD = "alpha", "beta", "tie", "both_bad"
PEOPLE = ("ann", "bob", "eve")
ASPECTS = ("style", "form")
SCORED = "rank"
MARGIN = 0.5
JUDGE = "gpt"
GRADER = "reward"
SIZE = 48
FAILED = "unreadable"


@dataclass
class Case:
    """One comparison. ``votes`` and ``judged`` hold names of winners, or tie, or both_bad."""

    key: str
    cluster: str
    query: str
    texts: dict[str, str]
    votes: dict[tuple[str, str], str] = field(default_factory=dict)  # by person and aspect
    judged: dict[str, dict[str, str] | None] = field(default_factory=dict)  # by order; None: it failed
    scores: dict[str, tuple[float, float]] = field(default_factory=dict)  # by person: of alpha, of beta
    graded: dict[str, float | str] = field(default_factory=dict)  # by candidate: a judge's score, or that it failed
    settled: str = ""  # on style


def dealt(seed: int) -> list[Case]:
    rng = random.Random(seed)
    cases = []
    for number in range(SIZE):
        same = rng.random() < 0.1
        texts = {ALPHA: f"One {number}", BETA: f"One {number}" if same else f"Two {number}"}
        # Clusters of several queries, and queries word for word the same in two clusters.
        case = Case(f"q{number}", f"c{number // 2}", f"Why {number if number % 6 else 0}?", texts)
        words = [ALPHA, BETA, TIE, BAD]
        for person in PEOPLE:
            for aspect in ASPECTS:
                if rng.random() < 0.55:
                    case.votes[person, aspect] = rng.choice(words)
            if rng.random() < 0.4:
                case.scores[person] = (rng.randint(1, 3), rng.randint(1, 3) + rng.choice([0, 0.5]))
        if rng.random() < 0.8:
            for order in ("as_stored", "swapped"):
                failed = rng.random() < 0.15
                case.judged[order] = None if failed else {aspect: rng.choice(words) for aspect in ASPECTS}
        if rng.random() < 0.5:
            grades: list[float | str] = [1.0, 2.0, 3.0, FAILED, "refused"]
            case.graded = {name: rng.choice(grades) for name in (ALPHA, BETA)}
        cases.append(case)
    return cases


# ---- the study into the product ----------------------------------------------------------------


def sides(rng: random.Random) -> tuple[str, str]:
    return (ALPHA, BETA) if rng.random() < 0.5 else (BETA, ALPHA)


def as_row(case: Case, winner: str, rng: random.Random, **columns: Any) -> dict[str, Any]:
    a, b = sides(rng)
    choice = {a: "A", b: "B"}.get(winner, winner)
    shown = columns.pop("shown", None)
    first = {"as_stored": ALPHA, "swapped": BETA}.get(shown)
    told = {} if first is None else {"shown_swapped": first == b}
    return verdict_row(case.key, candidate_a=a, candidate_b=b, choice=choice, **told, **columns)


def stored(evaluation: Evaluation, rows: Sequence[dict[str, Any]], **options: Any) -> None:
    importing = import_rows(evaluation, *rows, **options)
    assert (importing.state, importing.rows_stored + importing.rows_unchanged) == ("done", len(rows))
    work_all("count_labels")


def made(cases: Sequence[Case], seed: int, slug: str = "study") -> Evaluation:
    evaluation, rng = make_evaluation(slug=slug), random.Random(seed)
    rows, said, scored = [], [], []
    for case in cases:
        a, b = sides(rng)
        rows.append(
            comparison_row(
                case.key,
                query=case.query,
                cluster=case.cluster,
                candidate_a=a,
                candidate_b=b,
                response_a=case.texts[a],
                response_b=case.texts[b],
            )
        )
        said += [as_row(case, won, rng, rater=person, aspect=aspect) for (person, aspect), won in case.votes.items()]
        for order, choices in case.judged.items():
            whom = {"rater": JUDGE, "rater_kind": "judge", "shown": order}
            given = choices or dict.fromkeys(ASPECTS, FAILED)
            said += [as_row(case, won, rng, aspect=aspect, **whom) for aspect, won in given.items()]
        for person, pair in case.scores.items():
            for name, value in zip((ALPHA, BETA), pair, strict=True):
                scored.append(score_row(case.key, name, value, rater=person, aspect=SCORED))
        for name, grade in case.graded.items():
            scored.append(score_row(case.key, name, grade, rater=GRADER, rater_kind="judge", aspect=SCORED))
    for some in (rows, said):
        stored(evaluation, some)
    if scored:
        stored(evaluation, scored, derive_pairs=MARGIN)
    ada = make_member(evaluation, Role.ADJUDICATOR, f"ada-{slug}")
    for case in [one for one in cases if label(one, "style") == (None, "split", votes(one, "style"))][:4]:
        one = Comparison.objects.get(evaluation=evaluation, query__key=case.key)
        resolve_aspect(one, get_or_make_aspect(evaluation, "style"), choice="B", reason="So.", version=0, user=ada)
        case.settled = BETA
    return evaluation


@pytest.fixture(scope="module", params=[1, 2, 3])
def study(request: pytest.FixtureRequest, rows_for_module: None) -> "Iterator[Study]":
    cases = dealt(request.param)
    with rows_taken_back():
        yield cases, made(cases, request.param)


# ---- the reckoning -----------------------------------------------------------------------------


def votes(case: Case, aspect: str) -> Counter[str]:
    if aspect == SCORED:
        return Counter(preferred(one, other) for one, other in case.scores.values())
    return Counter(won for (_, about), won in case.votes.items() if about == aspect)


def preferred(one: float, other: float) -> str:
    return TIE if abs(one - other) <= MARGIN else ALPHA if one > other else BETA


def judged(case: Case, aspect: str) -> str | None:
    """A judge's one verdict: missing where an order has no answer, a tie where the flips with order."""
    if aspect == SCORED:
        one, other = case.graded.get(ALPHA), case.graded.get(BETA)
        return preferred(one, other) if isinstance(one, float) and isinstance(other, float) else None
    if not case.judged or None in case.judged.values():
        return None
    told = {choices[aspect] for choices in case.judged.values() if choices}
    return told.pop() if len(told) == 1 else TIE


Label = tuple[str | None, str, Counter[str]]


def label(case: Case, aspect: str) -> Label | None:
    """The choice, where it comes from, and the votes behind it."""
    given = votes(case, aspect)
    if aspect == "style" and case.settled:
        return case.settled, "adjudicated", given
    if given:
        (first, most), *others = given.most_common()
        if others and others[0][1] == most:
            return None, "split", given
        return first, "single" if given.total() == 1 else "majority", given
    spoken = judged(case, aspect)
    return (spoken, "judge", Counter([spoken])) if spoken else None


def by_rule(case: Case, rule: str) -> tuple[str, list[Label]] | str:
    """The one choice and the labels that made it, or why there is none."""
    name, _, rest = rule.partition(":")
    keys = [part.partition("=")[0] for part in rest.split(",")] if rest else [*ASPECTS, SCORED]
    weights = [float(part.partition("=")[2] or 1) for part in rest.split(",")] if rest else [1.0] * 3
    found = [label(case, key) for key in keys]
    if name == "majority_of_aspects":
        known = [one for one in found if one and one[0]]
        if not known:
            return "split" if any(found) else "no_label"
        return leading(known, [1.0] * len(known)), known
    if name == "lexicographic":
        heard: list[Label] = []
        for one in found:
            if one is None or one[0] is None:
                return "split" if one else "no_label"
            heard.append(one)
            if one[0] in (ALPHA, BETA):
                return one[0], heard
        return leading(heard, [1.0] * len(heard)), heard
    whole: list[Label] = []
    for one in found:
        if one is None or one[0] is None:
            return "split" if one else "no_label"
        whole.append(one)
    if name == "unanimous" and {ALPHA, BETA} <= {one[0] for one in whole}:
        return "aspects_disagree"
    return leading(whole, weights), whole


def leading(labels: Sequence[Label], weights: Sequence[float]) -> str:
    for_one = {name: sum(w for one, w in zip(labels, weights, strict=True) if one[0] == name) for name in (ALPHA, BETA)}
    if for_one[ALPHA] != for_one[BETA]:
        return max(for_one, key=for_one.__getitem__)
    return BAD if {one[0] for one in labels} == {BAD} else TIE


def told(choice: str, labels: Sequence[Label]) -> dict[str, Any]:
    number = sum(given.total() for _, _, given in labels)
    return {
        "label_source": "+".join(sorted({source for _, source, _ in labels})),
        "votes": number,
        "agreement": round(sum(given[choice] for *_, given in labels) / number, 6) if number else None,
    }


def expected_dpo(cases: Sequence[Case], rule: str, name: str) -> tuple[list[dict[str, Any]], Counter[str]]:
    rows, excluded = [], Counter[str]()
    for case in cases:
        found = by_rule(case, rule)
        if isinstance(found, str):
            excluded[found] += 1
        elif found[0] in (TIE, BAD):
            excluded[found[0]] += 1
        elif case.texts[ALPHA] == case.texts[BETA]:
            excluded["equal_responses"] += 1
        else:
            won, lost = found[0], BETA if found[0] == ALPHA else ALPHA
            rows.append(
                {
                    "query_id": case.key,
                    "cluster": case.cluster,
                    "prompt": case.query,
                    "chosen": case.texts[won],
                    "rejected": case.texts[lost],
                    "chosen_model": won,
                    "rejected_model": lost,
                    "label_by": name,
                    **told(*found),
                }
            )
    return rows, excluded


# ---- what was written --------------------------------------------------------------------------


def exported(evaluation: Evaluation, written_as: str, **wanted: Any) -> tuple[Export, bytes]:
    export = start_export(evaluation, written_as=written_as, user=None, request=ExportRequest(**wanted))
    written = b"".join(stream_export(export, Comparison.objects.filter(evaluation=evaluation)))
    export.refresh_from_db()
    return export, written


def lines(written: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in written.splitlines()]


def only(rows: Sequence[dict[str, Any]], like: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The columns of which something is reckoned."""
    return [{column: row[column] for column in like[0]} for row in rows] if like else list(rows)


Study = tuple[list[Case], Evaluation]
PLAIN = {"layout": "plain"}


@pytest.mark.parametrize("aspect", [*ASPECTS, SCORED])
def test_preferences_of_one_aspect(study: Study, aspect: str) -> None:
    cases, evaluation = study
    rows, excluded = expected_dpo(cases, f"lexicographic:{aspect}", aspect)
    export, written = exported(evaluation, "dpo", aspect=aspect, settings=PLAIN)
    assert only(lines(written), rows) == rows
    assert (export.rows, export.counts["excluded"]) == (len(rows), dict(excluded))
    sources = Counter(one[1] for case in cases if (one := label(case, aspect)))
    assert export.counts["labels"] == dict(sources)


@pytest.mark.parametrize(
    "rule",
    [
        "majority_of_aspects",
        "unanimous:style,form",
        "weighted:style=2,form=1,rank=1",
        "lexicographic:form,style",
    ],
)
def test_preferences_derived_by_a_rule(study: Study, rule: str) -> None:
    cases, evaluation = study
    rows, excluded = expected_dpo(cases, rule, f"derived:{rule}")
    export, written = exported(evaluation, "dpo", combine=rule, settings=PLAIN)
    assert only(lines(written), rows) == rows
    assert export.counts["excluded"] == dict(excluded)
    assert len(rows) > 3


@pytest.mark.parametrize("ties", ["drop", "good"])
def test_good_and_bad_responses(study: Study, ties: str) -> None:
    cases, evaluation = study
    rows = []
    for case in cases:
        found = by_rule(case, "lexicographic:style")
        if isinstance(found, str) or (found[0] == TIE and ties == "drop"):
            continue
        if found[0] in (ALPHA, BETA) and case.texts[ALPHA] == case.texts[BETA]:
            continue
        for name in (ALPHA, BETA):
            good = found[0] in (name, TIE)
            rows.append({"query_id": case.key, "model": name, "completion": case.texts[name], "label": good})
    _, written = exported(evaluation, "kto", aspect="style", settings={**PLAIN, "ties": ties})
    assert only(lines(written), rows) == rows


def test_annotations_of_alpaca_eval(study: Study) -> None:
    cases, evaluation = study
    number = {ALPHA: 1.0, BETA: 2.0, TIE: 1.5, BAD: 1.5}
    rows = []
    for case in cases:
        texts = {"generator_1": ALPHA, "output_1": case.texts[ALPHA], "generator_2": BETA, "output_2": case.texts[BETA]}
        said: list[tuple[str, float | None]] = []
        if case.judged:
            spoken = judged(case, "style")
            said.append((JUDGE, number[spoken] if spoken else None))
        said += [(who, number[case.votes[who, "style"]]) for who in PEOPLE if (who, "style") in case.votes]
        rows += [{"query_id": case.key, **texts, "annotator": who, "preference": given} for who, given in said]
    _, written = exported(evaluation, "alpaca-eval", aspect="style")
    # What the other judge failed to score is no answer on style; nor is it said of which aspect it was.
    assert only([row for row in json.loads(written) if row["annotator"] != GRADER], rows) == rows


def test_judgments_and_votes_of_mt_bench(study: Study) -> None:
    cases, evaluation = study
    winner = {ALPHA: "model_1", BETA: "model_2", TIE: "tie", BAD: "tie", None: "error"}
    rows = []
    for case in cases:
        given = [choices["style"] if choices else None for choices in case.judged.values()]
        if any(given):
            games = {f"g{game}_winner": winner[won] for game, won in enumerate(given, 1)}
            rows.append({"question_id": case.key, "model_1": ALPHA, "model_2": BETA, **games})
    _, written = exported(evaluation, "mt-bench", aspect="style")
    assert only(lines(written), rows) == rows
    names = {ALPHA: "model_a", BETA: "model_b", TIE: "tie", BAD: "tie (bothbad)"}
    people = [
        {"question_id": case.key, "model_a": ALPHA, "judge": who, "winner": names[case.votes[who, "form"]]}
        for case in cases
        for who in PEOPLE
        if (who, "form") in case.votes
    ]
    _, written = exported(evaluation, "mt-bench-human", aspect="form")
    assert only(lines(written), people) == people


def test_the_document_of_llm_comparator(study: Study) -> None:
    cases, evaluation = study
    number = {ALPHA: 1.0, BETA: -1.0, TIE: 0.0, BAD: 0.0}
    _, written = exported(evaluation, "llm-comparator", aspect="style")
    document = json.loads(written)
    assert document["models"] == [{"name": ALPHA}, {"name": BETA}]
    assert len(document["examples"]) == len(cases)
    for case, example in zip(cases, document["examples"], strict=True):
        found = label(case, "style")
        assert example["score"] == (number[found[0]] if found and found[0] else None)
        assert (example["output_text_a"], example["output_text_b"]) == (case.texts[ALPHA], case.texts[BETA])
        ratings: list[tuple[str, float, bool | None]] = [
            (JUDGE, number[choices["style"]], order == "swapped") for order, choices in case.judged.items() if choices
        ]
        ratings += [(who, number[case.votes[who, "style"]], None) for who in PEOPLE if (who, "style") in case.votes]
        given = example["individual_rater_scores"]
        assert [(one["custom_fields"]["rater"], one["score"], one["is_flipped"]) for one in given] == ratings


def in_long_form(cases: Sequence[Case]) -> Counter[tuple[Any, ...]]:
    """Query, rater, aspect, who won, and who was shown second; a failure once for all aspects."""
    rows: Counter[tuple[Any, ...]] = Counter()
    for case in cases:
        for (who, aspect), won in case.votes.items():
            rows[case.key, who, aspect, won, None] += 1
        for order, choices in case.judged.items():
            swapped = order == "swapped"
            for aspect, won in (choices or {"": FAILED}).items():
                rows[case.key, JUDGE, aspect, won, swapped] += 1
    return rows


def as_named(row: dict[str, Any]) -> tuple[Any, ...]:
    won = {"A": row["candidate_a"], "B": row["candidate_b"]}.get(row["choice"], row["choice"])
    aspect = "" if won == FAILED else row["aspect"]
    return row["query_id"], row["rater"], aspect, won, row["shown_swapped"]


def as_graded(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["query_id"], row["candidate"], row["rater"], row["value"] if row["failure"] is None else row["failure"]


@pytest.mark.parametrize("written_as", ["scores", "scores-csv"])
def test_scores_with_failures_are_read_as_they_were_written(study: Study, written_as: str) -> None:
    cases, evaluation = study
    written = exported(evaluation, "scores")[1]
    again = made([replace(case, scores={}, graded={}) for case in cases], 0, slug="again")
    checked = preview_rows(
        again, exported(evaluation, written_as)[1], name=f"scores.{written_as[-3:]}", derive_pairs=MARGIN
    )
    start_storing(checked, skip_bad=False, user=None)
    continue_import(checked)
    columns = ("query_id", "candidate", "rater", "aspect", "value", "failure", "sample", "margin", "rationale")
    assert Counter(tuple(row[column] for column in columns) for row in lines(exported(again, "scores")[1])) == Counter(
        tuple(row[column] for column in columns) for row in lines(written)
    )


def test_verdicts_and_scores_in_long_form(study: Study) -> None:
    cases, evaluation = study
    written = lines(exported(evaluation, "verdicts")[1])
    assert Counter(map(as_named, written)) == in_long_form(cases)
    scores: Counter[tuple[Any, ...]] = Counter(
        (case.key, name, who, value)
        for case in cases
        for who, pair in case.scores.items()
        for name, value in zip((ALPHA, BETA), pair, strict=True)
    )
    scores.update((case.key, name, GRADER, grade) for case in cases for name, grade in case.graded.items())
    rows = lines(exported(evaluation, "scores")[1])
    assert Counter(map(as_graded, rows)) == scores
    assert {(row["aspect"], row["margin"], row["lower_is_better"]) for row in rows} == {(SCORED, MARGIN, False)}


def test_under_other_names_people_say_the_same(study: Study) -> None:
    cases, evaluation = study
    _, written = exported(evaluation, "verdicts", anonymised=True)
    assert not [name for name in PEOPLE if name.encode() in written]
    rows = lines(written)
    by_alias: dict[str, Counter[tuple[Any, ...]]] = defaultdict(Counter)
    for row in rows:
        by_alias[row["rater"]][as_named({**row, "rater": ""})] += 1
    expected: dict[str, Counter[tuple[Any, ...]]] = defaultdict(Counter)
    for (key, who, *rest), number in in_long_form(cases).items():
        expected[who][(key, "", *rest)] += number
    assert by_alias.pop(JUDGE) == expected.pop(JUDGE)
    # Whoever it is under the other name, it is one of them, and each of them once.
    of_alias = {alias: next(who for who in PEOPLE if expected[who] == said) for alias, said in by_alias.items()}
    assert sorted(of_alias.values()) == sorted(PEOPLE)
    assert all(alias.startswith("reviewer-") for alias in of_alias)
    scores = lines(exported(evaluation, "scores", anonymised=True)[1])
    people = [row for row in scores if row["rater_kind"] == "human"]
    assert Counter((of_alias[row["rater"]], row["query_id"]) for row in people) == Counter(
        {(who, case.key): 2 for case in cases for who in case.scores}
    )
    (adjudicator,) = {
        row["labels"]["style"]["by"]
        for row in lines(exported(evaluation, "jsonl", anonymised=True)[1])
        if row["labels"].get("style", {}).get("source") == "adjudicated"
    }
    assert adjudicator.startswith("reviewer-")
    assert adjudicator not in of_alias


@pytest.mark.parametrize("seed", ["one", "two"])
def test_no_cluster_and_no_query_is_in_two_parts(study: Study, seed: str) -> None:
    cases, evaluation = study
    split = Split(seed, 50, 25, 25)
    whole = lines(exported(evaluation, "jsonl", split=split)[1])
    assert [row["query_id"] for row in whole] == [case.key for case in cases]
    part_of = {row["query_id"]: row["split"] for row in whole}
    for same in ("cluster", "query"):
        parts: dict[str, set[str]] = defaultdict(set)
        for case in cases:
            parts[getattr(case, same)].add(part_of[case.key])
        assert {len(found) for found in parts.values()} == {1}, same
    assert len(set(part_of.values())) > 1
    # Every format deals the same; what another one leaves out moves nobody.
    for written_as, wanted in (
        ("dpo", {"aspect": "style"}),
        ("verdicts", {}),
        ("scores", {}),
        ("kto", {"aspect": "form"}),
    ):
        rows = lines(exported(evaluation, written_as, split=split, **wanted)[1])
        assert rows
        assert {row["query_id"]: row["split"] for row in rows}.items() <= part_of.items()


@pytest.mark.parametrize(
    ("written_as", "wanted"),
    [
        ("jsonl", {}),
        ("verdicts", {}),
        ("scores", {}),
        ("dpo", {"combine": "majority_of_aspects"}),
        ("mt-bench", {"aspect": "form"}),
        ("llm-comparator", {"aspect": "style"}),
    ],
)
def test_a_restored_study_leaves_in_the_same_bytes(study: Study, written_as: str, wanted: dict[str, Any]) -> None:
    """Failures to score and an adjudication included."""
    _, evaluation = study
    restored = restore_backup(
        io.BytesIO(b"".join(build_backup(evaluation))), name="study.zip", slug="elsewhere"
    ).evaluation
    assert exported(restored, written_as, **wanted)[1] == exported(evaluation, written_as, **wanted)[1]

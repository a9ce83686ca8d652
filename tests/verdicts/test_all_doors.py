"""Every door counts the same votes: the pages, the label, the report and each export against a brute-force oracle.

In the studies a newer version of the rubric drops an aspect, people review again (some after they saw the judge, some
by scores), a judge has samples in both orders and fails in some, and another one scores single responses.
"""

import csv
import io
import json
import random
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from django.db import connection

from evaluations.backups.services import restore_backup
from evaluations.disagreements.selectors import DisagreementFilter, get_disagreements, get_disagreements_on
from evaluations.domain.choices import PACKED_CHOICES, Choice
from evaluations.domain.files import BACKUP_FORMAT_NAME
from evaluations.domain.filters import ComparisonFilter
from evaluations.domain.judges import CallState
from evaluations.domain.reports import ReportRules, SeenRule
from evaluations.domain.reviews import SelectionMethod
from evaluations.exports.options import ExportRequest
from evaluations.exports.services import start_export
from evaluations.exports.writer import stream_export
from evaluations.formats.export_formats import EXPORT_FORMATS
from evaluations.models import verdicts
from evaluations.models.comparison_filter import apply_comparison_filter
from evaluations.models.comparisons import Comparison
from evaluations.models.judges import Rater
from evaluations.models.rubrics import Aspect
from evaluations.reports.selectors import get_full_report
from evaluations.stats.coding import MISSING
from evaluations.stats.judge_verdicts import consolidate_verdicts
from evaluations.verdicts.comparison_arrays import get_comparison_table, index_report_comparisons
from evaluations.verdicts.judge_choices import load_judge_choices
from evaluations.verdicts.labels import decide_labels
from evaluations.verdicts.reviewer_choices import get_reviewer_choices
from evaluations.verdicts.verdict_arrays import VerdictArrays, list_counted_raters, read_verdict_arrays
from evaluations.verdicts.vote_arrays import BLIND, SAW_JUDGE, UNKNOWN
from evaluations.verdicts.vote_table import build_vote_table
from evaluations.verdicts.votes import count_votes
from tests.factories.verdicts import get_or_make_aspect
from tests.helpers.shared_rows import rows_taken_back
from tests.verdicts import oracle
from tests.verdicts.oracle import (
    FINAL,
    FIRST,
    Label,
    choice_in,
    counted_somewhere,
    first_votes,
    has,
    judged,
    label,
    of_person,
    people_in,
    vote_of,
    votes,
)
from tests.verdicts.studies import (
    ALONE,
    ASPECTS,
    FACTS,
    PEOPLE,
    SCORES,
    STRANGER,
    STYLE,
    Asked,
    Case,
    Made,
    Pass,
    deal_case,
    make_study,
)

pytestmark = pytest.mark.django_db

A, B, TIE, BAD = Choice.A, Choice.B, Choice.TIE, Choice.BOTH_BAD
EVERY_ASPECT = (*ASPECTS, ALONE)
SIZE = 40
SEEDS = (1, 2)


def written_by_hand() -> list[Case]:
    """The cases that were once counted otherwise at some door."""
    both, style = {STYLE: (A, A), FACTS: (A, B)}, {STYLE: (B, TIE)}
    return [
        Case("dropped aspect", (Pass("ann", 1, both), Pass("ann", 2, style))),
        Case(
            "again after the judge",
            (
                Pass("ann", 1, both),
                Pass("ben", 1, both),
                Pass("ann", 3, {STYLE: (B, B), FACTS: (TIE, TIE)}, blind=False),
            ),
        ),
        Case(
            "again by hand",
            (Pass("ann", 1, both), Pass("ann", 3, {STYLE: (B, B)}, selection_method=SelectionMethod.BY_HAND)),
        ),
        Case(
            "calibrated later",
            (Pass("ann", 1, both), Pass("ann", 3, style, selection_method=SelectionMethod.CALIBRATION)),
        ),
        Case("not confirmed", (Pass("ann", 1, both), Pass("ann", 3, style, confirmed=False))),
        Case("begun alone", (Pass("ann", 3, style, confirmed=False),)),
        Case("scored again", (Pass("ann", 1, both), Pass("ann", SCORES, scores={STYLE: ((1, 5), (5, 1))}))),
        Case("chosen again", (Pass("ann", SCORES, scores={STYLE: ((1, 5), (5, 1))}), Pass("ann", 1, both))),
        Case("two samples of a file", (), ({STYLE: A, FACTS: B}, {STYLE: A, FACTS: A})),
        Case("file and review", (Pass("ann", 1, both),), ({STYLE: B},)),
        Case("file and review of one person", (Pass("ann", 1, both),), ({STYLE: B},), "ann"),
        Case("settled", (Pass("ann", 1, both), Pass("ben", 1, style)), settled={STYLE: BAD}),
        Case(
            "both orders",
            asked=(Asked("as_stored", 0, {STYLE: A, FACTS: A}), Asked("swapped", 0, {STYLE: A, FACTS: B})),
        ),
        Case("one order failed", asked=(Asked("as_stored", 0, {STYLE: A}), Asked("swapped", 0, CallState.REFUSED))),
        Case("graded", graded=((4, 3), (1.0,))),
        Case("graded in part", graded=((4,), ())),
    ]


def dealt(seed: int) -> list[Case]:
    rng = random.Random(seed)
    return [*written_by_hand(), *(deal_case(rng, f"dealt {number}") for number in range(SIZE))]


@pytest.fixture(scope="module", params=SEEDS)
def cases(request: pytest.FixtureRequest) -> dict[str, Case]:
    return {case.key: case for case in dealt(request.param)}


@pytest.fixture(scope="module")
def made(cases: dict[str, Case], rows_for_module: None) -> Iterator[Made]:
    with rows_taken_back():
        yield make_study(list(cases.values()))


def by_subject(votes: Iterable[tuple[str, str, Any]]) -> Mapping[tuple[str, str], list[Any]]:
    """Case and aspect → what stands there, in order."""
    found: dict[tuple[str, str], list[Any]] = {}
    for key, aspect, one in votes:
        found.setdefault((key, aspect), []).append(one)
    return {subject: sorted(given, key=repr) for subject, given in found.items()}


def expected_votes(cases: dict[str, Case], aspects: Iterable[str] = ASPECTS) -> Mapping[tuple[str, str], list[Any]]:
    return by_subject(
        (key, aspect, vote) for aspect in aspects for key, case in cases.items() for vote in votes(case, aspect)
    )


def expected_labels(cases: dict[str, Case]) -> dict[tuple[str, str], Label]:
    found = {(key, aspect): label(case, aspect) for key, case in cases.items() for aspect in EVERY_ASPECT}
    return {subject: label for subject, label in found.items() if label}


def exported(made: Made, written_as: str, **wanted: Any) -> bytes:
    export = start_export(made.evaluation, written_as=written_as, user=None, request=ExportRequest(**wanted))
    return b"".join(stream_export(export, Comparison.objects.filter(evaluation=made.evaluation)))


def json_lines(content: bytes) -> list[Any]:
    return [json.loads(line) for line in content.splitlines()]


def table_lines(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode(), newline="")))


# ---- labels -----------------------------------------------------------------------------------


def test_the_kept_labels_are_what_people_and_adjudicators_say(made: Made, cases: dict[str, Case]) -> None:
    kept = verdicts.Label.objects.values_list(
        "comparison__query__key", "aspect__key", "choice", "source", "votes", "unanimous"
    )
    due = {
        subject: (label.choice or "", label.source, sum(label.votes.values()), len(label.votes) < 2)
        for subject, label in expected_labels(cases).items()
        if label.source != "judge"
    }
    assert {(key, aspect): tuple(told) for key, aspect, *told in kept} == due


def test_the_votes_are_those_of_the_newest_finished_review_with_the_aspect(made: Made, cases: dict[str, Case]) -> None:
    names = {comparison.pk: key for key, comparison in made.comparisons.items()}
    keys = {get_or_make_aspect(made.evaluation, key).pk: key for key in ASPECTS}
    found = {
        (names[comparison], keys[aspect]): dict(given)
        for (comparison, aspect), given in count_votes(list(names)).items()
    }
    assert found == {
        subject: dict(Counter(choice for _, choice in votes)) for subject, votes in expected_votes(cases).items()
    }


def test_the_label_names_its_source_and_its_votes(made: Made, cases: dict[str, Case]) -> None:
    names = {comparison.pk: key for key, comparison in made.comparisons.items()}
    found = {
        (names[pk], aspect): Label(one.choice, one.source, dict(one.votes))
        for pk, told in decide_labels(made.evaluation, list(names)).items()
        for aspect, one in told.items()
    }
    assert found == expected_labels(cases)


# ---- pages ------------------------------------------------------------------------------------


def test_the_comparison_page_shows_the_votes_the_judges_and_the_label(made: Made, cases: dict[str, Case]) -> None:
    due = expected_labels(cases)
    for key, comparison in made.comparisons.items():
        table = build_vote_table(comparison, with_judges=True)
        cells = [
            (row, aspect.key, cell)
            for row in table.rows
            for aspect, cell in zip(table.aspects, row.cells, strict=True)
            if cell is not None
        ]
        for aspect in ASPECTS:
            votes = oracle.votes(cases[key], aspect)
            voters = {name for name, _ in votes}
            shown = [(row.name, choice) for row, about, cell in cells if about == aspect for choice in cell.choices]
            assert sorted(one for one in shown if one[0] in voters) == votes, (key, aspect)
        for name, aspects in (("gpt", ASPECTS), ("grader", (ALONE,))):
            found = {about: cell for row, about, cell in cells if row.name == name}
            for aspect in aspects:
                said, cell = judged(cases[key], aspect), found.get(aspect)
                told = (cell.choices[0], cell.inconsistent) if cell and cell.choices else None
                assert told == said, (key, aspect)
        stand = {aspect.key: label for aspect, label in zip(table.aspects, table.labels, strict=True) if label}
        told_labels = {one: (label.choice, label.source, dict(label.votes)) for one, label in stand.items()}
        assert told_labels == {
            aspect: (label.choice, label.source, label.votes) for (case, aspect), label in due.items() if case == key
        }


def test_the_filter_by_what_a_person_chose_asks_for_the_vote(made: Made, cases: dict[str, Case]) -> None:
    comparisons = Comparison.objects.filter(evaluation=made.evaluation)
    names = {comparison.pk: key for key, comparison in made.comparisons.items()}
    for person in (*PEOPLE, STRANGER):
        for aspect in ASPECTS:
            asked = {key: case for key, case in cases.items() if has_plain_votes(case, person, aspect)}
            votes = {
                key: {choice for name, choice in oracle.votes(case, aspect) if name == person}
                for key, case in asked.items()
            }
            for choice in Choice:
                wanted = ComparisonFilter(aspect=aspect, rater=f"human:{person}", choice=choice)
                chosen = apply_comparison_filter(comparisons, made.evaluation, wanted).values_list("pk", flat=True)
                found = {names[pk] for pk in chosen} & {key for key, given in votes.items() if given}
                assert found == {key for key, given in votes.items() if given == {choice}}


def has_plain_votes(case: Case, person: str, aspect: str) -> bool:
    """The filter looks for no scores, and besides votes of a file it finds what is not confirmed or practice."""
    passes = [one for one in of_person(case, person) if has(one, aspect)]
    is_in_file = case.brought_by == person and any(aspect in said for said in case.brought)
    return not any(aspect in one.scores for one in passes) and not (
        is_in_file and vote_of(case, person, aspect) is None
    )


def test_the_discussion_marks_the_same_votes(made: Made, cases: dict[str, Case]) -> None:
    found = by_subject(
        (key, aspect.key, (voice.rater.name, voice.current.choice))
        for key, comparison in made.comparisons.items()
        for aspect, voices in get_reviewer_choices(comparison).items()
        for voice in voices
        if voice.current and (voice.review is None or (voice.is_vote and not voice.is_replaced))
    )
    assert found == expected_votes(cases)


def test_disagreements_hold_the_same_votes_against_the_judges_one_verdict(made: Made, cases: dict[str, Case]) -> None:
    due = {subject: one for subject, one in expected_labels(cases).items() if one.source != "judge"}
    found = {}
    for key, comparison in made.comparisons.items():
        for one in get_disagreements_on(comparison, made.judge).values():
            found[key, one.aspect.key] = (dict(one.votes), one.judge, one.differs_from_judge)
    expected = {}
    for (key, aspect), expected_label in due.items():
        said = judged(cases[key], aspect)
        differs = said is not None and expected_label.choice not in (None, said[0])
        expected[key, aspect] = (expected_label.votes, said[0] if said else None, differs)
    assert found == expected
    pks = {key: comparison.pk for key, comparison in made.comparisons.items()}
    wanted = DisagreementFilter(made.evaluation, judge=made.judge)
    listed = get_disagreements(wanted, list(pks.values()))
    open_now = {
        key
        for (key, aspect), label in due.items()
        if label.source != "adjudicated" and (len(label.votes) > 1 or expected[key, aspect][2])
    }
    assert {key for key, pk in pks.items() if listed[pk]} == open_now


# ---- the report -------------------------------------------------------------------------------


def gathered_from(made: Made) -> tuple[VerdictArrays, list[str], list[Any]]:
    rules = ReportRules()
    raters = list_counted_raters(made.evaluation, rules)
    comparisons = Comparison.objects.filter(evaluation=made.evaluation)
    gathered = read_verdict_arrays(
        index_report_comparisons(get_comparison_table(made.evaluation), None), comparisons, raters, rules
    )
    names = {comparison.pk: key for key, comparison in made.comparisons.items()}
    return gathered, [names[int(pk)] for pk in gathered.comparisons], list(raters)


@pytest.mark.parametrize("blind", [True, False])
def test_the_report_counts_first_choices_of_blind_and_of_shown_reviews_apart(
    made: Made, cases: dict[str, Case], blind: bool
) -> None:
    gathered, keys, raters = gathered_from(made)
    names = [rater.name for rater in raters if rater.kind == "human"]
    found = []
    for aspect in ASPECTS:
        votes = gathered.votes(get_or_make_aspect(made.evaluation, aspect)).where(
            *((BLIND, UNKNOWN) if blind else (SAW_JUDGE,))
        )
        for item, rater, choice in zip(votes.item, votes.rater, votes.choice, strict=True):
            found.append((keys[item], aspect, (names[rater], PACKED_CHOICES[choice])))
    assert by_subject(found) == by_subject(
        (key, aspect, vote)
        for aspect in ASPECTS
        for key, case in cases.items()
        for vote in first_votes(case, aspect, blind=blind)
    )


def test_the_report_counts_a_judges_one_verdict(made: Made, cases: dict[str, Case]) -> None:
    gathered, keys, _ = gathered_from(made)
    found: dict[tuple[str, str], tuple[Choice, bool]] = {}
    for rater, aspects in ((made.judge, ASPECTS), (made.scorer, (ALONE,))):
        for aspect in aspects:
            said = consolidate_verdicts(
                *gathered.get_judge_verdicts(rater, get_or_make_aspect(made.evaluation, aspect)), len(keys)
            )
            for item, key in enumerate(keys):
                if said.choice[item] != MISSING:
                    found[key, aspect] = (PACKED_CHOICES[said.choice[item]], bool(said.inconsistent[item]))
    due = {(key, aspect): judged(case, aspect) for key, case in cases.items() for aspect in EVERY_ASPECT}
    assert found == {subject: said for subject, said in due.items() if said}


@pytest.mark.parametrize(("seen", "blind"), [(SeenRule.NOTHING, True), (SeenRule.JUDGE, False)])
def test_the_printed_report_rests_on_these_votes(
    made: Made, cases: dict[str, Case], seen: SeenRule, blind: bool
) -> None:
    report = get_full_report(made.evaluation, ReportRules(seen=seen))
    for aspect in ASPECTS:
        votes = [first_votes(case, aspect, blind=blind) for case in cases.values()]
        against = report.aspects[aspect].judges["gpt"].judge_human.votes.with_ties
        judged = [oracle.judged(case, aspect) for case in cases.values()]
        assert against.agreement.n == sum(len(given) for given, said in zip(votes, judged, strict=True) if said)


# ---- exports of everything --------------------------------------------------------------------


def test_jsonl_holds_every_review_with_the_labels_and_the_judges(made: Made, cases: dict[str, Case]) -> None:
    found_labels: dict[tuple[str, str], Label] = {}
    passes = []
    for row in json_lines(exported(made, "jsonl")):
        key = row["query_id"]
        assert_labels_and_judges(row, cases[key], found_labels)
        passes += [
            (key, person["rater"], aspect, choice["first"], choice["final"], person["calibration"])
            for person in row["people"]
            for aspect, choice in person["choices"].items()
        ]
    assert found_labels == expected_labels(cases)
    assert sorted(passes, key=repr) == sorted(every_pass(cases), key=repr)


def every_pass(cases: dict[str, Case]) -> Iterable[tuple[Any, ...]]:
    """Nothing is left out of an export of everything."""
    for key, case in cases.items():
        for one in case.passes:
            for aspect in (*one.choices, *one.scores):
                first, final = (choice_in(one, aspect, stage) for stage in (FIRST, FINAL))
                yield key, one.person, aspect, first, final, one.selection_method == SelectionMethod.CALIBRATION
        for said in case.brought:
            for aspect, choice in said.items():
                yield key, case.brought_by, aspect, choice, choice, False


def assert_labels_and_judges(row: Any, case: Case, found: dict[tuple[str, str], Label]) -> None:
    for aspect, given in row["labels"].items():
        choice = Choice(given["choice"]) if given["choice"] else None
        votes = {Choice(one): count for one, count in given["votes"].items() if count}
        found[case.key, aspect] = Label(choice, given["source"], votes)
        assert given["n"] == sum(votes.values())
    judges = {judge["judge"]: judge["choices"] for judge in row["judges"]}
    for name, aspects in (("gpt", ASPECTS), ("grader", (ALONE,))):
        for aspect in aspects:
            told = judges.get(name, {}).get(aspect)
            said = (told["choice"], told["inconsistent"]) if told and told["choice"] else None
            assert said == judged(case, aspect), (case.key, aspect)


def test_parquet_holds_the_same_labels_and_judges(made: Made, cases: dict[str, Case]) -> None:
    table = pq.read_table(io.BytesIO(exported(made, "parquet")))
    found: dict[tuple[str, str], str | None] = {}
    for row in table.to_pylist():
        for given in labels_in_parquet(row):
            found[row["query_id"], given[0]] = given[1]
    assert found == {subject: label.choice for subject, label in expected_labels(cases).items()}


def labels_in_parquet(row: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    labels_told = row["labels"]
    if isinstance(labels_told, Mapping):
        return [(aspect, label["choice"]) for aspect, label in labels_told.items() if label and label["source"]]
    return [(label["aspect"], label["choice"]) for label in labels_told]


def test_csv_holds_the_same_labels_and_judges(made: Made, cases: dict[str, Case]) -> None:
    found = {}
    for row in table_lines(exported(made, "csv")):
        key = row["query_id"]
        for aspect in EVERY_ASPECT:
            if row.get(f"label:{aspect}:source"):
                votes = dict(part.split("=") for part in row[f"label:{aspect}:votes"].split())
                found[key, aspect] = Label(
                    Choice(row[f"label:{aspect}"]) if row[f"label:{aspect}"] else None,
                    row[f"label:{aspect}:source"],
                    {Choice(choice): int(count) for choice, count in votes.items()},
                )
            name = "grader" if aspect == ALONE else "gpt"
            said = judged(cases[key], aspect)
            assert row.get(f"judge:{name}:{aspect}", "") == (said[0] if said else "")
    assert found == expected_labels(cases)


def test_a_backup_holds_the_same_votes_labels_and_judges(
    made: Made, cases: dict[str, Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The study is not committed: another connection would wait for it.
    monkeypatch.setattr("evaluations.exports.writer.open_separate_cursor", connection.cursor)
    restored = restore_backup(io.BytesIO(exported(made, BACKUP_FORMAT_NAME)), name="study.zip", slug="elsewhere")
    comparisons = Comparison.objects.filter(evaluation=restored.evaluation)
    names = dict(comparisons.values_list("pk", "query__key"))
    found_votes = count_votes(list(names))
    keys = dict(Aspect.objects.filter(evaluation=restored.evaluation).values_list("pk", "key"))
    assert {(names[pk], keys[aspect]): dict(given) for (pk, aspect), given in found_votes.items()} == {
        subject: dict(Counter(choice for _, choice in votes)) for subject, votes in expected_votes(cases).items()
    }
    found_labels = {
        (names[pk], aspect): Label(one.choice, one.source, dict(one.votes))
        for pk, labels in decide_labels(restored.evaluation, list(names)).items()
        for aspect, one in labels.items()
    }
    assert found_labels == expected_labels(cases)
    judges = Rater.objects.filter(evaluation=restored.evaluation, kind="judge")
    for rater, aspects in ((judges.get(name="gpt"), ASPECTS), (judges.get(name="grader"), (ALONE,))):
        choices = load_judge_choices(rater, list(names))
        for pk, key in names.items():
            for aspect in aspects:
                one = choices.get(pk, {}).get(aspect)
                assert (one and (one.choice, one.inconsistent)) == judged(cases[key], aspect), (key, aspect)


def test_every_format_of_exports_has_a_test_here() -> None:
    source = Path(__file__).read_text()
    missing = [one for one in EXPORT_FORMATS if one != BACKUP_FORMAT_NAME and f'"{one}"' not in source]
    assert not missing


# ---- exports of labels ------------------------------------------------------------------------


@pytest.mark.parametrize("aspect", EVERY_ASPECT)
@pytest.mark.parametrize("written_as", ["dpo", "kto", "messages", "hugging-face"])
def test_what_is_made_for_training_follows_the_label(
    made: Made, cases: dict[str, Case], written_as: str, aspect: str
) -> None:
    found = dict(preferred_in(written_as, exported(made, written_as, aspect=aspect)))
    due = {key: label.choice for (key, about), label in expected_labels(cases).items() if about == aspect}
    assert found == {key: {A: "alpha", B: "beta"}[choice] for key, choice in due.items() if choice in (A, B)}


def preferred_in(written_as: str, content: bytes) -> Iterable[tuple[str, str]]:
    """The query and the candidate that its comparison prefers."""
    if written_as == "hugging-face":
        with zipfile.ZipFile(io.BytesIO(content)) as files:
            for name in files.namelist():
                if name.endswith(".parquet") and "comparisons" in name:
                    for row in pq.read_table(io.BytesIO(files.read(name))).to_pylist():
                        if row["choice"] in ("A", "B"):
                            yield row["query_id"], row[f"candidate_{row['choice'].lower()}"]
        return
    for row in json_lines(content):
        if written_as == "dpo":
            yield row["query_id"], row["chosen_model"]
        elif written_as == "messages" or row["label"]:
            yield row["query_id"], row["model"]


# ---- exports for other tools ------------------------------------------------------------------


@pytest.mark.parametrize("aspect", ASPECTS)
def test_human_votes_for_mt_bench_are_the_votes(made: Made, cases: dict[str, Case], aspect: str) -> None:
    winners = {"model_a": A, "model_b": B, "tie": TIE, "tie (bothbad)": BAD}
    rows = json_lines(exported(made, "mt-bench-human", aspect=aspect))
    found = by_subject((row["query_id"], aspect, (row["judge"], winners[row["winner"]])) for row in rows)
    assert found == expected_votes(cases, [aspect])


@pytest.mark.parametrize("aspect", ASPECTS)
def test_judgments_for_mt_bench_are_those_of_each_sample(made: Made, cases: dict[str, Case], aspect: str) -> None:
    winners = {"model_1": A, "model_2": B, "tie": TIE, "error": None}
    rows = json_lines(exported(made, "mt-bench", aspect=aspect))
    found = by_subject(
        (row["query_id"], aspect, (winners[row["g1_winner"]], winners[row["g2_winner"]])) for row in rows
    )
    due = []
    for key, case in cases.items():
        for sample in sorted({call.sample for call in case.asked}):
            said = {
                call.shown: None if isinstance(call.choices, CallState) else call.choices.get(aspect)
                for call in case.asked
                if call.sample == sample
            }
            both = said.get("as_stored"), said.get("swapped")
            if any(both):
                due.append((key, aspect, tuple(TIE if choice == BAD else choice for choice in both)))
    assert found == by_subject(due)


@pytest.mark.parametrize("aspect", ASPECTS)
def test_annotations_for_alpaca_eval_are_the_votes_and_the_judges_one_verdict(
    made: Made, cases: dict[str, Case], aspect: str
) -> None:
    told = {1.0: A, 2.0: B, 1.5: TIE}
    rows = json.loads(exported(made, "alpaca-eval", aspect=aspect))
    given = [row for row in rows if row["preference"] is not None]
    found = by_subject((row["query_id"], aspect, (row["annotator"], told[row["preference"]])) for row in given)
    due = []
    for key, case in cases.items():
        said = judged(case, aspect)
        everyone = [*votes(case, aspect), *([("gpt", said[0])] if said else [])]
        due += [(key, aspect, (name, TIE if choice == BAD else choice)) for name, choice in everyone]
    assert found == by_subject(due)


@pytest.mark.parametrize("aspect", ASPECTS)
def test_ratings_for_llm_comparator_are_the_votes(made: Made, cases: dict[str, Case], aspect: str) -> None:
    told = {1.0: A, -1.0: B, 0.0: TIE}
    examples = json.loads(exported(made, "llm-comparator", aspect=aspect))["examples"]
    found = by_subject(
        (example["custom_fields"]["query_id"], aspect, (rating["custom_fields"]["rater"], told[rating["score"]]))
        for example in examples
        for rating in example["individual_rater_scores"]
        if rating["custom_fields"]["rater"] in (*PEOPLE, STRANGER)
    )
    keys = {example["custom_fields"]["query_id"] for example in examples}
    assert found == by_subject(
        (key, aspect, (name, TIE if choice == BAD else choice))
        for key in keys
        for name, choice in votes(cases[key], aspect)
    )


# ---- verdicts and scores in long form ---------------------------------------------------------


@pytest.mark.parametrize("written_as", ["verdicts", "verdicts-csv"])
def test_verdicts_hold_each_choice_that_counts_somewhere(made: Made, cases: dict[str, Case], written_as: str) -> None:
    content = exported(made, written_as)
    rows = json_lines(content) if written_as == "verdicts" else table_lines(content)
    found = [
        (
            row["query_id"],
            row["rater"],
            row["aspect"],
            row["choice"],
            row["final_choice"] or None,
            is_blind(row["blind"]),
        )
        for row in rows
        if row["rater_kind"] == "human"
    ]
    assert sorted(found, key=repr) == sorted(counted_choices(cases), key=repr)
    of_judge = [
        (row["query_id"], row["aspect"], str(row["sample"]), row["choice"])
        for row in rows
        if row["rater"] == "gpt" and row["choice"] in list(Choice)
    ]
    assert sorted(of_judge) == sorted(
        (key, aspect, str(call.sample), choice)
        for key, case in cases.items()
        for call in case.asked
        if not isinstance(call.choices, CallState)
        for aspect, choice in call.choices.items()
    )


def is_blind(told: bool | str | None) -> bool | None:
    return {"true": True, "false": False, "": None}[told] if isinstance(told, str) else told


def counted_choices(cases: dict[str, Case]) -> Iterable[tuple[Any, ...]]:
    for key, case in cases.items():
        for aspect in ASPECTS:
            for person in people_in(case):
                for one in counted_somewhere(case, person, aspect):
                    if aspect in one.choices:
                        first, final = (choice_in(one, aspect, stage) for stage in (0, 1))
                        yield key, person, aspect, first, final, one.blind
            for said in case.brought:
                if aspect in said:
                    yield key, case.brought_by, aspect, said[aspect], said[aspect], None


def test_verdicts_number_the_votes_of_one_person_as_samples(made: Made, cases: dict[str, Case]) -> None:
    """Read again as a file, none of them takes the place of another; what the label counts comes first."""
    rows = [row for row in json_lines(exported(made, "verdicts")) if row["rater"] in PEOPLE and row["rubric"]]
    subjects = [(row["query_id"], row["rater"], row["aspect"]) for row in rows]
    samples: dict[tuple[str, str, str], list[int]] = {}
    for subject, row in zip(subjects, rows, strict=True):
        samples.setdefault(subject, []).append(row["sample"])
        case = cases[row["query_id"]]
        vote = vote_of(case, row["rater"], row["aspect"])
        if vote is not None and row["aspect"] in vote.choices and row["sample"] == 0:
            assert row["final_choice"] == choice_in(vote, row["aspect"], FINAL)
    assert all(len(set(given)) == len(given) and given == sorted(given) for given in samples.values())


@pytest.mark.parametrize("written_as", ["scores", "scores-csv"])
def test_scores_hold_each_number_that_counts_somewhere(made: Made, cases: dict[str, Case], written_as: str) -> None:
    content = exported(made, written_as)
    rows = json_lines(content) if written_as == "scores" else table_lines(content)
    found = [
        (row["query_id"], row["candidate"], row["rater"], row["aspect"], float(row["value"]), float(row["final_value"]))
        for row in rows
        if row["value"] not in (None, "")
    ]
    due: list[tuple[Any, ...]] = []
    for key, case in cases.items():
        for side, candidate in enumerate(("alpha", "beta")):
            due += [(key, candidate, "grader", ALONE, float(value), float(value)) for value in case.graded[side]]
            for aspect in ASPECTS:
                for person in people_in(case):
                    for one in counted_somewhere(case, person, aspect):
                        if aspect in one.scores:
                            first, final = one.scores[aspect]
                            due.append((key, candidate, person, aspect, float(first[side]), float(final[side])))
    assert sorted(found) == sorted(due)

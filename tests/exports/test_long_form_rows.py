"""Verdicts and scores one by one, as a file from which another evaluation says the same."""

import io
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from evaluations.domain.choices import Choice, ShownOrder
from evaluations.domain.imports import ImportRequest
from evaluations.domain.reports import ReportPart, ReportRules
from evaluations.domain.reviews import SelectionMethod
from evaluations.domain.splits import Split
from evaluations.exports.options import ExportRequest
from evaluations.exports.services import start_export
from evaluations.exports.writer import stream_export
from evaluations.imports.lifecycle import continue_import
from evaluations.imports.preview import preview_file
from evaluations.imports.services import start_storing
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.verdicts import Verdict
from evaluations.reports.selectors import get_full_report
from tests.factories.evaluations import make_comparison, make_evaluation, make_human
from tests.factories.imports import comparison_row, import_rows, score_row
from tests.factories.verdicts import (
    make_imported_votes,
    make_judge_score,
    make_judge_verdicts,
    make_next_rubric_version,
    make_review,
    make_scored_review,
    make_scoring_judge,
)

pytestmark = pytest.mark.django_db

A, B, TIE = Choice.A, Choice.B, Choice.TIE


def exported(evaluation: Evaluation, written_as: str, **wanted: Any) -> bytes:
    export = start_export(evaluation, written_as=written_as, user=None, request=ExportRequest(**wanted))
    return b"".join(stream_export(export, Comparison.objects.filter(evaluation=evaluation)))


def listed(evaluation: Evaluation, written_as: str = "verdicts", **wanted: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in exported(evaluation, written_as, **wanted).splitlines()]


def brought(evaluation: Evaluation, content: bytes, name: str = "file.jsonl", **how: Any) -> None:
    importing = preview_file(evaluation, io.BytesIO(content), name, ImportRequest(), user=None, **how)
    assert not importing.bad_rows
    start_storing(importing, skip_bad=False, user=None)
    continue_import(importing)


def test_a_row_says_who_chose_what_seeing_which_order(evaluation: Evaluation) -> None:
    """The first choice, which statistics are about, and beside it what the person confirmed."""
    made = make_comparison(evaluation, key="q1")
    make_review(
        make_human(evaluation, "ann"),
        made,
        {"clarity": TIE},
        final={"clarity": A},
        notes={"clarity": "shorter"},
        shown="swapped",
    )
    Verdict.objects.update(created_at=datetime(2026, 1, 31, 12, 0, 0, 250_000, UTC))
    assert listed(evaluation) == [
        {
            "query_id": "q1",
            "candidate_a": "alpha",
            "candidate_b": "beta",
            "rater": "ann",
            "rater_kind": "human",
            "aspect": "clarity",
            "choice": "tie",
            "shown_swapped": True,
            "sample": 0,
            "stage": "first",
            "final_choice": "A",
            "rationale": "",
            "note": "shorter",
            "created_at": "2026-01-31T12:00:00.250000+00:00",
            "blind": True,
            "rubric": "six-aspect 1",
            "judge_kind": None,
            "model": None,
        }
    ]


def test_failures_are_rows_and_an_inconsistent_choice_is_called_so(evaluation: Evaluation) -> None:
    """A failure concerns all aspects of its call: it stands under the first that the rubric asks about."""
    made = make_comparison(evaluation)
    make_judge_verdicts(made, as_stored={"factuality": A, "clarity": B}, swapped="unreadable")
    make_imported_votes(made, "folder", {"clarity": TIE}, kind="gold", shown=ShownOrder.FOLDED, inconsistent=True)
    told = [(row["rater"], row["aspect"], row["choice"], row["shown_swapped"]) for row in listed(evaluation)]
    assert told == [
        ("folder", "clarity", "inconsistent", "folded"),
        ("longest", "factuality", "A", False),
        ("longest", "clarity", "B", False),
        ("longest", "helpfulness", "unreadable", True),
    ]


def test_what_counts_nowhere_is_left_out_and_counted(evaluation: Evaluation) -> None:
    """A calibration round, and a review that the same person made again by another version of the rubric."""
    ann, made = make_human(evaluation, "ann"), make_comparison(evaluation)
    make_review(make_human(evaluation, "ben"), made, {"clarity": A}, selection_method=SelectionMethod.CALIBRATION)
    make_review(ann, made, {"clarity": A})
    make_next_rubric_version(evaluation)
    make_review(ann, made, {"clarity": B})
    export = start_export(evaluation, written_as="verdicts", user=None)
    (row,) = b"".join(stream_export(export, Comparison.objects.all())).splitlines()
    assert json.loads(row)["choice"] == "B"
    assert export.counts["excluded"] == {"calibration": 1, "replaced_by_newer_review": 1}
    assert (export.rows, export.counts["comparisons"]) == (1, 1)


def test_parts_of_a_split_are_told(evaluation: Evaluation) -> None:
    make_imported_votes(make_comparison(evaluation), "bob", {"clarity": A})
    assert listed(evaluation)[0].keys() & {"split"} == set()
    (row,) = listed(evaluation, split=Split("seed", 100, 0, 0))
    assert row["split"] == "train"


def said_of(evaluation: Evaluation) -> None:
    """Six comparisons, two people who review, one whose votes came in a file, gold, and a judge that failed once."""
    ann, ben = make_human(evaluation, "ann"), make_human(evaluation, "ben")
    for number in range(6):
        made = make_comparison(evaluation, key=f"q{number}", cluster=f"c{number // 2}")
        for rater, choice in ((ann, (A, B, TIE)[number % 3]), (ben, (A, B)[number % 2])):
            shown = (ShownOrder.AS_STORED, ShownOrder.SWAPPED)[number % 2]
            make_review(rater, made, {"clarity": choice, "safety": A}, shown=shown)
        make_imported_votes(made, "cyd", {"clarity": B}, note="=1+1", rationale="-x")
        make_imported_votes(made, "expert", {"clarity": (A, B)[number % 2]}, kind="gold")
        make_judge_verdicts(
            made,
            judge="gpt",
            kind="llm",
            as_stored={"clarity": A, "safety": B},
            swapped="refused" if number == 3 else {"clarity": (A, TIE)[number % 2], "safety": B},
        )


@pytest.mark.parametrize("written_as", ["verdicts", "verdicts-csv"])
def test_another_evaluation_that_reads_the_file_reports_the_same(evaluation: Evaluation, written_as: str) -> None:
    said_of(evaluation)
    copy = make_evaluation(slug="copy")
    brought(copy, exported(evaluation, "jsonl"))
    file = exported(evaluation, written_as)
    assert exported(evaluation, written_as) == file
    brought(copy, file, name=f"verdicts.{'csv' if written_as.endswith('csv') else 'jsonl'}")
    mine, theirs = (as_told(one) for one in (evaluation, copy))
    assert mine == theirs
    assert mine["clarity"]["human_human"]["votes"]["with_ties"]["n"] == 18  # three people, six comparisons
    assert kept_of(listed(evaluation)) == kept_of(listed(copy))


def as_told(evaluation: Evaluation) -> dict[str, Any]:
    """How far raters agree on each aspect. How a review came about, and that a judge ran here, goes with no verdict."""
    told = get_full_report(evaluation, ReportRules(), parts=(ReportPart.AGREEMENT,)).as_json()
    here_only = {"rater_id": None, "kind": None, "model": None}
    return {
        key: {
            "human_human": aspect["human_human"],
            "judges": {name: {**judge, **here_only} for name, judge in aspect["judges"].items()},
        }
        for key, aspect in told["aspects"].items()
        if key in ("clarity", "safety")
    }


def kept_of(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a file brings back; of a failure neither when it was, nor the aspect under which it is told."""
    kept = ("rater", "choice", "shown_swapped", "sample", "rationale", "note")
    of_choices = ("aspect", "created_at")
    return [{name: row[name] for name in (*kept, *(of_choices if row["choice"] != "refused" else ()))} for row in rows]


def test_scores_are_rows_of_their_own_and_mean_the_same_elsewhere(evaluation: Evaluation) -> None:
    """A person in a review, somebody's ranks in a file, a judge that failed once: the lower rank is the better one."""
    import_rows(evaluation, comparison_row(key="q1"))
    (made,) = Comparison.objects.all()
    make_scored_review(make_human(evaluation, "ann"), made, {"clarity": (4.0, 2.0)}, final={"clarity": (3.0, 3.0)})
    scorer = make_scoring_judge(evaluation, aspect="overall")
    make_judge_score(scorer, made.response_a, 5)
    make_judge_score(scorer, made.response_b, "failed")
    import_rows(evaluation, score_row(candidate="alpha", value=2, rater="ben"), lower_is_better=True)
    columns = ("rater", "candidate", "aspect", "value", "final_value", "stage", "lower_is_better", "margin", "failure")
    told = [tuple(row[name] for name in columns) for row in listed(evaluation, "scores")]
    assert told == [
        ("ann", "alpha", "clarity", 4.0, 3.0, "first", False, 0.5, None),
        ("ben", "alpha", "overall", 2.0, 2.0, "final", True, 0.0, None),
        ("scorer", "alpha", "overall", 5.0, 5.0, "final", False, 0.0, None),
        ("ann", "beta", "clarity", 2.0, 3.0, "first", False, 0.5, None),
        ("scorer", "beta", "overall", None, None, "final", False, 0.0, "failed"),
    ]
    copy = make_evaluation(slug="copy")
    brought(copy, exported(evaluation, "jsonl"))
    brought(copy, exported(evaluation, "scores-csv"), name="scores.csv")
    kept = [
        [(row["rater"], row["value"], row["failure"]) for row in listed(one, "scores")] for one in (evaluation, copy)
    ]
    assert kept[0] == kept[1]

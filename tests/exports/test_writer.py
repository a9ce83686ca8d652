"""What an exported file holds, that it is the same every time, and that it is never held in memory."""

import csv
import hashlib
import io
import itertools
import json
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluations.disagreements.services import resolve_aspect
from evaluations.domain.choices import Choice
from evaluations.domain.errors import InputRefused
from evaluations.domain.files import ExportState
from evaluations.domain.imports import ImportRequest
from evaluations.domain.reviews import Reveal, ReviewState, SelectionMethod
from evaluations.domain.roles import Role
from evaluations.examples.services import load_example
from evaluations.exports import chunk_reader, writer
from evaluations.exports.comparison_rows import iterate_full_rows
from evaluations.exports.options import DEFAULT_REQUEST, ExportRequest
from evaluations.exports.participants import load_participants
from evaluations.exports.requests import open_export_file
from evaluations.exports.services import start_export
from evaluations.exports.writer import stream_export
from evaluations.formats.export_format import RowKind
from evaluations.formats.export_formats import EXPORT_FORMATS
from evaluations.formats.exported_rows import MATERIAL, ExportedRow
from evaluations.formats.jsonl_export import encode_line
from evaluations.imports.lifecycle import continue_import
from evaluations.imports.preview import preview_file
from evaluations.imports.services import start_storing
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.exports import Export
from evaluations.models.queues import Queue
from evaluations.models.runs import Run
from evaluations.models.verdicts import Adjudication, Comment, Review, Span
from evaluations.reviews.services import skip_comparison, undo_last_step
from evaluations.verdicts.labels import decide_labels
from evaluations.verdicts.votes import update_labels
from tests.factories.evaluations import make_comparison, make_evaluation, make_human, make_member, make_user
from tests.factories.verdicts import (
    get_or_make_aspect,
    make_import,
    make_imported_votes,
    make_judge_rater,
    make_judge_score,
    make_judge_verdicts,
    make_next_rubric_version,
    make_review,
    make_scored_review,
    make_scoring_judge,
)
from tests.formats.exported_rows import any_exported_row

pytestmark = pytest.mark.django_db

A, B, TIE = Choice.A, Choice.B, Choice.TIE
# The formats that hold all of a comparison, so that it can be read again.
WHOLE = [name for name, one in EXPORT_FORMATS.items() if one.needs == RowKind.EVERYTHING and not one.wants_choice]


def exported(
    evaluation: Evaluation, written_as: str = "jsonl", wanted: ExportRequest = DEFAULT_REQUEST
) -> tuple[Export, bytes]:
    export = start_export(evaluation, written_as=written_as, user=None, request=wanted)
    written = b"".join(stream_export(export, Comparison.objects.filter(evaluation=evaluation)))
    export.refresh_from_db()
    return export, written


def as_json(evaluation: Evaluation) -> list[dict[str, Any]]:
    return [json.loads(line) for line in exported(evaluation)[1].splitlines()]


def as_csv(evaluation: Evaluation) -> list[dict[str, str]]:
    text = exported(evaluation, "csv")[1].decode()
    return list(csv.DictReader(io.StringIO(text, newline="")))


@pytest.fixture
def comparison(evaluation: Evaluation) -> Comparison:
    """One comparison with everything: a person, an imported one, gold, and a judge that failed once."""
    made = make_comparison(
        evaluation,
        key="q1",
        query="What is the capital of France?",
        category="geography",
        context="An atlas.",
        reference="Paris",
        metadata={"source": "handmade"},
    )
    make_review(
        make_human(evaluation, "ann"),
        made,
        {"factuality": A, "clarity": TIE},
        final={"clarity": A},
        notes={"clarity": "shorter is clearer"},
        shown="swapped",
        note="easy",
    )
    make_imported_votes(made, "bob", {"factuality": B})
    make_imported_votes(made, "expert", {"factuality": A}, kind="gold")
    make_judge_verdicts(
        made,
        rationale="B is longer",
        as_stored={"factuality": B, "clarity": TIE},
        swapped={"factuality": A, "clarity": TIE},
    )
    make_judge_verdicts(made, judge="second", as_stored={"factuality": A}, swapped="unreadable")
    update_labels([made.pk])
    return made


def test_a_line_holds_the_material_and_everything_that_was_said(evaluation: Evaluation, comparison: Comparison) -> None:
    rule = {"kind": "rule", "model": "longest", "rubric": "six-aspect 1", "remark": "rule-based"}
    assert as_json(evaluation) == [
        {
            "query_id": "q1",
            "cluster": "q1",
            "category": "geography",
            "query": "What is the capital of France?",
            "messages": None,
            "context": "An atlas.",
            "reference": "Paris",
            "candidate_a": "alpha",
            "response_a": "Paris.",
            "candidate_b": "beta",
            "response_b": "The capital of France is Lyon.",
            "metadata": {"source": "handmade"},
            "labels": {
                "clarity": {"choice": "A", "source": "single", "n": 1, "votes": {"A": 1}, "by": None},
                "factuality": {"choice": None, "source": "split", "n": 2, "votes": {"A": 1, "B": 1}, "by": None},
            },
            "adjudications": {},
            "comments": [],
            "skipped": [],
            "gold": [{"rater": "expert", "choices": {"factuality": "A"}}],
            "judges": [
                {
                    "judge": "longest",
                    **rule,
                    "choices": {
                        "factuality": {
                            "choice": "tie",
                            "inconsistent": True,
                            "orders": {"as_stored": ["B"], "swapped": ["A"]},
                        },
                        "clarity": {
                            "choice": "tie",
                            "inconsistent": False,
                            "orders": {"as_stored": ["tie"], "swapped": ["tie"]},
                        },
                    },
                    "rationales": {"as_stored": ["B is longer (as_stored)"], "swapped": ["B is longer (swapped)"]},
                    "failures": {},
                },
                {
                    "judge": "second",
                    **rule,
                    "choices": {
                        "factuality": {"choice": None, "inconsistent": False, "orders": {"as_stored": ["A"]}},
                    },
                    "rationales": {},
                    "failures": {"unreadable": 1},
                },
            ],
            "people": [
                {
                    "rater": "ann",
                    "rubric": "six-aspect 1",
                    "state": "final",
                    "blind": True,
                    "shown": "swapped",
                    "note": "easy",
                    "picked_by": "random",
                    "round": None,
                    "probability": None,
                    "calibration": False,
                    "reveal": None,
                    "judge_first": False,
                    "judge_shown": None,
                    "awaits_judge": False,
                    "active_ms": 0,
                    "choices": {
                        "factuality": {"first": "A", "final": "A", "note": "", "reason": None},
                        "clarity": {"first": "tie", "final": "A", "note": "shorter is clearer", "reason": None},
                    },
                    "spans": [],
                },
                {
                    "rater": "bob",
                    "rubric": None,
                    "state": "final",
                    "blind": None,
                    "shown": "unknown",
                    "note": "",
                    "picked_by": None,
                    "round": None,
                    "probability": None,
                    "calibration": False,
                    "reveal": None,
                    "judge_first": None,
                    "judge_shown": None,
                    "awaits_judge": None,
                    "active_ms": None,
                    "choices": {"factuality": {"first": "B", "final": "B", "note": "", "reason": None}},
                    "spans": [],
                },
            ],
        }
    ]


def test_a_csv_row_holds_the_same_in_cells(evaluation: Evaluation, comparison: Comparison) -> None:
    (row,) = as_csv(evaluation)
    given = {column: cell for column, cell in row.items() if cell}
    assert given == {
        "query_id": "q1",
        "cluster": "q1",
        "category": "geography",
        "query": "What is the capital of France?",
        "context": "An atlas.",
        "reference": "Paris",
        "candidate_a": "alpha",
        "response_a": "Paris.",
        "candidate_b": "beta",
        "response_b": "The capital of France is Lyon.",
        "metadata": '{"source": "handmade"}',
        "label:clarity": "A",
        "label:clarity:source": "single",
        "label:clarity:n": "1",
        "label:clarity:votes": "A=1",
        "label:factuality:source": "split",
        "label:factuality:n": "2",
        "label:factuality:votes": "A=1 B=1",
        "gold:expert:factuality": "A",
        "judge:longest (kind)": "rule (rule-based)",
        "judge:longest (rationale)": "as_stored: B is longer (as_stored)\n\nswapped: B is longer (swapped)",
        "judge:longest:clarity": "tie",
        "judge:longest:clarity:inconsistent": "no",
        "judge:longest:clarity:orders": "as_stored=tie swapped=tie",
        "judge:longest:factuality": "tie",
        "judge:longest:factuality:inconsistent": "yes",
        "judge:longest:factuality:orders": "as_stored=B swapped=A",
        "judge:second (kind)": "rule (rule-based)",
        "judge:second (failures)": "unreadable=1",
        "judge:second:factuality:inconsistent": "no",
        "judge:second:factuality:orders": "as_stored=A",
        "person:ann (shown)": "swapped",
        "person:ann (blind)": "yes",
        "person:ann (judge_first)": "no",
        "person:ann (awaits_judge)": "no",
        "person:ann (picked_by)": "random",
        "person:ann (active_ms)": "0",
        "person:ann (note)": "easy",
        "person:ann:clarity": "A",
        "person:ann:clarity:first": "tie",
        "person:ann:clarity:note": "shorter is clearer",
        "person:ann:factuality": "A",
        "person:ann:factuality:first": "A",
        "person:bob (shown)": "unknown",
        "person:bob:factuality": "B",
        "person:bob:factuality:first": "B",
    }


def test_a_csv_has_the_aspects_in_page_order_and_only_raters_who_said_something(evaluation: Evaluation) -> None:
    make_human(evaluation, "silent")
    make_review(make_human(evaluation, "ann"), make_comparison(evaluation), {"safety": A})
    columns = list(as_csv(evaluation)[0])
    assert [column for column in columns if column.startswith("label:") and column.count(":") == 1] == [
        "label:helpfulness",
        "label:factuality",
        "label:clarity",
        "label:depth",
        "label:engagement",
        "label:safety",
    ]
    assert not [column for column in columns if "silent" in column]


def test_a_conversation_of_several_turns_stands_in_messages(evaluation: Evaluation) -> None:
    made = make_comparison(evaluation)
    turns = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi."},
        {"role": "user", "content": "=1+1?"},
    ]
    made.query.messages = turns
    made.query.save()
    (row,) = as_json(evaluation)
    assert (row["query"], row["messages"]) == (None, turns)
    (cells,) = as_csv(evaluation)
    assert (cells["query"], json.loads(cells["messages"])) == ("", turns)


def test_a_choice_that_waits_for_its_confirmation_has_no_final_one(evaluation: Evaluation) -> None:
    make_review(make_human(evaluation, "ann"), make_comparison(evaluation), {"clarity": A}, confirmed=False)
    (row,) = as_json(evaluation)
    assert row["people"][0]["state"] == "first"
    assert row["people"][0]["choices"] == {"clarity": {"first": "A", "final": None, "note": "", "reason": None}}
    assert row["labels"] == {}


def test_a_review_that_is_undone_while_it_is_read_is_left_out(evaluation: Evaluation) -> None:
    review = make_review(make_human(evaluation, "ann"), make_comparison(evaluation), {"clarity": A})
    Review.objects.filter(pk=review.pk).update(state=ReviewState.DRAFT)
    assert as_json(evaluation)[0]["people"] == []


def test_an_example_review_says_that_it_is_one(evaluation: Evaluation) -> None:
    make_review(make_human(evaluation), make_comparison(evaluation), {"clarity": A}, is_example=True)
    assert as_json(evaluation)[0]["people"][0]["is_example"] is True


def test_two_samples_of_an_imported_person_are_two_passes(evaluation: Evaluation) -> None:
    made = make_comparison(evaluation)
    make_imported_votes(made, "ann", {"clarity": A}, sample=0)
    make_imported_votes(made, "ann", {"clarity": B}, sample=1)
    assert [person["choices"]["clarity"]["final"] for person in as_json(evaluation)[0]["people"]] == ["A", "B"]
    assert as_csv(evaluation)[0]["person:ann:clarity"] == "A | B"


def test_the_record_holds_rows_checksum_and_labels_by_source(evaluation: Evaluation, comparison: Comparison) -> None:
    make_comparison(evaluation)
    export, written = exported(evaluation)
    assert (export.state, export.rows, export.label_policy) == (ExportState.DONE, 2, "people_then_judges")
    assert export.sha256 == hashlib.sha256(written).hexdigest()
    assert export.counts == {
        "comparisons": 2,
        "rows": 2,
        "labels": {"single": 1, "split": 1},
        "excluded": {},
        "noted": {},
    }
    assert export.size_bytes == len(written)
    assert export.finished_at is not None
    with open_export_file(export) as kept:
        assert kept.read() == written


def test_who_exported_what_is_recorded(evaluation: Evaluation) -> None:
    user = make_user()
    export = start_export(evaluation, written_as="csv", user=user)
    list(stream_export(export, Comparison.objects.filter(evaluation=evaluation)))
    told = Event.objects.filter(object_type="export", object_id=export.pk).order_by("pk")
    assert [(event.verb, event.user) for event in told] == [("began", user), ("exported", user)]


@pytest.mark.parametrize("written_as", EXPORT_FORMATS)
def test_the_same_rows_give_the_same_bytes(evaluation: Evaluation, comparison: Comparison, written_as: str) -> None:
    make_comparison(evaluation)
    wanted = ExportRequest(aspect="clarity" if EXPORT_FORMATS[written_as].wants_choice else "")
    first = exported(evaluation, written_as, wanted)[1]
    assert first or written_as == "scores"  # of which there are none
    assert exported(evaluation, written_as, wanted)[1] == first


def test_an_evaluation_without_comparisons_gives_a_csv_with_a_head_and_an_empty_jsonl(evaluation: Evaluation) -> None:
    assert exported(evaluation)[1] == b""
    assert exported(evaluation, "csv")[1].startswith(b"query_id,cluster,category,query,")


def test_a_reader_who_leaves_early_leaves_an_export_that_failed_and_no_file(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "BLOCK_BYTES", 1)
    for _ in range(3):
        make_comparison(evaluation)
    export = start_export(evaluation, written_as="jsonl", user=None)
    blocks = stream_export(export, Comparison.objects.filter(evaluation=evaluation))
    next(blocks)
    name = str(export.file.name)
    assert export.file.storage.exists(name)
    blocks.close()
    export.refresh_from_db()
    assert (export.state, export.rows, export.sha256, export.file.name) == (ExportState.FAILED, None, "", "")
    assert not Export._meta.get_field("file").storage.exists(name)
    with pytest.raises(InputRefused, match="no longer in storage"):
        open_export_file(export)


def test_what_cannot_be_written_is_refused_with_what_can(evaluation: Evaluation) -> None:
    with pytest.raises(InputRefused, match="Choose one of jsonl, csv"):
        start_export(evaluation, written_as="papyrus", user=None)
    assert not Export.objects.exists()


def test_a_judge_of_single_responses_stands_with_its_scores_and_what_they_say(evaluation: Evaluation) -> None:
    made, failed = make_comparison(evaluation, key="q1"), make_comparison(evaluation, key="q2")
    scorer = make_scoring_judge(evaluation, margin=0.5)
    make_judge_verdicts(made, judge="a rule", as_stored={"overall": A})
    make_judge_score(scorer, made.response_a, 4, rationale="Right.")
    make_judge_score(scorer, made.response_b, 2, rationale="Wrong.")
    make_judge_score(scorer, failed.response_a, 4)
    make_judge_score(scorer, failed.response_b, "refused")
    first, second = as_json(evaluation)
    assert [judge["judge"] for judge in first["judges"]] == ["a rule", "scorer"]
    judge = first["judges"][1]
    assert (judge["kind"], judge["rubric"], judge["failures"]) == ("llm", "rubric of scorer 1", {})
    scores = {"A": 4.0, "B": 2.0, "margin": 0.5}
    assert judge["choices"] == {"overall": {"choice": "A", "inconsistent": False, "orders": {}, "scores": scores}}
    assert judge["rationales"] == {"response_a": ["Right."], "response_b": ["Wrong."]}
    assert (second["judges"][0]["choices"], second["judges"][0]["failures"]) == ({}, {"refused": 1})
    cells, _ = as_csv(evaluation)
    assert cells["judge:scorer:overall"] == "A"
    assert cells["judge:scorer:overall:orders"] == "derived from scores A=4.0 B=2.0 margin=0.5"
    assert cells["judge:scorer (rationale)"] == "response_a: Right.\n\nresponse_b: Wrong."


def test_rows_come_in_chunks_of_eight_queries_each(evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six comparisons in chunks of two: three chunks of eight queries, and one that finds nothing more."""
    monkeypatch.setattr(chunk_reader, "CHUNK_ROWS", 2)
    ada = make_member(evaluation, Role.ADJUDICATOR, "ada")
    for _ in range(6):
        made = make_comparison(evaluation)
        for name in ("ann", "bob", "eve"):
            make_imported_votes(made, name, {"clarity": A, "safety": B})
        make_judge_verdicts(made, as_stored={"clarity": A}, swapped={"clarity": A})
        make_judge_verdicts(made, judge="second", kind="llm", as_stored={"clarity": A})
        Comment.objects.create(comparison=made, user=ada, text="Hm.")
        resolve_aspect(made, get_or_make_aspect(evaluation, "clarity"), choice="B", reason="So.", version=0, user=ada)
    those = load_participants(evaluation)
    with CaptureQueriesContext(connection) as queries:
        rows = iterate_full_rows(Comparison.objects.filter(evaluation=evaluation), those)
        counts = [len(queries) for _ in rows]
    assert counts == [8, 8, 15, 15, 22, 22]
    assert len(queries) == 23


def test_the_labels_of_a_row_are_those_that_the_pages_show(evaluation: Evaluation) -> None:
    """One of each: people agree, differ, are overruled, score; a panel, a judge, a calibration, nobody, one twice."""
    makings = [make_comparison(evaluation) for _ in range(9)]
    agreed, split, settled, scored, by_panel, by_judge, calibrated, _, again = makings
    for made, choices in ((agreed, (A, A, B)), (split, (A, B)), (settled, (A, B))):
        for choice in choices:
            make_review(make_human(evaluation), made, {"clarity": choice})
    ada = make_member(evaluation, Role.ADJUDICATOR, "ada")
    resolve_aspect(settled, get_or_make_aspect(evaluation, "clarity"), choice="tie", reason="So.", version=0, user=ada)
    make_scored_review(make_human(evaluation), scored, {"clarity": (4, 2)})
    make_review(make_human(evaluation), calibrated, {"clarity": A}, selection_method=SelectionMethod.CALIBRATION)
    ann = make_human(evaluation, "ann")
    make_scored_review(ann, again, {"clarity": (4, 2)})
    make_review(ann, again, {"clarity": A, "depth": TIE})
    make_review(ann, again, {"clarity": B}, rubric_version=make_next_rubric_version(evaluation))
    batch = uuid.uuid4()
    for name in ("one", "two"):
        rater = make_judge_verdicts(by_panel, judge=name, kind="llm", as_stored={"clarity": B}, swapped={"clarity": B})
        assert rater.judge is not None
        Run.objects.create(evaluation=evaluation, judge=rater.judge, batch=batch)
    make_judge_verdicts(by_judge, judge="three", kind="llm", as_stored={"clarity": A, "depth": B})
    shown = decide_labels(evaluation, [one.pk for one in makings])
    told = [row["labels"] for row in as_json(evaluation)]
    assert told == [
        {
            aspect: {"choice": one.choice, "source": one.source, "n": one.n, "votes": one.votes, "by": one.by or None}
            for aspect, one in shown.get(made.pk, {}).items()
        }
        for made in makings
    ]
    sources = [{aspect: one["source"] for aspect, one in given.items()} for given in told]
    assert [given.get("clarity") for given in sources] == [
        *("majority", "split", "adjudicated", "single", "panel", "judge", None, None, "single")
    ]
    assert sources[5] == {"clarity": "judge", "depth": "judge"}
    assert {aspect: one["votes"] for aspect, one in told[-1].items()} == {"clarity": {"B": 1}, "depth": {"tie": 1}}


def test_scores_of_people_stand_with_the_choices_that_they_make(evaluation: Evaluation) -> None:
    make_scored_review(
        make_human(evaluation, "ann"), make_comparison(evaluation), {"clarity": (4, 2)}, final={"clarity": (3, 3)}
    )
    (row,) = as_json(evaluation)
    (person,) = row["people"]
    scores = {"first": {"A": 4.0, "B": 2.0}, "final": {"A": 3.0, "B": 3.0}, "margin": 0.5}
    assert person["choices"] == {
        "clarity": {"first": "A", "final": "tie", "note": "", "reason": None, "scores": scores}
    }
    (cells,) = as_csv(evaluation)
    assert (cells["person:ann:clarity:first"], cells["person:ann:clarity"]) == ("A", "tie")
    assert cells["person:ann:clarity:scores"] == "first A=4.0 B=2.0; final A=3.0 B=3.0; margin=0.5"


def test_everything_about_a_disagreement_is_exported(evaluation: Evaluation) -> None:
    made = make_comparison(evaluation)
    version = evaluation.review_rubric
    assert version is not None
    put = Queue.objects.create(
        evaluation=evaluation, rubric_version=version, name="flips", strategy=SelectionMethod.FLIPS
    )
    review = make_review(
        make_human(evaluation, "ann"),
        made,
        {"clarity": A},
        final={"clarity": B},
        notes={"clarity": "I overlooked it."},
        queue=put,
        selection_method=SelectionMethod.STRATIFIED,
        probability=0.25,
        active_ms=5_000,
        reveal=Reveal.RANDOMISED,
        judge_first=True,
        judge=make_judge_rater(evaluation).judge,
        blind=False,
    )
    review.verdicts.filter(stage="final").update(reason="my_mistake")
    clarity, ada = get_or_make_aspect(evaluation, "clarity"), make_member(evaluation, Role.ADJUDICATOR, "ada")
    Span.objects.create(
        review=review, response=made.response_b, aspect=clarity, start=4, end=11, quote="capital", comment="Not Lyon."
    )
    Comment.objects.create(comparison=made, aspect=clarity, user=ada, text="Why B?")
    Comment.objects.create(comparison=made, user=ada, text="Forget it.", withdrawn_at=timezone.now())
    resolve_aspect(made, clarity, choice="A", reason="Paris it is.", version=0, user=ada)
    Adjudication.objects.update(changed_at=datetime(2026, 1, 2, 3, 4, 5, 6, UTC))
    Comment.objects.update(created_at=datetime(2026, 1, 1, tzinfo=UTC))
    (row,) = as_json(evaluation)
    settled = {"choice": "A", "category": "", "reason": "Paris it is.", "by": "ada", "at": "2026-01-02T03:04:05+00:00"}
    assert row["adjudications"] == {"clarity": {**settled, "in_bulk": False}}
    assert row["labels"] == {
        "clarity": {"choice": "A", "source": "adjudicated", "n": 1, "votes": {"B": 1}, "by": "ada"}
    }
    said = {"author": "ada", "aspect": "clarity", "text": "Why B?", "at": "2026-01-01T00:00:00+00:00"}
    assert row["comments"] == [said]
    (person,) = row["people"]
    assert person["choices"]["clarity"]["reason"] == "my_mistake"
    span = {"response": "B", "turn": 0, "start": 4, "end": 11, "quote": "capital", "comment": "Not Lyon."}
    assert person["spans"] == [{**span, "aspect": "clarity"}]
    came = {"picked_by": "stratified", "round": "flips", "probability": 0.25, "calibration": False, "active_ms": 5000}
    shown = {"reveal": "randomised", "judge_first": True, "judge_shown": "longest", "awaits_judge": False}
    assert {name: person[name] for name in (*came, *shown)} == came | shown
    (cells,) = as_csv(evaluation)
    assert cells["adjudication:clarity"] == "A"
    assert [cells[f"adjudication:clarity:{part}"] for part in ("category", "reason", "by", "at")] == [
        *settled.values()
    ][1:]
    assert cells["adjudication:clarity:in_bulk"] == "no"
    assert cells["label:clarity:by"] == "ada"
    assert json.loads(cells["comments"]) == [said]
    assert json.loads(cells["person:ann (spans)"]) == person["spans"]
    assert (cells["person:ann:clarity:reason"], cells["person:ann (round)"]) == ("my_mistake", "flips")
    assert (cells["person:ann (probability)"], cells["person:ann (judge_first)"]) == ("0.25", "yes")
    assert (cells["person:ann (judge_shown)"], cells["person:ann (blind)"]) == ("longest", "no")


def test_who_skipped_a_comparison_stands_apart_with_the_reason_and_counts_in_no_label(evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    make_review(make_human(evaluation, "ann"), comparison, {"clarity": A})
    for name, reason in (("eve", ""), ("ben", "=not my field")):
        user = make_member(evaluation, Role.REVIEWER, name)
        skip_comparison(user, comparison, reason=reason, version=0)
    back = make_member(evaluation, Role.REVIEWER, "cem")
    review = skip_comparison(back, comparison, reason="Later.", version=0)
    undo_last_step(back, review, version=review.version)
    Review.objects.filter(state="skipped").update(finished_at=datetime(2026, 1, 2, tzinfo=UTC))
    (row,) = as_json(evaluation)
    at = {"rubric": "six-aspect 1", "at": "2026-01-02T00:00:00+00:00"}
    assert row["skipped"] == [
        {"rater": "ben", "reason": "=not my field", **at},
        {"rater": "eve", "reason": "", **at},
    ]
    assert [person["rater"] for person in row["people"]] == ["ann"]
    assert row["labels"]["clarity"]["n"] == 1
    (cells,) = as_csv(evaluation)
    assert json.loads(cells["skipped"]) == row["skipped"]


def test_a_calibration_is_exported_with_a_mark_and_makes_no_label(evaluation: Evaluation) -> None:
    make_review(
        make_human(evaluation, "ann"),
        make_comparison(evaluation),
        {"clarity": A},
        selection_method=SelectionMethod.CALIBRATION,
    )
    (row,) = as_json(evaluation)
    assert (row["people"][0]["calibration"], row["people"][0]["picked_by"]) == (True, "calibration")
    assert row["labels"] == {}


def test_rows_are_written_while_they_are_read(evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first block is there after the first chunk: the whole list never is."""
    monkeypatch.setattr(chunk_reader, "CHUNK_ROWS", 1)
    monkeypatch.setattr(writer, "BLOCK_BYTES", 1)
    for _ in range(5):
        make_comparison(evaluation)
    export = start_export(evaluation, written_as="jsonl", user=None)
    with CaptureQueriesContext(connection) as queries:
        blocks = stream_export(export, Comparison.objects.filter(evaluation=evaluation))
        asked = [sum("evaluations_comparison" in query["sql"][:4000] for query in queries) for _ in blocks]
    steps = [later - earlier for earlier, later in itertools.pairwise(asked)]
    assert len(asked) == 5
    assert len(set(steps)) == 1


def test_rows_of_an_unfinished_import_are_not_exported(evaluation: Evaluation) -> None:
    made = make_comparison(evaluation)
    make_imported_votes(made, "ann", {"clarity": A})
    made.verdicts.update(source_import=make_import(evaluation, "storing"))
    (row,) = as_json(evaluation)
    assert (row["people"], row["labels"]) == ([], {})


def imported(evaluation: Evaluation, name: str, content: bytes) -> None:
    checked = preview_file(evaluation, io.BytesIO(content), name, ImportRequest(), user=None)
    start_storing(checked, skip_bad=False, user=None)
    continue_import(checked)


def material(evaluation: Evaluation) -> list[dict[str, Any]]:
    return [{name: row[name] for name in MATERIAL} for row in as_json(evaluation)]


@pytest.mark.parametrize("written_as", WHOLE)
def test_an_exported_study_is_imported_again_as_the_same_comparisons(written_as: str) -> None:
    """Every kind of text is in the example: code, tables, several turns, Arabic, Japanese, a CSV as context."""
    example, again = load_example(owner=None), make_evaluation()
    assert example is not None
    imported(again, f"example.{written_as}", exported(example, written_as)[1])
    assert len(material(example)) == 120
    assert material(again) == material(example)


@pytest.mark.parametrize("written_as", WHOLE)
def test_any_text_is_exported_imported_and_exported_as_it_was(written_as: str) -> None:
    @settings(max_examples=8)
    @given(rows=st.lists(any_exported_row(), min_size=1, max_size=4, unique_by=lambda row: row["query_id"]))
    def check(rows: list[ExportedRow]) -> None:
        one, again = make_evaluation(), make_evaluation()
        imported(one, "rows.jsonl", b"".join(map(encode_line, rows)))
        imported(again, f"rows.{written_as}", exported(one, written_as)[1])
        assert len(material(one)) == len(rows)
        assert material(again) == material(one)

    check()


@pytest.mark.data
@pytest.mark.parametrize("written_as", WHOLE)
def test_real_data_comes_back_as_it_was_and_failures_are_told(
    evaluation: Evaluation, acceptance_data: Path, written_as: str
) -> None:
    """999 pairs, 54 of them with an empty response, and 25 answers of a judge that could not be read."""
    again = make_evaluation()
    for name in ("testset-v1.json", "gpt-3.5-turbo-testset-v1.json"):
        imported(evaluation, name, (acceptance_data / "pandalm" / name).read_bytes())
    imported(again, f"pandalm.{written_as}", exported(evaluation, written_as)[1])
    assert sum(not row["response_a"] or not row["response_b"] for row in material(evaluation)) == 54
    assert material(again) == material(evaluation)
    failed = [judge["failures"] for row in as_json(evaluation) for judge in row["judges"] if judge["failures"]]
    assert failed == [{"unreadable": 1}] * 25

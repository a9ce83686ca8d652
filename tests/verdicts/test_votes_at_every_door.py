"""One person, several reviews of one comparison: the label, the pages, the report and every export count one vote."""

import csv
import io
import json
from dataclasses import replace
from typing import Any

import pytest

from evaluations.domain.choices import Choice
from evaluations.domain.judges import CallState
from evaluations.domain.reports import ReportRules
from evaluations.domain.reviews import SelectionMethod
from evaluations.evaluation_settings.services import change_evaluation
from evaluations.exports.options import ExportRequest
from evaluations.exports.services import start_export
from evaluations.exports.writer import stream_export
from evaluations.judges.services import archive_judge
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.runs import Call
from evaluations.models.verdicts import Label, Verdict
from evaluations.reports.selectors import get_full_report
from evaluations.rubrics.services import create_next_version
from evaluations.verdicts.reviewer_choices import get_reviewer_choices
from evaluations.verdicts.vote_table import build_vote_table
from evaluations.verdicts.votes import count_votes, update_labels
from tests.factories.evaluations import make_comparison, make_evaluation, make_human
from tests.factories.imports import import_rows
from tests.factories.verdicts import (
    get_or_make_aspect,
    get_or_make_run,
    make_imported_votes,
    make_judge_rater,
    make_judge_score,
    make_next_rubric_version,
    make_review,
    make_scored_review,
    make_scoring_judge,
    repack_votes_of,
)

pytestmark = pytest.mark.django_db

A, B, TIE = Choice.A, Choice.B, Choice.TIE
FACTUALITY = "factuality"


def without(evaluation: Evaluation, key: str) -> None:
    """The next version of the rubric in force, without this aspect."""
    version = evaluation.review_rubric
    assert version is not None
    spec = version.spec()
    aspects = tuple(one for one in spec.aspects if one.key != key)
    spec = replace(spec, aspects=aspects, output_order=tuple(one for one in spec.output_order if one != key))
    change_evaluation(evaluation, {"review_rubric": create_next_version(version.rubric, spec, user=None)}, user=None)


def exported(evaluation: Evaluation, written_as: str, aspect: str) -> tuple[bytes, dict[str, int]]:
    wanted = (
        ExportRequest(aspect=aspect)
        if aspect and written_as not in ("jsonl", "verdicts", "scores")
        else ExportRequest()
    )
    export = start_export(evaluation, written_as=written_as, user=None, request=wanted)
    content = b"".join(stream_export(export, Comparison.objects.filter(evaluation=evaluation)))
    export.refresh_from_db()
    return content, export.counts["excluded"]


def first_choices(evaluation: Evaluation, aspect: str) -> list[str]:
    rows = map(json.loads, exported(evaluation, "verdicts", aspect)[0].splitlines())
    return [row["choice"] for row in rows if row["aspect"] == aspect]


def every_door(evaluation: Evaluation, aspect: str) -> dict[str, Any]:
    """What each door says of ann's vote on the one comparison: lists of choices, one entry for each vote."""
    (comparison,) = Comparison.objects.filter(evaluation=evaluation)
    update_labels([comparison.pk])
    about = get_or_make_aspect(evaluation, aspect)
    (label,) = Label.objects.filter(comparison=comparison, aspect=about)
    table = build_vote_table(comparison, with_judges=True)
    cells = [row.cells[table.aspects.index(about)] for row in table.rows]
    found = get_full_report(evaluation, ReportRules()).aspects[aspect]
    alpaca = json.loads(exported(evaluation, "alpaca-eval", aspect)[0])
    mt_bench = [json.loads(line) for line in exported(evaluation, "mt-bench-human", aspect)[0].splitlines()]
    (comparator,) = json.loads(exported(evaluation, "llm-comparator", aspect)[0])["examples"]
    (row,) = map(json.loads, exported(evaluation, "jsonl", aspect)[0].splitlines())
    choices = found.human_human.majority_choices.choices
    return {
        "label": [label.choice] * label.votes,
        "votes": list(count_votes([comparison.pk])[comparison.pk, about.pk].elements()),  # type: ignore[attr-defined]
        "discussion": [
            voice.current.choice
            for voice in get_reviewer_choices(comparison)[about]
            if voice.is_vote and not voice.is_replaced and voice.current
        ],
        "page": [choice for cell in cells if cell for choice in cell.choices],
        "report": [choice for choice in (A, B, TIE) for _ in range(choices[choice])],
        "verdicts": first_choices(evaluation, aspect),
        "alpaca-eval": [{1.0: A, 2.0: B, 1.5: TIE}[one["preference"]] for one in alpaca],
        "mt-bench": [{"model_a": A, "model_b": B, "tie": TIE}[one["winner"]] for one in mt_bench],
        "llm-comparator": [{1.0: A, -1.0: B, 0.0: TIE}[one["score"]] for one in comparator["individual_rater_scores"]],
        "jsonl": [row["labels"][aspect]["choice"]] * row["labels"][aspect]["n"],
    }


def assert_every_door(evaluation: Evaluation, aspect: str, *choices: Choice) -> None:
    assert every_door(evaluation, aspect) == {key: list(choices) for key in every_door(evaluation, aspect)}


def test_a_newer_review_without_the_aspect_leaves_the_older_vote_on_it(evaluation: Evaluation) -> None:
    ann, comparison = make_human(evaluation, "ann"), make_comparison(evaluation)
    make_review(ann, comparison, {FACTUALITY: A, "clarity": A})
    without(evaluation, FACTUALITY)
    make_review(ann, Comparison.objects.get(), {"clarity": B})
    assert_every_door(evaluation, FACTUALITY, A)
    assert_every_door(evaluation, "clarity", B)
    content, excluded = exported(evaluation, "verdicts", "")
    rubrics = {row["aspect"]: row["rubric"] for row in map(json.loads, content.splitlines())}
    assert rubrics == {FACTUALITY: "six-aspect 1", "clarity": "six-aspect 2"}
    assert excluded == {"replaced_by_newer_review": 1}


def test_a_newer_review_that_is_not_confirmed_leaves_the_older_vote(evaluation: Evaluation) -> None:
    ann, comparison = make_human(evaluation, "ann"), make_comparison(evaluation)
    make_review(ann, comparison, {FACTUALITY: A})
    make_next_rubric_version(evaluation)
    make_review(ann, Comparison.objects.get(), {FACTUALITY: B}, confirmed=False)
    assert_every_door(evaluation, FACTUALITY, A)


def test_three_reviews_of_one_person_are_one_vote_that_of_the_newest(evaluation: Evaluation) -> None:
    ann, comparison = make_human(evaluation, "ann"), make_comparison(evaluation)
    for choice in (A, TIE, B):
        make_review(ann, comparison, {FACTUALITY: choice})
        make_next_rubric_version(evaluation)
        comparison = Comparison.objects.get()
    make_review(ann, comparison, {FACTUALITY: A}, selection_method=SelectionMethod.CALIBRATION)
    doors = every_door(evaluation, FACTUALITY)
    del doors["page"]  # shows calibration, too
    assert doors == {key: [B] for key in doors}


def test_first_choices_that_nothing_replaces_are_exported_before_they_are_confirmed(evaluation: Evaluation) -> None:
    make_review(make_human(evaluation, "ann"), make_comparison(evaluation), {FACTUALITY: A}, confirmed=False)
    assert first_choices(evaluation, FACTUALITY) == ["A"]
    assert get_full_report(evaluation, ReportRules()).aspects[FACTUALITY].human_votes.blind == 1


@pytest.mark.parametrize("written_as", ["alpaca-eval", "mt-bench-human", "llm-comparator"])
def test_a_replaced_vote_is_counted_where_it_is_left_out(evaluation: Evaluation, written_as: str) -> None:
    ann, comparison = make_human(evaluation, "ann"), make_comparison(evaluation)
    make_review(ann, comparison, {FACTUALITY: A})
    make_next_rubric_version(evaluation)
    make_review(ann, Comparison.objects.get(), {FACTUALITY: B})
    assert exported(evaluation, written_as, FACTUALITY)[1]["replaced_by_newer_review"] == 1


def test_scores_given_again_replace_the_older_ones_aspect_by_aspect(evaluation: Evaluation) -> None:
    """A second review scores clarity alone: of depth the older scores stay."""
    ann, comparison = make_human(evaluation, "ann"), make_comparison(evaluation)
    make_scored_review(ann, comparison, {"clarity": (4, 2), "depth": (5, 1)})
    first = comparison.reviews.get().rubric_version
    again = another_version_of(evaluation, first)
    make_scored_review(ann, comparison, {"clarity": (1, 3)}, rubric_version=again)
    content, excluded = exported(evaluation, "scores", "")
    given = {(row["candidate"], row["aspect"]): row["value"] for row in map(json.loads, content.splitlines())}
    assert given == {("alpha", "clarity"): 1, ("beta", "clarity"): 3, ("alpha", "depth"): 5, ("beta", "depth"): 1}
    assert excluded == {"replaced_by_newer_review": 2}


def test_a_choice_given_after_scores_replaces_them(evaluation: Evaluation) -> None:
    ann, comparison = make_human(evaluation, "ann"), make_comparison(evaluation)
    make_scored_review(ann, comparison, {"clarity": (4, 2)})
    make_review(ann, comparison, {"clarity": B})
    assert exported(evaluation, "scores", "") == (b"", {"replaced_by_newer_review": 2})
    assert first_choices(evaluation, "clarity") == ["B"]


def test_votes_given_as_scores_are_counted_where_choices_alone_are_written(evaluation: Evaluation) -> None:
    """Ann scored both responses on two aspects, which makes two votes; so did a judge on one. Ben chose."""
    ann, ben, comparison = make_human(evaluation, "ann"), make_human(evaluation, "ben"), make_comparison(evaluation)
    make_scored_review(ann, comparison, {"clarity": (4, 2), "depth": (5, 1)})
    make_review(ben, comparison, {"clarity": B})
    scorer = make_scoring_judge(evaluation)
    for response, value in ((comparison.response_a, 4), (comparison.response_b, 2)):
        make_judge_score(scorer, response, value)
    assert first_choices(evaluation, "clarity") == ["B"]
    assert exported(evaluation, "verdicts", "")[1] == {"given_as_scores": 3}
    assert exported(evaluation, "scores", "")[1] == {}
    assert scorer.judge
    archive_judge(scorer.judge, user=None)
    assert exported(evaluation, "verdicts", "")[1] == {"given_as_scores": 2}
    assert exported(evaluation, "scores", "")[1] == {"judge_archived": 2}


def test_gold_labels_that_contradict_each_other_are_exported_as_both(evaluation: Evaluation) -> None:
    """The report counts neither; of two equal ones there is one."""
    comparison = make_comparison(evaluation)
    for sample, choices in enumerate([{"clarity": A, "depth": B}, {"clarity": B, "depth": B}]):
        make_imported_votes(comparison, "expert", choices, kind="gold", sample=sample)
    (row,) = map(json.loads, exported(evaluation, "jsonl", "")[0].splitlines())
    assert [one["choices"] for one in row["gold"]] == [{"clarity": "A", "depth": "B"}, {"clarity": "B"}]
    assert [one["preference"] for one in json.loads(exported(evaluation, "alpaca-eval", "clarity")[0])] == [1, 2]
    (cells,) = csv.DictReader(io.StringIO(exported(evaluation, "csv", "")[0].decode(), newline=""))
    assert (cells["gold:expert:clarity"], cells["gold:expert:depth"]) == ("A | B", "B")


def test_every_sample_of_a_judge_stands_at_its_place_in_both_orders(evaluation: Evaluation) -> None:
    """The first sample failed in one order and wrote nothing in the other."""
    comparison = make_comparison(evaluation)
    gpt = make_judge_rater(evaluation, "gpt", kind="llm")
    about = get_or_make_aspect(evaluation, "clarity")
    said = [("as_stored", 0, "", "thought"), ("as_stored", 1, B, "B!"), ("swapped", 0, A, ""), ("swapped", 1, TIE, "=")]
    for shown, sample, choice, rationale in said:
        one = {"comparison": comparison, "shown": shown, "sample": sample}
        state = CallState.ANSWERED if choice else CallState.UNREADABLE
        assert gpt.judge
        call = Call.objects.create(
            judge=gpt.judge, run=get_or_make_run(gpt.judge), state=state, rationale=rationale, **one
        )
        if choice:
            Verdict.objects.create(rater=gpt, aspect=about, choice=choice, call=call, **one)
    repack_votes_of(comparison)
    (row,) = map(json.loads, exported(evaluation, "jsonl", "")[0].splitlines())
    (told,) = row["judges"]
    assert told["choices"]["clarity"]["orders"] == {"as_stored": [None, "B"], "swapped": ["A", "tie"]}
    assert told["rationales"] == {"as_stored": ["thought", "B!"], "swapped": ["", "="]}
    judgments = [json.loads(line) for line in exported(evaluation, "mt-bench", "clarity")[0].splitlines()]
    assert [(one["g1_winner"], one["g2_winner"]) for one in judgments] == [("error", "model_1"), ("model_2", "tie")]
    (comparator,) = json.loads(exported(evaluation, "llm-comparator", "clarity")[0])["examples"]
    ratings = [(one["score"], one["rationale"]) for one in comparator["individual_rater_scores"]]
    assert ratings == [(-1, "B!"), (1, ""), (0, "=")]


def another_version_of(evaluation: Evaluation, version: Any) -> Any:
    spec = version.spec()
    changed = tuple(replace(one, definition=f"{one.definition} again") for one in spec.aspects)
    return create_next_version(version.rubric, replace(spec, aspects=changed), user=None)


def test_a_blind_vote_stays_beside_that_of_a_review_which_saw_the_judge(evaluation: Evaluation) -> None:
    """Statistics are about the blind one, the label about the newer. Read again, both are samples of one reviewer."""
    ann, comparison = make_human(evaluation, "ann"), make_comparison(evaluation, key="q1")
    make_review(ann, comparison, {FACTUALITY: A})
    make_next_rubric_version(evaluation)
    make_review(ann, Comparison.objects.get(), {FACTUALITY: B}, blind=False, judge_first=True)
    content, excluded = exported(evaluation, "verdicts", "")
    rows = [json.loads(line) for line in content.splitlines()]
    told = [(row["sample"], row["choice"], row["final_choice"], row["blind"]) for row in rows]
    assert (told, excluded) == ([(0, "B", "B", False), (1, "A", "A", True)], {})
    votes = get_full_report(evaluation, ReportRules()).aspects[FACTUALITY].human_votes
    assert (votes.blind, votes.saw_judge_first) == (1, 1)
    other = make_evaluation(slug="other")
    make_comparison(other, key="q1")
    assert import_rows(other, *rows).rows_stored == len(rows)

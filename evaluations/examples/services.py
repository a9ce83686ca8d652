"""The example evaluation that comes with the product: the same data each time it is loaded."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Final

from django.db import transaction
from django.utils import timezone

from evaluations.audit.events import record_event
from evaluations.disagreements.services import add_comment, resolve_aspect
from evaluations.domain.choices import Choice, ShownOrder, Stage
from evaluations.domain.files import FileFormat, ReadOptions
from evaluations.domain.imports import ImportRequest
from evaluations.domain.json_values import JsonDict, JsonMapping
from evaluations.domain.reviews import ReviewState, SelectionMethod
from evaluations.domain.roles import RaterKind
from evaluations.evaluation_settings.services import change_evaluation
from evaluations.imports.lifecycle import continue_import
from evaluations.imports.preview import preview_file
from evaluations.imports.services import start_storing
from evaluations.judge_prompts.baseline_rules import LONGEST_RULE
from evaluations.judges.calls.baseline_worker import work_baseline_run
from evaluations.judges.calls.work_session import begin_work_session
from evaluations.judges.runs.planner import plan_run_calls
from evaluations.judges.runs.services import start_run
from evaluations.judges.runs.transitions import finish_run
from evaluations.judges.services import JudgeSettings, create_judge
from evaluations.llm.retry_policy import RetryPolicy
from evaluations.members.services import create_account
from evaluations.models.bulk import insert_objects
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Judge, Rater
from evaluations.models.rubrics import Aspect
from evaluations.models.users import User
from evaluations.models.verdicts import Review, Verdict
from evaluations.overview.services import create_evaluation
from evaluations.reviews.queues.items import fill_default_queue
from evaluations.reviews.services import get_review_rubric
from evaluations.verdicts.changes import ChangedRow, record_changes
from evaluations.verdicts.label_updates import count_votes_left
from evaluations.verdicts.packed_votes import get_aspect_positions, pack_verdicts
from evaluations.verdicts.votes import update_labels

EXAMPLE_SLUG: Final = "example"
EXAMPLE_NAME: Final = "Example: two assistants, 120 questions"
EXAMPLE_DESCRIPTION: Final = (
    "Two invented assistants, heron-2 and plover-mini, answer the same 120 questions. Two sample judges and three "
    "sample reviewers compared them; sample-judge-long prefers long responses."
)
EXAMPLE_FOLDER: Final = Path(__file__).parent / "example"
GOOD_JUDGE: Final = "sample-judge"
LENGTH_BIASED_JUDGE: Final = "sample-judge-long"
# The author of the sample resolutions and comments: an account that nobody can sign in to.
SAMPLE_LEAD: Final = "sample-lead"
BASELINE_SECONDS: Final = 10.0
REVIEWS_WANTED: Final = 3
# The files hold a choice as one letter, in the order of these aspects.
ASPECT_ORDER: Final = ("helpfulness", "factuality", "clarity", "depth", "engagement", "safety")
CHOICE_LETTERS: Final = {"A": Choice.A, "B": Choice.B, "t": Choice.TIE}


def load_example(*, owner: User | None) -> Evaluation | None:
    """Create the example evaluation; None if there is one already, archived or not."""
    if Evaluation.objects.filter(is_example=True).exists():
        return None
    with transaction.atomic():
        evaluation = create_evaluation(
            slug=EXAMPLE_SLUG,
            name=EXAMPLE_NAME,
            description=EXAMPLE_DESCRIPTION,
            owner=owner,
            by=None,
            is_example=True,
        )
        guidelines = (EXAMPLE_FOLDER / "guidelines.md").read_text(encoding="utf-8")
        change_evaluation(evaluation, {"guidelines": guidelines, "reviews_wanted": REVIEWS_WANTED}, user=owner)
        comparisons = (EXAMPLE_FOLDER / "comparisons.jsonl").read_bytes()
        import_example_file(evaluation, "comparisons.jsonl", FileFormat.COMPARISONS, comparisons, owner)
        for name in (GOOD_JUDGE, LENGTH_BIASED_JUDGE):
            rows = "\n".join(map(json.dumps, iterate_judge_rows(name)))
            import_example_file(evaluation, f"{name}.jsonl", FileFormat.VERDICTS, rows.encode(), owner)
        run_example_baseline(evaluation, owner)
        judge = Judge.objects.get(evaluation=evaluation, name=GOOD_JUDGE)
        change_evaluation(evaluation, {"shown_judge": judge}, user=owner)
        add_example_reviews(evaluation, judge, owner)
        if owner is not None:  # the first account of a site is its owner's
            add_example_discussion(evaluation)
    return evaluation


def read_example_lines(name: str) -> list[JsonDict]:
    with (EXAMPLE_FOLDER / name).open(encoding="utf-8") as file:
        return list(map(json.loads, file))


def import_example_file(
    evaluation: Evaluation, name: str, file_format: FileFormat, content: bytes, owner: User | None
) -> None:
    request = ImportRequest(ReadOptions(format=file_format))
    checked = preview_file(evaluation, BytesIO(content), name, request, user=owner)
    start_storing(checked, skip_bad=False, user=owner)
    continue_import(checked)
    count_votes_left(evaluation)


def iterate_judge_rows(judge: str) -> Iterator[JsonDict]:
    """The recorded replies of a sample judge as rows of the verdicts format.

    A line has six letters for each order, or the state of a failed reply.
    """
    for line, shown in product(read_example_lines(f"{judge}.jsonl"), (ShownOrder.AS_STORED, ShownOrder.SWAPPED)):
        row: JsonDict = {
            "query_id": line["query_id"],
            "candidate_a": "heron-2",
            "candidate_b": "plover-mini",
            "rater": judge,
            "rater_kind": RaterKind.JUDGE.value,
            "shown_swapped": shown == ShownOrder.SWAPPED,
        }
        reply: str = line[shown.value]
        if not set(reply) <= CHOICE_LETTERS.keys():
            yield {**row, "aspect": ASPECT_ORDER[0], "choice": reply}
            continue
        rationale = line.get(f"rationale_{shown}", line["rationale"])
        for aspect, choice in read_choices(reply).items():
            yield {**row, "aspect": aspect, "choice": choice.value, "rationale": rationale}
            rationale = ""  # one for all aspects


def read_choices(letters: str) -> dict[str, Choice]:
    return {aspect: CHOICE_LETTERS[letter] for aspect, letter in zip(ASPECT_ORDER, letters, strict=True)}


def run_example_baseline(evaluation: Evaluation, owner: User | None) -> None:
    """Run the rule judge on everything in both orders. Workers finish a run that takes too long."""
    judge = create_judge(
        evaluation, JudgeSettings(name=LONGEST_RULE, model=LONGEST_RULE, version=evaluation.review_rubric), user=owner
    )
    run = start_run(judge, user=owner)
    until = time.monotonic() + BASELINE_SECONDS
    plan_run_calls(run.pk, until=until)
    if session := begin_work_session(run.pk, RetryPolicy()):
        work_baseline_run(session, until=until, hand_over=lambda: None)
        finish_run(run)


def add_example_reviews(evaluation: Evaluation, judge: Judge, owner: User | None) -> None:
    """Add the reviews of the three invented reviewers, marked as examples."""
    lines = read_example_lines("reviews.jsonl")
    comparisons = get_example_comparisons(evaluation)
    names = sorted({line["rater"] for line in lines})
    raters = {name: Rater.objects.create(evaluation=evaluation, kind=RaterKind.HUMAN, name=name) for name in names}
    now, rubric = timezone.now(), get_review_rubric(evaluation)
    reviews = Review.objects.bulk_create(
        Review(
            rater=raters[line["rater"]],
            comparison=comparisons[line["query_id"]],
            rubric_version=rubric,
            shown=line["shown"],
            state=ReviewState.FINAL,
            judge=judge,
            selection_method=SelectionMethod.RANDOM,
            probability=1.0,
            first_saved_at=now - timedelta(seconds=10),
            finished_at=now,
            active_ms=line["seconds"] * 1000,
            is_example=True,
        )
        for line in lines
    )
    add_example_verdicts(evaluation, reviews, lines)
    update_labels([review.comparison_id for review in reviews])
    record_changes(evaluation.pk, [ChangedRow(review.rater_id, review.comparison_id) for review in reviews])
    fill_default_queue(evaluation)  # gives these reviews their places in the queue
    record_event("loaded reviews", evaluation, user=owner, evaluation=evaluation, after={"example reviews": len(lines)})


def get_example_comparisons(evaluation: Evaluation) -> dict[str, Comparison]:
    rows = Comparison.objects.filter(evaluation=evaluation).select_related("query", "evaluation")
    return {comparison.query.key: comparison for comparison in rows}


def add_example_verdicts(evaluation: Evaluation, reviews: Sequence[Review], lines: Sequence[JsonMapping]) -> None:
    """Add first choices, and final ones, which differ where the line says so."""
    aspects = get_example_aspects(evaluation)
    verdicts = [
        Verdict(
            rater=review.rater,
            comparison=review.comparison,
            aspect=aspects[key],
            stage=stage,
            shown=review.shown,
            choice=choice,
            review=review,
            note=notes.get(key, ""),
        )
        for review, line in zip(reviews, lines, strict=True)
        for stage, letters, notes in (
            (Stage.FIRST, line["first"], dict[str, str]()),
            (Stage.FINAL, line.get("final", line["first"]), line.get("notes", {})),
        )
        for key, choice in read_choices(letters).items()
    ]
    insert_objects(verdicts)
    insert_objects(pack_verdicts(verdicts, get_aspect_positions(evaluation.pk)))


def get_example_aspects(evaluation: Evaluation) -> Mapping[str, Aspect]:
    return {aspect.key: aspect for aspect in Aspect.objects.filter(evaluation=evaluation)}


def add_example_discussion(evaluation: Evaluation) -> None:
    """Resolve a few disagreements and comment on others in the name of an account that is switched off."""
    if User.objects.filter(username=SAMPLE_LEAD).exists():
        return
    lead = create_account(SAMPLE_LEAD, by=None, evaluation=evaluation)
    lead.is_active = False
    lead.save(update_fields=["is_active"])
    comparisons, aspects = get_example_comparisons(evaluation), get_example_aspects(evaluation)
    for line in read_example_lines("discussion.jsonl"):
        comparison = comparisons[line["query_id"]]
        if "comment" in line:
            add_comment(comparison, line["comment"], aspect=None, user=lead, readers=[])
        else:
            choice, reason = line["choice"], line["reason"]
            resolve_aspect(comparison, aspects[line["aspect"]], choice=choice, reason=reason, version=0, user=lead)

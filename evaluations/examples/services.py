"""The example evaluation that comes with the product."""

import json
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Final

from django.db import transaction
from django.utils import timezone

from evaluations.audit.events import record_event
from evaluations.domain.choices import Stage
from evaluations.domain.files import ReadOptions
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
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Judge, Rater
from evaluations.models.rubrics import Aspect, RubricVersion
from evaluations.models.users import User
from evaluations.models.verdicts import Review, Verdict
from evaluations.overview.services import create_evaluation
from evaluations.reviews.queues.items import fill_default_queue
from evaluations.reviews.services import get_review_rubric
from evaluations.verdicts.changes import ChangedRow, record_changes
from evaluations.verdicts.label_updates import count_votes_left
from evaluations.verdicts.packed_votes import pack_review_verdicts
from evaluations.verdicts.votes import update_labels

EXAMPLE_SLUG: Final = "example"
EXAMPLE_NAME: Final = "Example: two assistants, 24 questions"
EXAMPLE_DESCRIPTION: Final = (
    "Two invented assistants, heron-2 and plover-mini, answer the same 24 questions. Some responses are wrong, padded "
    "or unsafe on purpose. Review a few, then see in the report where the judge “longest” is fooled. "
    "The guidelines on the review page say what else to try."
)
EXAMPLE_FOLDER: Final = Path(__file__).parent / "example"
BASELINE_SECONDS: Final = 10.0
# Two by the example reviewers and one by the user.
REVIEWS_WANTED: Final = 3


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
        import_example_comparisons(evaluation, owner)
        run_example_baseline(evaluation, owner)
        add_example_reviews(evaluation, owner)
    return evaluation


def import_example_comparisons(evaluation: Evaluation, owner: User | None) -> None:
    with (EXAMPLE_FOLDER / "comparisons.jsonl").open("rb") as file:
        checked = preview_file(
            evaluation, file, "comparisons.jsonl", ImportRequest(ReadOptions(format="comparisons")), user=owner
        )
    start_storing(checked, skip_bad=False, user=owner)
    continue_import(checked)
    count_votes_left(evaluation)


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


def add_example_reviews(evaluation: Evaluation, owner: User | None) -> None:
    """Add the reviews of the two invented people, marked as examples."""
    rubric = get_review_rubric(evaluation)
    with (EXAMPLE_FOLDER / "reviews.jsonl").open(encoding="utf-8") as file:
        lines: list[JsonDict] = list(map(json.loads, file))
    rows = Comparison.objects.filter(evaluation=evaluation).select_related("query")
    comparisons = {comparison.query.key: comparison for comparison in rows}
    raters = {name: add_example_reviewer(evaluation, name) for name in dict.fromkeys(line["rater"] for line in lines)}
    shown = Judge.objects.filter(evaluation=evaluation, name=LONGEST_RULE).first()
    for line in lines:
        add_example_review(line, raters[line["rater"]], comparisons[line["query_id"]], rubric, shown)
    update_labels([comparison.pk for comparison in comparisons.values()])
    changes = [ChangedRow(raters[line["rater"]].pk, comparisons[line["query_id"]].pk) for line in lines]
    record_changes(evaluation.pk, changes)
    fill_default_queue(evaluation)  # gives these reviews their places in the queue
    record_event("loaded reviews", evaluation, user=owner, evaluation=evaluation, after={"example reviews": len(lines)})


def add_example_reviewer(evaluation: Evaluation, name: str) -> Rater:
    return Rater.objects.create(evaluation=evaluation, kind=RaterKind.HUMAN, name=name)


def add_example_review(
    line: JsonMapping, rater: Rater, comparison: Comparison, rubric: RubricVersion, judge: Judge | None
) -> None:
    """Add one review with first choices, and final ones where the file has changes."""
    now = timezone.now()
    review = Review.objects.create(
        rater=rater,
        comparison=comparison,
        rubric_version=rubric,
        shown=line["shown"],
        state=ReviewState.FINAL,
        judge=judge,
        selection_method=SelectionMethod.RANDOM,
        probability=1.0,
        first_saved_at=now - timedelta(seconds=10),
        finished_at=now,
        active_ms=line["seconds"] * 1000,
        note=line.get("note", ""),
        is_example=True,
    )
    first = line["first"]
    add_example_verdicts(review, Stage.FIRST, first, {})
    add_example_verdicts(review, Stage.FINAL, first | line.get("changed", {}), line.get("notes", {}))


def add_example_verdicts(review: Review, stage: Stage, choices: Mapping[str, str], notes: Mapping[str, str]) -> None:
    aspects = {aspect.key: aspect for aspect in Aspect.objects.filter(evaluation=review.rater.evaluation_id)}
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
        for key, choice in choices.items()
    ]
    Verdict.objects.bulk_create(verdicts)
    pack_review_verdicts(review, verdicts)

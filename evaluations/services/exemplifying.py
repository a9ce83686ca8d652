"""The example that comes with the product: a small study in which every page has something to show."""

import json
import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from evaluations.domain import PickedBy, RaterKind, Reading, ReviewState, Stage
from evaluations.judge.retrying import Patience
from evaluations.judge.rules import LONGEST
from evaluations.models import Aspect, Comparison, Evaluation, Judge, Rater, Review, RubricVersion, User, Verdict
from evaluations.services import balloting
from evaluations.services.importing import importing, previewing
from evaluations.services.judging import running, working
from evaluations.services.judging.judging import create_judge
from evaluations.services.judging.ruling import apply_rule
from evaluations.services.preparing.preparing import change_evaluation, create_evaluation
from evaluations.services.recording import record
from evaluations.services.reviewing import tallying
from evaluations.services.reviewing.filling import fill
from evaluations.services.reviewing.reviewing import rubric_in_force

SLUG: Final = "example"
NAME: Final = "Example: two assistants, 24 questions"
DESCRIPTION: Final = (
    "Two invented assistants, heron-2 and plover-mini, answer the same 24 questions. Some responses are wrong, padded "
    "or unsafe on purpose. Review a few, then see in the report where the judge “longest” is fooled. "
    "The guidelines on the review page say what else to try."
)
FOLDER: Final = Path(__file__).parent.parent / "example"
BASELINE_SECONDS: Final = 10.0
# Two example reviewers have been there; one more review of everything is wanted: yours.
REVIEWS_WANTED: Final = 3


def load_example(*, owner: User | None) -> Evaluation | None:
    """The example evaluation, or None where there is one already, archived or not."""
    if Evaluation.objects.filter(is_example=True).exists():
        return None
    with transaction.atomic():
        evaluation = create_evaluation(slug=SLUG, name=NAME, description=DESCRIPTION, owner=owner, is_example=True)
        guidelines = (FOLDER / "guidelines.md").read_text(encoding="utf-8")
        change_evaluation(evaluation, {"guidelines": guidelines, "reviews_wanted": REVIEWS_WANTED}, user=owner)
        import_comparisons(evaluation, owner)
        run_baseline(evaluation, owner)
        write_reviews(evaluation, owner)
    return evaluation


def import_comparisons(evaluation: Evaluation, owner: User | None) -> None:
    with (FOLDER / "comparisons.jsonl").open("rb") as file:
        checked = previewing.preview(
            evaluation, file, file_name="comparisons.jsonl", reading=Reading(format="comparisons"), user=owner
        )
    importing.begin(checked, skip_bad=False, user=owner)
    importing.store(checked)
    tallying.tally_import(checked)


def run_baseline(evaluation: Evaluation, owner: User | None) -> None:
    """The rule judge over everything, in both orders; what takes too long is left to the workers."""
    judge = create_judge(evaluation, name=LONGEST, model=LONGEST, version=evaluation.review_rubric, user=owner)
    run = running.start_run(judge, user=owner)
    until = time.monotonic() + BASELINE_SECONDS
    running.plan(run.pk, until=until)
    if bout := working.begin(run.pk, Patience()):
        apply_rule(bout, until=until, hand_over=lambda: None)
        running.finish(run)


def write_reviews(evaluation: Evaluation, owner: User | None) -> None:
    """What the two invented people said, each review marked as an example."""
    rubric = rubric_in_force(evaluation)
    given = list(lines("reviews.jsonl"))
    comparisons = {
        one.query.key: one for one in Comparison.objects.filter(evaluation=evaluation).select_related("query")
    }
    raters = {name: example_reviewer(evaluation, name) for name in dict.fromkeys(line["rater"] for line in given)}
    shown = Judge.objects.filter(evaluation=evaluation, name=LONGEST).first()
    for line in given:
        write_review(line, raters[line["rater"]], comparisons[line["query_id"]], rubric, shown)
    tallying.tally([one.pk for one in comparisons.values()])
    fill(evaluation)  # gives these reviews their places in the queue
    record("loaded reviews", evaluation, user=owner, evaluation=evaluation, after={"example reviews": len(given)})


def lines(name: str) -> Iterator[dict[str, Any]]:
    with (FOLDER / name).open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def example_reviewer(evaluation: Evaluation, name: str) -> Rater:
    return Rater.objects.create(
        evaluation=evaluation, kind=RaterKind.HUMAN, name=name, verdicts_changed_at=timezone.now()
    )


def write_review(
    line: Mapping[str, Any], rater: Rater, comparison: Comparison, rubric: RubricVersion, judge: Judge | None
) -> None:
    """First choices, and final ones that differ where the line says what was changed at the reveal."""
    now = timezone.now()
    review = Review.objects.create(
        rater=rater,
        comparison=comparison,
        rubric_version=rubric,
        shown=line["shown"],
        state=ReviewState.FINAL,
        judge=judge,
        picked_by=PickedBy.RANDOM,
        probability=1.0,
        first_saved_at=now - timedelta(seconds=10),
        finished_at=now,
        active_ms=line["seconds"] * 1000,
        note=line.get("note", ""),
        is_example=True,
    )
    first = line["first"]
    write_verdicts(review, Stage.FIRST, first, {})
    write_verdicts(review, Stage.FINAL, first | line.get("changed", {}), line.get("notes", {}))


def write_verdicts(review: Review, stage: Stage, choices: Mapping[str, str], notes: Mapping[str, str]) -> None:
    aspects = dict(Aspect.objects.filter(evaluation=review.rater.evaluation_id).values_list("key", "pk"))
    verdicts = [
        Verdict(
            rater=review.rater,
            comparison=review.comparison,
            aspect_id=aspects[key],
            stage=stage,
            shown=review.shown,
            choice=choice,
            review=review,
            note=notes.get(key, ""),
        )
        for key, choice in choices.items()
    ]
    Verdict.objects.bulk_create(verdicts)
    balloting.keep_review(review, verdicts)

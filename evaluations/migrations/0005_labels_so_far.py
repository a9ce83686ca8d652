"""The labels of the votes that are there already, of finished reviews and of imports that are done, and the judge
of the reviews that were shown one.

Nothing was settled, scored by people or calibrated before, so the votes are all there is to count: every
imported one, and of a person's reviews of a comparison the newest that has the aspect.

Which judge a review was shown was not kept. It is assumed that the evaluation showed the same one
all along that it shows now.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import F, Q

COMPARISONS_AT_ONCE = 500


def count_votes(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    verdicts = apps.get_model("evaluations", "Verdict")._base_manager.filter(rater__kind="human")
    votes = verdicts.filter(
        Q(review__state="final", stage="final") | Q(review__isnull=True, source_import__state="done")
    )
    labels = apps.get_model("evaluations", "Label")
    for ids in chunks(votes):
        counted: dict[tuple[int, int], Counter[str]] = defaultdict(Counter)
        for comparison, aspect, choice in choices(votes.filter(comparison__in=ids)):
            counted[comparison, aspect][choice] += 1
        labels._base_manager.bulk_create(
            labels(comparison_id=comparison, aspect_id=aspect, **label(given))
            for (comparison, aspect), given in counted.items()
        )
    imports = apps.get_model("evaluations", "Import")._base_manager
    imports.filter(state="done").update(tallied=True)


def keep_judges(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    """Where the person had the judge before them: from the start, or between the first save and the last."""
    was_shown = Q(state="first") | (Q(state="final") & (Q(blind=False) | ~Q(finished_at=F("first_saved_at"))))
    reviews = apps.get_model("evaluations", "Review")._base_manager.filter(was_shown)
    evaluations = apps.get_model("evaluations", "Evaluation")._base_manager.exclude(shown_judge=None)
    for evaluation, judge in evaluations.values_list("pk", "shown_judge"):
        reviews.filter(comparison__evaluation=evaluation).update(judge=judge)


def choices(votes: Any) -> Iterator[tuple[int, int, str]]:
    """Comparison, aspect and choice of every vote that counts."""
    newest: dict[tuple[int, int, int], str] = {}
    columns = ("comparison_id", "aspect_id", "rater_id", "review_id", "choice")
    for comparison, aspect, rater, review, choice in votes.order_by("review_id", "pk").values_list(*columns):
        if review is None:
            yield comparison, aspect, choice
        else:
            newest[comparison, aspect, rater] = choice
    yield from ((comparison, aspect, choice) for (comparison, aspect, _), choice in newest.items())


def chunks(votes: Any) -> Iterator[Sequence[int]]:
    """The comparisons that have votes, some at a time, in the order of their making."""
    after = 0
    ids = votes.order_by("comparison_id").values_list("comparison_id", flat=True).distinct()
    while some := list(ids.filter(comparison__gt=after)[:COMPARISONS_AT_ONCE]):
        yield some
        after = some[-1]


def label(votes: Mapping[str, int]) -> dict[str, Any]:
    number, most = sum(votes.values()), max(votes.values())
    first, *others = [choice for choice, count in votes.items() if count == most]
    if others:
        return {"choice": "", "source": "split", "votes": number, "unanimous": False}
    source = "single" if number == 1 else "majority"
    return {"choice": first, "source": source, "votes": number, "unanimous": len(votes) == 1}


class Migration(migrations.Migration):
    dependencies = [("evaluations", "0004_review_workbench")]
    operations = [
        migrations.RunPython(count_votes, migrations.RunPython.noop),
        migrations.RunPython(keep_judges, migrations.RunPython.noop),
    ]

"""Calls that were only made to test a judge leave reports, labels and exports."""

import random
from typing import Any

from django.db import migrations
from django.utils import timezone


def mark_tests(apps: Any, schema_editor: Any) -> None:
    model = {name: apps.get_model("evaluations", name) for name in ("Run", "Call", "Ballot", "Rater")}
    runs: dict[int, list[Any]] = {}
    for run in model["Run"].objects.order_by("pk"):
        runs.setdefault(run.judge_id, []).append(run)
    for judge, of_judge in runs.items():
        tests = [run for run in of_judge if is_test(run)]
        others = [run for run in of_judge if not is_test(run) and not run.filters.get("only_states")]
        calls = model["Call"].objects.filter(run__in=[run.pk for run in tests])
        found = [
            call.pk
            for call in calls.select_related("comparison", "response")
            if not any(selects(run, call, model["Call"].objects) for run in others)
        ]
        if found:
            model["Call"].objects.filter(pk__in=found).update(is_test=True)
            model["Ballot"].objects.filter(call__in=found).delete()
            model["Rater"].objects.filter(judge=judge).update(verdicts_changed_at=timezone.now())


def is_test(run: Any) -> bool:
    return bool(run.filters.get("comparison") or run.filters.get("response"))


def selects(run: Any, call: Any, calls: Any) -> bool:
    """Whether this run has planned the call, or would have, had it not been there already."""
    if call.sample >= run.samples or (call.comparison_id and call.shown not in orders_of(run, call.comparison_id)):
        return False
    if "slice" in run.filters:  # what it meant at that time is only known by its other calls
        return bool(calls.filter(run=run, comparison=call.comparison_id).exists())
    after = run.filters.get("after")
    if after is None:
        return bool(run.planned + run.reused)
    subject = call.comparison or call.response
    place = [subject.shuffle if call.comparison_id else subject.query_id, subject.pk]
    return bool(place <= list(after))


def orders_of(run: Any, comparison: int) -> tuple[str, ...]:
    """As the run asks this comparison; a random order is drawn by the seed."""
    both = ("as_stored", "swapped")
    if run.orders == "both":
        return both
    if run.orders == "random":
        return (random.Random(f"{run.seed}:{comparison}").choice(both),)
    return ("swapped" if run.orders == "swapped" else "as_stored",)


class Migration(migrations.Migration):
    dependencies = [
        ("evaluations", "0035_test_calls_and_archived_judges"),
    ]

    operations = [
        migrations.RunPython(mark_tests, migrations.RunPython.noop),
    ]

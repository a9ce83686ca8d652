"""How long the pages of disagreements take among very many comparisons.

    python benchmarks/disagreement_speed.py [--comparisons 100000] [--times 20]

Makes a study in a database of its own (SQLite in a temporary folder, or the empty one of
DATABASE_URL): six aspects with a label each, people who differ on one comparison in twenty, a judge
who differs from them on one label in fifteen, and another who differs on ten comparisons in all.
Prints one line of JSON; `--explain` adds the plans of the two queries that look for disagreements.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
os.environ.setdefault("JUDGEWEB_DATA_DIR", tempfile.mkdtemp(prefix="judgeweb-benchmark-"))
os.environ["DJANGO_SETTINGS_MODULE"] = "judgeweb.settings"

import django

django.setup()

from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from benchmarks.review_speed import ROWS, SLUG, make_study
from benchmarks.row_writer import insert_rows
from evaluations.disagreements.selectors import (
    DisagreementFilter,
    filter_labels,
    filter_reviewer_disagreements,
    list_comparisons_after,
)
from evaluations.domain.choices import LabelSource, ShownOrder
from evaluations.domain.files import ImportState
from evaluations.domain.roles import Role
from evaluations.evaluation_settings.services import change_evaluation
from evaluations.judge_prompts.builtin_rubrics import SIX_ASPECT
from evaluations.members.services import set_role
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from evaluations.models.judges import Judge, Rater
from evaluations.models.rubrics import Aspect
from evaluations.models.users import User
from evaluations.models.verdicts import Label, Verdict
from evaluations.verdicts.judge_differences import filter_possible_differences

LABEL = ("created_at", "comparison_id", "aspect_id", "choice", "source", "votes", "unanimous")
VERDICT = (
    *("created_at", "rater_id", "comparison_id", "aspect_id", "sample", "stage", "shown", "choice", "inconsistent"),
    *("source_import_id", "rationale", "note", "reason"),
)


def make_judge(evaluation: Evaluation, name: str) -> Rater:
    judge = Judge.objects.create(
        evaluation=evaluation,
        name=name,
        kind="rule",
        model="longest",
        rubric_version=evaluation.review_rubric,
        fingerprint=name,
    )
    return Rater.objects.create(evaluation=evaluation, kind="judge", name=name, judge=judge)


def make_opinions(evaluation: Evaluation, often: Rater, seldom: Rater) -> None:
    """Labels by people, and both judges' verdicts in both orders."""
    now = timezone.now()
    aspects = [
        Aspect.objects.get_or_create(evaluation=evaluation, key=aspect.key, defaults={"name": aspect.name})[0].pk
        for aspect in SIX_ASPECT.aspects
    ]
    bringing = Import.objects.create(
        evaluation=evaluation, file_name="f", sha256="0" * 64, format="verdicts", state=ImportState.DONE
    )
    ids = list(Comparison.objects.order_by("pk").values_list("pk", flat=True))
    rare = set(ids[:: max(1, len(ids) // 10)])
    for start in range(0, len(ids), ROWS):
        labels: list[tuple[object, ...]] = []
        verdicts: list[tuple[object, ...]] = []
        for pk in ids[start : start + ROWS]:
            for place, aspect in enumerate(aspects):
                split = pk % 20 == 0 and place == 0
                source = LabelSource.SPLIT if split else LabelSource.MAJORITY
                labels.append((now, pk, aspect, "" if split else "A", source.value, 2, not split))
                for rater, choice in (
                    (often, "B" if (pk + place) % 15 == 0 else "A"),
                    (seldom, "B" if pk in rare and place == 1 else "A"),
                ):
                    for shown in (ShownOrder.AS_STORED, ShownOrder.SWAPPED):
                        row = (now, rater.pk, pk, aspect, 0, "first", shown.value, choice, False)
                        verdicts.append((*row, bringing.pk, "", "", ""))
        insert_rows(Label, LABEL, labels)
        insert_rows(Verdict, VERDICT, verdicts)


def milliseconds(work: Callable[[], object], times: int) -> dict[str, float]:
    """Median and 95th percentile."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        took.append((time.perf_counter() - began) * 1000)
    took.sort()
    return {"p50": round(took[len(took) // 2], 1), "p95": round(took[int(len(took) * 0.95)], 1)}


def explained(evaluation: Evaluation, judge: Rater) -> dict[str, str]:
    every_kind = DisagreementFilter(evaluation, judge=judge)
    rows = filter_labels(every_kind).exclude(choice="").exclude(source=LabelSource.ADJUDICATED)
    options = {"analyze": True} if connection.vendor == "postgresql" else {}
    return {
        "people": list_comparisons_after(filter_reviewer_disagreements(every_kind), 0, False)[:51].explain(**options),  # type: ignore[arg-type]
        "judge": list_comparisons_after(filter_possible_differences(rows, judge), 0, False)[:200].explain(**options),  # type: ignore[arg-type]
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--comparisons", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--explain", action="store_true")
    options = parser.parse_args()
    settings.ALLOWED_HOSTS = ["testserver"]
    call_command("migrate", verbosity=0)
    call_command("collectstatic", interactive=False, verbosity=0)
    evaluation = make_study(options.comparisons, 1)
    often, seldom = make_judge(evaluation, "often"), make_judge(evaluation, "seldom")
    make_opinions(evaluation, often, seldom)
    change_evaluation(evaluation, {"shown_judge": often.judge, "resolve_judge_disagreements": True}, user=None)
    owner = User.objects.create_user("owner")
    set_role(evaluation, owner, Role.VIEWER, by=None)
    client = Client()
    client.force_login(owner)
    if connection.vendor == "postgresql":
        connection.cursor().execute("ANALYZE")  # as autovacuum does within a minute
    last = Comparison.objects.order_by("-pk")[options.comparisons // 20].pk
    split = (
        filter_reviewer_disagreements(DisagreementFilter(evaluation))
        .order_by("comparison_id")
        .values_list("comparison_id", flat=True)
    )
    listed, detail = (
        reverse("disagreements", args=[SLUG]),
        reverse("disagreement", args=[SLUG, split[options.comparisons // 50]]),
    )
    addresses = {
        "all": listed,
        "people": f"{listed}?kind=reviewers",
        "judge": f"{listed}?kind=judge",
        "deep": f"{listed}?after={last}",
        "by candidate": f"{listed}?kind=reviewers&candidate=1",
        "a judge who seldom differs": f"{listed}?judge={seldom.pk}",
        "one": detail,
        "one of people": f"{detail}?kind=reviewers",
    }
    for address in addresses.values():
        assert client.get(address).status_code == 200, address
    figures = {
        name: milliseconds(lambda address=address: client.get(address), options.times)  # type: ignore[misc]
        for name, address in addresses.items()
    }
    sys.stdout.write(
        json.dumps({"comparisons": options.comparisons, "database": connection.vendor, "ms": figures}) + "\n"
    )
    if options.explain:
        for name, plan in explained(evaluation, often).items():
            sys.stdout.write(f"--- {name}\n{plan}\n")


if __name__ == "__main__":
    main()

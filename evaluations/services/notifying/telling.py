"""What was noted, looked into: whether there is anything to tell, and in which words.

A message names things and says where they are found; it says nobody's choice, so that whoever reads it can still
review blind.
"""

import json
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Final

from django.conf import settings
from django.db import DatabaseError, transaction
from django.db.models.functions import Now
from django.urls import reverse
from django.utils import timezone

from evaluations.domain import HookKind, exact_usd
from evaluations.models import Announcement, Comparison, Delivery, Evaluation, Round, Run, Webhook
from evaluations.services.adjudicating.disagreeing import Wanted, differences, shown_judge
from evaluations.services.judging.running import counts_by_state
from evaluations.services.reviewing.overseeing import progress_of

Data = dict[str, Any]
Subject = tuple[int, str, int]  # webhook, kind, and what it is about

logger = logging.getLogger(__name__)

AT_ONCE: Final = 500
TOLD_ONCE: Final = (HookKind.ROUND_REVIEWED, HookKind.DISAGREEMENT_OPENED)


def tell_noted() -> int:
    """Make messages of what was noted so far. Returns how many."""
    noted: dict[Subject, list[int]] = defaultdict(list)
    rows = Announcement.objects.order_by("pk").values_list("pk", "webhook_id", "kind", "subject")
    for pk, webhook, kind, subject in rows[:AT_ONCE]:
        noted[webhook, kind, subject].append(pk)
    if not noted:
        return 0
    webhooks = Webhook.objects.select_related("evaluation").in_bulk({webhook for webhook, _, _ in noted})
    return sum(told_or_left(webhooks[subject[0]], subject, ids) for subject, ids in noted.items())


def told_or_left(webhook: Webhook, subject: Subject, ids: list[int]) -> bool:
    """What cannot be told holds up nothing else: it is logged and dropped, or where the database failed kept."""
    try:
        return told(webhook, subject, ids)
    except DatabaseError:
        logger.exception("webhook %s: %s of %s is not told yet", *subject)
    except Exception:
        logger.exception("webhook %s: %s of %s cannot be told", *subject)
        Announcement.objects.filter(pk__in=ids).delete()
    return False


def told(webhook: Webhook, subject: Subject, ids: list[int]) -> bool:
    """One message of everything that was noted of one thing; what is noted meanwhile is looked into next time."""
    _, kind, about = subject
    data = DATA[HookKind(kind)](webhook, about)
    body = json.dumps(
        {"type": kind, "timestamp": timezone.now().isoformat(timespec="seconds"), "data": data},
        ensure_ascii=False,
        sort_keys=True,
    )
    with transaction.atomic():
        # One at a time for each webhook, so that two workers do not tell the same of two reviews.
        Webhook.objects.select_for_update().get(pk=webhook.pk)
        taken, _ = Announcement.objects.filter(pk__in=ids).delete()
        if not (taken and data) or (kind in TOLD_ONCE and was_told(webhook, kind, about)):
            return False
        Delivery.objects.create(webhook=webhook, kind=kind, subject=about, body=body, not_before=Now())
    return True


def of_run(webhook: Webhook, pk: int) -> Data:
    run = Run.objects.select_related("judge").get(pk=pk)
    return {
        **whose(webhook.evaluation),
        "run": run.pk,
        "judge": run.judge.name,
        "model": run.judge.model,
        "state": run.state,
        "stop_reason": run.stop_reason,
        "calls": counts_by_state(run),
        "spent_usd": exact_usd(run.spent),
        "url": address("run", webhook.evaluation.slug, run.pk),
    }


def of_round(webhook: Webhook, pk: int) -> Data | None:
    """Told when it has every review that it wants."""
    about = Round.objects.get(pk=pk)
    progress = progress_of([about])[pk]
    if progress.reviews < progress.wanted:
        return None
    return {
        **whose(webhook.evaluation),
        "round": about.pk,
        "name": about.name,
        "kind": about.kind,
        "comparisons": progress.comparisons,
        "reviews": progress.reviews,
        "url": address("round", webhook.evaluation.slug, about.pk),
    }


def of_disagreement(webhook: Webhook, pk: int) -> Data | None:
    """Told when people first differ on it, or differ from the judge that is shown to them."""
    comparison = Comparison.objects.select_related("query").get(pk=pk)
    wanted = Wanted(webhook.evaluation, judge=shown_judge(webhook.evaluation))
    still_open = differences(wanted, [pk])[pk]
    if not still_open:
        return None
    return {
        **whose(webhook.evaluation),
        "comparison": pk,
        "query_id": comparison.query.key,
        "aspects": {one.aspect.key: [kind.value for kind in one.kinds] for one in still_open},
        "url": address("disagreement", webhook.evaluation.slug, pk),
    }


def of_test(webhook: Webhook, pk: int) -> Data:
    return {**whose(webhook.evaluation), "url": address("webhook", webhook.evaluation.slug, pk)}


DATA: Final[Mapping[HookKind, Callable[[Webhook, int], Data | None]]] = {
    HookKind.RUN_FINISHED: of_run,
    HookKind.RUN_STOPPED: of_run,
    HookKind.ROUND_REVIEWED: of_round,
    HookKind.DISAGREEMENT_OPENED: of_disagreement,
    HookKind.TEST: of_test,
}


def was_told(webhook: Webhook, kind: str, subject: int) -> bool:
    return Delivery.objects.filter(webhook=webhook, kind=kind, subject=subject).exists()


def whose(evaluation: Evaluation) -> Data:
    return {"evaluation": evaluation.slug}


def address(name: str, *parts: object) -> str:
    return settings.ADDRESS + reverse(name, args=parts)

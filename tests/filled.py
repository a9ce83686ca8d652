"""An evaluation with what the example has nothing of: words too long for a line, a log, columns that are not known."""

import io

from django.utils import timezone

from evaluations.domain import DeliveryState, Filter, Reading
from evaluations.models import Comparison, Delivery, DeliveryTry, Evaluation, User, Webhook
from evaluations.services.importing.fitting import take
from evaluations.services.notifying.subscribing import create_webhook
from evaluations.services.preparing.preparing import create_evaluation
from evaluations.services.preparing.slicing import save_slice
from evaluations.services.preparing.tagging import tag
from tests.importing import bring, comparison

FOREIGN = f"prompt_{'p' * 90},one,two,winner\nWho?,A,B,one\n"
ENDS = ((DeliveryState.FAILED, None), (DeliveryState.FAILED, 500), (DeliveryState.DELIVERED, 204))


def fill() -> list[str]:
    """The addresses of its pages that are worth a look."""
    owner = User.objects.get(username="owner")
    evaluation = create_evaluation(slug="filled", name="Filled", owner=owner)
    asked = ["Who?", "who", f"Why {'so ' * 80}long?"]
    bring(evaluation, *(comparison(f"q{number}" * 20, query=query) for number, query in enumerate(asked)))
    ids = list(Comparison.objects.filter(evaluation=evaluation).values_list("pk", flat=True))
    tag(evaluation, ids, "t" * 60, user=owner)
    save_slice(evaluation, "s" * 80, Filter(tags=("t" * 60,)), user=owner)
    hook = webhook_with_a_log(evaluation, owner)
    kept = unknown_columns(evaluation, owner)
    pages = (
        "slices",
        "webhooks",
        f"webhooks/{hook}",
        "imports",
        f"imports/{kept}/columns",
        "duplicates",
        "comparisons",
    )
    return [f"/e/filled/{page}" for page in pages]


def webhook_with_a_log(evaluation: Evaluation, owner: User) -> int:
    hook: Webhook = create_webhook(
        evaluation, url=f"https://example.org/{'h' * 200}", kinds=["run.finished"], user=owner
    )
    for state, status in ENDS:
        sent = Delivery.objects.create(
            webhook=hook,
            kind="run.finished",
            subject=1,
            body=f'{{"a": "{"b" * 300}"}}',
            state=state,
            finished_at=timezone.now(),
        )
        said = {"answer": "a" * 300} if status else {"error": "e" * 200}
        for number in (1, 2):
            DeliveryTry.objects.create(delivery=sent, number=number, http_status=status, milliseconds=12, **said)
    return hook.pk


def unknown_columns(evaluation: Evaluation, owner: User) -> int:
    content = FOREIGN.encode()
    kept = take(
        *(evaluation, io.BytesIO(content), len(content)),
        file_name=f"{'f' * 150}.csv",
        reading=Reading(),
        user=owner,
        pair="all",
        derive_pairs=None,
    )
    return kept.pk

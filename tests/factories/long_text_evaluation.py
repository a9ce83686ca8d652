"""An evaluation whose names are too long for a line."""

import io

from django.utils import timezone

from evaluations.comparisons.services import create_saved_filter, tag_comparisons
from evaluations.domain.events import DeliveryState
from evaluations.domain.filters import ComparisonFilter
from evaluations.domain.imports import ImportRequest
from evaluations.imports.services import receive_upload
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User
from evaluations.models.webhooks import Delivery, DeliveryAttempt, Webhook
from evaluations.overview.services import create_evaluation
from evaluations.webhooks.services import create_webhook
from tests.factories.imports import comparison_row, import_rows

FOREIGN = f"prompt_{'p' * 90},one,two,winner\nWho?,A,B,one\n"
ENDS = ((DeliveryState.FAILED, None), (DeliveryState.FAILED, 500), (DeliveryState.DELIVERED, 204))


def make_long_text_pages() -> list[str]:
    """The addresses of its pages that are worth a look."""
    owner = User.objects.get(username="owner")
    evaluation = create_evaluation(slug="filled", name="Filled", owner=owner, by=None)
    queries = ["Who?", "who", f"Why {'so ' * 80}long?"]
    import_rows(evaluation, *(comparison_row(f"q{number}" * 20, query=query) for number, query in enumerate(queries)))
    ids = list(Comparison.objects.filter(evaluation=evaluation).values_list("pk", flat=True))
    tag_comparisons(evaluation, ids, "t" * 60, user=owner)
    create_saved_filter(evaluation, "s" * 80, ComparisonFilter(tags=("t" * 60,)), user=owner)
    hook = make_webhook_with_log(evaluation, owner)
    kept = make_import_of_unknown_columns(evaluation, owner)
    pages = (
        "data/filters",
        "webhooks",
        f"webhooks/{hook}",
        "imports",
        f"imports/{kept}/columns",
        "duplicates",
        "comparisons",
    )
    scored = make_evaluation_of_single_responses(owner)
    return [*(f"/e/filled/{page}" for page in pages), f"/e/{scored}", f"/e/{scored}/review"]


def make_evaluation_of_single_responses(owner: User) -> str:
    """The URL name of an evaluation whose responses are in no pair and are scored one at a time."""
    evaluation = create_evaluation(slug="scored", name="Scored", owner=owner, by=None, rubric="summary-rating")
    row = {"query_id": "q1", "query": f"Sum {'so ' * 80}up.", "candidate": "m" * 90, "response": f"{'word' * 80} end."}
    import_rows(evaluation, row, format="responses")
    return evaluation.slug


def make_webhook_with_log(evaluation: Evaluation, owner: User) -> int:
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
        outcome = {"answer": "a" * 300} if status else {"error": "e" * 200}
        for number in (1, 2):
            DeliveryAttempt.objects.create(delivery=sent, number=number, http_status=status, milliseconds=12, **outcome)
    return hook.pk


def make_import_of_unknown_columns(evaluation: Evaluation, owner: User) -> int:
    file = io.BytesIO(FOREIGN.encode())
    return receive_upload(evaluation, file, f"{'f' * 150}.csv", ImportRequest(), user=owner).pk

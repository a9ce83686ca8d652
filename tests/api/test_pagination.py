"""Lists go on where the page before ended, and a longer page asks no more questions of the database."""

import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import Model
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from evaluations.api_site import build_openapi
from evaluations.domain.judges import RunState
from evaluations.domain.reviews import ScreeningChoice
from evaluations.domain.roles import Role
from evaluations.models.comparisons import SavedFilter, Tag, Tagging
from evaluations.models.endpoint_grants import EndpointGrant
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.exports import Export
from evaluations.models.imports import Import
from evaluations.models.judges import Endpoint, Judge, Rater
from evaluations.models.queues import Assignment, Queue, QueueItem, QueueSlot
from evaluations.models.rubrics import Rubric, RubricVersion
from evaluations.models.runs import Call, Run
from evaluations.models.sign_ins import SecurityEvent, Session
from evaluations.models.users import ApiToken, Invitation, User
from evaluations.models.verdicts import Comment, Mention, Verdict
from evaluations.models.webhooks import Delivery, DeliveryAttempt, Webhook
from evaluations.reports.services import choose_reviewer
from evaluations.verdicts.votes import update_labels
from tests.factories.evaluations import make_comparison, make_evaluation, make_human, make_member, make_user
from tests.factories.full_evaluation import FullEvaluation, make_full_evaluation
from tests.factories.verdicts import make_review, repack_votes_of
from tests.helpers.api_client import ApiClient, token_for

pytestmark = pytest.mark.django_db

NUMBER = 770_100


def test_a_list_goes_on_after_its_last_row(asking: ApiClient, evaluation: Evaluation) -> None:
    ids = [make_comparison(evaluation).pk for _ in range(5)]
    seen: list[int] = []
    cursor = ""
    for _ in range(3):
        page = asking.get(f"/evaluations/study/comparisons?limit=2&cursor={cursor}").json()
        seen += [one["id"] for one in page["items"]]
        cursor = page["next"] or ""
    assert seen == ids
    assert cursor == ""


# ---- however many rows there are -----------------------------------------------------------------


def another(model: type[Model], **changes: Any) -> Any:
    """A row like the first, as a row of its own."""
    row = model._default_manager.order_by("pk").first()
    assert row is not None
    row.pk, row._state.adding = None, True
    for name, value in changes.items():
        setattr(row, name, value)
    row.save()
    return row


def more_comparisons(marked: FullEvaluation, number: int) -> None:
    comparison = make_comparison(marked.evaluation, candidates=(f"one {number}", f"two {number}"))
    tag = Tag.objects.create(evaluation=marked.evaluation, name=f"t{number}")
    Tagging.objects.create(tag=tag, comparison=comparison)
    for choice in "AB":
        rater = Rater.objects.create(evaluation=marked.evaluation, kind="human", name=f"{choice}{number}")
        make_review(rater, comparison, {"clarity": choice})
    update_labels([comparison.pk])


def more_in_cell(marked: FullEvaluation, number: int) -> None:
    comparison = make_comparison(marked.evaluation, candidates=(f"one {number}", f"two {number}"))
    call = another(Call, comparison=comparison)
    another(Verdict, comparison=comparison, call=call, rater=Rater.objects.get(kind="judge"))
    repack_votes_of(comparison)
    make_review(make_human(marked.evaluation), comparison, {"clarity": "A"})


def more_alike(marked: FullEvaluation, number: int) -> None:
    for ending in ".!":
        query = f"Who is number {number}{ending}"
        make_comparison(marked.evaluation, query=query, response_a=f"{number}.", response_b=f"Not {number}.")


def more_mentions(marked: FullEvaluation, number: int) -> None:
    comparison = make_comparison(marked.evaluation)
    comment = another(Comment, comparison=comparison, user=make_member(marked.evaluation, Role.MANAGER))
    Mention.objects.create(comment=comment, user=marked.owner)


def more_deliveries(marked: FullEvaluation, number: int) -> None:
    another(DeliveryAttempt, delivery=another(Delivery, key=uuid.uuid4()))


def more_slots(marked: FullEvaluation, number: int) -> None:
    item = another(QueueItem, comparison=make_comparison(marked.evaluation), position=number)
    another(Assignment, item=item, slot=another(QueueSlot, item=item, position=number))


def more_runs(marked: FullEvaluation, number: int) -> None:
    rubric = another(Rubric, name=f"rubric {number}")
    version = another(RubricVersion, rubric=rubric)
    endpoint = another(Endpoint, name=f"endpoint {number}")
    another(EndpointGrant, endpoint=endpoint)
    judge = another(Judge, name=f"judge {number}", fingerprint=f"{number}", rubric_version=version, endpoint=endpoint)
    another(Run, judge=judge, batch=uuid.uuid4(), user=make_user())


def more_open_runs(marked: FullEvaluation, number: int) -> None:
    more_runs(marked, number)
    Run.objects.exclude(pk=NUMBER).update(state=RunState.PAUSED)


def more_files(marked: FullEvaluation, number: int) -> None:
    another(Import, user=make_user())
    another(Export, user=make_user())
    another(Webhook, user=make_user(), url=f"https://example.org/{number}")
    another(Event, user=make_user())
    another(SavedFilter, name=f"filter {number}")
    another(Queue, name=f"queue {number}")
    make_evaluation(marked.owner)
    make_member(marked.evaluation, Role.REVIEWER)


def more_reviewers(marked: FullEvaluation, number: int) -> None:
    rater = make_human(marked.evaluation)
    choose_reviewer(marked.evaluation, rater, ScreeningChoice.EXCLUDE, user=make_user())


def more_calls(marked: FullEvaluation, number: int) -> None:
    another(Call, comparison=make_comparison(marked.evaluation), sample=number)


def more_sign_ins(marked: FullEvaluation, number: int) -> None:
    other, name = make_user(), f"invited-{number}"
    another(SecurityEvent, by=other, token=another(ApiToken, token_sha256=f"{number}", user=other))
    Session.objects.create(session_key=name, expire_date=timezone.now() + timedelta(days=1), user=marked.owner)
    another(Invitation, username=name, name_key=name, invited_by=other)
    another(Invitation, evaluation=make_evaluation(), name_key=marked.owner.username, invited_by=make_user())


AT = "/evaluations/{slug}"
LISTS: dict[str, tuple[str, Callable[[FullEvaluation, int], None]]] = {
    "list_comparisons": (f"{AT}/comparisons", more_comparisons),
    "list_cell": (f"{AT}/report/cell?judge=judge&aspect=clarity&judge_choice=A&human_choice=A", more_in_cell),
    "list_reviewers": (f"{AT}/reviewers", more_reviewers),
    "list_tags": (f"{AT}/tags", more_comparisons),
    "list_disagreements": (f"{AT}/disagreements", more_comparisons),
    "list_duplicates": (f"{AT}/duplicates", more_alike),
    "list_repeats": (f"{AT}/repeats", more_alike),
    "list_mentions": ("/mentions", more_mentions),
    "list_deliveries": (f"{AT}/webhooks/{{number}}/deliveries", more_deliveries),
    "list_queue_slots": (f"{AT}/queues/{{number}}/comparisons", more_slots),
    "list_calls": (f"{AT}/runs/{{number}}/calls", more_calls),
    "list_rubrics": (f"{AT}/rubrics", more_runs),
    "list_judges": (f"{AT}/judges", more_runs),
    "list_evaluation_endpoints": (f"{AT}/endpoints", more_runs),
    "list_runs": (f"{AT}/runs", more_runs),
    "list_open_runs": ("/runs", more_open_runs),
    "list_endpoints": ("/endpoints", more_runs),
    "list_imports": (f"{AT}/imports", more_files),
    "list_exports": (f"{AT}/exports", more_files),
    "list_webhooks": (f"{AT}/webhooks", more_files),
    "list_events": (f"{AT}/events", more_files),
    "list_saved_filters": (f"{AT}/saved-filters", more_files),
    "list_review_queues": (f"{AT}/queues", more_files),
    "list_members": (f"{AT}/members", more_files),
    "list_evaluations": ("/evaluations", more_files),
    "list_accounts": ("/accounts", more_files),
    "list_pending_invitations": (f"{AT}/invitations", more_sign_ins),
    "list_own_invitations": ("/me/invitations", more_sign_ins),
    "list_sessions": ("/me/sessions", more_sign_ins),
    "list_own_security_events": ("/me/security-events", more_sign_ins),
    "list_site_security_events": ("/security-events", more_sign_ins),
}


def test_every_list_is_looked_at() -> None:
    named = [one["operationId"] for path in build_openapi()["paths"].values() for one in path.values()]
    # One join link per role, and the twenty largest differences.
    bounded = {"list_export_formats", "list_join_links", "list_large_differences"}
    assert {name for name in named if name.startswith("list_")} - LISTS.keys() == bounded


@pytest.mark.parametrize("name", LISTS)
def test_the_number_of_queries_does_not_grow(name: str) -> None:
    marked = make_full_evaluation(NUMBER)
    User.objects.filter(pk=marked.owner.pk).update(is_superuser=True)
    asking = ApiClient(token_for(User.objects.get(pk=marked.owner.pk)))
    path, more = LISTS[name]
    path = path.format(slug=marked.evaluation.slug, number=NUMBER)

    def queries() -> tuple[int, int]:
        with CaptureQueriesContext(connection) as found:
            answer = asking.get(path)
        assert answer.status_code == 200, answer.content
        return len(found), sum(len(told) for told in answer.json().values() if isinstance(told, list))

    for number in range(10, 12):
        more(marked, number)
    queries()  # what is read once for the site, and what is put on record once: that this person has seen it
    few, rows = queries()
    for number in range(12, 16):
        more(marked, number)
    queries()
    many, more_rows = queries()
    assert many == few
    assert more_rows > rows

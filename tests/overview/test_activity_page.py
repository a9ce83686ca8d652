"""The record of an evaluation."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evaluations.audit.events import record_event
from evaluations.disagreements.services import add_comment, resolve_aspect
from evaluations.domain.events import SAW_VERDICTS
from evaluations.domain.roles import Role
from evaluations.evaluation_settings.services import change_evaluation
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User
from evaluations.models.verdicts import Review
from tests.factories.evaluations import make_comparison, make_human, make_member, make_user
from tests.factories.verdicts import get_or_make_aspect
from tests.helpers.page_text import html_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("owner_signed_in")]


def page(client: Client, query: str = "") -> str:
    return html_of(client.get(reverse("activity", args=["study"]) + query))


def test_it_says_who_changed_what_from_what_to_what(client: Client, owner: User, evaluation: Evaluation) -> None:
    change_evaluation(evaluation, {"name": "Renamed"}, user=owner)
    assert "<del>Study study</del> → Renamed" in page(client)
    assert "olive" in page(client)


def test_what_people_chose_and_wrote_in_a_review_is_left_out(client: Client, evaluation: Evaluation) -> None:
    words = {"note": "wrote-this", "notes": {"factuality": "said-this"}, "reasons": {"factuality": "gave-this"}}
    after = {"choices": {"factuality": "chose-this"}, "blind": True, **words}
    record_event("saved first choices", Review(pk=7), user=None, evaluation=evaluation, after=after)
    text = page(client)
    assert "Review saved" in text
    assert not [word for word in ("chose", "wrote", "said", "gave") if f"{word}-this" in text]


def test_what_was_settled_and_said_about_it_is_left_out(client: Client, owner: User, evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    add_comment(comparison, "these-words", aspect=None, user=owner, readers=[])
    asked = get_or_make_aspect(evaluation, "factuality")
    resolve_aspect(comparison, asked, choice="A", reason="this-reason", version=0, user=owner)
    text = page(client)
    assert "Disagreement resolved" in text
    assert "Comment added" in text
    assert "these-words" not in text
    assert "this-reason" not in text


def test_what_someone_wrote_is_shown_as_text_and_cut_short(client: Client, evaluation: Evaluation) -> None:
    change_evaluation(evaluation, {"description": "<b>" + "x" * 500}, user=None)
    text = page(client)
    assert "&lt;b&gt;" + "x" * 197 + "…" in text
    assert "<b>" not in text


def test_a_reviewer_may_not_read_it_and_a_stranger_gets_404(client: Client, evaluation: Evaluation) -> None:
    client.force_login(make_member(evaluation, Role.REVIEWER))
    assert client.get(reverse("activity", args=["study"])).status_code == 403
    client.force_login(make_user())
    assert client.get(reverse("activity", args=["study"])).status_code == 404


def test_the_newest_stands_first_and_the_list_goes_on(client: Client, evaluation: Evaluation) -> None:
    for number in range(60):
        record_event(f"did thing {number:02}", make_human(evaluation), user=None, evaluation=evaluation)
    text = page(client)
    assert "Rater did thing 59" in text
    assert "Rater did thing 09" not in text
    after = evaluation.events.get(verb="did thing 10").pk
    assert "Rater did thing 09" in page(client, f"?after={after}")


def test_events_are_readable_lines(client: Client, evaluation: Evaluation) -> None:
    record_event("made searchable", evaluation, user=None, evaluation=evaluation)
    record_event("placed reviews", evaluation, user=None, evaluation=evaluation, after={"reviews": 24})
    record_event("began storing", evaluation, user=None, evaluation=evaluation, after={"skip_bad": False})
    after = {"rows": {"queries": 3, "responses": 1200}, "names": ["a", "b"], "on": True}
    record_event("stored", evaluation, user=None, evaluation=evaluation, after=after)
    text = page(client)
    for words in ("Search index built", "24 items queued", "strict", "prompts: 3, responses: 1,200", "a, b", "yes"):
        assert words in text
    for raw in ("made searchable", "skip bad", "{", "True", "False"):
        assert raw not in text[text.index("<tbody>") : text.index("</tbody>")]


def test_votes_that_somebody_saw_on_many_comparisons_are_one_line(
    client: Client, owner: User, evaluation: Evaluation
) -> None:
    seen = [make_comparison(evaluation) for _ in range(3)]
    for comparison in seen:
        record_event(SAW_VERDICTS, comparison, user=owner, evaluation=evaluation)
    record_event("invited", evaluation, user=owner, evaluation=evaluation)
    record_event(SAW_VERDICTS, seen[0], user=owner, evaluation=evaluation)
    text = page(client)
    assert text.count("Saw others’ votes") == 2
    assert "Saw others’ votes on 3 comparisons" in text


def test_it_costs_the_same_however_much_was_done(client: Client, owner: User, evaluation: Evaluation) -> None:
    few = queries(client)
    for number in range(20):
        change_evaluation(evaluation, {"name": f"Name {number}"}, user=make_user())
    assert queries(client) == few


def queries(client: Client) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(reverse("activity", args=["study"])).status_code == 200
    return len(captured)

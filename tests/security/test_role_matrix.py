"""Every writing door of an evaluation, with the action that it needs: who lacks it changes nothing.

The doors come from the URL patterns and from the API's document; a new one has to be listed here.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pytest
from django.db import transaction
from django.http.response import HttpResponseBase

from evaluations.access import ALLOWED_ROLES, Action
from evaluations.domain.roles import Role
from evaluations.models.users import User
from tests.api import test_access as api
from tests.factories.evaluations import make_member
from tests.factories.full_evaluation import FullEvaluation, make_full_evaluation
from tests.helpers.api_client import token_for
from tests.helpers.browser_client import sign_in_client
from tests.web import test_access as web

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

PAGES: Final[Mapping[Action, str]] = {
    Action.OWN: "evaluation_delete members member_invite member_link member_remove member_role invitation_withdraw "
    "join_link_new join_link_revoke",
    Action.EXPORT: "export_new",
    Action.BACK_UP: "export_remove",
    Action.DISCUSS: "disagreement_comment disagreement_explain comment_withdraw",
    Action.ADJUDICATE: "resolution_withdraw disagreement_resolve majorities_accept resolutions_undo",
    Action.TAG: "saved_filter_new tag_delete tag_rename tag_undo",
    Action.REVIEW: "checklist review_reopen review_confirm review_draft review_save review_skip review_span "
    "review_span_change review_span_remove review_undo",
    Action.MANAGE: "calibration_new call_confirm comparison_new duplicates duplicates_merge evaluation_archive "
    "evaluation_decisions evaluation_restore evaluation_settings export_cancel model_families import_cancel "
    "column_mapping column_mapping_forget imports imports_store imports_undo import_store import_undo judge_archive "
    "judge_new judge_restore judge_test pairs queue_archive queue_delete queue_new "
    "queue_restore queue_assign reviewer_screening rubric_new rubric_next rubric_paste rubric_write run_budget "
    "run_cancel run_new run_new_test run_archive run_restore run_delete judge_delete "
    "run_pause run_reparse run_resume run_retry run_try_now saved_filter_delete saved_filter_rename webhook_retry "
    "webhook_kinds webhook_new webhook_secret webhook_start webhook_stop webhook_test",
}
OPERATIONS: Final[Mapping[Action, str]] = {
    Action.OWN: "delete_evaluation add_member invite_member withdraw_pending_invitation change_role remove_member "
    "make_member_link create_join_link revoke_join_link",
    Action.EXPORT: "make_export",
    Action.BACK_UP: "remove_export_file",
    Action.DISCUSS: "explain_choice post_comment withdraw_comment",
    Action.ADJUDICATE: "resolve_disagreement reopen_disagreement accept_majority undo_resolved_batch",
    Action.TAG: "put_tag take_tag undo_tag put_tag_on_all rename_tag delete_tag save_filter",
    Action.REVIEW: "save_review confirm_review skip_review undo_review reopen_review_for_judge keep_review_as_is "
    "save_review_draft add_span edit_span remove_span",
    Action.MANAGE: "archive_evaluation restore_evaluation change_settings change_decision_bars change_families "
    "screen_reviewer rename_candidate add_one_comparison "
    "assign_to_reviewers upload_file store_file cancel_import undo_import set_columns forget_columns try_columns "
    "make_pairs check_file_overlap merge_duplicates write_rubric create_rubric_from_template write_version "
    "parse_prompts preview_rubric_prompt make_judge archive_judge restore_judge test_judge start_runs estimate_runs "
    "pause_run resume_run cancel_run try_endpoint_now set_budget retry_run reparse_run confirm_call "
    "create_review_queue delete_review_queue delete_judge "
    "preview_review_queue archive_run restore_run delete_run "
    "create_calibration_queue assign_review_queue archive_review_queue restore_review_queue add_webhook change_webhook "
    "send_test stop_webhook start_webhook renew_webhook_secret send_again cancel_export rename_filter delete_filter",
}
# Which of several actions a door needs depends on what is sent: it is refused as unknown before that.
DECIDED_BY_BODY: Final = {"comparisons_bulk_action"}
# Exports and saved filters here have no maker; tests/security/test_makers.py shows what makers may do with theirs.
# The rows of the full evaluation, which only their makers may change.
OF_OTHERS: Final = {"comment_withdraw", "withdraw_comment", "explain_choice", "disagreement_explain"}
REFUSALS: Final = (403, 404)
Send = Callable[[Role], HttpResponseBase]


def by_door(table: Mapping[Action, str]) -> dict[str, Action]:
    return {name: action for action, names in table.items() for name in names.split()}


@pytest.fixture
def marked() -> FullEvaluation:
    return make_full_evaluation(web.NUMBER)


@pytest.fixture
def people(marked: FullEvaluation) -> dict[Role, User]:
    """One member of each role, with every right that site policy can give: the roles alone decide here."""
    people = {role: make_member(marked.evaluation, role, f"a-{role}") for role in Role}
    User.objects.filter(memberships__evaluation=marked.evaluation).update(can_create_accounts=True, can_make_links=True)
    return people


def page_writes(marked: FullEvaluation, people: Mapping[Role, User]) -> Iterator[tuple[str, Send]]:
    clients = {role: sign_in_client(user) for role, user in people.items()}
    for door in web.INTO_AN_EVALUATION:
        address = door.address(marked.evaluation.slug)
        if web.ask(clients[Role.VIEWER], "post", address).status_code != 405:
            yield door.name, lambda role, address=address: web.ask(clients[role], "post", address)  # type: ignore[misc]


def operation_writes(marked: FullEvaluation, people: Mapping[Role, User]) -> Iterator[tuple[str, Send]]:
    tokens = {role: token_for(user) for role, user in people.items()}
    for door in api.INTO_AN_EVALUATION:
        if door.method != "get":
            yield door.name, lambda role, door=door: api.ask(door, tokens[role], marked.evaluation.slug)  # type: ignore[misc]


@pytest.mark.parametrize(("table", "writes"), [(PAGES, page_writes), (OPERATIONS, operation_writes)])
def test_who_lacks_the_action_of_a_door_is_refused_and_changes_nothing(
    table: Mapping[Action, str], writes: Any, marked: FullEvaluation, people: Mapping[Role, User]
) -> None:
    actions, wrong, seen = by_door(table), [], set()
    doors = list(writes(marked, people))
    before = api.rows()
    for name, send in doors:
        seen.add(name)
        if name in DECIDED_BY_BODY:
            continue
        for role in set(Role) - ALLOWED_ROLES[actions[name]]:
            if (status := send(role).status_code) not in REFUSALS:
                wrong.append((name, role, status))
    assert wrong == []
    assert api.rows() == before
    assert seen - DECIDED_BY_BODY == actions.keys(), "list a new door with the action that it needs"


@pytest.mark.parametrize(("table", "writes"), [(PAGES, page_writes), (OPERATIONS, operation_writes)])
def test_who_has_the_action_of_a_door_is_not_refused(
    table: Mapping[Action, str], writes: Any, marked: FullEvaluation, people: Mapping[Role, User]
) -> None:
    """Else the test above would be satisfied by doors that open for nobody."""
    actions, wrong = by_door(table), []
    for name, send in writes(marked, people):
        if name in DECIDED_BY_BODY | OF_OTHERS:
            continue
        for role in ALLOWED_ROLES[actions[name]]:
            with transaction.atomic():
                if (status := send(role).status_code) == 403 or status >= 500:
                    wrong.append((name, role, status))
                transaction.set_rollback(True)
    assert wrong == []


@pytest.mark.parametrize("method", ["put", "patch", "delete", "options", "trace"])
def test_a_page_takes_no_other_method(method: str, marked: FullEvaluation, people: Mapping[Role, User]) -> None:
    client = sign_in_client(people[Role.OWNER])
    before, wrong = api.rows(), []
    for door in web.DOORS:
        status = web.ask(client, method, door.address(marked.evaluation.slug)).status_code
        if status != 405 and not (door.name in web.FOR_ADMINISTRATORS and status == 404):
            wrong.append((door.name, status))
    assert wrong == []
    assert api.rows() == before

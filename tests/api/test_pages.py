"""Everything that a page can do a program can do, too, or it is said here why not."""

from typing import Final

from django.urls import URLPattern

from evaluations.api.document import METHODS, document
from evaluations.web.urls import urlpatterns

# The name of a page's address → the operations that do what it does.
SAME: Final = {
    "evaluations": "list_evaluations",
    "evaluation_new": "create_evaluation",
    "evaluation": "get_evaluation",
    "evaluation_settings": "get_settings change_settings",
    "evaluation_archive": "archive_evaluation",
    "evaluation_bring_back": "bring_back_evaluation",
    "events": "list_events",
    "rubrics": "list_rubrics",
    "rubric_new": "begin_builtin_rubric",
    "rubric_paste": "read_prompts",
    "rubric_write": "write_rubric look_at_rubric",
    "rubric": "get_rubric",
    "rubric_next": "write_version",
    "account": "get_me change_me",
    "accounts": "list_accounts",
    "account_link": "make_account_link",
    "account_disable": "disable",
    "account_enable": "enable",
    "people": "list_people add_member",
    "people_role": "change_role",
    "people_remove": "remove_person",
    "people_link": "make_member_link",
    "comparisons": "list_comparisons",
    "comparison_new": "add_one_comparison",
    "comparison": "get_comparison get_verdicts",
    "guidelines": "get_guidelines",
    "families": "get_families change_families",
    "review": "get_next",
    "review_ahead": "get_next",
    "review_comparison": "get_review",
    "review_draft": "keep_draft",
    "review_save": "save_review",
    "review_confirm": "confirm_review",
    "review_skip": "skip_review",
    "review_undo": "undo_review",
    "review_again": "look_again leave_as_is",
    "review_diff": "get_diff",
    "review_span": "mark_passage",
    "review_span_change": "change_passage",
    "review_span_remove": "unmark_passage",
    "mentions": "list_mentions",
    "disagreements": "list_disagreements",
    "disagreement": "get_disagreement",
    "disagreement_settle": "settle_disagreement",
    "disagreement_why": "explain_choice",
    "disagreement_comment": "post_comment",
    "comment_withdraw": "withdraw_comment",
    "adjudication_withdraw": "withdraw_adjudication",
    "rounds": "list_rounds",
    "round_new": "preview_round make_one_round",
    "round": "get_round list_picks",
    "round_people": "give_round",
    "round_close": "close_one_round",
    "round_open": "open_round",
    "calibration_new": "make_calibration",
    "calibration": "get_calibration",
    "imports": "list_imports",
    "import_new": "upload_file",
    "import_map": "upload_file",
    "import": "get_import",
    "import_progress": "get_import",
    "import_store": "store_file",
    "import_cancel": "cancel_import",
    "exports": "list_exports",
    "export_new": "list_export_formats make_export",
    "export": "get_export",
    "export_progress": "get_export",
    "export_cancel": "cancel_export",
    "export_remove": "remove_export_file",
    "export_manifest": "get_manifest",
    "export_file": "get_export_file",
    "slices": "list_slices list_tags",
    "slice_save": "save_slice",
    "slice_rename": "rename_slice",
    "slice_delete": "delete_slice",
    "tag_rename": "rename_tag",
    "tag_delete": "delete_tag",
    "tag_undo": "undo_tag",
    "comparisons_act": "put_tag take_tag put_tag_on_all give_comparisons",
    "report": "get_report",
    "report_part": "get_report",
    "report_plot": "get_plot",
    "endpoints": "list_endpoints",
    "endpoint_new": "add_endpoint",
    "endpoint_found": "add_found_endpoint",
    "endpoint": "get_endpoint change_one_endpoint",
    "endpoint_price": "set_model_price",
    "judges": "list_judges",
    "judge_new": "make_judge",
    "judge": "get_judge get_prompt",
    "judge_try": "try_judge",
    "judge_tried": "get_trial",
    "runs": "list_runs",
    "run_new": "estimate_runs start_runs",
    "run": "get_run",
    "run_progress": "get_run",
    "run_pause": "pause_run",
    "run_resume": "resume_run",
    "run_budget": "set_budget",
    "run_cancel": "cancel_run",
    "run_retry": "retry_run",
    "run_reread": "reread_run",
    "run_calls": "list_calls",
    "call": "get_call",
}
# What has no operation, and why.
WITHOUT: Final = {
    "help": "words and keys of the pages",
    "sign_in": "a token is the way in",
    "sign_in_link": "a token is the way in",
    "sign_out": "a token is revoked instead",
    "account_password": "who holds a token is not to take over the account",
    "tokens": "a token makes no further tokens",
    "token_revoke": "on the page or by the command api_token, where the person is",
    "import_map_forget": "what an evaluation remembers fills in the form; a program sends its own mapping",
    "health": "answers programs as it is",
}
# Not built yet: a program cannot do these so far (pairs: other than by the field `pair` of an import).
MISSING: Final = {
    *("webhooks", "webhook_new", "webhook", "webhook_again", "webhook_kinds"),
    *("webhook_secret", "webhook_start", "webhook_stop", "webhook_test"),
    *("pairs", "duplicates", "duplicates_together"),
}


def test_every_page_has_its_operations_or_a_reason_why_not() -> None:
    names = {pattern.name for pattern in urlpatterns if isinstance(pattern, URLPattern)}
    assert names == SAME.keys() | WITHOUT.keys() | MISSING, "say here which operation does what a new page does"


def test_every_operation_that_is_named_exists_and_no_other() -> None:
    paths = document()["paths"].values()
    made = {one["operationId"] for path in paths for method, one in path.items() if method in METHODS}
    assert made == {name for names in SAME.values() for name in names.split()}

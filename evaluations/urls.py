"""The addresses of all pages."""

from django.urls import URLPattern, path

from evaluations.comparisons.views import browse, bulk_actions, saved_filters
from evaluations.disagreements import views as disagreements
from evaluations.evaluation_settings import views as evaluation_settings
from evaluations.exports import views as exports
from evaluations.imports import views as imports
from evaluations.imports.columns import views as columns
from evaluations.imports.duplicates import views as duplicates
from evaluations.imports.pairs import views as pairs
from evaluations.judges import views as judges
from evaluations.judges.calls import views as calls
from evaluations.judges.endpoints import views as endpoints
from evaluations.judges.new_run import views as new_run
from evaluations.judges.runs import views as runs
from evaluations.members import views as members
from evaluations.members.account import views as account
from evaluations.members.account.theme import account_theme
from evaluations.members.accounts import views as accounts
from evaluations.members.invitations import views as invitations
from evaluations.members.join_links import views as join_links
from evaluations.members.sign_in import views as sign_in
from evaluations.operations import views as operations
from evaluations.overview import views as overview
from evaluations.overview.palette import evaluation_names
from evaluations.reports import views as reports
from evaluations.reviews import views as reviews
from evaluations.reviews.queues import views as queues
from evaluations.rubrics import views as rubrics
from evaluations.web.moved_pages import moved_page
from evaluations.web.security_txt import security_txt
from evaluations.webhooks import views as webhooks

urlpatterns: list[URLPattern] = [
    # evaluations, and one at a glance
    path("", overview.evaluations, name="evaluations"),
    path("new", overview.evaluation_new, name="evaluation_new"),
    path("e/<slug:slug>/", overview.evaluation, name="evaluation"),
    path("e/<slug:slug>/overview/results", overview.evaluation_results, name="evaluation_results"),
    path("e/<slug:slug>/overview/checklist", overview.checklist, name="checklist"),
    path("e/<slug:slug>/settings", evaluation_settings.evaluation_settings, name="evaluation_settings"),
    path("e/<slug:slug>/settings/decisions", evaluation_settings.evaluation_decisions, name="evaluation_decisions"),
    path("e/<slug:slug>/settings/archive", evaluation_settings.evaluation_archive, name="evaluation_archive"),
    path("e/<slug:slug>/settings/restore", evaluation_settings.evaluation_restore, name="evaluation_restore"),
    path("e/<slug:slug>/settings/delete", overview.evaluation_delete, name="evaluation_delete"),
    path("e/<slug:slug>/settings/activity", overview.activity, name="activity"),
    path("evaluation-names", evaluation_names, name="evaluation_names"),
    path("help", overview.help_page, name="help"),
    # rubrics
    path("e/<slug:slug>/judges/rubrics", rubrics.rubrics, name="rubrics"),
    path("e/<slug:slug>/judges/rubrics/new", rubrics.rubric_new, name="rubric_new"),
    path("e/<slug:slug>/judges/rubrics/paste", rubrics.rubric_paste, name="rubric_paste"),
    path("e/<slug:slug>/judges/rubrics/write", rubrics.rubric_write, name="rubric_write"),
    path("e/<slug:slug>/judges/rubrics/<int:pk>", rubrics.rubric, name="rubric"),
    path("e/<slug:slug>/judges/rubrics/<int:pk>/next", rubrics.rubric_next, name="rubric_next"),
    # signing in, and one's own account
    path("sign-in", sign_in.sign_in, name="sign_in"),
    path("sign-in/<str:token>", sign_in.sign_in_link, name="sign_in_link"),
    path("sign-out", sign_in.sign_out, name="sign_out"),
    path("account", account.account, name="account"),
    path("account/theme", account_theme, name="account_theme"),
    path("account/password", account.account_password, name="account_password"),
    path("account/sessions/end", account.sessions_end, name="sessions_end"),
    path("account/sessions/<int:pk>/end", account.session_end, name="session_end"),
    path("account/tokens", account.tokens, name="tokens"),
    path("account/tokens/revoke", account.tokens_revoke, name="tokens_revoke"),
    path("account/tokens/<int:pk>/revoke", account.token_revoke, name="token_revoke"),
    path("join/<str:token>", join_links.join, name="join"),
    path("invitations/<int:pk>/accept", invitations.invitation_accept, name="invitation_accept"),
    path("invitations/<int:pk>/decline", invitations.invitation_decline, name="invitation_decline"),
    # accounts of the whole site, for its administrators
    path("status", operations.status, name="status"),
    path("accounts", accounts.accounts, name="accounts"),
    path("accounts/policy", accounts.site_policy, name="site_policy"),
    path("accounts/security", accounts.security_events, name="security_events"),
    path("accounts/<int:pk>/rights", accounts.account_rights, name="account_rights"),
    path("accounts/<int:pk>/end-access", accounts.account_end_access, name="account_end_access"),
    path("accounts/<int:pk>/link", accounts.account_link, name="account_link"),
    path("accounts/<int:pk>/disable", accounts.account_disable, name="account_disable"),
    path("accounts/<int:pk>/enable", accounts.account_enable, name="account_enable"),
    # people
    path("e/<slug:slug>/settings/members", members.members, name="members"),
    path("e/<slug:slug>/settings/members/invite", members.member_invite, name="member_invite"),
    path(
        "e/<slug:slug>/settings/members/invitations/<int:pk>/withdraw",
        invitations.invitation_withdraw,
        name="invitation_withdraw",
    ),
    path("e/<slug:slug>/settings/members/join-links", join_links.join_link_new, name="join_link_new"),
    path(
        "e/<slug:slug>/settings/members/join-links/<int:pk>/revoke",
        join_links.join_link_revoke,
        name="join_link_revoke",
    ),
    path("e/<slug:slug>/settings/members/<int:pk>/role", members.member_role, name="member_role"),
    path("e/<slug:slug>/settings/members/<int:pk>/remove", members.member_remove, name="member_remove"),
    path("e/<slug:slug>/settings/members/<int:pk>/link", members.member_link, name="member_link"),
    # comparisons
    path("e/<slug:slug>/data/comparisons", browse.comparison_list, name="comparisons"),
    path("e/<slug:slug>/data/comparisons/count", browse.comparisons_count, name="comparisons_count"),
    path("e/<slug:slug>/data/comparisons/new", browse.comparison_new, name="comparison_new"),
    path("e/<slug:slug>/data/comparisons/bulk", bulk_actions.comparisons_bulk_action, name="comparisons_bulk_action"),
    path("e/<slug:slug>/data/comparisons/<int:pk>", browse.comparison_detail, name="comparison"),
    path("e/<slug:slug>/data/filters", saved_filters.saved_filter_list, name="saved_filters"),
    path("e/<slug:slug>/data/filters/save", saved_filters.saved_filter_new, name="saved_filter_new"),
    path("e/<slug:slug>/data/filters/<int:pk>/rename", saved_filters.saved_filter_rename, name="saved_filter_rename"),
    path("e/<slug:slug>/data/filters/<int:pk>/delete", saved_filters.saved_filter_delete, name="saved_filter_delete"),
    path("e/<slug:slug>/data/tags/<int:pk>/rename", saved_filters.tag_rename, name="tag_rename"),
    path("e/<slug:slug>/data/tags/<int:pk>/delete", saved_filters.tag_delete, name="tag_delete"),
    path("e/<slug:slug>/data/tags/<int:pk>/undo", saved_filters.tag_undo, name="tag_undo"),
    # review
    path("e/<slug:slug>/settings/guidelines", reviews.guidelines_page, name="guidelines"),
    path("e/<slug:slug>/data/models", evaluation_settings.model_families, name="model_families"),
    path("e/<slug:slug>/review", reviews.review_next, name="review"),
    path("e/<slug:slug>/review/ahead", reviews.review_ahead, name="review_ahead"),
    path("e/<slug:slug>/review/summary", reviews.review_summary, name="review_summary"),
    path("e/<slug:slug>/review/<int:pk>", reviews.review_comparison, name="review_comparison"),
    path("e/<slug:slug>/review/<int:pk>/draft", reviews.review_draft, name="review_draft"),
    path("e/<slug:slug>/review/<int:pk>/save", reviews.review_save, name="review_save"),
    path("e/<slug:slug>/review/<int:pk>/confirm", reviews.review_confirm, name="review_confirm"),
    path("e/<slug:slug>/review/<int:pk>/skip", reviews.review_skip, name="review_skip"),
    path("e/<slug:slug>/review/<int:pk>/undo", reviews.review_undo, name="review_undo"),
    path("e/<slug:slug>/review/<int:pk>/diff", reviews.review_diff, name="review_diff"),
    path("e/<slug:slug>/review/<int:pk>/span", reviews.review_span, name="review_span"),
    path("e/<slug:slug>/review/spans/<int:pk>", reviews.review_span_change, name="review_span_change"),
    path("e/<slug:slug>/review/spans/<int:pk>/remove", reviews.review_span_remove, name="review_span_remove"),
    path("e/<slug:slug>/review/<int:pk>/reopen", reviews.review_reopen, name="review_reopen"),
    # disagreements
    path("mentions", disagreements.mention_list, name="mentions"),
    path("e/<slug:slug>/review/disagreements", disagreements.disagreement_list, name="disagreements"),
    path(
        "e/<slug:slug>/review/disagreements/accept-majority",
        disagreements.majorities_accept,
        name="majorities_accept",
    ),
    path("e/<slug:slug>/review/disagreements/undo", disagreements.resolutions_undo, name="resolutions_undo"),
    path("e/<slug:slug>/review/disagreements/<int:pk>", disagreements.disagreement_detail, name="disagreement"),
    path(
        "e/<slug:slug>/review/disagreements/<int:pk>/resolve",
        disagreements.disagreement_resolve,
        name="disagreement_resolve",
    ),
    path(
        "e/<slug:slug>/review/disagreements/<int:pk>/explain",
        disagreements.disagreement_explain,
        name="disagreement_explain",
    ),
    path(
        "e/<slug:slug>/review/disagreements/<int:pk>/comment",
        disagreements.disagreement_comment,
        name="disagreement_comment",
    ),
    path("e/<slug:slug>/review/comments/<int:pk>/withdraw", disagreements.comment_withdraw, name="comment_withdraw"),
    path(
        "e/<slug:slug>/review/resolutions/<int:pk>/withdraw",
        disagreements.resolution_withdraw,
        name="resolution_withdraw",
    ),
    # how reviewing is organised
    path("e/<slug:slug>/review/queues", queues.queue_list, name="queues"),
    path("e/<slug:slug>/review/queues/new", queues.queue_create, name="queue_new"),
    path("e/<slug:slug>/review/queues/<int:pk>", queues.queue_detail, name="queue"),
    path("e/<slug:slug>/review/queues/<int:pk>/assign", queues.queue_assign, name="queue_assign"),
    path("e/<slug:slug>/review/queues/<int:pk>/archive", queues.queue_archive, name="queue_archive"),
    path("e/<slug:slug>/review/queues/<int:pk>/restore", queues.queue_restore, name="queue_restore"),
    path("e/<slug:slug>/review/queues/<int:pk>/delete", queues.queue_delete, name="queue_delete"),
    path("e/<slug:slug>/review/queues/calibration", queues.calibration_create, name="calibration_new"),
    path("e/<slug:slug>/review/queues/<int:pk>/calibration", queues.calibration_result, name="calibration"),
    # imports
    path("e/<slug:slug>/data", imports.import_list, name="imports"),
    path("e/<slug:slug>/data/imports/new", imports.import_new, name="import_new"),
    path("e/<slug:slug>/data/imports/store", imports.imports_store, name="imports_store"),
    path("e/<slug:slug>/data/imports/undo", imports.imports_undo, name="imports_undo"),
    path("e/<slug:slug>/data/imports/<int:pk>", imports.import_detail, name="import"),
    path("e/<slug:slug>/data/imports/<int:pk>/progress", imports.import_progress, name="import_progress"),
    path("e/<slug:slug>/data/imports/<int:pk>/columns", columns.column_mapping, name="column_mapping"),
    path(
        "e/<slug:slug>/data/imports/<int:pk>/columns/forget",
        columns.column_mapping_forget,
        name="column_mapping_forget",
    ),
    path("e/<slug:slug>/data/imports/<int:pk>/store", imports.import_store, name="import_store"),
    path("e/<slug:slug>/data/imports/<int:pk>/cancel", imports.import_cancel, name="import_cancel"),
    path("e/<slug:slug>/data/imports/<int:pk>/undo", imports.import_undo, name="import_undo"),
    path("e/<slug:slug>/data/pairs", pairs.pair_new, name="pairs"),
    path("e/<slug:slug>/data/duplicates", duplicates.duplicate_list, name="duplicates"),
    path("e/<slug:slug>/data/duplicates/merge", duplicates.duplicates_merge, name="duplicates_merge"),
    # exports
    path("e/<slug:slug>/export", exports.exports, name="exports"),
    path("e/<slug:slug>/export/preview", exports.export_preview, name="export_preview"),
    path("e/<slug:slug>/export/new", exports.export_new, name="export_new"),
    path("e/<slug:slug>/export/<int:pk>", exports.export_page, name="export"),
    path("e/<slug:slug>/export/<int:pk>/progress", exports.export_progress, name="export_progress"),
    path("e/<slug:slug>/export/<int:pk>/cancel", exports.export_cancel, name="export_cancel"),
    path("e/<slug:slug>/export/<int:pk>/remove", exports.export_remove, name="export_remove"),
    path("e/<slug:slug>/export/<int:pk>/manifest", exports.export_manifest, name="export_manifest"),
    path("e/<slug:slug>/export/<int:pk>/file", exports.export_file, name="export_file"),
    # report
    path("e/<slug:slug>/results", reports.report, name="report"),
    path("e/<slug:slug>/results/<slug:part>", reports.report, name="report_part"),
    path("e/<slug:slug>/results/scores/differences", reports.large_differences, name="large_differences"),
    path("e/<slug:slug>/results/plots/<slug:name>/file", reports.report_plot, name="report_plot"),
    path("e/<slug:slug>/results/reviewers/<int:pk>/screening", reports.reviewer_screening, name="reviewer_screening"),
    # judges, and where they are asked
    path("endpoints", endpoints.endpoints, name="endpoints"),
    path("endpoints/new", endpoints.endpoint_new, name="endpoint_new"),
    path("endpoints/found/<int:pk>", endpoints.endpoint_found, name="endpoint_found"),
    path("endpoints/runs/<int:pk>/cancel", endpoints.endpoints_run_cancel, name="endpoints_run_cancel"),
    path("endpoints/<int:pk>", endpoints.endpoint, name="endpoint"),
    path("endpoints/<int:pk>/price", endpoints.endpoint_price, name="endpoint_price"),
    path("endpoints/<int:pk>/grant", endpoints.endpoint_grant, name="endpoint_grant"),
    path("endpoints/<int:pk>/withdraw", endpoints.endpoint_withdraw, name="endpoint_withdraw"),
    path("endpoints/<int:pk>/check", endpoints.endpoint_check, name="endpoint_check"),
    path("endpoints/<int:pk>/handshakes", endpoints.endpoint_checks, name="endpoint_checks"),
    path("e/<slug:slug>/judges", judges.judges, name="judges"),
    path("e/<slug:slug>/judges/new", judges.judge_new, name="judge_new"),
    path("e/<slug:slug>/judges/<int:pk>", judges.judge, name="judge"),
    path("e/<slug:slug>/judges/<int:pk>/archive", judges.judge_archive, name="judge_archive"),
    path("e/<slug:slug>/judges/<int:pk>/restore", judges.judge_restore, name="judge_restore"),
    path("e/<slug:slug>/judges/<int:pk>/delete", judges.judge_delete, name="judge_delete"),
    path("e/<slug:slug>/judges/<int:pk>/test", judges.judge_test, name="judge_test"),
    path("e/<slug:slug>/judges/<int:pk>/test-result", judges.judge_test_result, name="judge_test_result"),
    # runs
    path("e/<slug:slug>/judges/runs", runs.runs, name="runs"),
    path("e/<slug:slug>/judges/runs/new", new_run.run_new, name="run_new"),
    path("e/<slug:slug>/judges/runs/new/test", new_run.run_new_test, name="run_new_test"),
    path("e/<slug:slug>/judges/runs/<int:pk>", runs.run, name="run"),
    path("e/<slug:slug>/judges/runs/<int:pk>/progress", runs.run_progress, name="run_progress"),
    path("e/<slug:slug>/judges/runs/<int:pk>/pause", runs.run_pause, name="run_pause"),
    path("e/<slug:slug>/judges/runs/<int:pk>/try-now", runs.run_try_now, name="run_try_now"),
    path("e/<slug:slug>/judges/runs/<int:pk>/resume", runs.run_resume, name="run_resume"),
    path("e/<slug:slug>/judges/runs/<int:pk>/budget", runs.run_budget, name="run_budget"),
    path("e/<slug:slug>/judges/runs/<int:pk>/cancel", runs.run_cancel, name="run_cancel"),
    path("e/<slug:slug>/judges/runs/<int:pk>/archive", runs.run_archive, name="run_archive"),
    path("e/<slug:slug>/judges/runs/<int:pk>/restore", runs.run_restore, name="run_restore"),
    path("e/<slug:slug>/judges/runs/<int:pk>/delete", runs.run_delete, name="run_delete"),
    path("e/<slug:slug>/judges/runs/<int:pk>/retry", runs.run_retry, name="run_retry"),
    path("e/<slug:slug>/judges/runs/<int:pk>/reparse", runs.run_reparse, name="run_reparse"),
    path("e/<slug:slug>/judges/runs/<int:pk>/calls", calls.run_calls, name="run_calls"),
    path("e/<slug:slug>/judges/calls/<int:pk>", calls.call, name="call"),
    path("e/<slug:slug>/judges/calls/<int:pk>/confirm", calls.call_confirm, name="call_confirm"),
    path("e/<slug:slug>/settings/webhooks", webhooks.webhooks, name="webhooks"),
    path("e/<slug:slug>/settings/webhooks/new", webhooks.webhook_new, name="webhook_new"),
    path("e/<slug:slug>/settings/webhooks/<int:pk>", webhooks.webhook, name="webhook"),
    path("e/<slug:slug>/settings/webhooks/<int:pk>/kinds", webhooks.webhook_kinds, name="webhook_kinds"),
    path("e/<slug:slug>/settings/webhooks/<int:pk>/test", webhooks.webhook_test, name="webhook_test"),
    path("e/<slug:slug>/settings/webhooks/<int:pk>/stop", webhooks.webhook_stop, name="webhook_stop"),
    path("e/<slug:slug>/settings/webhooks/<int:pk>/start", webhooks.webhook_start, name="webhook_start"),
    path("e/<slug:slug>/settings/webhooks/<int:pk>/secret", webhooks.webhook_secret, name="webhook_secret"),
    path("e/<slug:slug>/settings/webhooks/<int:pk>/<int:delivery>/retry", webhooks.webhook_retry, name="webhook_retry"),
    # for supervisors, proxies and monitors
    path("healthz", operations.health, name="health"),
    path("readyz", operations.ready, name="ready"),
    path("workz", operations.work, name="work"),
    path("metrics", operations.metrics, name="metrics"),
    path(".well-known/security.txt", security_txt, name="security_txt"),
    # addresses of earlier versions
    path("e/<slug:slug>/<path:old_path>", moved_page, name="moved_page"),
]

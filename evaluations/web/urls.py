"""Every address of the site, by page. The name of a URL is the name of its module and template."""

from django.urls import URLPattern, path

from evaluations.web.account import account, account_password
from evaluations.web.accounts import account_disable, account_enable, account_link, accounts
from evaluations.web.calibration import calibration
from evaluations.web.calibration_new import calibration_new
from evaluations.web.call import call, call_confirm
from evaluations.web.comparison import comparison
from evaluations.web.comparison_new import comparison_new
from evaluations.web.comparisons import comparisons
from evaluations.web.comparisons_act import comparisons_act
from evaluations.web.disagreement import disagreement
from evaluations.web.disagreement_steps import (
    adjudication_withdraw,
    comment_withdraw,
    disagreement_comment,
    disagreement_settle,
    disagreement_why,
)
from evaluations.web.disagreements import disagreements
from evaluations.web.duplicates import duplicates, duplicates_together
from evaluations.web.endpoint import endpoint, endpoint_price
from evaluations.web.endpoint_check import endpoint_check, endpoint_handshakes
from evaluations.web.endpoint_new import endpoint_new
from evaluations.web.endpoints import endpoint_found, endpoints, endpoints_run_cancel
from evaluations.web.evaluation import evaluation
from evaluations.web.evaluation_new import evaluation_new
from evaluations.web.evaluation_settings import evaluation_archive, evaluation_bring_back, evaluation_settings
from evaluations.web.evaluations import evaluations
from evaluations.web.events import events
from evaluations.web.exports import (
    export_cancel,
    export_file,
    export_manifest,
    export_new,
    export_page,
    export_progress,
    export_remove,
    exports,
)
from evaluations.web.families import families
from evaluations.web.guidelines import guidelines
from evaluations.web.health import health
from evaluations.web.help import help_page
from evaluations.web.import_map import import_map, import_map_forget
from evaluations.web.imports import (
    import_cancel,
    import_new,
    import_page,
    import_progress,
    import_store,
    import_undo,
    imports,
)
from evaluations.web.judge import judge
from evaluations.web.judge_archive import judge_archive, judge_restore
from evaluations.web.judge_new import judge_new
from evaluations.web.judge_try import judge_tried, judge_try
from evaluations.web.judges import judges
from evaluations.web.mentions import mentions
from evaluations.web.pairs import pairs
from evaluations.web.people import people, people_link, people_remove, people_role
from evaluations.web.report import report
from evaluations.web.report_plot import report_plot
from evaluations.web.review import review, review_comparison
from evaluations.web.review_ahead import review_ahead
from evaluations.web.review_diff import review_diff
from evaluations.web.review_draft import review_draft
from evaluations.web.review_spans import review_span, review_span_change, review_span_remove
from evaluations.web.review_steps import review_again, review_confirm, review_save, review_skip, review_undo
from evaluations.web.round import round_close, round_open, round_page, round_people
from evaluations.web.round_new import round_new
from evaluations.web.rounds import rounds
from evaluations.web.rubric import rubric
from evaluations.web.rubric_new import rubric_new
from evaluations.web.rubric_next import rubric_next
from evaluations.web.rubric_paste import rubric_paste
from evaluations.web.rubric_write import rubric_write
from evaluations.web.rubrics import rubrics
from evaluations.web.run import run, run_budget, run_cancel, run_pause, run_progress, run_resume
from evaluations.web.run_calls import run_calls
from evaluations.web.run_new import run_new
from evaluations.web.run_reread import run_reread
from evaluations.web.run_retry import run_retry
from evaluations.web.runs import runs
from evaluations.web.sign_in import sign_in, sign_out
from evaluations.web.sign_in_link import sign_in_link
from evaluations.web.slices import slice_delete, slice_rename, slice_save, slices, tag_delete, tag_rename, tag_undo
from evaluations.web.tokens import token_revoke, tokens
from evaluations.web.webhook import (
    webhook,
    webhook_again,
    webhook_kinds,
    webhook_secret,
    webhook_start,
    webhook_stop,
    webhook_test,
)
from evaluations.web.webhooks import webhook_new, webhooks

urlpatterns: list[URLPattern] = [
    # evaluations, and one at a glance
    path("", evaluations, name="evaluations"),
    path("new", evaluation_new, name="evaluation_new"),
    path("e/<slug:slug>/", evaluation, name="evaluation"),
    path("e/<slug:slug>/settings", evaluation_settings, name="evaluation_settings"),
    path("e/<slug:slug>/archive", evaluation_archive, name="evaluation_archive"),
    path("e/<slug:slug>/bring-back", evaluation_bring_back, name="evaluation_bring_back"),
    path("e/<slug:slug>/events", events, name="events"),
    path("help", help_page, name="help"),
    # rubrics
    path("e/<slug:slug>/rubrics", rubrics, name="rubrics"),
    path("e/<slug:slug>/rubrics/new", rubric_new, name="rubric_new"),
    path("e/<slug:slug>/rubrics/paste", rubric_paste, name="rubric_paste"),
    path("e/<slug:slug>/rubrics/write", rubric_write, name="rubric_write"),
    path("e/<slug:slug>/rubrics/<int:pk>", rubric, name="rubric"),
    path("e/<slug:slug>/rubrics/<int:pk>/next", rubric_next, name="rubric_next"),
    # signing in, and one's own account
    path("sign-in", sign_in, name="sign_in"),
    path("sign-in/<str:token>", sign_in_link, name="sign_in_link"),
    path("sign-out", sign_out, name="sign_out"),
    path("account", account, name="account"),
    path("account/password", account_password, name="account_password"),
    path("account/tokens", tokens, name="tokens"),
    path("account/tokens/<int:pk>/revoke", token_revoke, name="token_revoke"),
    # accounts of the whole site, for its administrators
    path("accounts", accounts, name="accounts"),
    path("accounts/<int:pk>/link", account_link, name="account_link"),
    path("accounts/<int:pk>/disable", account_disable, name="account_disable"),
    path("accounts/<int:pk>/enable", account_enable, name="account_enable"),
    # people
    path("e/<slug:slug>/people", people, name="people"),
    path("e/<slug:slug>/people/<int:pk>/role", people_role, name="people_role"),
    path("e/<slug:slug>/people/<int:pk>/remove", people_remove, name="people_remove"),
    path("e/<slug:slug>/people/<int:pk>/link", people_link, name="people_link"),
    # comparisons
    path("e/<slug:slug>/comparisons", comparisons, name="comparisons"),
    path("e/<slug:slug>/comparisons/new", comparison_new, name="comparison_new"),
    path("e/<slug:slug>/comparisons/act", comparisons_act, name="comparisons_act"),
    path("e/<slug:slug>/comparisons/<int:pk>", comparison, name="comparison"),
    path("e/<slug:slug>/slices", slices, name="slices"),
    path("e/<slug:slug>/slices/save", slice_save, name="slice_save"),
    path("e/<slug:slug>/slices/<int:pk>/rename", slice_rename, name="slice_rename"),
    path("e/<slug:slug>/slices/<int:pk>/delete", slice_delete, name="slice_delete"),
    path("e/<slug:slug>/tags/<int:pk>/rename", tag_rename, name="tag_rename"),
    path("e/<slug:slug>/tags/<int:pk>/delete", tag_delete, name="tag_delete"),
    path("e/<slug:slug>/tags/<int:pk>/undo", tag_undo, name="tag_undo"),
    # review
    path("e/<slug:slug>/guidelines", guidelines, name="guidelines"),
    path("e/<slug:slug>/families", families, name="families"),
    path("e/<slug:slug>/review", review, name="review"),
    path("e/<slug:slug>/review/ahead", review_ahead, name="review_ahead"),
    path("e/<slug:slug>/review/<int:pk>", review_comparison, name="review_comparison"),
    path("e/<slug:slug>/review/<int:pk>/draft", review_draft, name="review_draft"),
    path("e/<slug:slug>/review/<int:pk>/save", review_save, name="review_save"),
    path("e/<slug:slug>/review/<int:pk>/confirm", review_confirm, name="review_confirm"),
    path("e/<slug:slug>/review/<int:pk>/skip", review_skip, name="review_skip"),
    path("e/<slug:slug>/review/<int:pk>/undo", review_undo, name="review_undo"),
    path("e/<slug:slug>/review/<int:pk>/diff", review_diff, name="review_diff"),
    path("e/<slug:slug>/review/<int:pk>/span", review_span, name="review_span"),
    path("e/<slug:slug>/spans/<int:pk>", review_span_change, name="review_span_change"),
    path("e/<slug:slug>/spans/<int:pk>/remove", review_span_remove, name="review_span_remove"),
    path("e/<slug:slug>/review/<int:pk>/again", review_again, name="review_again"),
    # disagreements
    path("mentions", mentions, name="mentions"),
    path("e/<slug:slug>/disagreements", disagreements, name="disagreements"),
    path("e/<slug:slug>/disagreements/<int:pk>", disagreement, name="disagreement"),
    path("e/<slug:slug>/disagreements/<int:pk>/settle", disagreement_settle, name="disagreement_settle"),
    path("e/<slug:slug>/disagreements/<int:pk>/why", disagreement_why, name="disagreement_why"),
    path("e/<slug:slug>/disagreements/<int:pk>/comment", disagreement_comment, name="disagreement_comment"),
    path("e/<slug:slug>/comments/<int:pk>/withdraw", comment_withdraw, name="comment_withdraw"),
    path("e/<slug:slug>/adjudications/<int:pk>/withdraw", adjudication_withdraw, name="adjudication_withdraw"),
    # how reviewing is organised
    path("e/<slug:slug>/rounds", rounds, name="rounds"),
    path("e/<slug:slug>/rounds/new", round_new, name="round_new"),
    path("e/<slug:slug>/rounds/<int:pk>", round_page, name="round"),
    path("e/<slug:slug>/rounds/<int:pk>/people", round_people, name="round_people"),
    path("e/<slug:slug>/rounds/<int:pk>/close", round_close, name="round_close"),
    path("e/<slug:slug>/rounds/<int:pk>/open", round_open, name="round_open"),
    path("e/<slug:slug>/rounds/calibration", calibration_new, name="calibration_new"),
    path("e/<slug:slug>/rounds/<int:pk>/calibration", calibration, name="calibration"),
    # imports
    path("e/<slug:slug>/imports", imports, name="imports"),
    path("e/<slug:slug>/imports/new", import_new, name="import_new"),
    path("e/<slug:slug>/imports/<int:pk>", import_page, name="import"),
    path("e/<slug:slug>/imports/<int:pk>/progress", import_progress, name="import_progress"),
    path("e/<slug:slug>/imports/<int:pk>/columns", import_map, name="import_map"),
    path("e/<slug:slug>/imports/<int:pk>/columns/forget", import_map_forget, name="import_map_forget"),
    path("e/<slug:slug>/imports/<int:pk>/store", import_store, name="import_store"),
    path("e/<slug:slug>/imports/<int:pk>/cancel", import_cancel, name="import_cancel"),
    path("e/<slug:slug>/imports/<int:pk>/undo", import_undo, name="import_undo"),
    path("e/<slug:slug>/pairs", pairs, name="pairs"),
    path("e/<slug:slug>/duplicates", duplicates, name="duplicates"),
    path("e/<slug:slug>/duplicates/together", duplicates_together, name="duplicates_together"),
    # exports
    path("e/<slug:slug>/exports", exports, name="exports"),
    path("e/<slug:slug>/exports/new", export_new, name="export_new"),
    path("e/<slug:slug>/exports/<int:pk>", export_page, name="export"),
    path("e/<slug:slug>/exports/<int:pk>/progress", export_progress, name="export_progress"),
    path("e/<slug:slug>/exports/<int:pk>/cancel", export_cancel, name="export_cancel"),
    path("e/<slug:slug>/exports/<int:pk>/remove", export_remove, name="export_remove"),
    path("e/<slug:slug>/exports/<int:pk>/manifest", export_manifest, name="export_manifest"),
    path("e/<slug:slug>/exports/<int:pk>/file", export_file, name="export_file"),
    # report
    path("e/<slug:slug>/report", report, name="report"),
    path("e/<slug:slug>/report/<slug:part>", report, name="report_part"),
    path("e/<slug:slug>/report/plots/<slug:name>/file", report_plot, name="report_plot"),
    # judges, and where they are asked
    path("endpoints", endpoints, name="endpoints"),
    path("endpoints/new", endpoint_new, name="endpoint_new"),
    path("endpoints/found/<int:pk>", endpoint_found, name="endpoint_found"),
    path("endpoints/runs/<int:pk>/cancel", endpoints_run_cancel, name="endpoints_run_cancel"),
    path("endpoints/<int:pk>", endpoint, name="endpoint"),
    path("endpoints/<int:pk>/price", endpoint_price, name="endpoint_price"),
    path("endpoints/<int:pk>/check", endpoint_check, name="endpoint_check"),
    path("endpoints/<int:pk>/handshakes", endpoint_handshakes, name="endpoint_handshakes"),
    path("e/<slug:slug>/judges", judges, name="judges"),
    path("e/<slug:slug>/judges/new", judge_new, name="judge_new"),
    path("e/<slug:slug>/judges/<int:pk>", judge, name="judge"),
    path("e/<slug:slug>/judges/<int:pk>/archive", judge_archive, name="judge_archive"),
    path("e/<slug:slug>/judges/<int:pk>/restore", judge_restore, name="judge_restore"),
    path("e/<slug:slug>/judges/<int:pk>/try", judge_try, name="judge_try"),
    path("e/<slug:slug>/judges/<int:pk>/tried", judge_tried, name="judge_tried"),
    # runs
    path("e/<slug:slug>/runs", runs, name="runs"),
    path("e/<slug:slug>/runs/new", run_new, name="run_new"),
    path("e/<slug:slug>/runs/<int:pk>", run, name="run"),
    path("e/<slug:slug>/runs/<int:pk>/progress", run_progress, name="run_progress"),
    path("e/<slug:slug>/runs/<int:pk>/pause", run_pause, name="run_pause"),
    path("e/<slug:slug>/runs/<int:pk>/resume", run_resume, name="run_resume"),
    path("e/<slug:slug>/runs/<int:pk>/budget", run_budget, name="run_budget"),
    path("e/<slug:slug>/runs/<int:pk>/cancel", run_cancel, name="run_cancel"),
    path("e/<slug:slug>/runs/<int:pk>/retry", run_retry, name="run_retry"),
    path("e/<slug:slug>/runs/<int:pk>/reread", run_reread, name="run_reread"),
    path("e/<slug:slug>/runs/<int:pk>/calls", run_calls, name="run_calls"),
    path("e/<slug:slug>/calls/<int:pk>", call, name="call"),
    path("e/<slug:slug>/calls/<int:pk>/confirm", call_confirm, name="call_confirm"),
    path("e/<slug:slug>/webhooks", webhooks, name="webhooks"),
    path("e/<slug:slug>/webhooks/new", webhook_new, name="webhook_new"),
    path("e/<slug:slug>/webhooks/<int:pk>", webhook, name="webhook"),
    path("e/<slug:slug>/webhooks/<int:pk>/kinds", webhook_kinds, name="webhook_kinds"),
    path("e/<slug:slug>/webhooks/<int:pk>/test", webhook_test, name="webhook_test"),
    path("e/<slug:slug>/webhooks/<int:pk>/stop", webhook_stop, name="webhook_stop"),
    path("e/<slug:slug>/webhooks/<int:pk>/start", webhook_start, name="webhook_start"),
    path("e/<slug:slug>/webhooks/<int:pk>/secret", webhook_secret, name="webhook_secret"),
    path("e/<slug:slug>/webhooks/<int:pk>/<int:delivery>/again", webhook_again, name="webhook_again"),
    # for supervisors, proxies and monitors
    path("healthz", health, name="health"),
]

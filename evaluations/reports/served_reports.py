"""Reports that are served as they were last made, and made again in the background while somebody looks at them.

Only those are kept that take long, and only for roles that see everything: the report of anyone else is on their own
comparisons. What is served has the time when it was made unless nothing has changed since.
"""

import hashlib
import zlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from django.conf import settings
from django.db.models.functions import Now
from django.http import QueryDict

from evaluations.domain.jobs import UNFINISHED_JOB_STATES
from evaluations.domain.reports import ReportPart, ReportRules
from evaluations.domain.roles import Role
from evaluations.domain.splits import SplitPart
from evaluations.jobs.kinds import JobClaim, JobKind, register_job_kind
from evaluations.jobs.queue import delete_jobs, enqueue_job
from evaluations.models.evaluations import Evaluation
from evaluations.models.jobs import Job
from evaluations.models.reports import ServedReport
from evaluations.reports.cache import hash_state, read_evaluation_state
from evaluations.reports.forms import ReportForm
from evaluations.reports.page_body import ReportViewer, render_report
from evaluations.reports.selectors import build_report, get_report_aspect
from evaluations.stats.full_report import Report
from evaluations.verdicts.array_files import hash_program

# A report on fewer comparisons is made anew at once.
MIN_SERVED_COMPARISONS: Final = 1_000
# How old a served report may be if something changed since: a site without a worker makes it in the request then.
MAX_AGE: Final = timedelta(seconds=60)
REFRESH_PAUSE: Final = timedelta(seconds=5)
# A large report keeps a worker from judging, so the next refresh waits nine times as long as the last one took. The
# longest wait ends well before the served report is too old.
RESTS_PER_REFRESH: Final = 9
MAX_REFRESH_PAUSE: Final = timedelta(seconds=30)
# A report that nobody asked for so long is not made again, and after a day it is deleted.
LOOKED_AT: Final = timedelta(seconds=30)
KEPT: Final = timedelta(days=1)
MAX_KEPT: Final = 100  # of one evaluation: made-up queries must not fill the disk
REFRESH_REPORT: Final = "refresh_report"
# Read while the program starts: a page that other templates rendered is not the present one.
TEMPLATES_VERSION: Final = hash_program(settings.BASE_DIR / "templates", "*.html")


@dataclass(frozen=True)
class ReportQuestion:
    """What a page is asked. ``query``: as it is in the address."""

    evaluation: Evaluation
    part: ReportPart
    query: str
    viewer: ReportViewer

    @property
    def key(self) -> str:
        return hashlib.sha256(repr((self.part.value, self.query, self.viewer.role.value)).encode()).hexdigest()

    def make_form(self) -> ReportForm:
        return ReportForm(
            QueryDict(self.query),
            evaluation=self.evaluation,
            sees_all=self.viewer.sees_all,
            sees_judges=self.viewer.sees_judges,
        )


def read_report_state(evaluation: Evaluation) -> str:
    """The state that a report page of the evaluation is of; empty while a run changes its calls."""
    state = read_evaluation_state(evaluation)
    return "" if state is None else hash_state(evaluation, state, TEMPLATES_VERSION)


class ServedBody(NamedTuple):
    """``as_of``: when it was made, if something has changed since or may have."""

    body: str
    as_of: datetime | None


def find_served_report(question: ReportQuestion) -> ServedBody | None:
    """The last result, if there is one that may still be shown; a newer one is made in the background if needed."""
    if not question.viewer.sees_all:
        return None
    rows = ServedReport.objects.filter(evaluation=question.evaluation, key=question.key)
    row = rows.annotate(now=Now()).first()
    if row is None:
        return None
    state, now = read_report_state(question.evaluation), row.now
    is_current = bool(state) and row.state == state
    if not is_current and now - row.made_at > MAX_AGE:
        return None
    if now - row.asked_at > REFRESH_PAUSE:
        rows.update(asked_at=Now())
    if not is_current and now - row.made_at > REFRESH_PAUSE:
        refresh_later(row, now)
    return ServedBody(zlib.decompress(row.body).decode(), None if is_current else row.made_at)


def refresh_later(row: ServedReport, now: datetime) -> None:
    """Have a worker make the report again, unless one is at it or has just been. One that failed is tried again."""
    last = Job.objects.filter(kind=REFRESH_REPORT, subject=row.pk).first()
    if last is None or (last.state not in UNFINISHED_JOB_STATES and now >= get_refresh_pause_end(last)):
        enqueue_job(REFRESH_REPORT, row.pk, evaluation=row.evaluation)


def get_refresh_pause_end(last: Job) -> datetime:
    if last.begun_at is None or last.finished_at is None:
        return last.queued_at
    return last.finished_at + min(RESTS_PER_REFRESH * (last.finished_at - last.begun_at), MAX_REFRESH_PAUSE)


def keep_served_report(
    question: ReportQuestion, rules: ReportRules, result: Report, body: str, state_before: str
) -> None:
    """Keep a report that was just made for the next who ask. ``state_before``: read before it was made."""
    is_large = result.comparisons >= MIN_SERVED_COMPARISONS
    # A report on the test part is a look at it, which is counted: it is made only for those who ask.
    if not (question.viewer.sees_all and is_large) or rules.part is SplitPart.TEST:
        return
    evaluation = question.evaluation
    ServedReport.objects.update_or_create(
        evaluation=evaluation,
        key=question.key,
        defaults={
            "part": question.part,
            "query": question.query,
            "role": question.viewer.role,
            "asked_at": Now(),
            **make_result_columns(evaluation, body, state_before),
        },
    )
    delete_unused_reports(evaluation)


def make_result_columns(evaluation: Evaluation, body: str, state_before: str) -> dict[str, object]:
    """A result during which something changed is of no state, and is never shown as the present one."""
    state = state_before if read_report_state(evaluation) == state_before else ""
    return {"state": state, "body": zlib.compress(body.encode(), 1), "made_at": Now()}


def delete_unused_reports(evaluation: Evaluation) -> None:
    kept = ServedReport.objects.filter(evaluation=evaluation)
    unused = kept.filter(asked_at__lt=Now() - KEPT).values_list("pk", flat=True)
    if ids := [*unused, *kept.order_by("-asked_at").values_list("pk", flat=True)[MAX_KEPT:]]:
        delete_jobs(REFRESH_REPORT, ids)
        kept.filter(pk__in=ids).delete()


def refresh_report(claim: JobClaim) -> bool:
    """Make a served report again if somebody asked for it lately. Always done: the next request enqueues another."""
    looked_at = ServedReport.objects.filter(pk=claim.job.subject, asked_at__gt=Now() - LOOKED_AT)
    row = looked_at.select_related("evaluation").first()
    if row is None:
        return True
    question = ReportQuestion(row.evaluation, ReportPart(row.part), row.query, ReportViewer(Role(row.role), True))
    form, state = question.make_form(), read_report_state(row.evaluation)
    if not form.is_valid():
        looked_at.delete()  # a filter names something that is gone: the page reports it
        return True
    parts = (question.part,)
    aspect = get_report_aspect(parts, form.cleaned_data["aspect"])
    result = build_report(row.evaluation, None, form.rules(), parts=parts, aspect=aspect)
    body = render_report(result, form, question.part, question.viewer)
    ServedReport.objects.filter(pk=row.pk).update(**make_result_columns(row.evaluation, body, state))
    return True


register_job_kind(JobKind(REFRESH_REPORT, refresh_report, counts_faults=True, per_worker=1))

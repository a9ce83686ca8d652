"""An archived judge leaves reports, lists, choices, labels and new exports; what it said is kept."""

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from evaluations.comparisons.pairing.selectors import rank_by_results
from evaluations.domain.errors import InputRefused
from evaluations.domain.judges import RunState
from evaluations.domain.reports import ReportRules
from evaluations.domain.roles import Role
from evaluations.judges.runs.selectors import list_runnable_judges
from evaluations.judges.runs.services import resume_run, start_run
from evaluations.judges.services import archive_judge, delete_judge, restore_judge
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.judges import Judge
from evaluations.models.runs import Run
from evaluations.models.users import User
from evaluations.models.verdicts import Verdict
from evaluations.reports.selectors import get_full_report
from evaluations.reviews.queues.sampler import get_sampling_judges
from evaluations.verdicts.labels import decide_labels
from tests.factories.evaluations import make_comparison, make_human, make_member
from tests.factories.imports import comparison_row, import_rows, verdict_row
from tests.factories.judges import make_baseline_judge
from tests.factories.verdicts import ALL_A, make_judge_verdicts, make_review

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def votes_of_two_judges_and_a_reviewer(evaluation: Evaluation) -> None:
    ann = make_human(evaluation, "ann")
    for number in range(3):
        comparison = make_comparison(evaluation)
        make_judge_verdicts(comparison, judge="gpt", kind="llm", as_stored=ALL_A)
        make_judge_verdicts(comparison, judge="other", kind="llm", as_stored=ALL_A)
        if number:
            make_review(ann, comparison, ALL_A)


@pytest.fixture
def judge(evaluation: Evaluation) -> Judge:
    return evaluation.judges.get(name="gpt")


def test_it_leaves_the_report_at_once_and_comes_back_with_everything(evaluation: Evaluation, judge: Judge) -> None:
    assert sorted(get_full_report(evaluation, ReportRules()).judges) == ["gpt", "other"]
    archive_judge(judge, user=None)
    made = get_full_report(evaluation, ReportRules())
    assert sorted(made.judges) == ["other"]
    assert "gpt" not in json.dumps(made.as_json())
    assert Verdict.objects.filter(rater__judge=judge).count() == 18
    restore_judge(judge, user=None)
    assert sorted(get_full_report(evaluation, ReportRules()).judges) == ["gpt", "other"]
    assert list(Event.objects.filter(object_type="judge").order_by("pk").values_list("verb", flat=True)) == [
        "archived",
        "restored",
    ]


def test_a_report_that_names_it_is_refused_in_one_sentence(evaluation: Evaluation, judge: Judge) -> None:
    archive_judge(judge, user=None)
    with pytest.raises(InputRefused, match="There is no judge “gpt” here"):
        get_full_report(evaluation, ReportRules(judges=("gpt",)))


def test_it_gives_no_label_and_no_strategy_asks_it(evaluation: Evaluation, judge: Judge) -> None:
    evaluation.shown_judge = evaluation.judges.get(name="other")
    evaluation.save()
    first = evaluation.comparisons.earliest("pk")
    archive_judge(judge, user=None)
    assert [rater.name for rater in get_sampling_judges(evaluation)] == ["other"]
    evaluation.shown_judge = None
    evaluation.save()
    archive_judge(evaluation.judges.get(name="other"), user=None)
    assert not any(decide_labels(evaluation, [first.pk]).get(first.pk, {}).values())


@pytest.mark.parametrize("state", [RunState.PLANNING, RunState.RUNNING, RunState.PAUSED])
def test_a_judge_with_a_run_that_is_not_over_stays(judge: Judge, state: RunState) -> None:
    Run.objects.filter(judge=judge).update(state=state)
    with pytest.raises(InputRefused, match="has an open run"):
        archive_judge(judge, user=None)


def test_the_judge_that_reviewers_are_shown_stays(evaluation: Evaluation, judge: Judge) -> None:
    evaluation.shown_judge = judge
    evaluation.save()
    with pytest.raises(InputRefused, match="“gpt” is shown to reviewers"):
        archive_judge(judge, user=None)


def test_an_archived_judge_is_not_run_and_not_offered(evaluation: Evaluation, judge: Judge) -> None:
    archive_judge(judge, user=None)
    assert [one.name for one in list_runnable_judges(evaluation)] == ["other"]
    for row in (judge, Judge.objects.get(pk=judge.pk)):
        with pytest.raises(InputRefused, match=r"is archived. Restore it"):
            start_run(row, user=None)


def test_a_stopped_run_of_an_archived_judge_does_not_go_on(judge: Judge) -> None:
    Run.objects.filter(judge=judge).update(state=RunState.STOPPED)
    archive_judge(judge, user=None)
    with pytest.raises(InputRefused, match=r"is archived. Restore it"):
        resume_run(Run.objects.get(judge=judge), user=None)


def test_new_exports_leave_its_verdicts_out_and_count_them(
    evaluation: Evaluation, judge: Judge, tmp_path: Path
) -> None:
    archive_judge(judge, user=None)
    out = tmp_path / "verdicts.jsonl"
    call_command("export", "study", format="verdicts", out=out, stdout=StringIO(), stderr=StringIO())
    raters = {json.loads(line)["rater"] for line in out.read_text().splitlines()}
    assert raters == {"ann", "other"}
    assert evaluation.exports.get().counts["excluded"] == {"judge_archived": 18}
    call_command("export", "study", format="jsonl", out=tmp_path / "rows.jsonl", stdout=StringIO(), stderr=StringIO())
    assert "gpt" not in (tmp_path / "rows.jsonl").read_text()


def test_the_page_archives_and_restores_and_the_list_shows_it_apart(owner: User, judge: Judge) -> None:
    client = Client()
    client.force_login(owner)
    page, listed = reverse("judge", args=["study", judge.pk]), reverse("judges", args=["study"])
    assert "Archive</button>" in client.get(page).content.decode()
    answer = client.post(reverse("judge_archive", args=["study", judge.pk]), follow=True).content.decode()
    assert "Judge “gpt” archived." in answer
    assert "Restore</button>" in answer
    assert "Run this judge" not in answer
    assert page not in (current := client.get(listed).content.decode())
    assert "Show archived" in current
    assert page in client.get(f"{listed}?archived").content.decode()
    client.post(reverse("judge_restore", args=["study", judge.pk]))
    assert page in client.get(listed).content.decode()


def test_whoever_imports_what_it_says_is_told_that_it_is_archived(evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row())
    of_judge = {"rater": "file", "rater_kind": "judge"}
    line = "The judge “file” is archived. Reports leave its verdicts out until you restore it."
    assert line not in import_rows(evaluation, verdict_row(**of_judge)).summary.warnings
    archive_judge(evaluation.judges.get(name="file"), user=None)
    assert line in import_rows(evaluation, verdict_row(**of_judge, sample=1)).summary.warnings
    assert line not in import_rows(evaluation, verdict_row()).summary.warnings


def test_the_page_of_a_comparison_marks_it_and_ratings_for_pairs_leave_it_out(
    evaluation: Evaluation, owner: User, judge: Judge
) -> None:
    archive_judge(judge, user=None)
    client = Client()
    client.force_login(owner)
    comparison = evaluation.comparisons.latest("pk")
    text = client.get(reverse("comparison", args=["study", comparison.pk])).content.decode()
    assert text.count('<span class="badge">archived</span>') == 1
    archive_judge(evaluation.judges.get(name="other"), user=None)
    Verdict.objects.filter(rater__kind="human").delete()
    with pytest.raises(InputRefused, match="needs verdicts or scores"):
        rank_by_results(evaluation)


def test_a_reviewer_may_not_archive(evaluation: Evaluation, judge: Judge) -> None:
    client = Client()
    client.force_login(make_member(evaluation, Role.REVIEWER, "rea"))
    assert client.post(reverse("judge_archive", args=["study", judge.pk])).status_code == 403
    judge.refresh_from_db()
    assert judge.archived_at is None


def test_only_a_judge_that_never_ran_is_deleted(
    client: Client, evaluation: Evaluation, owner: User, judge: Judge
) -> None:
    with pytest.raises(InputRefused, match="has runs or verdicts"):
        delete_judge(judge, user=owner)
    assert evaluation.judges.filter(pk=judge.pk).exists()
    unused = make_baseline_judge(evaluation)
    client.force_login(owner)
    assert ">Delete</button>" in client.get(reverse("judge", args=["study", unused.pk])).content.decode()
    client.post(reverse("judge_delete", args=["study", unused.pk]))
    assert not evaluation.judges.filter(pk=unused.pk).exists()
    assert not evaluation.raters.filter(name="longest").exists()
    assert Event.objects.get(verb="deleted").before == {"name": "longest", "model": "longest"}
    run = start_run(make_baseline_judge(evaluation), user=owner)
    assert client.post(reverse("judge_delete", args=["study", run.judge_id])).status_code == 302
    assert Run.objects.filter(pk=run.pk).exists()

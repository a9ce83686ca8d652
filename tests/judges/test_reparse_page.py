"""Reading stored replies again from the page of a run."""

import json
from typing import Any

import pytest
from django.urls import reverse

from evaluations.domain.roles import Role
from evaluations.models.evaluations import Evaluation
from evaluations.models.runs import Attempt, Call, Reparse, Run
from evaluations.models.users import User
from evaluations.models.verdicts import Verdict
from tests.factories.evaluations import make_comparison, make_member, make_user
from tests.factories.judges import make_baseline_judge, make_llm_judge, run_judge_here
from tests.factories.verdicts import ALL_A
from tests.helpers.browser_client import sign_in_client
from tests.helpers.job_work import Nudges, job_about, nudged_jobs, work_once
from tests.helpers.llm_server import ServerAnswer, llm_server

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]


@pytest.fixture(autouse=True)
def one_comparison(evaluation: Evaluation) -> None:
    make_comparison(evaluation)


@pytest.fixture
def run(evaluation: Evaluation) -> Run:
    """Done: both calls unreadable."""
    with llm_server(lambda question: ServerAnswer("no verdict")) as server:
        return run_judge_here(make_llm_judge(evaluation, server.base_url))


def address(run: Run) -> str:
    return reverse("run_reparse", args=["study", run.pk])


def post(user: User, run: Run) -> Any:
    return sign_in_client(user).post(address(run))


def page(user: User, run: Run) -> str:
    answer = sign_in_client(user).get(reverse("run", args=["study", run.pk]))
    assert answer.status_code == 200
    return answer.content.decode()


def test_replies_that_can_be_read_now_become_verdicts_and_the_page_says_how_many(
    owner: User, run: Run, nudges: Nudges
) -> None:
    readable = json.dumps({"rationale": "r", "choices": ALL_A})
    first = Call.objects.order_by("pk")[0]
    Attempt.objects.filter(call=first).update(raw=readable)
    paid = Attempt.objects.count()
    assert "Re-parse stored replies" in page(owner, run)
    assert post(owner, run)["Location"] == reverse("run", args=["study", run.pk])
    begun = Reparse.objects.get(judge=run.judge)
    assert job_about("reparse", begun.pk).pk in nudged_jobs(nudges)
    moving = page(owner, run)
    assert f'hx-get="{address(run)}"' in moving
    assert "Re-parse stored replies" not in moving
    assert not work_once("reparse", begun.pk)
    ended = page(owner, run)
    assert "1 answered now" in ended
    assert "1 unchanged" in ended
    assert f'hx-get="{address(run)}"' not in ended
    assert (Attempt.objects.count(), Verdict.objects.count()) == (paid, 6)


def test_what_polls_is_part_of_the_page(owner: User, run: Run) -> None:
    post(owner, run)
    part = sign_in_client(owner).get(address(run)).content.decode()
    assert "<html" not in part
    assert " ".join(part.split()) in " ".join(page(owner, run).split())


def test_what_cannot_be_read_again_is_said_in_one_sentence(owner: User, evaluation: Evaluation, run: Run) -> None:
    baseline = run_judge_here(make_baseline_judge(evaluation))
    for one, sentence in ((baseline, "has no stored replies"), (run, "already being re-parsed")):
        if one == run:
            post(owner, run)
        answer = post(owner, one)
        assert answer.status_code == 422
        assert sentence in answer.content.decode()
    assert "Stored replies" not in page(owner, baseline)


def test_viewers_see_what_it_found_and_only_managers_begin_it(evaluation: Evaluation, run: Run) -> None:
    viewer, reviewer = make_member(evaluation, Role.VIEWER), make_member(evaluation, Role.REVIEWER)
    assert "Stored replies" in page(viewer, run)
    assert "Re-parse stored replies" not in page(viewer, run)
    assert "Stored replies" not in page(reviewer, run)
    assert post(viewer, run).status_code == 403
    assert sign_in_client(reviewer).get(address(run)).status_code == 403
    assert post(make_user(), run).status_code == 404
    assert sign_in_client(make_user()).get(address(run)).status_code == 404

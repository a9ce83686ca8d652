"""The pages of judges, runs and endpoints."""

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evaluations.domain.judges import RunState
from evaluations.domain.roles import Role
from evaluations.jobs.nudges import WorkerTask
from evaluations.judges.runs.planner import plan_run_calls
from evaluations.judges.runs.services import start_run
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Endpoint, Judge
from evaluations.models.runs import Call, Run
from evaluations.models.users import User
from tests.factories.evaluations import make_comparison, make_evaluation, make_member, make_user
from tests.factories.judges import make_baseline_judge, make_llm_judge, run_judge_here
from tests.helpers.browser_client import sign_in_client
from tests.helpers.job_work import Nudges
from tests.helpers.llm_server import ServerAnswer, answer_first, fail_with, llm_server
from tests.helpers.page_text import html_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def two_comparisons(evaluation: Evaluation) -> None:
    for _ in range(2):
        make_comparison(evaluation)


def page(user: User, name: str, *args: Any, **parameters: Any) -> str:
    answer = sign_in_client(user).get(reverse(name, args=args), parameters)
    assert answer.status_code == 200, answer.status_code
    return html_of(answer)


def test_every_empty_page_says_how_to_fill_it(owner: User) -> None:
    make_evaluation(owner, slug="empty")
    owner.is_superuser = True
    owner.save()
    assert "No judges yet" in page(owner, "judges", "empty")
    assert "Import responses first." in page(owner, "runs", "empty")
    assert "provider=openai" in page(owner, "run_new", "empty")
    assert "No LLM endpoints yet" in page(owner, "endpoints")
    make_comparison(Evaluation.objects.get(slug="empty"))
    assert ">Run a judge</a>" in page(owner, "runs", "empty")


def test_a_manager_makes_the_baseline_by_leaving_everything_as_it_is(owner: User, evaluation: Evaluation) -> None:
    answer = sign_in_client(owner).post(
        reverse("judge_new", args=["study"]), {"version": evaluation.review_rubric_id, "mode": "auto"}
    )
    judge = Judge.objects.get()
    assert answer["Location"] == f"{reverse('run_new', args=['study'])}?judge={judge.pk}"
    assert (judge.name, judge.is_baseline) == ("longest", True)
    for name in ("judges", "judge", "runs", "run_new"):
        args = ("study", judge.pk) if name == "judge" else ("study",)
        assert "rule-based" in page(owner, name, *args) or name == "runs"


def test_a_judge_on_an_endpoint_is_made_and_shows_its_exact_prompt(owner: User, evaluation: Evaluation) -> None:
    endpoint = Endpoint.objects.create(name="local", base_url="http://localhost:11434/v1", is_offered=True)
    fields = {"endpoint": endpoint.pk, "model": "llama", "version": evaluation.review_rubric_id, "mode": "auto"}
    sign_in_client(owner).post(reverse("judge_new", args=["study"]), fields | {"temperature": "0"})
    judge = Judge.objects.get()
    assert (judge.name, judge.temperature) == ("llama", 0.0)
    shown = page(owner, "judge", "study", judge.pk)
    assert "[[begin response A " in shown
    assert shown.index("\nParis.\n") < shown.index("Lyon.\n")
    swapped = page(owner, "judge", "study", judge.pk, shown="swapped")
    assert swapped.index("Lyon.\n") < swapped.index("\nParis.\n")


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"model": "gpt"}, "needs an LLM endpoint"),
        ({"temperature": "9"}, "less than or equal to 2"),
        ({"name": "taken"}, "already"),
    ],
)
def test_a_judge_that_cannot_be_is_refused_on_its_form(
    owner: User, evaluation: Evaluation, fields: dict[str, str], problem: str
) -> None:
    make_llm_judge(evaluation, "http://127.0.0.1:9/v1", name="taken")
    given = {"version": evaluation.review_rubric_id, "mode": "auto"} | fields
    answer = sign_in_client(owner).post(reverse("judge_new", args=["study"]), given)
    assert answer.status_code == 422
    assert problem in html_of(answer)
    assert Judge.objects.count() == 1


def test_a_run_is_started_and_a_worker_is_told(owner: User, evaluation: Evaluation, nudges: Nudges) -> None:
    judge = make_baseline_judge(evaluation)
    answer = sign_in_client(owner).post(
        reverse("run_new", args=["study"]), {"judge": judge.pk, "orders": "both", "samples": 1}
    )
    run = Run.objects.get()
    assert answer["Location"] == reverse("run", args=["study", run.pk])
    assert nudges == [(WorkerTask.WORK_RUN, (run.pk,))]
    assert (run.user, run.state) == (owner, RunState.PLANNING)


def test_a_message_that_cannot_be_sent_is_no_error_for_the_person(
    owner: User, evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def unreachable(task: WorkerTask, ids: tuple[int, ...], expires: float | None) -> None:
        raise ConnectionError("no broker")

    monkeypatch.setattr("evaluations.jobs.nudges.send_nudge", unreachable)
    fields = {"judge": make_baseline_judge(evaluation).pk, "orders": "both", "samples": 1}
    assert sign_in_client(owner).post(reverse("run_new", args=["study"]), fields).status_code == 302
    assert "no broker" in caplog.text
    assert Run.objects.get().state == RunState.PLANNING


def test_the_form_tells_how_many_calls_it_would_make(owner: User, evaluation: Evaluation) -> None:
    judge = make_llm_judge(evaluation, "http://127.0.0.1:9/v1")
    assert ">4</strong> calls on 2 comparisons" in page(owner, "run_new", "study")
    client = sign_in_client(owner)
    address = reverse("run_new", args=["study"])
    options = {"judge": str(judge.pk), "orders": "random", "limit": "1"}
    fragment = html_of(client.get(address, options, headers={"HX-Request": "true"}))
    assert ">1</strong> call on 1 comparison" in fragment
    assert "<html" not in fragment
    plan_run_calls(start_run(judge, user=None).pk, until=float("inf"))
    Call.objects.update(state="answered")
    assert "No new calls: all 4 are answered" in page(owner, "run_new", "study", judge=judge.pk)


def test_runs_started_together_stand_together(owner: User, evaluation: Evaluation) -> None:
    alone = start_run(make_baseline_judge(evaluation, name="alone"), user=None)
    batch = uuid.uuid4()
    for number in range(3):
        judge = make_llm_judge(evaluation, f"http://127.0.0.1:{9000 + number}/v1", name=f"member {number}")
        Run.objects.create(evaluation=evaluation, judge=judge, batch=batch)
    shown = page(owner, "runs", "study")
    assert shown.count("Panel of") == 1
    assert shown.index("Panel of 3") < shown.index("member 2") < shown.index("member 0") < shown.index("alone")
    assert reverse("run", args=["study", alone.pk]) in shown


def test_the_list_says_what_runs_cost_and_leads_to_what_failed(evaluation: Evaluation) -> None:
    with llm_server() as server:
        unpriced = run_judge_here(make_llm_judge(evaluation, server.base_url))
    assert "unknown</span>" in page(make_member(evaluation, Role.VIEWER), "runs", "study")
    Run.objects.filter(pk=unpriced.pk).update(spent=1_234_000_000)
    Call.objects.filter(pk=Call.objects.order_by("pk")[0].pk).update(state="truncated")
    failed = f"{reverse('run_calls', args=['study', unpriced.pk])}?state=unusable"
    for_viewers = page(make_member(evaluation, Role.VIEWER), "runs", "study")
    assert "$1.23" in for_viewers
    assert failed in for_viewers
    assert failed not in page(make_member(evaluation, Role.REVIEWER), "runs", "study")


def test_a_run_that_cannot_be_is_refused_on_its_form(owner: User, evaluation: Evaluation) -> None:
    judge = make_baseline_judge(evaluation)
    answer = sign_in_client(owner).post(
        reverse("run_new", args=["study"]), {"judge": judge.pk, "orders": "both", "samples": 2}
    )
    assert answer.status_code == 422
    assert "the same answer 2 times" in html_of(answer)


def test_a_run_at_work_is_polled_and_the_last_answer_stops_it(owner: User, evaluation: Evaluation) -> None:
    judge = make_baseline_judge(evaluation)
    run = start_run(judge, user=owner)
    client = sign_in_client(owner)
    shown = page(owner, "run", "study", run.pk)
    assert 'hx-trigger="every 2s"' in shown
    assert "Cancel run" in shown
    address = reverse("run_progress", args=["study", run.pk])
    moving = client.get(address)
    assert moving.status_code == 200
    assert 'id="run-state" hx-swap-oob="true"' in html_of(moving)
    run_judge_here(judge)
    Run.objects.filter(pk=run.pk).update(state="done")
    last = client.get(address)
    assert last.status_code == 286
    assert 'id="run-actions"' in html_of(last)
    assert "Cancel run" not in html_of(last)
    assert "hx-trigger" not in page(owner, "run", "study", run.pk)


def test_a_run_is_cancelled_by_its_button(owner: User, evaluation: Evaluation) -> None:
    run = start_run(make_baseline_judge(evaluation), user=owner)
    answer = sign_in_client(owner).post(reverse("run_cancel", args=["study", run.pk]), follow=True)
    assert "Cancelled." in html_of(answer)
    run.refresh_from_db()
    assert run.state == RunState.CANCELLED


def test_a_stopped_run_says_what_to_mend(owner: User, evaluation: Evaluation) -> None:
    with llm_server(fail_with(401)) as server:
        run = run_judge_here(make_llm_judge(evaluation, server.base_url))
    assert "requires an API key (401)" in page(owner, "run", "study", run.pk)


def test_a_reviewer_sees_how_far_a_run_is_and_nothing_of_what_it_said(evaluation: Evaluation) -> None:
    reviewer = make_member(evaluation, Role.REVIEWER)
    with llm_server(answer_first([], lambda question: ServerAnswer('{"choices": {"clarity": "B"}}'))) as server:
        run = run_judge_here(make_llm_judge(evaluation, server.base_url))
    shown = page(reviewer, "run", "study", run.pk)
    assert "4 / 4" in shown
    for secret in ("clarity", "/calls", "Cancel", "Run again"):
        assert secret not in shown
    client = sign_in_client(reviewer)
    assert client.post(reverse("run_cancel", args=["study", run.pk])).status_code == 403
    for name in ("run_new", "judge_new"):
        assert client.get(reverse(name, args=["study"])).status_code == 403


def test_endpoints_are_for_site_administrators_alone(owner: User) -> None:
    client = sign_in_client(owner)
    fields = {"name": "away", "base_url": "http://localhost:11434/v1"}
    assert client.get(reverse("endpoints")).status_code == 404
    assert client.post(reverse("endpoint_new"), fields).status_code == 404
    assert not Endpoint.objects.exists()
    administrator = sign_in_client(make_user("root", is_superuser=True))
    added = administrator.post(reverse("endpoint_new"), fields)["Location"]
    assert added == reverse("endpoint", args=[Endpoint.objects.latest("pk").pk])
    refused = administrator.post(reverse("endpoint_new"), fields | {"name": "bad", "key_variable": "HOME"})
    assert refused.status_code == 422
    assert "cannot name a key" in html_of(refused)
    assert [endpoint.name for endpoint in Endpoint.objects.all()] == ["away"]


def test_another_evaluations_judge_and_run_are_not_found_here(owner: User, evaluation: Evaluation) -> None:
    other = make_evaluation(slug="other")
    make_comparison(other)
    run = run_judge_here(make_baseline_judge(other))
    client = sign_in_client(owner)
    for name, pk in (("judge", run.judge_id), ("run", run.pk), ("run_progress", run.pk)):
        assert client.get(reverse(name, args=["study", pk])).status_code == 404
    assert client.post(reverse("run_cancel", args=["study", run.pk])).status_code == 404
    made = client.post(reverse("run_new", args=["study"]), {"judge": run.judge_id, "orders": "both", "samples": 1})
    assert made.status_code == 422


def queries(client: Client, address: str) -> int:
    with CaptureQueriesContext(
        connection,
    ) as captured:
        assert client.get(address).status_code == 200
    return len(captured)


@pytest.mark.parametrize("name", ["judges", "runs", "endpoints"])
def test_a_lists_query_count_does_not_grow(evaluation: Evaluation, name: str) -> None:
    client = sign_in_client(make_member(evaluation, Role.OWNER, "root2"))
    User.objects.filter(username="root2").update(is_superuser=True)
    address = reverse(name, args=[] if name == "endpoints" else ["study"])

    def add(number: int) -> None:
        url = f"http://127.0.0.1:{9000 + number}/v1"
        start_run(make_llm_judge(evaluation, url, name=f"judge {number}"), user=None)

    add(0)
    one = queries(client, address)
    for number in range(1, 6):
        add(number)
    assert queries(client, address) == one


def test_no_page_of_judges_has_a_style_or_script_of_its_own() -> None:
    for folder in ("judges", "judge", "judge_new", "runs", "run", "run_new", "endpoints", "endpoint_new"):
        for template in (Path(settings.BASE_DIR) / "templates" / folder).glob("*.html"):
            text = template.read_text()
            assert " style=" not in text
            assert "<script" not in text


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "1 second"), (59.6, "1 minute"), (61, "1 minute 1 second"), (3600, "1 hour"), (7500, "2 hours 5 minutes")],
)
def test_durations_are_said_in_their_two_largest_units(seconds: float, words: str) -> None:
    from evaluations.templatetags.numbers import duration

    said: Callable[[float], str] = duration
    assert said(seconds) == words

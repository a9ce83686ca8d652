"""Stored replies read once more: what a better reader finds is written, and everything that changes is counted."""

from typing import Any
from unittest import mock

import pytest

from evaluations.domain.errors import InputRefused
from evaluations.domain.jobs import JobState
from evaluations.domain.judges import CallState
from evaluations.judge_prompts.builtin_rubrics import SUMMARY_RATING_NAME
from evaluations.judges.calls import reply_reparse
from evaluations.judges.calls.reply_reparse import REPARSE_ENDED, begin_reparse
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.judges import Judge
from evaluations.models.runs import Attempt, Call
from evaluations.models.verdicts import Score, Verdict
from evaluations.replies.reply_parser import RawReply, UnparsedReply, parse_reply
from evaluations.rubrics.services import create_builtin_rubric
from tests.factories.evaluations import make_comparison, make_evaluation, make_user
from tests.factories.judges import make_baseline_judge, make_llm_judge, run_judge_here
from tests.helpers.job_work import job_about, kill_worker_at, work_once
from tests.helpers.llm_server import Question, ServerAnswer, answer_well, llm_server, verdict_reply

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("consistent_packed_votes")]
ASPECTS = 6


@pytest.fixture(autouse=True)
def two_comparisons(evaluation: Evaluation) -> None:
    for _ in range(2):
        make_comparison(evaluation)


def odd(question: Question) -> ServerAnswer:
    """What today's reader cannot read: its rationale stands where a text is wanted."""
    return ServerAnswer(verdict_reply(question).replace('"choices"', '"picks"'))


def judged(evaluation: Evaluation, script: Any, **settings: Any) -> Judge:
    with llm_server(script) as server:
        judge = make_llm_judge(evaluation, server.base_url, **settings)
        run_judge_here(judge)
    return judge


def read_again(judge: Judge) -> dict[str, Any]:
    """The whole re-reading, and what it found."""
    begun = begin_reparse(judge, user=None)
    assert not work_once("reparse", begun.pk)
    begun.refresh_from_db()
    assert job_about("reparse", begun.pk).state == JobState.DONE
    return {"calls": begun.calls, "counts": begun.counts, "changes": begun.changes}


def kinder(monkeypatch: pytest.MonkeyPatch) -> None:
    """A better reader, which takes “picks” for choices."""
    read_text_of = parse_reply

    def read(spec: Any, shown: Any, reply: RawReply, **rest: Any) -> Any:
        better = RawReply(reply.text.replace('"picks"', '"choices"'), reply.finish_reason, reply.refusal)
        return read_text_of(spec, shown, better, **rest)

    monkeypatch.setattr(reply_reparse, "parse_reply", read)


def harsher(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that finds nothing in any reply."""
    no = UnparsedReply(CallState.UNREADABLE, "Nothing to be seen.")
    monkeypatch.setattr(reply_reparse, "parse_reply", lambda *args, **rest: no)


def test_the_same_reader_changes_nothing(evaluation: Evaluation) -> None:
    judge = judged(evaluation, answer_well)
    before = list(Verdict.objects.order_by("pk").values())
    told = read_again(judge)
    assert (told["calls"], told["counts"], told["changes"]) == (4, {"unchanged": 4}, {})
    assert list(Verdict.objects.order_by("pk").values()) == before


def test_a_better_reader_makes_verdicts_of_unreadable_replies_at_no_cost(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = judged(evaluation, odd, repairs=False)
    assert set(Call.objects.values_list("state", flat=True)) == {"unreadable"}
    attempts = Attempt.objects.count()
    kinder(monkeypatch)
    told = read_again(judge)
    assert told["counts"] == {"answered now": 4}
    # The first label is given for what is shown first: A as stored, B where it was swapped.
    assert told["changes"] == {"none → A": 2 * ASPECTS, "none → B": 2 * ASPECTS}
    assert list(Call.objects.values_list("state", "error").distinct()) == [("answered", "")]
    assert Verdict.objects.filter(rater__judge=judge).count() == 4 * ASPECTS
    assert Attempt.objects.count() == attempts


def test_a_whole_verdict_at_the_token_limit_is_found_in_stored_replies(evaluation: Evaluation) -> None:
    def cut_off(question: Question) -> ServerAnswer:
        return ServerAnswer(verdict_reply(question)[:40], finish_reason="length")

    judge = judged(evaluation, cut_off)
    assert set(Call.objects.values_list("state", flat=True)) == {"truncated"}
    assert read_again(judge)["counts"] == {"unchanged": 4}
    whole = judged(evaluation, answer_well, name="whole")
    for attempt in Attempt.objects.filter(call__judge=judge):
        twin = Attempt.objects.get(
            call__judge=whole, call__comparison=attempt.call.comparison, call__shown=attempt.call.shown
        )
        Attempt.objects.filter(pk=attempt.pk).update(raw=twin.raw)
    assert read_again(judge)["counts"] == {"answered now": 4}
    assert set(Call.objects.filter(judge=judge).values_list("state", flat=True)) == {"answered"}


def test_a_verdict_that_is_read_otherwise_is_corrected_and_its_old_value_counted(evaluation: Evaluation) -> None:
    judge = judged(evaluation, answer_well)
    Verdict.objects.filter(shown="as_stored", aspect__key="depth").update(choice="tie")
    told = read_again(judge)
    assert told["counts"] == {"corrected": 2, "unchanged": 2}
    assert told["changes"] == {"tie → A": 2}
    assert set(Verdict.objects.filter(shown="as_stored").values_list("choice", flat=True)) == {"A"}


def test_a_verdict_that_cannot_be_read_any_more_does_not_disappear_silently(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = judged(evaluation, answer_well)
    harsher(monkeypatch)
    told = read_again(judge)
    assert told["counts"] == {"unreadable now": 4}
    assert told["changes"] == {"A → none": 2 * ASPECTS, "B → none": 2 * ASPECTS}
    assert not Verdict.objects.filter(rater__judge=judge).exists()
    assert list(Call.objects.values_list("state", "error").distinct()) == [("unreadable", "Nothing to be seen.")]


def test_a_repaired_verdict_is_read_from_its_repair(evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = judged(evaluation, answer_well)
    for attempt in Attempt.objects.all():
        Attempt.objects.filter(pk=attempt.pk).update(number=2, step="repair")
        raw = attempt.raw.replace('"choices"', '"picks"')
        Attempt.objects.create(
            call=attempt.call, run=attempt.run, number=1, step="ask", outcome="unreadable", raw=raw, latency_ms=1
        )
    Call.objects.update(repaired=True)
    assert read_again(judge)["counts"] == {"unchanged": 4}
    # A reader that takes the first reply too finds the same there, and the call stays as it is.
    kinder(monkeypatch)
    assert read_again(judge)["counts"] == {"unchanged": 4}
    assert Call.objects.filter(repaired=True).count() == 4


def test_what_is_still_waiting_or_was_decided_by_the_server_is_left_alone(evaluation: Evaluation) -> None:
    judge = judged(evaluation, answer_well)
    Call.objects.filter(shown="swapped").update(state="refused")
    assert read_again(judge)["calls"] == 2


def test_a_re_reading_is_on_the_record_and_goes_on_where_it_was_left(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = judged(evaluation, odd, repairs=False)
    kinder(monkeypatch)
    monkeypatch.setattr(reply_reparse, "SHORT_TRANSACTION_ROWS", 1)
    user = make_user()
    begun = begin_reparse(judge, user=user)
    assert begun.calls == 4
    with pytest.raises(InputRefused, match="already being re-parsed"):
        begin_reparse(judge, user=user)
    # A worker that died after two calls: the next goes on after them, and counts on.
    assert work_once("reparse", begun.pk, seconds=0) is True
    begun.refresh_from_db()
    assert begun.counts == {}
    with mock.patch.object(reply_reparse, "is_time_up", side_effect=[False, False, True]):
        assert work_once("reparse", begun.pk)
    assert Call.objects.filter(state="answered").count() == 2
    kill_worker_at("reparse", begun.pk)
    assert not work_once("reparse", begun.pk)
    begun.refresh_from_db()
    assert (begun.user, begun.counts) == (user, {"answered now": 4})
    last = Event.objects.filter(object_type="judge", object_id=judge.pk).latest("pk")
    assert (last.verb, last.user, last.after["counts"]) == (REPARSE_ENDED, user, {"answered now": 4})
    assert not work_once("reparse", begun.pk)


def test_a_judge_without_replies_is_refused(evaluation: Evaluation) -> None:
    with pytest.raises(InputRefused, match="it is not an LLM judge"):
        begin_reparse(make_baseline_judge(evaluation), user=None)
    with pytest.raises(InputRefused, match="Run it first"):
        begin_reparse(make_llm_judge(evaluation, "http://127.0.0.1:9/v1"), user=None)


def test_the_second_of_two_steps_is_read_in_its_conversation(evaluation: Evaluation) -> None:
    version = create_builtin_rubric(evaluation, builtin=SUMMARY_RATING_NAME, user=None)
    judge = judged(evaluation, answer_well, version=version)
    assert set(Attempt.objects.values_list("step", flat=True)) == {"ask", "score"}
    scores = list(Score.objects.order_by("pk").values_list("value", flat=True))
    assert len(scores) == Call.objects.count() == 4
    assert read_again(judge)["counts"] == {"unchanged": 4}
    Score.objects.update(value=2)
    told = read_again(judge)
    assert (told["counts"], told["changes"]) == ({"corrected": 4}, {"a score → a score": 4})
    assert list(Score.objects.order_by("pk").values_list("value", flat=True)) == scores


def test_a_copied_answer_is_read_by_the_reply_that_it_was_copied_from(evaluation: Evaluation) -> None:
    same = make_evaluation()
    for number in range(2):
        make_comparison(same, query="The same?", key=f"k{number}")
    judge = judged(same, answer_well, mode="json_schema")
    assert Call.objects.filter(copied_from__isnull=False).count() == 2
    Verdict.objects.update(choice="tie")
    told = read_again(judge)
    assert told["counts"] == {"corrected": 4}
    assert told["changes"] == {"tie → A": 2 * ASPECTS, "tie → B": 2 * ASPECTS}

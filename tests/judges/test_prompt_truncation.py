"""A prompt that the server silently cut is too long, whatever the model replied to what was left of it."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from evaluations.domain.judges import CallState, RunState
from evaluations.judges.calls.prompt_truncation import WATCHES
from evaluations.judges.runs.services import start_run
from evaluations.models.evaluations import Evaluation
from evaluations.models.runs import Attempt, Call, Run
from evaluations.models.verdicts import PackedVotes, Verdict
from tests.factories.evaluations import make_comparison, make_evaluation
from tests.factories.judges import make_llm_judge, work_run_here
from tests.helpers.llm_server import LLMServer, Question, Script, ServerAnswer, llm_server, verdict_reply

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]

WORDS = [
    *("the", "river", "bends", "past", "an", "old", "mill", "where", "seven", "herons", "wait", "for", "slow", "trout"),
    *("under", "willow", "roots", "each", "morning"),
]
CHINESE = "河水在旧磨坊旁边转弯每天早晨七只苍鹭在柳树根下等候缓慢的鳟鱼直到太阳升起"
CODE = "for (int i = 0; i < rows; ++i) {\n    total += price[i] * count[i];\n}\n"


def english(number: int, tokens: int) -> str:
    draw = random.Random(number)
    return " ".join(draw.choice(WORDS) for _ in range(tokens))


def study(sizes: list[int], text: Callable[[int, int], str] = english) -> Evaluation:
    """A comparison for each size, about so many tokens long."""
    evaluation = make_evaluation()
    for number, size in enumerate(sizes):
        make_comparison(evaluation, response_a=text(number, size // 2), response_b=text(-number, size // 2))
    return evaluation


def cutting(most: int, a_token: Callable[[str], int]) -> Script:
    """A server that reads the last so many tokens, answers, and says nothing of it."""

    def script(question: Question) -> ServerAnswer:
        counted = min(a_token(question.prompt), most)
        message = {"role": "assistant", "content": verdict_reply(question)}
        usage = {"prompt_tokens": counted, "completion_tokens": 40, "total_tokens": counted + 40}
        return ServerAnswer(
            body={"model": "m", "choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}
        )

    return script


def by_characters(question: str) -> int:
    """About what a tokenizer of today counts: four and a half ASCII characters, or one and a half others, a token."""
    ascii_only = sum(character.isascii() for character in question)
    return round(ascii_only / 4.5 + (len(question) - ascii_only) / 1.5)


def run_against(script: Script, evaluation: Evaluation, **options: Any) -> tuple[Run, LLMServer]:
    with llm_server(script) as server:
        judge = make_llm_judge(evaluation, server.base_url, mode="json_schema")
        return work_run_here(start_run(judge, user=None, orders="as-stored", **options)), server


def test_a_prompt_of_7_900_tokens_of_which_2_050_were_read_is_too_long_and_no_verdict() -> None:
    run, server = run_against(cutting(2_050, by_characters), study([7_900]))
    call = Call.objects.get()
    assert (run.state, call.state, len(server.questions)) == (RunState.DONE, CallState.TOO_LONG, 1)
    assert call.error.startswith("The server cut the prompt: it counted 2,050 tokens where about ")
    assert "OLLAMA_CONTEXT_LENGTH" in call.error
    assert not Verdict.objects.exists()
    assert Attempt.objects.get().tokens_in == 2_050  # it is paid for, and counted


def test_short_prompts_go_on_being_judged_while_long_ones_fail() -> None:
    run, _ = run_against(cutting(2_050, by_characters), study([300, 600, 900, 6_000, 400, 8_000, 500, 1_000]))
    assert run.state == RunState.DONE
    states = {call.pk: call.state for call in Call.objects.order_by("pk")}
    assert sorted(states.values()) == ["answered"] * 6 + ["too_long"] * 2


def test_verdicts_that_were_stored_before_the_ceiling_showed_are_withdrawn() -> None:
    """Prompts a little longer than what is read look whole, one by one; three lengths at one count do not."""
    sizes = [2_300, 2_700, 3_200, 3_800, 4_500]
    run, _ = run_against(cutting(2_050, by_characters), study(sizes))
    assert run.state == RunState.DONE
    assert set(Call.objects.values_list("state", flat=True)) == {"too_long"}
    assert not Verdict.objects.exists()
    assert not PackedVotes.objects.exists()
    assert Attempt.objects.filter(outcome="answered").exists()  # what came back stays on record


@pytest.mark.parametrize(
    "text",
    [
        english,
        lambda number, size: "".join(random.Random(number).choices(CHINESE, k=size)),
        lambda number, size: CODE * (size // 25 + 1),
        lambda number, size: f"{english(number, size // 2)}\n{CHINESE * (size // 80)}\n{CODE * (size // 90)}",
    ],
    ids=["English", "Chinese", "code", "mixed"],
)
def test_prompts_that_are_read_whole_are_never_called_cut(text: Callable[[int, int], str]) -> None:
    sizes = [400, 900, 1_500, 2_500, 4_000, 6_000] * 2
    run, _ = run_against(cutting(10**9, by_characters), study(sizes, text))
    assert run.state == RunState.DONE
    assert set(Call.objects.values_list("state", flat=True)) == {"answered"}


def test_what_stored_answers_tell_is_learned_before_the_first_request() -> None:
    evaluation = study([700, 900, 1_100, 1_300, 1_500, 1_700])
    with llm_server(cutting(10**9, by_characters)) as server:
        judge = make_llm_judge(evaluation, server.base_url, mode="json_schema")
        work_run_here(start_run(judge, user=None, orders="as-stored"))
        WATCHES.clear()  # another worker
        make_comparison(evaluation, response_a=english(1, 2_000), response_b=english(2, 2_000))
        server.script = cutting(2_050, by_characters)
        run = work_run_here(start_run(judge, user=None, orders="as-stored"))
    assert run.state == RunState.DONE
    assert Call.objects.filter(state="too_long").count() == 1


def test_a_server_that_counts_nothing_is_believed() -> None:
    def script(question: Question) -> ServerAnswer:
        message = {"role": "assistant", "content": verdict_reply(question)}
        return ServerAnswer(body={"model": "m", "choices": [{"message": message, "finish_reason": "stop"}]})

    run_against(script, study([7_000]))
    assert Call.objects.get().state == CallState.ANSWERED

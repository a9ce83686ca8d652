"""Endpoints and judges: made once, guarded, frozen."""

import hashlib
import json
from typing import Any

import pytest

from evaluations.domain.choices import ShownOrder
from evaluations.domain.errors import InputRefused
from evaluations.domain.judges import JudgeKind
from evaluations.domain.rubrics import FIRST_LAYOUT, AspectSpec, RubricKind, RubricOrigin, RubricSpec
from evaluations.judge_prompts.builtin_rubrics import SIX_ASPECT
from evaluations.judges.endpoints.services import EndpointSettings, create_endpoint, find_or_create_endpoint
from evaluations.judges.selectors import judge_fingerprint, judge_settings, judge_warnings, preview_judge_prompt
from evaluations.judges.services import JudgeSettings, create_judge
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.judges import Endpoint, Judge, Rater
from evaluations.models.rubrics import RubricVersion
from evaluations.rubrics.selectors import NOT_SEEN_WARNINGS, missing_placeholder_warnings
from evaluations.rubrics.services import add_rubric, create_builtin_rubric, create_next_version
from tests.factories.evaluations import make_comparison, make_evaluation, make_user
from tests.factories.judges import make_baseline_judge, make_llm_judge, make_rubric_without_query
from tests.helpers.rubric_specs import FIRST_SIX_ASPECT

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


def test_a_judge_freezes_its_rubric_version_and_is_a_rater_from_the_start(evaluation: Evaluation) -> None:
    judge = make_llm_judge(evaluation, "http://127.0.0.1:9/v1", name="strict")
    assert judge.kind == JudgeKind.LLM
    assert judge.rubric_version is not None
    judge.rubric_version.refresh_from_db()
    assert judge.rubric_version.frozen_at is not None
    assert Rater.objects.get(judge=judge).name == "strict"
    assert Event.objects.filter(verb="created", object_type="judge", object_id=judge.pk).exists()


def test_without_an_endpoint_a_judge_is_a_rule_and_says_so(evaluation: Evaluation) -> None:
    judge = make_baseline_judge(evaluation)
    assert (judge.kind, judge.is_baseline) == (JudgeKind.RULE, True)
    with pytest.raises(InputRefused, match="needs an LLM endpoint"):
        create_judge(evaluation, JudgeSettings(name="x", model="gpt-4", version=evaluation.review_rubric), user=None)


def test_the_same_settings_make_the_same_judge_and_any_change_another(evaluation: Evaluation) -> None:
    url = "http://127.0.0.1:9/v1"
    make_llm_judge(evaluation, url, name="one", temperature=0.0)
    make_llm_judge(evaluation, url, name="two", temperature=0.5)
    make_llm_judge(evaluation, url, name="three", model="other")
    with pytest.raises(InputRefused, match="“one” has the same settings"):
        make_llm_judge(evaluation, url, name="four", temperature=0.0)
    with pytest.raises(InputRefused, match="A judge “two” already exists"):
        make_llm_judge(evaluation, url, name="two", temperature=1.0)
    make_llm_judge(make_evaluation(), url, name="one", temperature=0.0)


def test_all_judges_of_an_evaluation_share_one_key_of_their_fences(evaluation: Evaluation) -> None:
    one, two = make_baseline_judge(evaluation), make_llm_judge(evaluation, "http://127.0.0.1:9/v1")
    assert one.fence_key == two.fence_key != make_baseline_judge(make_evaluation()).fence_key
    assert len(one.fence_key) == 64


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"name": " "}, "Name the judge"),
        ({"model": ""}, "ID of a model"),
        ({"temperature": 3.0}, "from 0 to 2"),
        ({"max_tokens": 0}, "from 1 to"),
        ({"mode": "two-step"}, "Output format: use one of"),
        ({"seed": 2**62 + 1}, "Seed: a whole number"),
        ({"reasoning_effort": "extreme"}, "Reasoning effort: use one of none, minimal, low"),
    ],
)
def test_what_no_server_would_take_is_refused(evaluation: Evaluation, columns: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputRefused, match=problem):
        make_llm_judge(evaluation, "http://127.0.0.1:9/v1", **columns)
    assert not Judge.objects.exists()


def test_a_pasted_prompt_with_an_unknown_placeholder_makes_no_judge(evaluation: Evaluation) -> None:
    spec = RubricSpec(
        RubricKind.PAIRWISE,
        "{a} or {b}? {who}",
        (AspectSpec("overall", "Overall", ""),),
        ("overall",),
        {"{a}": "response_a", "{b}": "response_b"},
    )
    version = add_rubric(evaluation, name="pasted", spec=spec, origin=RubricOrigin.OWN, user=None)
    with pytest.raises(InputRefused, match=r"\{who\}"):
        make_baseline_judge(evaluation, version=version)


def test_a_rubric_that_came_with_an_import_serves_the_baseline_and_no_model(evaluation: Evaluation) -> None:
    spec = RubricSpec(RubricKind.PAIRWISE, "", (AspectSpec("overall", "Overall", ""),), ("overall",))
    version = add_rubric(evaluation, name="imported", spec=spec, origin=RubricOrigin.IMPORTED, user=None)
    assert make_baseline_judge(evaluation, version=version).rubric_version == version
    with pytest.raises(InputRefused, match="has no instructions"):
        make_llm_judge(evaluation, "http://127.0.0.1:9/v1", version=version)


def test_a_rubric_of_another_evaluation_makes_no_judge(evaluation: Evaluation) -> None:
    with pytest.raises(InputRefused, match="of this evaluation"):
        make_baseline_judge(evaluation, version=make_evaluation().review_rubric)


def test_an_endpoint_is_checked_and_found_again_by_address_and_key_name() -> None:
    user = make_user()
    create_endpoint(EndpointSettings(name="local", base_url="http://localhost:11434/v1/"), user=user)
    for url, key in (("localhost", ""), ("http://localhost/v1", "HOME")):
        with pytest.raises(InputRefused):
            create_endpoint(EndpointSettings(name="bad", base_url=url, key_variable=key), user=user)
    with pytest.raises(InputRefused, match="already"):
        create_endpoint(EndpointSettings(name="local", base_url="http://elsewhere/v1"), user=user)

    def found(key: str = "", limit: int | None = None) -> Endpoint:
        return find_or_create_endpoint(base_url="http://localhost:11434/v1", key_variable=key, max_in_flight=limit)

    assert found().name == "local"
    assert found(limit=4).max_in_flight == 4
    assert found("OLLAMA_API_KEY").name == "localhost:11434"
    assert found("OTHER_API_KEY").name == "localhost:11434 2"
    assert Endpoint.objects.count() == 3
    with pytest.raises(InputRefused, match="Max concurrency"):
        found(limit=0)


def test_the_preview_shows_what_is_sent_and_a_rule_is_sent_nothing(evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation, response_a="one", response_b="two")
    judge = make_llm_judge(evaluation, "http://127.0.0.1:9/v1")
    told = preview_judge_prompt(judge, comparison, ShownOrder.SWAPPED)
    assert told is not None
    system, user = told.messages
    assert SIX_ASPECT.instructions in system["content"]
    assert user["content"].index("\ntwo\n") < user["content"].index("\none\n")
    assert preview_judge_prompt(make_baseline_judge(evaluation), comparison, ShownOrder.AS_STORED) is None
    assert list(json.loads(told.schema)["properties"]) == ["rationale", "choices"]
    plain = preview_judge_prompt(
        make_llm_judge(evaluation, "http://127.0.0.1:9/v1", name="plain", mode="text"), comparison, ShownOrder.AS_STORED
    )
    assert plain is not None
    assert plain.schema == ""


def test_the_preview_of_two_steps_shows_what_the_second_adds(evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    judge = make_llm_judge(evaluation, "http://127.0.0.1:9/v1", mode="two_step")
    told = preview_judge_prompt(judge, comparison, ShownOrder.AS_STORED)
    assert told is not None
    assert (told.shape, told.schema, len(told.messages)) == ("text", "", 2)
    assert told.later is not None
    assert [message["role"] for message in told.later.messages] == ["assistant", "user"]
    assert list(json.loads(told.later.schema)["properties"]) == ["choices"]
    judge.reply_shape = "json_object"
    found = preview_judge_prompt(judge, comparison, ShownOrder.AS_STORED)
    assert found is not None
    assert found.later is not None
    assert (found.later.shape, found.later.schema) == ("json_object", "")


def test_the_preview_of_a_pointwise_judge_shows_one_response(evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation, response_a="apple", response_b="banana")
    version = create_builtin_rubric(evaluation, builtin="reference-metric", user=None)
    judge = make_llm_judge(evaluation, "http://127.0.0.1:9/v1", version=version)
    told = preview_judge_prompt(judge, comparison.response_b, ShownOrder.AS_STORED)
    assert told is not None
    text = told.messages[-1]["content"]
    assert "banana" in text
    assert "apple" not in text
    assert list(json.loads(told.schema)["properties"]) == ["reason", "correctness"]


def test_the_fingerprint_of_a_judge_that_sets_nothing_new_stays_what_it_was(evaluation: Evaluation) -> None:
    """The sum was recorded when a judge had none of reasoning effort, probabilities and repairs."""
    url = "http://127.0.0.1:9/v1"
    judge = make_llm_judge(evaluation, url, temperature=0.0)
    assert judge.rubric_version is not None
    judge.rubric_version.sha256 = "0" * 64
    assert judge_fingerprint(judge) == "2858428be5ff82c143d07ae687ce8e925fd151f1b688a21f912efd8388d5be63"
    changed: list[dict[str, Any]] = [{"reasoning_effort": "low"}, {"logprobs": True}, {"repairs": False}]
    others = [make_llm_judge(evaluation, url, name=str(one), temperature=0.0, **one) for one in changed]
    assert len({judge.fingerprint, *(other.fingerprint for other in others)}) == 4


def test_the_next_rubric_version_leaves_the_judge_as_it_was(evaluation: Evaluation) -> None:
    judge = make_baseline_judge(evaluation)
    assert judge.rubric_version is not None
    changed = RubricSpec(**{**judge.rubric_version.spec().__dict__, "instructions": "Another wording."})
    later = create_next_version(judge.rubric_version.rubric, changed, user=None)
    judge.refresh_from_db()
    assert judge.rubric_version_id != later.pk
    make_baseline_judge(evaluation, name="later", version=later)


def one_aspect(evaluation: Evaluation, **columns: Any) -> Any:
    aspect = AspectSpec("overall", "Overall", "", **columns)
    spec = RubricSpec(RubricKind.PAIRWISE, "Compare.", (aspect,), ("overall",))
    return add_rubric(evaluation, name="one", spec=spec, origin=RubricOrigin.OWN, user=None)


def test_a_rule_that_says_tie_needs_a_rubric_that_offers_one(evaluation: Evaluation) -> None:
    version = one_aspect(evaluation, offers_tie=False)
    with pytest.raises(InputRefused, match="has none for Overall"):
        make_baseline_judge(evaluation, version=version)
    for rule in ("first", "random"):
        create_judge(evaluation, JudgeSettings(name=rule, model=rule, version=version), user=None)


def test_a_random_judge_always_has_a_seed_and_another_seed_is_another_judge(evaluation: Evaluation) -> None:
    version = evaluation.review_rubric
    assert create_judge(evaluation, JudgeSettings(name="one", model="random", version=version), user=None).seed == 0
    assert (
        create_judge(evaluation, JudgeSettings(name="two", model="random", version=version, seed=1), user=None).seed
        == 1
    )
    with pytest.raises(InputRefused, match="“one” has the same settings"):
        create_judge(evaluation, JudgeSettings(name="three", model="random", version=version, seed=0), user=None)


def test_the_fingerprint_of_a_rule_judge_is_what_it_was_before_there_were_other_rules(evaluation: Evaluation) -> None:
    judge = make_baseline_judge(evaluation)
    assert judge.rubric_version is not None
    before = (
        '{"base_url": null, "kind": "rule", "max_tokens": null, "mode": "auto", "model": "longest", '
        f'"rubric": "{judge.rubric_version.sha256}", "seed": null, "temperature": null}}'
    )
    assert judge.fingerprint == hashlib.sha256(before.encode()).hexdigest()


URL = "http://127.0.0.1:9/v1"


# ---- extras --------------------------------------------------------------------------------


def test_extras_are_part_of_what_a_judge_is_and_leave_fingerprints_without_them(evaluation: Evaluation) -> None:
    plain = make_llm_judge(evaluation, URL, name="plain")
    assert not {"extra_headers", "extra_body"} & set(judge_settings(plain))
    tuned = make_llm_judge(
        evaluation, URL, name="tuned", extra_headers="X-Title: judgeweb", extra_body='{"top_p": 0.5}'
    )
    tuned.refresh_from_db()
    assert (tuned.extra_headers, tuned.extra_body) == ({"X-Title": "judgeweb"}, {"top_p": 0.5})
    assert tuned.fingerprint != plain.fingerprint
    with pytest.raises(InputRefused, match="“tuned” has the same settings"):
        make_llm_judge(evaluation, URL, name="same", extra_headers={"X-Title": "judgeweb"}, extra_body={"top_p": 0.5})


def test_a_judge_names_no_key_that_its_endpoint_is_not_sent(evaluation: Evaluation) -> None:
    headers = {"X-Gateway-Key": "$JUDGEWEB_KEY_GATEWAY"}
    with pytest.raises(InputRefused, match="is not sent JUDGEWEB_KEY_GATEWAY yet"):
        make_llm_judge(evaluation, URL, extra_headers=headers)
    Endpoint.objects.update(extra_headers=headers)
    assert make_llm_judge(evaluation, URL, extra_headers=headers).extra_headers == headers


@pytest.mark.parametrize(
    ("extras", "words"),
    [
        ({"extra_body": {"service_tier": "priority"}}, "“service_tier”, it changes what a token costs"),
        ({"extra_body": {"max_tokens": 5}}, "leave out “max_tokens”"),
        ({"extra_headers": "Authorization: x"}, "leave out “authorization”"),
    ],
)
def test_extras_that_may_not_be_make_no_judge(evaluation: Evaluation, extras: dict[str, object], words: str) -> None:
    with pytest.raises(InputRefused, match=words):
        make_llm_judge(evaluation, URL, **extras)  # type: ignore[arg-type]
    assert not Judge.objects.exists()


def test_a_rule_has_no_extras(evaluation: Evaluation) -> None:
    version = evaluation.review_rubric
    with pytest.raises(InputRefused, match="A rule makes no requests"):
        create_judge(
            evaluation,
            JudgeSettings(name="l", model="longest", version=version, extra_headers="X-A: 1"),
            user=make_user(),
        )


def test_an_endpoint_is_made_with_its_way_of_asking_and_refuses_what_cannot_be() -> None:
    made = create_endpoint(
        EndpointSettings(
            name="gateway",
            base_url=URL,
            dialect="litellm",
            timeout_seconds=900,
            extra_headers="X-Key: $GATEWAY_API_KEY",
            extra_query="version: 2",
            extra_body='{"metadata": {"app": "judgeweb"}}',
        ),
        user=None,
    )
    made.refresh_from_db()
    assert (made.dialect, made.timeout_seconds) == ("litellm", 900)
    assert (made.extra_headers, made.extra_query) == ({"X-Key": "$GATEWAY_API_KEY"}, {"version": "2"})
    assert Event.objects.get(object_type="endpoint").after["extra_body"] == {"metadata": {"app": "judgeweb"}}
    for wrong, words in (
        ({"dialect": "pigeon"}, "Provider: use one of openai"),
        ({"timeout_seconds": 0}, "Timeout in seconds"),
        ({"extra_query": "key: 1"}, "leave out “key”"),
    ):
        with pytest.raises(InputRefused, match=words):
            create_endpoint(EndpointSettings(name="bad", base_url=URL, **wrong), user=None)
    found = find_or_create_endpoint(
        base_url=URL, key_variable="", max_in_flight=None, timeout_seconds=30, dialect="vllm"
    )
    assert (found.pk, found.timeout_seconds, found.dialect) == (made.pk, 30, "vllm")


# ---- the layout of prompts -----------------------------------------------------------------


def test_a_version_that_was_stored_before_there_were_layouts_has_the_first() -> None:
    assert RubricVersion().layout == RubricVersion._meta.get_field("layout").get_default() == FIRST_LAYOUT


def test_a_judge_is_sent_the_layout_of_its_version_whatever_the_rubric_has_by_now(evaluation: Evaluation) -> None:
    assert evaluation.review_rubric is not None
    rubric, comparison = evaluation.review_rubric.rubric, make_comparison(evaluation)
    first = make_llm_judge(
        evaluation, "http://127.0.0.1:9/v1", version=create_next_version(rubric, FIRST_SIX_ASPECT, user=None)
    )
    create_next_version(rubric, SIX_ASPECT, user=None)
    preview = preview_judge_prompt(Judge.objects.get(pk=first.pk), comparison, ShownOrder.AS_STORED)
    assert preview is not None
    assert preview.messages[-1]["content"].startswith("[[begin turn 1, user ")
    assert preview.messages[-1]["content"].endswith("answer in the form that you were told.")


# ---- what a pasted prompt leaves out -------------------------------------------------------


def left_out(evaluation: Evaluation, **placeholders: str) -> list[str]:
    fields = {"x": "response_a", "y": "response_b", **placeholders}
    spec = RubricSpec(RubricKind.PAIRWISE, "", SIX_ASPECT.aspects, (), {f"{{{one}}}": fields[one] for one in fields})
    found = missing_placeholder_warnings(evaluation, spec)
    return [next(field for field, words in NOT_SEEN_WARNINGS.items() if words == one) for one in found]


def test_a_pasted_prompt_is_warned_of_what_the_data_has_and_it_leaves_out(evaluation: Evaluation) -> None:
    assert left_out(evaluation) == []
    make_comparison(evaluation, context="")
    assert left_out(evaluation) == ["query"]
    assert left_out(evaluation, q="query") == []
    make_comparison(evaluation, context="Light.")
    assert left_out(evaluation) == ["query", "context"]
    make_comparison(evaluation, reference="Rayleigh.")
    assert left_out(evaluation, q="query") == ["context", "reference"]
    assert left_out(evaluation, q="query", c="context", r="reference") == []


def test_data_of_another_evaluation_and_the_built_in_layout_bring_no_warning(evaluation: Evaluation) -> None:
    make_comparison(make_evaluation(), context="Light.", reference="Rayleigh.")
    assert left_out(evaluation) == []
    make_comparison(evaluation, context="Light.", reference="Rayleigh.")
    assert missing_placeholder_warnings(evaluation, SIX_ASPECT) == []
    assert judge_warnings(make_baseline_judge(evaluation, version=make_rubric_without_query(evaluation))) == []

"""Rubrics whose pattern would take a worker with it: new ones are refused, stored ones are stopped."""

import pytest

from evaluations.domain.choices import ShownOrder
from evaluations.domain.errors import InputRefused
from evaluations.domain.judges import CallState
from evaluations.domain.rubrics import AspectSpec, RubricKind, RubricOrigin, RubricSpec
from evaluations.models.evaluations import Evaluation
from evaluations.replies import linear_patterns
from evaluations.replies.reply_parser import ParsedReply, RawReply, UnparsedReply, parse_reply
from evaluations.rubrics.drafts import preview_rubric
from evaluations.rubrics.services import add_rubric, create_next_version, create_rubric
from tests.factories.evaluations import make_comparison
from tests.factories.judges import make_llm_judge

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

LOOKING_AHEAD = r"text:(A|B)(?= wins)"
CATASTROPHIC = r"text:(?=(?:a+)+$)(A|B)"
LINEAR = r"text:(?:a+)+(A|B)\Z"


def asking(answer_format: str) -> RubricSpec:
    overall = AspectSpec("overall", "Overall", "", offers_tie=False)
    places = {"{q}": "query", "{x}": "response_a", "{y}": "response_b"}
    return RubricSpec(RubricKind.PAIRWISE, "{q} {x} {y}", (overall,), ("overall",), places, answer_format=answer_format)


def test_a_new_rubric_with_such_a_pattern_is_refused_with_the_cure(evaluation: Evaluation) -> None:
    with pytest.raises(InputRefused, match="look-ahead or look-behind"):
        create_rubric(evaluation, name="own", spec=asking(LOOKING_AHEAD), origin=RubricOrigin.OWN, user=None)
    make_comparison(evaluation)
    assert "look-ahead" in preview_rubric(evaluation, asking(LOOKING_AHEAD)).problem
    assert not preview_rubric(evaluation, asking(LINEAR)).problem


def test_the_next_version_of_a_stored_one_needs_another_pattern(evaluation: Evaluation) -> None:
    stored = add_rubric(evaluation, name="own", spec=asking(LOOKING_AHEAD), origin=RubricOrigin.OWN, user=None)
    with pytest.raises(InputRefused, match="look-ahead"):
        create_next_version(stored.rubric, asking(CATASTROPHIC), user=None)
    assert create_next_version(stored.rubric, asking(LINEAR), user=None).number == 2


def test_a_judge_goes_on_with_a_stored_one(evaluation: Evaluation) -> None:
    stored = add_rubric(evaluation, name="own", spec=asking(LOOKING_AHEAD), origin=RubricOrigin.OWN, user=None)
    assert make_llm_judge(evaluation, "http://127.0.0.1:9/v1", version=stored).rubric_version == stored
    read = parse_reply(stored.spec(), ShownOrder.AS_STORED, RawReply("Surely B wins"))
    assert isinstance(read, ParsedReply)
    assert read.choices == {"overall": "B"}


def test_a_reply_on_which_a_stored_one_does_not_end_is_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_patterns, "SUBPROCESS_SECONDS", 0.3)
    read = parse_reply(asking(CATASTROPHIC), ShownOrder.AS_STORED, RawReply("a" * 80 + "!\nA"))
    assert isinstance(read, UnparsedReply)
    assert read.state == CallState.UNREADABLE
    assert "takes more than 0.3 second" in read.error


def test_a_linear_one_reads_what_would_stop_another_engine() -> None:
    read = parse_reply(asking(LINEAR), ShownOrder.AS_STORED, RawReply("a" * 50_000 + "A"))
    assert isinstance(read, ParsedReply)
    assert read.choices == {"overall": "A"}

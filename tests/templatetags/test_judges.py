"""What pages say of a judge."""

import pytest

from evaluations.domain.judges import OutputMode, ReplyShape
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Judge
from evaluations.templatetags.states import is_shown_in, mode_in_words


@pytest.mark.parametrize("mode", OutputMode)
@pytest.mark.parametrize("reply_shape", ["", *ReplyShape])
def test_every_way_of_asking_has_words(mode: OutputMode, reply_shape: str) -> None:
    words = mode_in_words(Judge(mode=mode, reply_shape=reply_shape))
    assert words.startswith("auto: ") is (mode == OutputMode.AUTO)


def test_no_judge_is_shown_where_none_is_chosen() -> None:
    evaluation = Evaluation()
    assert not is_shown_in(None, evaluation)
    assert not is_shown_in(Judge(pk=1), evaluation)
    assert is_shown_in(Judge(pk=1), Evaluation(shown_judge_id=1))

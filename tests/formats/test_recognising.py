"""Which format a file is: by its columns, or nobody knows."""

import pytest

from evaluations.domain import ColumnsUnknown, InputRefused
from tests.reading import contents


def test_a_file_that_may_be_two_things_is_refused_with_the_names_of_both() -> None:
    record = {"prompt": "Why?", "response": "Because.", "chosen": "Because.", "rejected": "?"}
    with pytest.raises(InputRefused) as refused:
        contents([record])
    assert str(refused.value) == (
        "rows.jsonl may be preferences or auto-arena: it has the columns of both. Say which it is."
    )
    assert contents([record], format="preferences").format.name == "preferences"


def test_what_only_looks_like_a_file_of_others_is_left_to_the_mapping() -> None:
    with pytest.raises(ColumnsUnknown, match="no column “generator”, which the format alpaca-eval needs"):
        contents([{"instruction": "Add.", "output": "2", "model": "gpt4"}])


def test_material_and_verdicts_of_one_file_come_by_either_door() -> None:
    record = {"prompt": "Why?", "chosen": "Because.", "rejected": "?"}
    assert {contents([record], brings=what).format.name for what in ("comparisons", "verdicts", "")} == {"preferences"}
    with pytest.raises(InputRefused, match="holds comparisons, not scores"):
        contents([record], brings="scores")

"""Flags of suspect texts in words."""

from evaluations.domain.texts import Flag
from evaluations.templatetags.states import FLAGS, flags_in_words


def test_every_flag_has_words() -> None:
    assert set(FLAGS) == set(Flag)


def test_flags_are_read_as_a_row_keeps_them_or_one_by_one() -> None:
    assert flags_in_words("addresses_judge,forged_verdict") == ["addresses the judge", "forges a verdict"]
    assert flags_in_words(("forged_delimiter",)) == ["forges our delimiters"]
    assert flags_in_words("") == []

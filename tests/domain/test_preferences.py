"""One choice of a comparison from the labels of its aspects, rule by rule, worked by hand."""

import pytest

from evaluations.domain.choices import Choice
from evaluations.domain.errors import InputRefused
from evaluations.domain.preferences import NoPreference, decide_preference, parse_preference_rule

ASPECTS = ("safety", "factuality", "clarity")
A, B, TIE, BAD = Choice.A, Choice.B, Choice.TIE, Choice.BOTH_BAD
SHORT = {"A": A, "B": B, "=": TIE, "x": BAD, "?": None}


def made(combine: str, labels: str, aspect: str = "") -> str:
    """``labels``: one sign an aspect in the order of ASPECTS; a dot is an aspect without a label."""
    given = {key: SHORT[sign] for key, sign in zip(ASPECTS, labels, strict=True) if sign != "."}
    return str(
        decide_preference(parse_preference_rule(aspect=aspect, combine=combine, aspects=ASPECTS), given, ASPECTS)
    )


@pytest.mark.parametrize(
    ("labels", "choice"),
    [
        ("A..", "A"),
        ("xBB", "both_bad"),
        ("=BB", "tie"),
        (".AA", NoPreference.NO_LABEL),
        ("?AA", NoPreference.SPLIT),
    ],
)
def test_a_named_aspect_speaks_alone(labels: str, choice: str) -> None:
    assert made("", labels, aspect="safety") == choice


@pytest.mark.parametrize(
    ("labels", "choice"),
    [
        ("AAB", "A"),  # 2 against 1
        ("AB=", "tie"),  # 1 against 1
        ("=B=", "B"),  # 0 against 1
        ("===", "tie"),
        ("xx=", "tie"),
        ("xxx", "both_bad"),
        ("xxA", "A"),
        ("A.B", "tie"),  # one without a label counts for neither
        ("A?.", "A"),
        ("...", NoPreference.NO_LABEL),
        ("??.", NoPreference.SPLIT),
    ],
)
def test_the_majority_of_aspects_counts_those_that_have_a_label(labels: str, choice: str) -> None:
    assert made("majority_of_aspects", labels) == choice


@pytest.mark.parametrize(
    ("labels", "choice"),
    [
        ("A=A", "A"),
        ("A==", "A"),
        ("A=x", "A"),
        ("A=B", NoPreference.ASPECTS_DISAGREE),
        ("===", "tie"),
        ("xxx", "both_bad"),
        ("AA.", NoPreference.NO_LABEL),  # nobody knows whether it is against
        ("AA?", NoPreference.SPLIT),
    ],
)
def test_unanimous_has_no_aspect_against(labels: str, choice: str) -> None:
    assert made("unanimous", labels) == choice


@pytest.mark.parametrize(
    ("labels", "choice"),
    [
        ("ABB", "tie"),  # 2 against 1.5 + 0.5
        ("AB=", "A"),  # 2 against 1.5
        ("=BB", "B"),  # 0 against 2
        ("BAA", "tie"),
        ("B=A", "B"),  # 0.5 against 2
        ("xxx", "both_bad"),
        ("AA.", NoPreference.NO_LABEL),
    ],
)
def test_weights_are_added_up_for_each_side(labels: str, choice: str) -> None:
    assert made("weighted:safety=2,factuality=1.5,clarity=0.5", labels) == choice


def test_weights_are_added_up_exactly() -> None:
    """0.1 + 0.2 is 0.3, and not a little more."""
    assert made("weighted:safety=0.1,factuality=0.2,clarity=0.3", "AAB") == "tie"


def test_aspects_that_have_no_weight_are_not_asked() -> None:
    assert made("weighted:clarity=1", "BBA") == "A"
    assert made("weighted:clarity=1", "..A") == "A"


@pytest.mark.parametrize(
    ("labels", "choice"),
    [
        ("ABB", "A"),
        ("=BA", "B"),
        ("xBA", "B"),
        ("==A", "A"),
        ("===", "tie"),
        ("xxx", "both_bad"),
        ("A..", "A"),  # what stands behind the one that decides is not asked
        (".AA", NoPreference.NO_LABEL),
        ("=?A", NoPreference.SPLIT),
    ],
)
def test_the_first_aspect_that_is_no_tie_decides(labels: str, choice: str) -> None:
    assert made("lexicographic:safety,factuality,clarity", labels) == choice


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ({"aspect": "safety"}, "safety"),
        ({"combine": "majority_of_aspects"}, "derived:majority_of_aspects"),
        ({"combine": "derived:unanimous"}, "derived:unanimous"),
        ({"combine": "majority_of_aspects:safety,clarity"}, "derived:majority_of_aspects:safety,clarity"),
        ({"combine": "weighted:safety=2,clarity=0.250"}, "derived:weighted:safety=2,clarity=0.25"),
        ({"combine": "lexicographic:safety, clarity"}, "derived:lexicographic:safety,clarity"),
    ],
)
def test_a_rule_is_named_as_it_was_asked_for(asked: dict[str, str], name: str) -> None:
    how = parse_preference_rule(**asked, aspects=ASPECTS)
    assert how.name == name
    assert how.in_words.endswith(".")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({}, "Choose either"),
        ({"aspect": "safety", "combine": "unanimous"}, "Choose either"),
        ({"aspect": "style"}, "Unknown aspect “style”"),
        ({"combine": "best"}, "Unknown rule “best”"),
        ({"combine": "weighted"}, "needs aspects, such as"),
        ({"combine": "lexicographic"}, "needs aspects, such as"),
        ({"combine": "weighted:safety"}, "is not an aspect with a weight"),
        ({"combine": "weighted:safety=0"}, "is not an aspect with a weight"),
        ({"combine": "weighted:safety=-1"}, "is not an aspect with a weight"),
        ({"combine": "weighted:safety=1e999999999"}, "is not an aspect with a weight"),
        ({"combine": "weighted:safety=nan"}, "is not an aspect with a weight"),
        ({"combine": "weighted:style=1"}, "Unknown aspect “style”"),
        ({"combine": "lexicographic:safety,safety"}, "names an aspect twice"),
        ({"combine": "unanimous:style"}, "Unknown aspect “style”"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(asked: dict[str, str], says: str) -> None:
    with pytest.raises(InputRefused, match=says):
        parse_preference_rule(**asked, aspects=ASPECTS)

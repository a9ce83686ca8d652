"""What the evaluation says in the end."""

from enum import StrEnum


class LabelPolicy(StrEnum):
    """What a label may rest on. A split among people is an open disagreement under either."""

    PEOPLE_THEN_JUDGES = "people_then_judges"
    PEOPLE = "people"


class LabelSource(StrEnum):
    """Where the label of a comparison and aspect comes from."""

    ADJUDICATED = "adjudicated"  # settled by an adjudicator
    MAJORITY = "majority"  # the one choice that most of several votes of people share
    SINGLE = "single"  # the only vote of a person there is
    SPLIT = "split"  # no single choice leads: an open disagreement, and no label
    PANEL = "panel"  # no person voted; what most judges of a panel chose
    JUDGE = "judge"  # no person voted; what one judge chose

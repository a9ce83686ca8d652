"""Whether a rubric version can be put to a judge at all, found out before anything is asked."""

import re

from evaluations.domain import AspectSpec, InputRefused, RubricSpec
from evaluations.judge.reading import folded
from evaluations.judge.replying import labels_of, text_pattern, wants_text
from evaluations.judge.templating import unknown_placeholders

NEEDED = ("response_a", "response_b")


def refuse_unusable(spec: RubricSpec) -> None:
    """Raise InputRefused with the first thing that stands in the way."""
    if not spec.aspects:
        raise InputRefused("This rubric asks about no aspect: write a version with at least one.")
    for aspect in spec.aspects:
        refuse_equal_labels(aspect)
    if spec.placeholders:
        refuse_open_template(spec)
    if wants_text(spec):
        refuse_unreadable_text(spec)


def refuse_equal_labels(aspect: AspectSpec) -> None:
    labels = [folded(label) for label in labels_of(aspect)]
    if len(set(labels)) < len(labels) or "" in labels:
        raise InputRefused(f"The choices of “{aspect.key}” need a label each, and no two the same.")


def refuse_open_template(spec: RubricSpec) -> None:
    unknown = unknown_placeholders(spec.instructions, spec.placeholders)
    if unknown:
        raise InputRefused(f"The pasted prompt asks for {', '.join(unknown)}: say which field each of them means.")
    missing = [field for field in NEEDED if field not in spec.placeholders.values()]
    if missing:
        raise InputRefused(f"The pasted prompt has no place for {' and '.join(missing)}: map a placeholder to each.")


def refuse_unreadable_text(spec: RubricSpec) -> None:
    if len(spec.aspects) > 1:
        raise InputRefused("A verdict in plain text answers one aspect: use JSON answers for more.")
    try:
        pattern = re.compile(text_pattern(spec))
    except re.error as error:
        raise InputRefused(f"The pattern of the verdict is not a regular expression: {error}.") from None
    if pattern.groups > 1:
        raise InputRefused("The pattern of the verdict may have one group, the label: write the others as (?:…).")

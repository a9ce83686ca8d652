"""The allow-lists of elements and attributes that every rendering passes last."""

from typing import Final

import nh3

from evaluations.rendering.code_highlighter import CLASSES
from evaluations.rendering.formulas import FORMULA_TAGS, RULED, VALUES

TAG_NAMES: Final = "a blockquote br code em h3 h4 h5 h6 hr li ol p pre s span strong table tbody td th thead tr ul"
ALLOWED_TAGS: Final = frozenset(TAG_NAMES.split()) | FORMULA_TAGS
ALIGNED: Final = frozenset({"left", "center", "right"})

# Attributes with their allowed values.
ATTRIBUTE_VALUES: Final[dict[str, dict[str, set[str]]]] = {
    tag: {name: set(allowed) for name, allowed in values.items() if name != "class"} for tag, values in VALUES.items()
}
ATTRIBUTE_VALUES["span"] = {"aria-hidden": {"true"}}
for tag in ["blockquote", "code", "h3", "h4", "h5", "h6", "math", "ol", "p", "pre", "span", "table", "ul"]:
    ATTRIBUTE_VALUES.setdefault(tag, {})["dir"] = {"auto", "ltr"}

# No href and no src on any element: nothing is fetched or navigates automatically.
CLEANER: Final = nh3.Cleaner(
    tags=set(ALLOWED_TAGS),
    attributes={"a": {"data-address"}, "ol": {"start"}, "pre": {"data-language"}},
    tag_attribute_values=ATTRIBUTE_VALUES,
    allowed_classes={
        "a": {"link"},
        "code": {"formula"},
        "li": {"task"},
        "mtd": set(RULED),
        "p": {"formula"},
        "pre": {"as-written", "formula"},
        "span": {"address", "image", "marker", "visually-hidden", *CLASSES.values()},
        "td": set(ALIGNED),
        "th": set(ALIGNED),
    },
    link_rel="noopener nofollow noreferrer",
    url_schemes=set(),
)


def sanitize_html(html: str) -> str:
    return CLEANER.clean(html)

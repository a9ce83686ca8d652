"""The last step of every rendering: what is not on these lists does not reach a page."""

from typing import Final

import nh3

from evaluations.rendering.code import CLASSES

TAG_NAMES: Final = "a blockquote br code em h3 h4 h5 h6 hr li ol p pre s span strong table tbody td th thead tr ul"
TAGS: Final = frozenset(TAG_NAMES.split())
ALIGNED: Final = frozenset({"left", "center", "right"})

# No href and no src on any element: nothing is fetched and nothing navigates by itself.
CLEANER: Final = nh3.Cleaner(
    tags=set(TAGS),
    attributes={"a": {"data-address"}, "ol": {"start"}, "code": {"data-language"}},
    tag_attribute_values={
        tag: {"dir": {"auto", "ltr"}} for tag in ("blockquote", "h3", "h4", "h5", "h6", "ol", "p", "pre", "table", "ul")
    },
    allowed_classes={
        "a": {"link"},
        "span": {"address", "image", *CLASSES.values()},
        "td": set(ALIGNED),
        "th": set(ALIGNED),
    },
    link_rel="noopener nofollow noreferrer",
    url_schemes=set(),
)


def cleaned(html: str) -> str:
    return CLEANER.clean(html)

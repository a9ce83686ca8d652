"""Pages as a browser lays them out, so that no test depends on where a template breaks its lines."""

import re
from typing import Final, Protocol

BLOCKS: Final = (
    "article|aside|blockquote|body|br|button|caption|dd|details|div|dl|dt|fieldset|figcaption|figure|footer|form|g|h[1-6]"
    "|head|header|html|legend|li|main|nav|ol|optgroup|option|p|path|section|select|summary|table|tbody|td|tfoot|th|thead|tr|ul"
)
BESIDE_BLOCK: Final = re.compile(rf" ?(</?(?:{BLOCKS})\b[^>]*>) ?")
KEPT: Final = re.compile(r"(<(?:pre|textarea)\b.*?</(?:pre|textarea)>)", re.DOTALL)


class Answer(Protocol):
    """What a view or a test client answered."""

    @property
    def content(self) -> bytes: ...


def html_of(answer: Answer) -> str:
    return laid_out(answer.content.decode())


def laid_out(html: str) -> str:
    """White space as it counts: one space, and none beside the tag of a block."""
    return "".join(
        part if KEPT.match(part) else BESIDE_BLOCK.sub(r"\1", re.sub(r"\s+", " ", part)) for part in KEPT.split(html)
    )

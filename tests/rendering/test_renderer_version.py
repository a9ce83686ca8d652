"""The version of the renderer: what is kept on disk was made by it, and is only made anew when it is raised."""

import re
from hashlib import sha256

from evaluations.rendering.markdown import RENDERER, render_markdown
from tests.rendering.payloads import PAYLOADS

CORPUS = (
    *PAYLOADS,
    "# A\n\n## B\n\n### C\n\n**strong** *em* ~~s~~ `code`\nnext\n\n---\n\n> quote\n\n1. one\n2. two\n   - deep",
    "| a | b | c |\n|:--|:-:|--:|\n| 1 | `2` | $3$ |",
    "```python\ndef f(x: int) -> str:\n    return 'a'  # why\n```\n\n```\nplain\n```\n\n    indented",
    "$x$ \\(y\\) $$z$$\n\n\\[\n\\sum_{i=1}^n \\frac{1}{i}\n\\]\n\n\\begin{align}\na&=b\\\\\nc&=d\n\\end{align}",
    "$\\mathrm{d}x$ $\\begin{array}{c|c}a&b\\\\\\hline c&d\\end{array}$ $\\foo$ costs $5 or $10",
    "- [ ] todo\n- [x] done\n\nhttps://example.org www.example.org [x](https://example.org) ![cat](https://example.org/cat)",
    "السلام عليكم `code` 123\n\n- שלום\n\n東京は日本の首都です。",
    "> " * 250 + "deep",
    f"[a]: https://example.org/{'a' * 500}\n\n[a] [b][a] ![c][a]",
)
# Where this differs: raise RENDERER, and record the digest anew.
RECORDED = (7, "8ccffb5a61253c72")


def test_what_is_made_of_a_text_changes_only_with_the_version() -> None:
    digest = sha256("\n".join(map(render_markdown, CORPUS)).encode()).hexdigest()
    assert (RENDERER, digest[:16]) == RECORDED, "raise RENDERER in markdown.py, and record the new digest here"


def test_nothing_of_the_corpus_has_a_style_of_its_own() -> None:
    tags = [tag for text in CORPUS for tag in re.findall("<[^>]*>", render_markdown(text))]
    assert len(tags) > 500
    assert not [tag for tag in tags if " style=" in tag]

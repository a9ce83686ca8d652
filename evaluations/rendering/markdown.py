"""Markdown in, safe HTML out: tables and coloured code, nothing that loads, nothing that navigates."""

from collections.abc import Iterator, MutableMapping, Sequence
from html import escape
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

from evaluations.rendering.cleaning import ALIGNED, cleaned
from evaluations.rendering.code import coloured

# The page has its own first and second headings; those of a response stand below them.
HEADINGS: Final = {"h1": "h3", "h2": "h4", "h3": "h5", "h4": "h6", "h5": "h6"}
# Longer text is shown as it was written: some inputs cost the parser more than in proportion.
LONGEST_PARSED: Final = 150_000
# The parser drops what is nested deeper, and a reviewer must see every word: shown as written too.
DEEPEST: Final = 200


def rendered(text: str) -> str:
    """Safe HTML for any text whatever. Never raises, loads nothing, navigates nowhere."""
    text = without_surrogates(text)
    tokens = MARKDOWN.parse(text) if len(text) <= LONGEST_PARSED else None
    if tokens is None or any(token.level >= DEEPEST - 1 for token in tokens):
        return cleaned(f'<pre dir="auto">{escape(text)}</pre>')
    return cleaned(MARKDOWN.renderer.render(tokens, MARKDOWN.options, {}))


def without_surrogates(text: str) -> str:
    """Half a character cannot be written as UTF-8: it becomes a question mark."""
    return text.encode("utf-8", "replace").decode()


def adapt(state: StateCore) -> None:
    """The parsed document as our pages show it."""
    for token in state.tokens:
        adapt_block(token)
        if token.children:
            token.children = list(inert(token.children))


def adapt_block(token: Token) -> None:
    """Lower headings, alignment as a class, and a direction that the browser finds in the text.

    Only outermost blocks get ``dir``: looking for the first letter of a block, the browser leaves
    out what lies inside an inner one that has its own. The stylesheet does the inner ones.
    """
    token.tag = HEADINGS.get(token.tag, token.tag)
    alignment = str(token.attrs.pop("style", "")).removeprefix("text-align:")
    if alignment in ALIGNED:
        token.attrs["class"] = alignment
    if token.level == 0 and token.nesting == 1:
        token.attrs["dir"] = "auto"


def inert(children: Sequence[Token]) -> Iterator[Token]:
    """Images become their words, links carry their address as text and lead nowhere by themselves."""
    address, words = "", ""
    for child in children:
        if child.type == "link_open":
            address, words = str(child.attrs["href"]), ""
            yield html(f'<a class="link" data-address="{escape(address)}">' if is_web(address) else "")
        elif child.type == "link_close":
            yield html("</a>" if is_web(address) else "")
            yield html("" if words == address else address_shown(address))
        elif child.type == "image":
            yield html(f'<span class="image">Image: {escape(child.content or "no words")}</span>')
            yield html(address_shown(str(child.attrs["src"])))
        else:
            words += child.content
            yield child


def is_web(address: str) -> bool:
    return address.lower().startswith(("http://", "https://"))


def address_shown(address: str) -> str:
    return f' <span class="address">({escape(address)})</span>'


def html(content: str) -> Token:
    return Token("html_inline", "", 0, content=content)


def fence(
    renderer: RendererHTML,
    tokens: Sequence[Token],
    index: int,
    options: OptionsDict,
    env: MutableMapping[str, Any],
) -> str:
    """A block of code in the colours of the language that its first line names."""
    language = (tokens[index].info.split() or [""])[0]
    code = coloured(tokens[index].content, language)
    return f'<pre dir="ltr"><code data-language="{escape(language)}">{code}</code></pre>\n'


def parser() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False, "breaks": True, "maxNesting": DEEPEST}).enable(
        ["table", "strikethrough"]
    )
    markdown.core.ruler.push("adapt", adapt)
    for kind in ("fence", "code_block"):
        markdown.add_render_rule(kind, fence)
    return markdown


MARKDOWN: Final = parser()

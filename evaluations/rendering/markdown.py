"""Markdown rendered as safe HTML that loads nothing and navigates nowhere."""

import re
from collections.abc import Iterator, MutableMapping, Sequence
from html import escape
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

from evaluations.rendering.autolinks import enable_autolinks
from evaluations.rendering.code_highlighter import highlight_code, is_highlighted
from evaluations.rendering.formulas import closing_delimiter, enable_formulas, latex_to_mathml
from evaluations.rendering.sanitizer import ALIGNED, sanitize_html
from evaluations.rendering.step_budget import BUDGET, StepBudget, TooIntricate, count_steps, spend

# The version of the HTML. Raise it with every change of the HTML, since renderings are stored.
RENDERER: Final = 7
# Pages have their own headings of levels 1 and 2; those of a response are below them.
HEADINGS: Final = {"h1": "h3", "h2": "h4", "h3": "h5", "h4": "h6", "h5": "h6"}
# Longer text is shown as written, and so is text that takes more steps (less than half a second): the parser takes
# more than linear time on some inputs. Prose takes some 2 steps a character, tables 10.
MAX_PARSED_CHARACTERS: Final = 150_000
MAX_STEPS: Final = 1_500_000
# Cells of tables and marks of emphasis, which the parser takes by the thousand in one step.
MAX_CELLS: Final = 20_000
MAX_MARKS: Final = 40_000
# Steps that a character of a formula, or of highlighted code, takes as long as.
STEPS_IN_FORMULAS: Final = 32
STEPS_IN_CODE: Final = 32
# The parser drops content that is nested deeper; such text is shown as written, so that no word is lost.
DEEPEST: Final = 200
# Characters of one text that are highlighted as code or converted as formulas (each formula counts A_FORMULA more); the
# rest is shown as written, so that pages open at once.
MAX_COLOURED: Final = 30_000
MAX_IN_FORMULAS: Final = 30_000
A_FORMULA: Final = 20
# Where the HTML has more than so many times the characters of the text, and so many more, the text is shown as written:
# references and tables of short rows repeat. Escaping makes a text 6 times as long at most, usual markup up to 16.
MAX_GROWTH: Final = 20
MAX_ADDED_CHARACTERS: Final = 100_000
# A longer address is shown without its middle, but with its whole host.
MAX_SHOWN_ADDRESS: Final = 400
SHOWN_END: Final = 100
UP_TO_HOST: Final = re.compile(r"[^:/?#]*://[^/?#]*")
# The mark of a task, and its text for screen readers.
TASKS: Final = {"[ ] ": ("☐", "Not done: "), "[x] ": ("☑", "Done: "), "[X] ": ("☑", "Done: ")}


def render_markdown(text: str, budget: StepBudget | None = None) -> str:
    """Safe HTML for any text; never raises, loads nothing, navigates nowhere.

    A text that is too long or too intricate, or whose HTML would be many times its length, is shown as written, and the
    page says so; so are formulas and code once the steps of ``budget`` are spent.
    """
    text = replace_surrogates(text)
    budget = budget or StepBudget(MAX_STEPS)
    try:
        tokens = parse_markdown(text, budget)
    except (TooIntricate, RecursionError):
        return show_as_written(text)
    env = {"formulas": MAX_IN_FORMULAS, "coloured": MAX_COLOURED, BUDGET: budget}
    html = sanitize_html(MARKDOWN.renderer.render(tokens, MARKDOWN.options, env))
    return html if len(html) <= MAX_GROWTH * len(text) + MAX_ADDED_CHARACTERS else show_as_written(text)


def parse_markdown(text: str, budget: StepBudget) -> list[Token]:
    if len(text) > MAX_PARSED_CHARACTERS or text.count("|") > MAX_CELLS or sum(map(text.count, "*_~")) > MAX_MARKS:
        raise TooIntricate
    tokens = MARKDOWN.parse(text, {BUDGET: budget})
    if any(token.level >= DEEPEST - 1 for token in tokens):
        raise TooIntricate
    return tokens


def show_as_written(text: str) -> str:
    """The text without formatting. The stylesheet adds the sentence that says why, which is no part of the text."""
    return sanitize_html(f'<pre class="as-written" dir="auto">{escape(text)}</pre>')


def replace_surrogates(text: str) -> str:
    """The text with lone surrogates, which UTF-8 cannot encode, replaced by question marks."""
    return text.encode("utf-8", "replace").decode()


def adapt_document(state: StateCore) -> None:
    """A core rule of markdown-it that adapts a parsed document to our pages."""
    for place, token in enumerate(state.tokens):
        adapt_block(token)
        if token.children:
            token.children = list(make_inert(token.children, state.env))
        if token.type == "inline" and place > 1 and state.tokens[place - 2].type == "list_item_open":
            mark_task(state.tokens[place - 2], token)


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


def mark_task(item: Token, line: Token) -> None:
    """Replace the box of a task by a mark, because it cannot be ticked here."""
    mark, spoken = TASKS.get(line.content[:4], ("", ""))
    children = line.children or []
    if not mark or not children or not children[0].content.startswith(line.content[:4]):
        return
    item.attrs["class"] = "task"
    children[0].content = children[0].content[4:]
    words = f'<span class="visually-hidden" dir="ltr">{spoken}</span>'  # says nothing of the list's own direction
    children.insert(0, html_token(f'<span class="marker" aria-hidden="true">{mark}</span>{words}'))


def make_inert(children: Sequence[Token], env: MutableMapping[str, Any]) -> Iterator[Token]:
    """The tokens with images replaced by their descriptions, and links by text with the address.

    An address takes a step for each character, because references repeat it. Raises TooIntricate.
    """
    address, words = "", ""
    for child in children:
        if child.type == "link_open":
            address, words = str(child.attrs["href"]), ""
            spend(env, len(address))
            yield html_token(f'<a class="link" data-address="{escape(address)}">' if is_web_address(address) else "")
        elif child.type == "link_close":
            yield html_token("</a>" if is_web_address(address) else "")
            yield html_token("" if words in address_spellings(address) else display_address(address))
        elif child.type == "image":
            spend(env, len(str(child.attrs["src"])))
            yield html_token(f'<span class="image">Image: {escape(child.content or "no words")}</span>')
            yield html_token(display_address(str(child.attrs["src"])))
        else:
            words += child.content
            yield child


def is_web_address(address: str) -> bool:
    return address.lower().startswith(("http://", "https://"))


def address_spellings(address: str) -> Iterator[str]:
    """The spellings of an address that make it visible in the text of a link."""
    yield address
    yield from (address.removeprefix(start) for start in ("http://", "mailto:"))


def display_address(address: str) -> str:
    return f' <span class="address">({escape(shorten_address(address))})</span>'


def shorten_address(address: str) -> str:
    if len(address) <= MAX_SHOWN_ADDRESS:
        return address
    host = UP_TO_HOST.match(address)
    start = max(MAX_SHOWN_ADDRESS - SHOWN_END, host.end() if host else 0)
    return f"{address[:start]}…{address[-SHOWN_END:]}" if start + SHOWN_END < len(address) else address


def html_token(content: str) -> Token:
    return Token("html_inline", "", 0, content=content)


def render_fence(
    renderer: RendererHTML,
    tokens: Sequence[Token],
    index: int,
    options: OptionsDict,
    env: MutableMapping[str, Any],
) -> str:
    """A block of code, highlighted for the language in its first line."""
    language = (tokens[index].info.split() or [""])[0]
    env["coloured"] -= len(tokens[index].content)
    is_coloured = (
        is_highlighted(tokens[index].content, language)
        and env["coloured"] >= 0
        and env[BUDGET].take(STEPS_IN_CODE * len(tokens[index].content))
    )
    code = highlight_code(tokens[index].content, language if is_coloured else "")
    named = f' data-language="{escape(language)}"' if language else ""
    return f'<pre dir="ltr"{named}><code>{code}</code></pre>\n'


def render_inline_code(
    renderer: RendererHTML,
    tokens: Sequence[Token],
    index: int,
    options: OptionsDict,
    env: MutableMapping[str, Any],
) -> str:
    """Inline code, with its own text direction, so that it does not determine that of its paragraph."""
    return f'<code dir="ltr">{escape(tokens[index].content, quote=False)}</code>'


def render_formula(
    renderer: RendererHTML,
    tokens: Sequence[Token],
    index: int,
    options: OptionsDict,
    env: MutableMapping[str, Any],
) -> str:
    """A formula as MathML, or as written where it cannot be read or where there are too many."""
    token, opener, closer = tokens[index], tokens[index].markup, closing_delimiter(tokens[index].markup)
    env["formulas"] -= len(token.content) + A_FORMULA
    latex = f"{opener}{token.content}{closer}" if opener.startswith("\\begin") else token.content
    is_converted = env["formulas"] >= 0 and env[BUDGET].take(STEPS_IN_FORMULAS * (len(token.content) + A_FORMULA))
    shown = latex_to_mathml(latex, display=opener not in ("$", "\\(")) if is_converted else None
    if token.type == "formula":
        return shown or f'<code class="formula" dir="ltr">{escape(opener + token.content + closer)}</code>'
    if shown:
        return f'<p class="formula">{shown}{escape(token.info)}</p>\n'
    return f'<pre class="formula" dir="ltr">{escape(opener + token.content + closer + token.info)}</pre>\n'


def make_parser() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False, "breaks": True, "maxNesting": DEEPEST})
    count_steps(markdown)
    markdown.enable(["table", "strikethrough"])
    enable_autolinks(markdown)
    enable_formulas(markdown)
    markdown.core.ruler.push("adapt", adapt_document)
    for kind in ("fence", "code_block"):
        markdown.add_render_rule(kind, render_fence)
    markdown.add_render_rule("code_inline", render_inline_code)
    for kind in ("formula", "formula_block"):
        markdown.add_render_rule(kind, render_formula)
    return markdown


MARKDOWN: Final = make_parser()

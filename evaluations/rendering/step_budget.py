"""A budget of the parser's steps, counted and not timed, so that a text always has the same HTML."""

from collections.abc import MutableMapping
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType

BUDGET: Final = "budget"
# Trying all rules at one place takes about as long as so many looks at a place that was tried before.
TRIED: Final = 16
# Trying all block rules on a line.
BLOCK: Final = 40
# Starting on a line of text, or the cell of a table, takes about as long as so many.
STARTED: Final = 64
# In the environment: the tokens made so far, and the texts among them that are paid but not yet parsed.
TOKENS_COUNTED: Final = "tokens counted"
TEXTS_PAID: Final = "texts paid"


class TooIntricate(Exception):
    """The text takes more steps than its budget has."""


class StepBudget:
    """The steps that making HTML of a text may still take. ``has_run_out``: whether more were needed."""

    def __init__(self, steps: int) -> None:
        self.total = self.left = steps
        self.has_run_out = False

    def take(self, steps: int) -> bool:
        """Whether so many are left; then they are spent."""
        if steps > self.left:
            self.has_run_out = True
            return False
        self.left -= steps
        return True


def spend(env: MutableMapping[str, Any], steps: int) -> None:
    if not env[BUDGET].take(steps):
        raise TooIntricate


class CountingParserInline(ParserInline):
    """Looking ahead for the end of a link passes the same places again for each `[` before them."""

    def parse(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> list[Token]:
        if env.get(TEXTS_PAID):
            env[TEXTS_PAID] -= 1
        else:
            spend(env, STARTED)
        return super().parse(src, md, env, tokens)

    def skipToken(self, state: StateInline) -> None:  # noqa: N802 - the name of the parser
        spend(state.env, 2)
        super().skipToken(state)


def count_inline_step(state: StateInline, silent: bool) -> bool:
    """The first of the inline rules, which never matches."""
    spend(state.env, TRIED)
    return False


def count_block_step(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """The first of the block rules, which never matches.

    It also takes the steps of starting on the texts found so far. The parser fills the short rows of a table with
    empty cells: few characters would become millions of tokens before the first of them is parsed.
    """
    texts = sum(token.type == "inline" for token in state.tokens[state.env.get(TOKENS_COUNTED, 0) :])
    spend(state.env, BLOCK + STARTED * texts)
    state.env[TOKENS_COUNTED] = len(state.tokens)
    state.env[TEXTS_PAID] = state.env.get(TEXTS_PAID, 0) + texts
    return False


def count_steps(markdown: MarkdownIt) -> None:
    """Make a parser spend the budget of its environment. Call it before other rules are added."""
    counting = CountingParserInline()
    counting.ruler, counting.ruler2 = markdown.inline.ruler, markdown.inline.ruler2
    markdown.inline = counting
    markdown.inline.ruler.before("text", "count", count_inline_step)
    interrupts = ["paragraph", "reference", "blockquote", "list"]
    markdown.block.ruler.before("table", "count", count_block_step, {"alt": interrupts})

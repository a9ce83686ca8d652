"""Bare addresses as links, looked for only where one can be: the plugin's own rules read all text before and after."""

import re
from collections.abc import Callable
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from mdit_py_plugins.gfm_autolink import gfm_autolink_plugin
from mdit_py_plugins.gfm_autolink.index import _email_rule, _protocol_rule, _www_inline_rule

from evaluations.rendering.step_budget import spend

InlineRule = Callable[[StateInline, bool], bool]

# Longer runs without white space are no addresses.
MAX_ADDRESS_CHARACTERS: Final = 2_000
RUN: Final = re.compile(rf"[^ \t\r\n\x00\x0b\x0c]{{1,{MAX_ADDRESS_CHARACTERS}}}")
PROTOCOLS: Final = ("http", "https", "mailto", "xmpp")
# Making a link takes about as long as so many steps.
LINKED: Final = 128
# Characters that a rule reads in the time of one step.
CHARACTERS_PER_STEP: Final = 16


def can_be_web_address(state: StateInline) -> bool:
    return state.src.startswith("www.", state.pos)


def can_be_protocol(state: StateInline) -> bool:
    return state.src[state.pos] == ":" and state.pending.endswith(PROTOCOLS)


def can_be_email(state: StateInline) -> bool:
    return state.src[state.pos] == "@" and state.pending[-1:].isascii() and state.pending != ""


def limit_rule(rule: InlineRule, is_possible: Callable[[StateInline], bool]) -> InlineRule:
    """The rule, run where it can match, on the run of characters without white space that begins here."""

    def run(state: StateInline, silent: bool) -> bool:
        if silent or not is_possible(state):  # looking ahead, the rules never match
            return False
        match = RUN.match(state.src, state.pos, state.posMax)
        if match is None or len(match.group()) == MAX_ADDRESS_CHARACTERS:
            return False
        spend(state.env, LINKED + (len(state.pending) + 8 * len(match.group())) // CHARACTERS_PER_STEP)
        last, state.posMax = state.posMax, min(state.posMax, match.end() + 1)
        try:
            return rule(state, silent)
        finally:
            state.posMax = last

    return run


def enable_autolinks(markdown: MarkdownIt) -> None:
    markdown.use(gfm_autolink_plugin)
    for name, rule, is_possible in (
        ("gfm_autolink_www", _www_inline_rule, can_be_web_address),
        ("gfm_autolink_protocol", _protocol_rule, can_be_protocol),
        ("gfm_autolink_email", _email_rule, can_be_email),
    ):
        markdown.inline.ruler.at(name, limit_rule(rule, is_possible))

"""Syntax highlighting of code, as spans of eight classes."""

import re
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from itertools import groupby
from typing import Final

from pygments import lex
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Token, _TokenType
from pygments.util import ClassNotFound

# Longer code is shown without highlighting, so that pages open at once.
MAX_HIGHLIGHTED_CHARACTERS: Final = 20_000

# The languages that responses are written in. A closed list: an unknown name in a response must
# not choose among hundreds of grammars, some of which are slow on purpose-made text.
LANGUAGE_NAMES: Final = (
    "bash c cpp c++ console cs csharp css diff docker dockerfile go golang html ini java javascript js json jsx "
    "kotlin latex lua make makefile markdown md php powershell py python python3 r rb ruby rs rust scala sh shell sql "
    "swift tex toml ts tsx typescript xml yaml yml"
)
LANGUAGES: Final = frozenset(LANGUAGE_NAMES.split())

# Grammars look from many places for the end of the same line, white space or declaration, which takes time that grows
# with the square of its length. Code that has longer ones than people write is shown without highlighting.
LONG_RUN: Final = re.compile(r"[^\n]{1001}|\s{201}")
LONG_RUN_IN_DECLARATIONS: Final = re.compile(r"[\w\s.\[\]$<>?&*@]{401}")
DECLARING: Final = frozenset(["c", "c++", "cpp", "cs", "csharp", "java"])

CLASSES: Final[Mapping[_TokenType, str]] = {
    Token.Keyword: "k",
    Token.Operator.Word: "k",
    Token.Name.Tag: "k",
    Token.Literal.String: "s",
    Token.Literal.Number: "m",
    Token.Comment: "c",
    Token.Name.Function: "f",
    Token.Name.Class: "f",
    Token.Name.Decorator: "f",
    Token.Name.Builtin: "b",
    Token.Name.Attribute: "b",
    Token.Generic.Inserted: "i",
    Token.Generic.Deleted: "d",
}


def is_highlighted(code: str, language: str) -> bool:
    return (
        language.lower() in LANGUAGES and len(code) <= MAX_HIGHLIGHTED_CHARACTERS and not has_long_run(code, language)
    )


def has_long_run(code: str, language: str) -> bool:
    """Whether a grammar may take many steps for a character of this code."""
    return bool(LONG_RUN.search(code)) or (
        language.lower() in DECLARING and bool(LONG_RUN_IN_DECLARATIONS.search(code))
    )


def highlight_code(code: str, language: str) -> str:
    lexer = find_lexer(language) if is_highlighted(code, language) else None
    tokens = list(lex(code, lexer)) if lexer else []
    # Some grammars drop characters that they cannot parse, and a reviewer must see every character.
    if "".join(value for _, value in tokens) != code:
        return escape(code)
    return "".join(highlighted_spans(tokens))


def find_lexer(language: str) -> Lexer | None:
    name = language.lower()
    if name not in LANGUAGES:
        return None
    try:
        # Without the code in Markdown, which would choose among all grammars.
        return get_lexer_by_name(name, stripnl=False, ensurenl=False, handlecodeblocks=False)
    except ClassNotFound:
        return None


def highlighted_spans(tokens: Iterable[tuple[_TokenType, str]]) -> Iterator[str]:
    """Spans of adjacent tokens of one class, half the HTML of a span per token."""
    for css_class, neighbours in groupby(tokens, key=lambda token: class_of_token(token[0])):
        text = escape("".join(value for _, value in neighbours))
        yield f'<span class="{css_class}">{text}</span>' if css_class else text


def class_of_token(token_type: _TokenType) -> str:
    """The class of a token type or of its nearest ancestor with one: a doc comment is a comment."""
    kind: _TokenType | None = token_type
    while kind is not None:
        if kind in CLASSES:
            return CLASSES[kind]
        kind = kind.parent
    return ""

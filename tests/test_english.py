"""Phrases that readers stumble over are in no page, message or document."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from django.conf import settings

ROOT: Final = Path(settings.BASE_DIR)
FORBIDDEN: Final = {
    "held against": r"\b(held|hold|holds|holding) against\b",
    "mend": r"\b[Mm]end(s|ed|ing)?\b",
    "found out": r"\b(found|find|finds) out\b",
    "cannot be told": r"\bcannot be told\b",
    ", at most": r", at most\b",
    "Empty:": r"\bEmpty:",
    "any more": r"\bany more\b",
    # A judge may stand in (for a reviewer); a word stands in nothing.
    "stands beside": r"\bstands? (beside|on|in (?:the|an?|its|their|this|that|each|every|one|two|all))\b",
    "say so": r"\bsay (so|which)\b",
    "what it rests on": r"\brests? on\b",
    "not yours to do": r"\byours to do\b",
    "nobody": r"\b(Nobody|None of them) (has|have|is|are)\b",
    "whoever": r"\b(whoever|whatever|wherever)\b",
    "people who rate": r"\b((majority|verdicts|votes|scores) of|only these|two|most|other) people\b",
    "nothing was stored yet": r"\bnothing was stored yet\b",
    "give it a name": r"\bgive it (a name|one)\b|\bname a rater for\b",
    "cut off": r"\bdamaged or cut off\b",
    "can be read": r"\bthat (is|are) read here\b|\bhave the limit raised\b",
    "can be kept": r"\bat most \S+ can be (kept|read)\b",
    "is no file": r"\bthis is no\b",
    "made the same one choice": r"\bsame one choice\b",
    "at work still": r"\bat work still\b",
    "slice": r"--slice\b|/slices\b|\bthis slice\b|\ba slice\b",
    "ties kept": r"\bties kept\b",
}
# Requests to judges are frozen word for word; comments and names are for developers.
PYTHON: Final = sorted(
    path
    for path in (ROOT / "evaluations").rglob("*.py")
    if not {"migrations", "judge_prompts", "examples"} & set(path.relative_to(ROOT).parts)
)
STORED_VERBS: Final = {"found out"}  # of earlier audit events, which pages show in other words
TEMPLATES: Final = sorted((ROOT / "templates").rglob("*.html"))
DOCUMENTS: Final = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/statistics").glob("*.md")])


def find_forbidden(text: str) -> list[str]:
    flat = re.sub(r"\s+", " ", text)
    return [
        f"{name}: …{flat[max(0, match.start() - 30) : match.end() + 30]}…"
        for name, pattern in FORBIDDEN.items()
        for match in re.finditer(pattern, flat)
    ]


def list_messages(path: Path) -> Iterator[str]:
    """The texts of a module that may reach a reader: every string but docstrings."""
    tree = ast.parse(path.read_text())
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def remove_markup(text: str) -> str:
    text = re.sub(r"\{#.*?#\}|\{% comment %\}.*?\{% endcomment %\}", " ", text, flags=re.DOTALL)
    return re.sub(r"\{%.*?%\}|\{\{.*?\}\}", " ", text, flags=re.DOTALL)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_has_none_of_the_phrases(path: Path) -> None:
    assert find_forbidden(remove_markup(path.read_text())) == []


@pytest.mark.parametrize("path", PYTHON, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_message_has_none_of_the_phrases(path: Path) -> None:
    assert [
        found for message in list_messages(path) if message not in STORED_VERBS for found in find_forbidden(message)
    ] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_has_none_of_the_phrases(path: Path) -> None:
    assert find_forbidden(path.read_text()) == []


def test_every_phrase_would_be_found() -> None:
    samples = [
        "Both are held against the majority.",
        "Mend the file; it can be mended.",
        "It is found out.",
        "It cannot be told.",
        "Tokens, at most 12",
        "Empty: none",
        "not any more",
        "It stands in the report.",
        "Please say so.",
        "what it rests on",
        "not yours to do",
        "Nobody has voted.",
        "whoever comes",
        "the majority of people",
        "nothing was stored yet",
        "give it a name",
        "damaged or cut off",
        "have the limit raised",
        "at most 200 can be kept",
        "this is no file of rows",
        "the same one choice",
        "at work still",
        "--slice NAME",
        "ties kept",
    ]
    assert [sample for sample in samples if not find_forbidden(sample)] == []
    assert len(samples) >= len(FORBIDDEN)


def test_all_documents_together_are_short() -> None:
    assert sum(len(path.read_text().split()) for path in DOCUMENTS) <= 22_000

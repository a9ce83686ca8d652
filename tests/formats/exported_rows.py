"""Rows of an export for tests of export formats."""

from typing import Any

from hypothesis import strategies as st

from evaluations.formats.exported_rows import ExportedRaters, ExportedRow

RATERS = ExportedRaters(aspects=["safety", "clarity"], people=["ann"], judges=["gpt"], gold=["expert"])
TURNS = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi."},
    {"role": "user", "content": "And now?"},
]
SEVERAL = [
    {"role": "assistant", "content": "First."},
    {"role": "user", "content": "Go on."},
    {"role": "assistant", "content": "Second."},
]


def exported_label(choice: str | None, source: str = "majority", **votes: int) -> Any:
    counted = votes or ({choice: 2} if choice else {"A": 1, "B": 1})
    return {"choice": choice, "source": source, "n": sum(counted.values()), "votes": counted, "by": None}


def labelled_row(choice: str | None, **given: Any) -> ExportedRow:
    return exported_row(labels={"safety": exported_label(choice)}, **given)


def exported_row(**given: Any) -> ExportedRow:
    plain: dict[str, Any] = {
        "query_id": "q1",
        "cluster": "q1",
        "category": "talk",
        "query": "Why?",
        "messages": None,
        "context": None,
        "reference": None,
        "candidate_a": "alpha",
        "response_a": "Because.",
        "candidate_b": "beta",
        "response_b": "No idea.",
        "metadata": {},
        "labels": {},
        "adjudications": {},
        "comments": [],
        "skipped": [],
        "gold": [],
        "judges": [],
        "people": [],
    }
    return {**plain, **given}  # type: ignore[typeddict-item]


def exported_person(choice: str | None, **given: Any) -> Any:
    said = {"first": choice, "final": choice, "note": "", "reason": None}
    plain = {"rater": "ann", "rubric": None, "state": "final", "shown": "as_stored", "calibration": False, "note": ""}
    return {**plain, "choices": {"safety": said}, "spans": [], **given}


def exported_judge(choice: str | None, **given: Any) -> Any:
    orders = {"as_stored": [choice], "swapped": [choice]} if choice else {}
    said = {"choice": choice, "inconsistent": False, "orders": orders}
    plain = {"judge": "gpt", "kind": "llm", "model": "gpt", "rubric": "own 1", "rationales": {}, "failures": {}}
    return {**plain, "choices": {"safety": said} if choice else {}, **given}


# ---- whatever may stand in them ---------------------------------------------------------------------

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20)
SPOKEN = WORDS.filter(str.strip)
CHOICES = st.sampled_from(["A", "B", "tie"])
# What breaks cells, lines, and whoever looks at the beginning of a text for what it is.
HOSTILE = st.sampled_from(
    [
        *("=1+1", "'=1", "@SUM(A1)", "\ufeffmark", "a\rb\r\nc\n", "\x07\x1b[31m", "\u202eabc مرحبا", "🏳️\u200d🌈"),
        *('[{"content": "x", "role": "assistant"}]', '{"a": 1}', "null", " ", '"', "a;b\tc,d", "NaN", "1e999"),
        *("\u2028\x85", "\ufffe"),
    ]
)
TEXTS = WORDS | HOSTILE
ASKED = TEXTS.filter(str.strip)
MESSAGES = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": TEXTS}), max_size=3
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)


@st.composite
def any_exported_row(draw: Any) -> ExportedRow:
    """A comparison with anything in it that the database keeps."""
    answer = TEXTS | MESSAGES.filter(lambda turns: any(turn["role"] == "assistant" for turn in turns))
    asked = draw(ASKED | MESSAGES.map(lambda turns: [*turns, {"role": "user", "content": "And?"}]))
    optional = st.none() | TEXTS.filter(bool)
    return exported_row(
        query_id=draw(ASKED),
        query=asked if isinstance(asked, str) else None,
        messages=None if isinstance(asked, str) else asked,
        cluster=draw(ASKED),
        category=draw(TEXTS),
        context=draw(optional),
        reference=draw(optional),
        candidate_a="alpha",
        candidate_b=draw(ASKED.map(str.strip).filter(lambda name: name != "alpha")),
        response_a=draw(answer),
        response_b=draw(answer),
        metadata=draw(st.dictionaries(TEXTS, JSON, max_size=3)),
        labels={"safety": exported_label(draw(CHOICES))},
        people=[exported_person("A", note=draw(TEXTS))],
        judges=[exported_judge("B")],
    )

"""Two responses among the fields of an annotation project, found by what the fields are called."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from evaluations.domain import ComparisonRow, Messages, Reading, VerdictRow
from evaluations.formats.conversing import asked, candidate, query_of, turns
from evaluations.formats.values import RowRefused, as_text, optional_text, response

QUESTIONS: Final = (
    "query",
    "prompt",
    "question",
    "instruction",
    "messages",
    "conversation",
    "chat",
    "input",
    "user",
    "context",
)
ENDINGS: Final = (("1", "2"), ("a", "b"), ("left", "right"), ("first", "second"))
# What such fields begin with; the last resort are fields that are called by the ending alone.
STEMS: Final = (
    *("response", "answer", "output", "completion", "generation", "text", "txt", "summary", "reply", "option"),
    *("model", "candidate", "assistant", "item", "modelresponse", "modeloutput", "modelanswer", ""),
)
NAMES: Final = (
    *(("candidate_a", "candidate_b"), ("model_a", "model_b"), ("model_1", "model_2"), ("model1", "model2")),
    *(("generator_1", "generator_2"), ("generator_a", "generator_b"), ("model_name_1", "model_name_2")),
)
# Fields that say what is compared, and are never an answer.
OF_MATERIAL: Final = frozenset(
    {*QUESTIONS, "query_id", "reference", "category", *(name for two in NAMES for name in two)}
)
NOT_LETTERS: Final = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class Pair:
    """A comparison, and the fields that its two sides stood in."""

    row: ComparisonRow
    fields: tuple[str, str]

    @property
    def sides(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """By what names an annotation may speak of either side."""
        return (self.fields[0], self.row.candidate_a), (self.fields[1], self.row.candidate_b)

    def verdict(self, **columns: Any) -> VerdictRow:
        return VerdictRow(
            line=self.row.line,
            query_key=self.row.query.key,
            candidate_a=self.row.candidate_a,
            candidate_b=self.row.candidate_b,
            **columns,
        )


def pair_of(fields: Mapping[str, Any], reading: Reading, line: int, key: str) -> Pair:
    """The comparison in these fields. The responses are called as the fields say, else like the fields."""
    named = {reading.mapping.get(field, field): value for field, value in fields.items()}
    sides = fields_of_responses(named)
    names = names_of(named, sides)
    row = ComparisonRow(
        line=line,
        query=query_of(
            question_in(named),
            reading,
            key=candidate(named, "query_id") or key,
            reference=optional_text(named, "reference"),
            category=optional_text(named, "category"),
        ),
        candidate_a=names[0],
        response_a=side(named, sides[0]),
        candidate_b=names[1],
        response_b=side(named, sides[1]),
    )
    return Pair(row, sides)


def side(fields: Mapping[str, Any], field: str) -> Messages:
    return turns(fields[field], field) if isinstance(fields[field], list) else response(fields, field)


def fields_of_responses(fields: Mapping[str, Any]) -> tuple[str, str]:
    bare = {NOT_LETTERS.sub("", field.lower()): field for field in fields if isinstance(fields[field], (str, list))}
    for stem in STEMS:
        for one, other in ENDINGS:
            if stem + one in bare and stem + other in bare:
                return bare[stem + one], bare[stem + other]
    raise RowRefused(
        f"none of its fields ({', '.join(list(fields)[:8])}) are two responses: "
        "say which are, such as --map FIELD=response_a OTHER=response_b"
    )


def names_of(fields: Mapping[str, Any], sides: tuple[str, str]) -> tuple[str, str]:
    for one, other in NAMES:
        names = candidate(fields, one), candidate(fields, other)
        if all(names) and names[0] != names[1] and not {one, other} & set(sides):
            return names
    return sides


def question_in(fields: Mapping[str, Any]) -> Messages:
    for field in QUESTIONS:
        if given := fields.get(field):
            return turns(given, field) if isinstance(given, list) else asked(as_text(given, field))
    raise RowRefused(
        f"none of its fields ({', '.join(list(fields)[:8])}) is the query: say which is, such as --map FIELD=query"
    )

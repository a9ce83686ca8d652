"""The product's own rows: comparisons, responses, verdicts and scores, in any file that holds records."""

from collections.abc import Mapping
from typing import Any, Final

from evaluations.domain import (
    FAILURE_STATES,
    INCONSISTENT,
    SAMPLE,
    Choice,
    ComparisonRow,
    QueryPart,
    RaterKind,
    Reading,
    ResponseRow,
    Row,
    ScoreRow,
    Shown,
    VerdictRow,
)
from evaluations.formats.candidates import candidate_of
from evaluations.formats.messages import conversation, response
from evaluations.formats.streams import Record
from evaluations.formats.values import (
    MAX_CATEGORY,
    MAX_KEY,
    MAX_SAMPLE,
    RowRefused,
    aspect_key,
    metadata,
    moment,
    optional_text,
    required_name,
    required_number,
    required_text,
    whole_number,
)
from evaluations.formats.wording import is_other_name, named_side, parse_label, with_strength

DEFAULT_ASPECT: Final = "overall"
QUERY_COLUMNS: Final = frozenset(
    {"query_id", "cluster", "query", "messages", "context", "reference", "category", "metadata"}
)
COMPARISON_COLUMNS: Final = QUERY_COLUMNS | {"candidate_a", "response_a", "candidate_b", "response_b"}
RESPONSE_COLUMNS: Final = QUERY_COLUMNS | {"candidate", "response"}
CHOICES: Final = {word.lower(): str(word) for word in (*Choice, *FAILURE_STATES, INCONSISTENT)}
FAILURES: Final = {str(word): str(word) for word in FAILURE_STATES}
SHOWN: Final = {
    "": Shown.UNKNOWN,
    "true": Shown.SWAPPED,
    "1": Shown.SWAPPED,
    "false": Shown.AS_STORED,
    "0": Shown.AS_STORED,
    "folded": Shown.FOLDED,
    "unknown": Shown.UNKNOWN,
}


class LabelUnknown(RowRefused):
    """A label is not understood, or may mean either side."""


def query_key(values: Mapping[str, Any], reading: Reading) -> str:
    return prefixed(required_text(values, "query_id"), reading)


def prefixed(key: str, reading: Reading) -> str:
    full = reading.id_prefix + key
    if len(full) > MAX_KEY:
        raise RowRefused(f"query_id has {len(full):,} characters; at most {MAX_KEY} can be kept")
    return full


def query_part(values: Mapping[str, Any], reading: Reading) -> QueryPart:
    key = query_key(values, reading)
    return QueryPart(
        key=key,
        cluster=optional_text(values, "cluster", MAX_KEY) or key,
        messages=conversation(values),
        context=optional_text(values, "context") or None,
        reference=optional_text(values, "reference") or None,
        category=optional_text(values, "category", MAX_CATEGORY),
    )


def comparison_row(record: Record, reading: Reading) -> tuple[Row, ...]:
    values = record.values
    row = ComparisonRow(
        line=record.line,
        query=query_part(values, reading),
        candidate_a=required_name(values, "candidate_a"),
        response_a=response(values, "response_a", strict=True),
        candidate_b=required_name(values, "candidate_b"),
        response_b=response(values, "response_b", strict=True),
        metadata=metadata(values, COMPARISON_COLUMNS),
        sample=sample_of_response(values),
    )
    if row.candidate_a == row.candidate_b:
        raise RowRefused(f"both candidates are “{row.candidate_a}”: give the two sides different names")
    return (row,)


def response_row(record: Record, reading: Reading) -> tuple[Row, ...]:
    values = record.values
    query = query_part(values, reading)
    name, other = candidate_of(record, reading)
    sample = sample_of_response(values)
    own = {"candidate of the file": other} if other else {}
    return (
        ResponseRow(
            line=record.line,
            query=query,
            candidate=name,
            overruled=other,
            response=response(values, "response", strict=True),
            metadata={**metadata(values, RESPONSE_COLUMNS), **own, **({} if sample is None else {SAMPLE: sample})},
            sample=sample,
        ),
    )


def sample_of_response(values: Mapping[str, Any]) -> int | None:
    """Which of several responses it is, where the row says it by a number; any other word is metadata."""
    if SAMPLE not in values:
        return None
    try:
        return whole_number(values, SAMPLE, MAX_SAMPLE)
    except RowRefused:
        return None


def verdict_row(record: Record, reading: Reading) -> tuple[Row, ...]:
    values = record.values
    kind = rater_kind(values, reading)
    choice, strength = chosen(values, kind, reading)
    return (
        VerdictRow(
            line=record.line,
            query_key=query_key(values, reading),
            candidate_a=required_name(values, "candidate_a"),
            candidate_b=required_name(values, "candidate_b"),
            rater=rater_name(values, reading),
            rater_kind=kind,
            aspect=aspect_key(values, DEFAULT_ASPECT),
            choice=choice,
            shown=order_shown(values, choice),
            sample=whole_number(values, "sample", MAX_SAMPLE),
            rationale=optional_text(values, "rationale"),
            note=with_strength(optional_text(values, "note"), strength),
            created_at=moment(values, "created_at"),
        ),
    )


def score_row(record: Record, reading: Reading) -> tuple[Row, ...]:
    values = record.values
    kind = rater_kind(values, reading)
    failure = failure_told(values, kind)
    name, other = candidate_of(record, reading)
    return (
        ScoreRow(
            line=record.line,
            query_key=query_key(values, reading),
            candidate=name,
            overruled=other,
            rater=rater_name(values, reading),
            rater_kind=kind,
            aspect=aspect_key(values, DEFAULT_ASPECT),
            value=None if failure else required_number(values, "value"),
            lower_is_better=reading.lower_is_better,
            sample=whole_number(values, "sample", MAX_SAMPLE),
            rationale=optional_text(values, "rationale"),
            failure=failure,
        ),
    )


def failure_told(values: Mapping[str, Any], kind: RaterKind) -> str:
    """Which failure of a judge stands beside an empty value, or where a number is expected; else ""."""
    beside, value = optional_text(values, "failure").strip(), values.get("value")
    word = beside or (value.strip() if isinstance(value, str) else "")
    failure = FAILURES.get(word.lower(), "")
    if beside and value not in (None, ""):
        raise RowRefused("has both a value and a failure: one of them")
    if beside and not failure:
        raise RowRefused(f"failure “{beside[:40]}” is none of {', '.join(FAILURES)}")
    if failure and kind != RaterKind.JUDGE:
        raise RowRefused(f"{'failure' if beside else 'value'} “{failure}” can be a judge's only")
    return failure


def rater_name(values: Mapping[str, Any], reading: Reading) -> str:
    name = optional_text(values, "rater", MAX_KEY).strip() or reading.rater
    if not name.strip():
        raise RowRefused("rater is missing: name one in the row or for the whole file")
    return name


def rater_kind(values: Mapping[str, Any], reading: Reading) -> RaterKind:
    given = optional_text(values, "rater_kind").strip().lower() or (reading.rater_kind or "")
    if given not in tuple(RaterKind):
        raise RowRefused("rater_kind must be human, judge or gold, in the row or for the whole file")
    return RaterKind(given)


def chosen(values: Mapping[str, Any], kind: RaterKind, reading: Reading) -> tuple[str, str]:
    """The choice and how strongly: as was said of the file, in our own words, or by any known label.

    In a column that is not called ``choice`` by us, “A” may also be a candidate's name.
    """
    given = required_text(values, "choice").strip()
    own = CHOICES.get(given.lower())
    choice, strength = (own, "") if own and not reading.is_mapped else label_meant(given, own, values, reading)
    if choice not in tuple(Choice) and kind != RaterKind.JUDGE:
        raise RowRefused(f"choice “{choice}” can be a judge's only")
    return choice, strength


def label_meant(given: str, own: str | None, values: Mapping[str, Any], reading: Reading) -> tuple[str, str]:
    choice = reading.choices.get(given.lower())
    names = [(optional_text(values, side),) for side in ("candidate_a", "candidate_b")]
    has_name = named_side(given, *names)
    if choice is not None:
        if is_other_name(given, choice, *names):
            raise LabelUnknown(
                f"choice “{given[:40]}” is the name of candidate {has_name}, and was said to mean {choice}"
            )
        return choice, strength_of(given, choice, reading)
    if own and not has_name:
        return own, ""
    if label := parse_label(given, *names):
        return label.choice, label.strength
    if has_name:
        raise LabelUnknown(f"choice “{given[:40]}” may mean either side: say which, as --choice {given[:40]}=A")
    raise LabelUnknown(
        f"choice “{given[:40]}” is none of {', '.join(CHOICES.values())}, and no known label: "
        f'say what it means, as --choice "{given[:40]}=A", or on the page of its columns'
    )


def strength_of(given: str, choice: str, reading: Reading) -> str:
    """How strongly a word of the file means a choice: an unknown word itself, where another means the same choice."""
    label = parse_label(given)
    if label and label.choice == choice:
        return label.strength
    is_side = choice in (Choice.A, Choice.B)
    return given if is_side and list(reading.choices.values()).count(choice) > 1 else ""


def order_shown(values: Mapping[str, Any], choice: str) -> Shown:
    given = optional_text(values, "shown_swapped").strip().lower()
    if given not in SHOWN:
        raise RowRefused(f"shown_swapped “{given[:40]}” must be true, false or folded")
    if choice != INCONSISTENT:
        return SHOWN[given]
    if SHOWN[given] in (Shown.AS_STORED, Shown.SWAPPED):
        raise RowRefused("an inconsistent choice comes from both orders: leave shown_swapped out or say folded")
    return Shown.FOLDED

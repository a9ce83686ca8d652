"""The product's own row formats: comparisons, responses, verdicts and scores."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from evaluations.domain.choices import INCONSISTENT, Choice, ShownOrder
from evaluations.domain.files import (
    SAMPLE_KEY,
    ComparisonRow,
    FileFormat,
    FileRow,
    QueryPart,
    ReadOptions,
    ResponseRow,
    ScoreRow,
    VerdictRow,
)
from evaluations.domain.judges import FAILURE_STATES
from evaluations.domain.roles import RaterKind
from evaluations.domain.texts import content_sha256
from evaluations.formats.candidate_names import candidate_of_record
from evaluations.formats.chat_messages import parse_conversation, parse_response
from evaluations.formats.import_format import COMPARISONS, SCORES, VERDICTS, ImportFormat, RowReader
from evaluations.formats.label_parser import is_other_name, note_with_strength, parse_label, side_with_name
from evaluations.formats.record_streams import FileSample, Record
from evaluations.formats.values import (
    MAX_CATEGORY,
    MAX_KEY,
    MAX_SAMPLE,
    RowRefused,
    aspect_key,
    iso_time,
    optional_text,
    required_name,
    required_number,
    required_text,
    row_metadata,
    whole_number,
)

DEFAULT_ASPECT: Final = "overall"
HASHED: Final = 24  # characters of a hash: among a billion texts, two share them with a chance of 1e-11
QUERY_COLUMNS: Final = frozenset(
    {"query_id", "cluster", "query", "messages", "context", "reference", "category", "metadata"}
)
COMPARISON_COLUMNS: Final = QUERY_COLUMNS | {"candidate_a", "response_a", "candidate_b", "response_b"}
RESPONSE_COLUMNS: Final = QUERY_COLUMNS | {"candidate", "response"}
CHOICES: Final = {word.lower(): str(word) for word in (*Choice, *FAILURE_STATES, INCONSISTENT)}
FAILURES: Final = {str(word): str(word) for word in FAILURE_STATES}
SHOWN: Final = {
    "": ShownOrder.UNKNOWN,
    "true": ShownOrder.SWAPPED,
    "1": ShownOrder.SWAPPED,
    "false": ShownOrder.AS_STORED,
    "0": ShownOrder.AS_STORED,
    "folded": ShownOrder.FOLDED,
    "unknown": ShownOrder.UNKNOWN,
}


class LabelUnknown(RowRefused):
    """A label is not understood, or may mean either side."""


def content_hash_key(content: object) -> str:
    """An id made of the content alone, the same in every file."""
    return content_sha256(content)[:HASHED]


def native_query_key(values: Mapping[str, Any], options: ReadOptions) -> str:
    return prefix_key(required_text(values, "query_id"), options)


def prefix_key(key: str, options: ReadOptions) -> str:
    full = options.id_prefix + key
    if len(full) > MAX_KEY:
        raise RowRefused(f"query_id has {len(full):,} characters; the limit is {MAX_KEY}")
    return full


def native_query(values: Mapping[str, Any], options: ReadOptions) -> QueryPart:
    key = native_query_key(values, options)
    return QueryPart(
        key=key,
        cluster=optional_text(values, "cluster", MAX_KEY) or key,
        messages=parse_conversation(values),
        context=optional_text(values, "context") or None,
        reference=optional_text(values, "reference") or None,
        category=optional_text(values, "category", MAX_CATEGORY),
    )


def native_comparison_row(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    values = record.values
    row = ComparisonRow(
        line=record.line,
        query=native_query(values, options),
        candidate_a=required_name(values, "candidate_a"),
        response_a=parse_response(values, "response_a", strict=True),
        candidate_b=required_name(values, "candidate_b"),
        response_b=parse_response(values, "response_b", strict=True),
        metadata=row_metadata(values, COMPARISON_COLUMNS),
        sample=sample_of_response(values),
    )
    if row.candidate_a == row.candidate_b:
        raise RowRefused(f"both models are “{row.candidate_a}”. Give the two models different names")
    return (row,)


def native_response_row(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    values = record.values
    query = native_query(values, options)
    name, other = candidate_of_record(record, options)
    sample = sample_of_response(values)
    own = {"candidate of the file": other} if other else {}
    return (
        ResponseRow(
            line=record.line,
            query=query,
            candidate=name,
            overruled=other,
            response=parse_response(values, "response", strict=True),
            metadata={
                **row_metadata(values, RESPONSE_COLUMNS),
                **own,
                **({} if sample is None else {SAMPLE_KEY: sample}),
            },
            sample=sample,
        ),
    )


def add_hashed_ids(read_rows: RowReader) -> RowReader:
    """The reader for files without ids: equal prompts are one prompt."""

    def read_with_hash(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
        key = content_hash_key(parse_conversation(record.values))
        return read_rows(replace(record, values={**record.values, "query_id": key}), options)

    return read_with_hash


def has_no_others(columns: frozenset[str]) -> Callable[[FileSample], bool]:
    """A match of files that have none but these columns and no id: another column may be the id."""
    return lambda sample: (columns - {"query_id"}).issuperset(sample.columns)


def sample_of_response(values: Mapping[str, Any]) -> int | None:
    """The sample number of a response, if it is a number; any other value is metadata."""
    if SAMPLE_KEY not in values:
        return None
    try:
        return whole_number(values, SAMPLE_KEY, MAX_SAMPLE)
    except RowRefused:
        return None


def native_verdict_row(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    values = record.values
    kind = rater_kind_of_row(values, options)
    choice, strength = choice_of_verdict(values, kind, options)
    return (
        VerdictRow(
            line=record.line,
            query_key=native_query_key(values, options),
            candidate_a=required_name(values, "candidate_a"),
            candidate_b=required_name(values, "candidate_b"),
            rater=rater_name_of_row(values, options),
            rater_kind=kind,
            aspect=aspect_key(values, DEFAULT_ASPECT),
            choice=choice,
            shown=native_order_shown(values, choice),
            sample=whole_number(values, "sample", MAX_SAMPLE),
            rationale=optional_text(values, "rationale"),
            note=note_with_strength(optional_text(values, "note"), strength),
            created_at=iso_time(values, "created_at"),
        ),
    )


def native_score_row(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    values = record.values
    kind = rater_kind_of_row(values, options)
    failure = failure_state(values, kind)
    name, other = candidate_of_record(record, options)
    return (
        ScoreRow(
            line=record.line,
            query_key=native_query_key(values, options),
            candidate=name,
            overruled=other,
            rater=rater_name_of_row(values, options),
            rater_kind=kind,
            aspect=aspect_key(values, DEFAULT_ASPECT),
            value=None if failure else required_number(values, "value"),
            lower_is_better=options.lower_is_better,
            sample=whole_number(values, "sample", MAX_SAMPLE),
            rationale=optional_text(values, "rationale"),
            failure=failure,
        ),
    )


def failure_state(values: Mapping[str, Any], kind: RaterKind) -> str:
    """The failure of a judge that the row states with an empty value or in place of a number; else ""."""
    stated, value = optional_text(values, "failure").strip(), values.get("value")
    word = stated or (value.strip() if isinstance(value, str) else "")
    failure = FAILURES.get(word.lower(), "")
    if stated and value not in (None, ""):
        raise RowRefused("has both a value and a failure. Give one of them")
    if stated and not failure:
        raise RowRefused(f"failure “{stated[:40]}” is not one of {', '.join(FAILURES)}")
    if failure and kind != RaterKind.JUDGE:
        raise RowRefused(f"only a judge can have the {'failure' if stated else 'value'} “{failure}”")
    return failure


def rater_name_of_row(values: Mapping[str, Any], options: ReadOptions) -> str:
    name = optional_text(values, "rater", MAX_KEY).strip() or options.rater
    if not name.strip():
        raise RowRefused("`rater` is missing. Add the column, or set one rater for the whole file")
    return name


def rater_kind_of_row(values: Mapping[str, Any], options: ReadOptions) -> RaterKind:
    kind = optional_text(values, "rater_kind").strip().lower() or (options.rater_kind or "")
    if kind not in tuple(RaterKind):
        raise RowRefused("rater_kind must be human, judge or gold, in the row or for the whole file")
    return RaterKind(kind)


def choice_of_verdict(values: Mapping[str, Any], kind: RaterKind, options: ReadOptions) -> tuple[str, str]:
    """Choice and strength, by the mapping of the file, in our own words or by any known label.

    In a column that is not called ``choice`` by us, “A” may also be a candidate's name.
    """
    word = required_text(values, "choice").strip()
    own = CHOICES.get(word.lower())
    choice, strength = (own, "") if own and not options.is_mapped else interpret_label(word, own, values, options)
    if choice not in tuple(Choice) and kind != RaterKind.JUDGE:
        raise RowRefused(f"only a judge can have the choice “{choice}”")
    return choice, strength


def interpret_label(word: str, own: str | None, values: Mapping[str, Any], options: ReadOptions) -> tuple[str, str]:
    choice = options.choices.get(word.lower())
    names = [(optional_text(values, side),) for side in ("candidate_a", "candidate_b")]
    has_name = side_with_name(word, *names)
    if choice is not None:
        if is_other_name(word, choice, *names):
            raise LabelUnknown(f"choice “{word[:40]}” is the name of candidate {has_name}, but is mapped to {choice}")
        return choice, label_strength(word, choice, options)
    if own and not has_name:
        return own, ""
    if label := parse_label(word, *names):
        return label.choice, label.strength
    if has_name:
        raise LabelUnknown(f"choice “{word[:40]}” may mean either response. Map it, as --choice {word[:40]}=A")
    raise LabelUnknown(
        f"choice “{word[:40]}” is unknown. Use {', '.join(CHOICES.values())}, or map it with "
        f'--choice "{word[:40]}=A" or on the column mapping page'
    )


def label_strength(word: str, choice: str, options: ReadOptions) -> str:
    """The strength of a mapped word: the word itself where another word means the same choice."""
    label = parse_label(word)
    if label and label.choice == choice:
        return label.strength
    is_side = choice in (Choice.A, Choice.B)
    return word if is_side and list(options.choices.values()).count(choice) > 1 else ""


def native_order_shown(values: Mapping[str, Any], choice: str) -> ShownOrder:
    word = optional_text(values, "shown_swapped").strip().lower()
    if word not in SHOWN:
        raise RowRefused(f"shown_swapped “{word[:40]}” must be true, false or folded")
    if choice != INCONSISTENT:
        return SHOWN[word]
    if SHOWN[word] in (ShownOrder.AS_STORED, ShownOrder.SWAPPED):
        raise RowRefused("an inconsistent choice comes from both orders: leave shown_swapped out, or set it to folded")
    return ShownOrder.FOLDED


NATIVE_FORMATS: Final = (
    ImportFormat(
        FileFormat.COMPARISONS,
        (COMPARISONS,),
        ("query_id", "query", "candidate_a", "response_a", "candidate_b", "response_b"),
        native_comparison_row,
    ),
    ImportFormat(  # of a Hugging Face dataset: see `exported_rows.read_exported_material`
        FileFormat.COMPARISONS,
        (COMPARISONS,),
        ("query_id", "prompt", "candidate_a", "response_a", "candidate_b", "response_b", "choice", "labels", "split"),
        native_comparison_row,
    ),
    ImportFormat(
        FileFormat.RESPONSES,
        (COMPARISONS,),
        ("query_id", "query", "candidate", "response"),
        native_response_row,
        needs_pairing=True,
        model="candidate",
    ),
    ImportFormat(
        FileFormat.RESPONSES,
        (COMPARISONS,),
        ("query", "candidate", "response"),
        add_hashed_ids(native_response_row),
        needs_pairing=True,
        model="candidate",
        is_match=has_no_others(RESPONSE_COLUMNS | {SAMPLE_KEY}),
        has_common_columns=True,
    ),
    ImportFormat(
        FileFormat.COMPARISONS,
        (COMPARISONS,),
        ("query", "candidate_a", "response_a", "candidate_b", "response_b"),
        add_hashed_ids(native_comparison_row),
        is_match=has_no_others(COMPARISON_COLUMNS | {SAMPLE_KEY}),
        has_common_columns=True,
    ),
    ImportFormat(
        FileFormat.VERDICTS, (VERDICTS,), ("query_id", "candidate_a", "candidate_b", "choice"), native_verdict_row
    ),
    ImportFormat(FileFormat.SCORES, (SCORES,), ("query_id", "candidate", "value"), native_score_row),
)

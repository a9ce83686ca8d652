"""The models and sample rows that the preview of a file shows."""

import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

from evaluations.domain.choices import Choice
from evaluations.domain.files import (
    BadRow,
    ComparisonRow,
    FileEntry,
    FileRow,
    QueryRow,
    ResponseRow,
    ScoreRow,
    VerdictRow,
)
from evaluations.domain.imports import (
    CandidateNaming,
    ModelCount,
    SampleResponse,
    SampleRow,
    SampleScore,
    SampleVerdict,
)
from evaluations.domain.texts import messages_to_text
from evaluations.imports.row_sketches import EntryOutcome, SkippedEntry

MAX_LISTED_MODELS: Final = 100  # models; all are counted
MAX_NAMES_IN_SENTENCE: Final = 5
MAX_SAMPLE_CHARACTERS: Final = 400
MAX_SAMPLE_SCORES: Final = 6  # of a row
COUNTED_KINDS: Final = ("comparisons", "responses", "verdicts", "scores")


@dataclass
class ModelCounts:
    """``rows``: the number of valid rows by name and kind. ``overruled``: unused names of the file's own column."""

    named_by: CandidateNaming
    rows: Counter[tuple[str, str]] = field(default_factory=Counter)
    overruled: Counter[str] = field(default_factory=Counter)

    def count(self, items: Sequence[FileEntry | BadRow], outcomes: Sequence[EntryOutcome]) -> None:
        rows = self.rows
        for item, outcome in zip(items, outcomes, strict=True):
            if isinstance(item, BadRow):
                continue
            is_good = not isinstance(outcome, (BadRow, SkippedEntry))
            for row in item.rows:
                for named in list_models_in_row(row) if is_good else ():
                    rows[named] += 1
                if isinstance(row, (ResponseRow, ScoreRow)) and row.overruled:
                    self.overruled[row.overruled] += 1

    @property
    def names(self) -> set[str]:
        return {name for name, _ in self.rows}

    def list_counts(self) -> list[ModelCount]:
        """Those with most rows first."""
        total: Counter[str] = Counter()
        for (name, _), number in self.rows.items():
            total[name] += number
        names = sorted(total, key=lambda name: (-total[name], name))[:MAX_LISTED_MODELS]
        return [
            ModelCount(name, {kind: self.rows[name, kind] for kind in COUNTED_KINDS if self.rows[name, kind]})
            for name in names
        ]

    def find_naming(self, requested: str) -> CandidateNaming:
        """What names the models. A name for the whole file is unused if all rows name their models."""
        is_unused = self.named_by == CandidateNaming.FORM and self.rows and requested not in self.names
        return CandidateNaming.COLUMN if is_unused else self.named_by

    def list_warnings(self, requested: str, stored_names: Collection[str] = ()) -> Iterator[str]:
        """``requested``: the name that was given for the whole file. ``stored_names``: models of the evaluation."""
        if self.overruled:
            listed_names = [
                f"“{name}” ({'1 row' if number == 1 else f'{number:,} rows'})"
                for name, number in self.overruled.most_common(MAX_NAMES_IN_SENTENCE)
            ]
            unlisted = len(self.overruled) - len(listed_names)
            names = ", ".join([*listed_names, *([f"{unlisted:,} more"] if unlisted else [])])
            yield (f"The model is “{requested}”, set for the whole file. The names in the file are not used: {names}.")
        if requested and self.rows and requested not in self.names:
            yield f"The name “{requested}” is not used, because the rows name their models."
        by_normalized: dict[str, set[str]] = {}
        for name in {*self.names, *stored_names}:
            by_normalized.setdefault(normalize_model_name(name), set()).add(name)
        groups = [sorted(alike) for alike in by_normalized.values() if len(alike) > 1 and self.names & alike]
        for group in sorted(groups)[:MAX_NAMES_IN_SENTENCE]:
            listed = " and ".join(f"“{name}”" for name in group[:MAX_NAMES_IN_SENTENCE])
            yield f"{listed} look alike but count as different models. If they are the same, use one name."


def normalize_model_name(name: str) -> str:
    """A name without case, blank space, width, separate accents and invisible characters."""
    text = unicodedata.normalize("NFKC", name).casefold()
    return "".join(letter for letter in text if not letter.isspace() and unicodedata.category(letter) != "Cf")


def list_models_in_row(row: FileRow) -> list[tuple[str, str]]:
    if isinstance(row, ComparisonRow):
        return [(row.candidate_a, "comparisons"), (row.candidate_b, "comparisons")]
    if isinstance(row, ResponseRow):
        return [(row.candidate, "responses")]
    if isinstance(row, ScoreRow):
        return [(row.candidate, "scores")]
    if isinstance(row, VerdictRow) and row.candidate_a and row.candidate_b:
        return [(row.candidate_a, "verdicts"), (row.candidate_b, "verdicts")]
    return []


def sample_entry(entry: FileEntry) -> SampleRow:
    """A row as the page shows it before it is stored."""
    sample = SampleRow(
        entry.line,
        verdicts=tuple(sample_verdict(row) for row in entry.rows if isinstance(row, VerdictRow)),
        scores=tuple(islice((sample_score(row) for row in entry.rows if isinstance(row, ScoreRow)), MAX_SAMPLE_SCORES)),
    )
    for row in entry.rows:
        if isinstance(row, (ComparisonRow, ResponseRow, QueryRow)):
            query = shorten_sample(messages_to_text(row.query.messages))
            sample = replace(sample, key=row.query.key, query=query, responses=tuple(sample_responses(row)))
    return sample


def sample_responses(row: ComparisonRow | ResponseRow | QueryRow) -> Iterator[SampleResponse]:
    if isinstance(row, ComparisonRow):
        yield SampleResponse(row.candidate_a, shorten_sample(messages_to_text(row.response_a)))
        yield SampleResponse(row.candidate_b, shorten_sample(messages_to_text(row.response_b)))
    elif isinstance(row, ResponseRow):
        yield SampleResponse(row.candidate, shorten_sample(messages_to_text(row.response)))


def sample_verdict(row: VerdictRow) -> SampleVerdict:
    """The verdict as in the file, before its sides are swapped."""
    sides = {Choice.A: row.candidate_a, Choice.B: row.candidate_b}
    return SampleVerdict(
        key=row.query_key,
        candidates=(row.candidate_a, row.candidate_b) if row.candidate_a and row.candidate_b else (),
        rater=row.rater,
        kind=row.rater_kind,
        aspect=row.aspect,
        choice=row.choice,
        chosen=sides.get(Choice(row.choice)) if row.choice in tuple(Choice) else None,
    )


def sample_score(row: ScoreRow) -> SampleScore:
    return SampleScore(row.query_key, row.candidate, row.rater, row.rater_kind, row.aspect, row.value, row.failure)


def shorten_sample(text: str) -> str:
    return text if len(text) <= MAX_SAMPLE_CHARACTERS else f"{text[:MAX_SAMPLE_CHARACTERS]}…"

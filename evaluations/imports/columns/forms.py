"""The form that maps columns to fields."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from django import forms
from django.forms import BoundField
from django.http import QueryDict

from evaluations.domain.files import (
    FIELDS_BY_FORMAT,
    ID_FROM_ROW_NUMBER,
    ID_FROM_TEXT,
    SINGLE_FILE_FIELDS,
    FileField,
    FileFormat,
    ReadOptions,
)
from evaluations.domain.judges import FAILURE_STATES
from evaluations.imports.columns.column_guess import (
    GENERATED_IDS,
    ColumnFields,
    build_reading,
    find_faults,
    guess_choice_meanings,
    guess_columns,
    guess_row_kind,
    is_number_word,
)
from evaluations.imports.columns.column_memory import find_earlier_reading, get_names_for_all_rows
from evaluations.imports.source_files import Sheet
from evaluations.models.imports import Import
from evaluations.web.forms import CleanedData

ROW_KIND_CHOICES: Final = [
    (FileFormat.COMPARISONS.value, "comparison: a prompt and two responses, optionally with a choice"),
    (FileFormat.RESPONSES.value, "response: a prompt and one response, optionally with a score"),
    (FileFormat.VERDICTS.value, "verdict: a choice on an existing comparison"),
    (FileFormat.SCORES.value, "score: a number for an existing response"),
]
FIELD_LABELS: Final[Mapping[str, tuple[str, str]]] = {
    "query_id": ("Prompt ID", "Rows with the same ID belong to the same prompt."),
    "query": ("Prompt", ""),
    "messages": ("Prompt as chat messages", "Instead of the prompt text."),
    "context": ("Context", "Material that the prompt refers to."),
    "reference": ("Reference answer", ""),
    "category": ("Category", ""),
    "cluster": ("Cluster", "Related prompts. By default each prompt is its own cluster."),
    "candidate": ("Model", "Defaults to the file name."),
    "response": ("Response", ""),
    "candidate_a": ("Model A", ""),
    "response_a": ("Response A", ""),
    "candidate_b": ("Model B", ""),
    "response_b": ("Response B", ""),
    "choice": ("Choice", "The preferred response."),
    "value": ("Score", "A number."),
    "failure": ("Judge failure", f"Why there is no score: {', '.join(FAILURE_STATES)}."),
    "rater": ("Rater", "Required with a choice or a score."),
    "rater_kind": ("Rater type", ""),
    "aspect": (
        "Aspect",
        "Defaults to “overall”. Import the file once per column of choices.",
    ),
    "shown_swapped": ("Response B shown first", ""),
    "sample": ("Sample", "0, 1, 2 … for repeated samples."),
    "rationale": ("Rationale", ""),
    "note": ("Note", ""),
    "created_at": ("Date", ""),
}
FIXED_CHOICES: Final[Mapping[str, list[tuple[str, str]]]] = {
    "rater_kind": [("", "–"), ("human", "human"), ("judge", "judge"), ("gold", "gold")],
    "shown_swapped": [("", "–"), ("true", "yes"), ("false", "no"), ("folded", "both orders in one call")],
}
GENERATED_ID_CHOICES: Final = [
    (ID_FROM_TEXT, "hash of the prompt"),
    (ID_FROM_ROW_NUMBER, "row number, from 0"),
]
UNCHANGED: Final = "as_it_stands"
OMITTED: Final = "left_out"
MEANING_CHOICES: Final = [
    (UNCHANGED, "unchanged"),
    ("A", "response A"),
    ("B", "response B"),
    ("tie", "tie, both good"),
    ("both_bad", "both bad"),
]
UNSET_CHOICE: Final = ("", "–")
OMITTED_CHOICE: Final = (OMITTED, "no choice (skip)")


@dataclass(frozen=True)
class MappingLine:
    """A field of the product on the page: the column it may come from, or its value for all rows."""

    field: FileField
    label: str
    hint: str
    column: BoundField
    whole: BoundField | None


class ColumnMappingForm(forms.Form):
    """The mapping for one kind of row. Fields that are not sent are guessed, or taken from the earlier mapping."""

    kind = forms.ChoiceField(choices=ROW_KIND_CHOICES, label="Each row is a", widget=forms.RadioSelect)

    def __init__(
        self,
        sheet: Sheet,
        data: QueryDict | None = None,
        *,
        earlier: ReadOptions | None = None,
        names: Mapping[str, str] | None = None,
    ) -> None:
        """``names``: the model and the rater that were given for the whole file."""
        self.sheet = sheet
        default = earlier.format if earlier else guess_row_kind(sheet)
        kind = (data.get("kind") if data is not None else None) or default
        self.row_kind = kind if kind in FIELDS_BY_FORMAT else FileFormat.COMPARISONS.value
        sent = data if data is not None and data.get("asked_about") == self.row_kind else None
        guessed = guess_initial(sheet, self.row_kind)
        is_same_kind = earlier is not None and earlier.format == self.row_kind
        initial = build_initial(earlier) if earlier and is_same_kind else dict(guessed)
        for field_name in SINGLE_FILE_FIELDS:  # names for all rows are not remembered
            whole = f"whole_{field_name}"
            if typed := (names or {}).get(field_name):
                initial[whole] = typed
                initial.pop(f"column_{field_name}", None)
            elif not initial.get(f"column_{field_name}") and guessed.get(whole):
                initial[whole] = guessed[whole]
        super().__init__(sent.dict() if sent is not None else None, initial={"kind": self.row_kind, **initial})
        for field in FIELDS_BY_FORMAT[self.row_kind]:
            self.add_field(field)
        self.word_column = self.get_value("column_choice")
        self.add_words(earlier, sent)

    def add_field(self, field: FileField) -> None:
        label = FIELD_LABELS[field.name][0]
        has_texts = self.row_kind in (FileFormat.COMPARISONS, FileFormat.RESPONSES)
        generated = GENERATED_ID_CHOICES if field.name == "query_id" and has_texts else []
        columns = [(f"={column}", column) for column in self.sheet.columns]
        paths = [(f"={path}", path) for path in self.sheet.paths]
        inside = [("Inside objects", paths)] if paths else []
        self.fields[f"column_{field.name}"] = forms.ChoiceField(
            required=False, choices=[("", "–"), *generated, *columns, *inside], label=f"{label}: column"
        )
        if field.whole_file:
            name, whole_label = f"whole_{field.name}", f"{label}: fixed value"
            self.fields[name] = (
                forms.ChoiceField(required=False, choices=FIXED_CHOICES[field.name], label=whole_label)
                if field.name in FIXED_CHOICES
                else forms.CharField(required=False, max_length=200, label=whole_label)
            )

    def add_words(self, earlier: ReadOptions | None, sent: QueryDict | None) -> None:
        """A field for each word of the column of choices, if they are few."""
        self.words = (
            self.sheet.words.get(self.word_column.removeprefix("="), ()) if "column_choice" in self.fields else ()
        )
        guessed = guess_choice_meanings(self.words)
        self.asked_words = are_kept = sent is not None and sent.get("words_of") == self.word_column
        for number, word in enumerate(self.words):
            meaning = earlier.choices.get(word.lower()) if earlier else None
            first = (meaning or OMITTED) if meaning is not None else guessed.get(word) or get_default_meaning(word)
            options = [
                UNSET_CHOICE,
                *MEANING_CHOICES,
                *([OMITTED_CHOICE] if self.row_kind == FileFormat.COMPARISONS else []),
            ]
            self.fields[f"word_{number}"] = forms.ChoiceField(choices=options, label=word or "(empty)", required=False)
            self.initial[f"word_{number}"] = first
            if sent is not None and not are_kept:  # the column of choices was changed
                self.data = {**self.data, f"word_{number}": first}

    def get_value(self, name: str) -> str:
        if name not in self.fields:
            return ""
        return str((self.data.get(name) if self.is_bound else self.initial.get(name)) or "")

    @property
    def kind_field(self) -> BoundField:
        return self["kind"]

    def lines(self) -> Iterator[MappingLine]:
        for field in FIELDS_BY_FORMAT[self.row_kind]:
            whole = self[f"whole_{field.name}"] if field.whole_file else None
            yield MappingLine(field, *FIELD_LABELS[field.name], self[f"column_{field.name}"], whole)

    def word_fields(self) -> list[BoundField]:
        return [self[f"word_{number}"] for number in range(len(self.words))]

    def clean(self) -> CleanedData:
        cleaned: CleanedData = super().clean() or {}
        for fault in find_faults(self.get_column_fields(), self.sheet.sources):
            name = f"{'whole' if fault.part == 'values' else 'column'}_{fault.field}"
            if name not in self.errors:
                self.add_error(name, fault.message)
        for number, word in enumerate(self.words if self.asked_words else ()):
            if not cleaned.get(f"word_{number}") and is_number_word(word):
                self.add_error(f"word_{number}", "Choose what this number means.")
        return cleaned

    def get_column_fields(self) -> ColumnFields:
        columns, values = {}, {}
        for field in FIELDS_BY_FORMAT[self.row_kind]:
            column, whole = self.get_value(f"column_{field.name}"), self.get_value(f"whole_{field.name}").strip()
            if column.startswith("=") and column[1:] in self.sheet.sources:
                columns[field.name] = column[1:]
            if column in GENERATED_IDS or whole:
                values[field.name] = column if column in GENERATED_IDS else whole
        return ColumnFields(self.row_kind, columns, values)

    def build_read_options(self) -> ReadOptions:
        return build_reading(self.get_column_fields(), self.sheet, self.get_choices())

    def get_choices(self) -> dict[str, str]:
        chosen = {word.lower(): self.get_value(f"word_{number}") for number, word in enumerate(self.words)}
        return {
            word: "" if meaning == OMITTED else meaning
            for word, meaning in chosen.items()
            if meaning not in ("", UNCHANGED)
        }


def build_mapping_form(importing: Import, sheet: Sheet) -> ColumnMappingForm:
    """The form of a file with its earlier mapping, or else a guess."""
    names = get_names_for_all_rows(importing.request.reading)
    return ColumnMappingForm(sheet, earlier=find_earlier_reading(importing, sheet), names=names)


def get_default_meaning(word: str) -> str:
    """The word itself for a candidate's name, no choice for an empty cell, nothing for a number."""
    return "" if is_number_word(word) else UNCHANGED if word else OMITTED


def guess_initial(sheet: Sheet, kind: str) -> dict[str, str]:
    guess = guess_columns(sheet, kind)
    columns = {f"column_{field}": f"={column}" for field, column in guess.columns.items()}
    generated = {f"column_{field}": value for field, value in guess.constants.items() if field == "query_id"}
    return {**columns, **generated, **{f"whole_{field}": value for field, value in guess.constants.items()}}


def build_initial(reading: ReadOptions) -> dict[str, str]:
    initial = {f"column_{name}": f"={column}" for column, names in reading.mapping.items() for name in names.split(",")}
    for field, value in reading.constants.items():
        initial[f"column_{field}" if value in GENERATED_IDS else f"whole_{field}"] = value
    return initial

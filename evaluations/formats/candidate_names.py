"""The candidate whose response a row holds, named by an option, a column or the file name."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath, PurePosixPath
from typing import Final

from evaluations.domain.errors import ColumnsUnknown
from evaluations.domain.files import CANDIDATE_FIELD, DEFAULT_FILE_NAME, ReadOptions
from evaluations.formats.archives import DATA, NESTED, PACKED
from evaluations.formats.record_streams import Record
from evaluations.formats.values import MAX_KEY, RowRefused, optional_text

# As columns that name a model are called elsewhere, the likelier names first; letters and digits only.
MODEL_COLUMNS: Final = "candidate model modelname modelid system systemname generator engine assistant"
ENDINGS: Final = (*DATA, *PACKED, *NESTED, ".txt")
# Names of parts of a large file, which do not name a model.
PIECE: Final = re.compile(r"(data|part|shard|chunk|train|test|validation|dev)?[-_.]?\d*([-_]of[-_]\d+)?", re.I)
NUMBER: Final = re.compile(r"[-_.]\d+[-_]of[-_]\d+$")
# Words around the model name in names of files: outputs-falcon-7b.jsonl.
FILE_WORDS: Final = (
    r"(?:model[-_. ]?)?(?:outputs?|responses?|answers?|completions?|generations?|predictions?|preds?|results?|samples?)"
)
AROUND_NAME: Final = re.compile(rf"^{FILE_WORDS}(?:[-_. ]+(?:of|from|for))?[-_. ]+|[-_. ]+{FILE_WORDS}$", re.I)
NO_NAME: Final = "the file name does not name the model. Add a column `candidate`, or set one model for the whole file"


def use_constant_candidate(options: ReadOptions) -> ReadOptions:
    """The options with a constant of the field `candidate` as the model name of the whole file."""
    others = {field: value for field, value in options.constants.items() if field != CANDIDATE_FIELD}
    return replace(
        options, candidate=options.constants.get(CANDIDATE_FIELD, options.candidate).strip(), constants=others
    )


def candidate_of_record(record: Record, options: ReadOptions, column: str = CANDIDATE_FIELD) -> tuple[str, str]:
    """The model's name, and the one in the column that is not used. Raises RowRefused."""
    values = record.values
    name = optional_text(values, column, MAX_KEY).strip()
    if options.candidate:
        return options.candidate, name if name not in ("", options.candidate) else ""
    if name:
        return name, ""
    if column in values or not options.file_name:
        raise RowRefused(f"`{column}` is missing. Add the column, or set one model for the whole file")
    return record.part or model_of_file(options.file_name), ""


def model_of_file(name: str) -> str:
    """The model name in a file name: gpt-3.5 for outputs-gpt-3.5.csv.gz. Raises RowRefused."""
    stem = path_stem(name)
    stem = AROUND_NAME.sub("", stem) or stem
    if PIECE.fullmatch(stem) or len(stem) > MAX_KEY or name == DEFAULT_FILE_NAME:
        raise RowRefused(NO_NAME)
    return stem


def strip_endings(name: str) -> str:
    while ending := next((ending for ending in ENDINGS if name.lower().endswith(ending)), ""):
        name = name[: -len(ending)]
    return name.strip()


def models_of_entries(entries: Sequence[str]) -> list[str]:
    """The model name of each file of an archive; "" for files whose name is that of a part."""
    stems = Counter(path_stem(entry) for entry in entries)
    return [model_of_entry(entry, is_alone=stems[path_stem(entry)] == 1)[-MAX_KEY:] for entry in entries]


def model_of_entry(entry: str, *, is_alone: bool) -> str:
    """The model named by a file of an archive: its name, with folders where needed to be unique."""
    stem = path_stem(entry)
    if not PIECE.fullmatch(stem):
        return NUMBER.sub("", stem) if is_alone else strip_endings(entry)
    folders = [folder for folder in PurePosixPath(entry).parent.parts if not PIECE.fullmatch(folder)]
    return folders[-1] if folders else ""


def path_stem(path: str) -> str:
    return strip_endings(PurePath(path).name)


def refuse_unclear_model(columns: Sequence[str], column: str, name: str) -> None:
    """Refuse to take the model from the file name where another column seems to name it."""
    likely = [other for other in columns if other != column and plain_column_name(other) in MODEL_COLUMNS.split()]
    if likely:
        raise ColumnsUnknown(
            f"{name} has no column `{column}`, but `{likely[0]}` may name the models. Map it "
            f"({likely[0]}=candidate), or set one model for the whole file."
        )


def plain_column_name(name: str) -> str:
    return re.sub(r"[\W_]", "", name.lower())

"""A data set folder with a card, for the Hugging Face hub and ``datasets.load_dataset``."""

from collections.abc import Iterable, Iterator
from typing import Final, cast

from evaluations.domain import FOLDER
from evaluations.formats.exported import LabelledRow, Raters
from evaluations.formats.leaving import Leaving, Options, Rows, Tally
from evaluations.formats.preferred import LEFT_OUT_IN_WORDS


def written(rows: Rows, raters: Raters, options: Options, tally: Tally) -> Iterator[bytes]:
    from evaluations.formats import hugging_face_folder  # noqa: PLC0415 - pyarrow, for whoever writes Parquet

    return hugging_face_folder.lines(
        cast("Iterable[LabelledRow]", rows),
        raters.aspects,
        options.deciding(raters),
        tally,
        options.facts,
        options.manifest,
    )


FORMAT: Final = Leaving(
    name=FOLDER,
    title="Hugging Face data set",
    purpose="a folder with a card and Parquet files, as ZIP, to publish or to load",
    ending="zip",
    content_type="application/zip",
    write=written,
    wants_choice=True,
    reasons=LEFT_OUT_IN_WORDS,
)

"""Two texts word by word: what stands in only one of them is marked, by colour, by line and in words."""

from collections.abc import Iterator, Sequence, Sized
from html import escape
from itertools import accumulate, pairwise
from typing import Final

from evaluations.domain import InputRefused
from evaluations.rendering.aligning import Run, aligned
from evaluations.rendering.markdown import without_surrogates
from evaluations.rendering.wording import PIECE

# Words of one text times words of the other that are compared one by one: below a second. Above
# it only lines that are not the same in both are, and where these are too many, nothing is.
MOST_COMPARED: Final = 2_500_000_000
TOO_LONG: Final = "These texts are too long and too different to be compared word by word: read them side by side."
ELEMENTS: Final = ("del", "ins")
SPOKEN: Final = ("only in A: ", "only in B: ")

Line = tuple[str, ...]


def word_diff(a: str, b: str) -> tuple[str, str]:
    """Both texts as safe HTML, as they were written, in which the words that only one side has are marked.

    To be shown where white space is kept: ``<div class="written" dir="auto">``. White space alone
    makes no difference. Raises InputRefused where the texts are too long.
    """
    texts = (without_surrogates(a), without_surrogates(b))
    places = [[piece.span() for piece in PIECE.finditer(text)] for text in texts]
    words = [[text[start:end] for start, end in spans] for text, spans in zip(texts, places, strict=True)]
    runs = without_coincidences(common(texts, words), *words)
    return (
        marked(texts[0], places[0], [(run.a, run.length) for run in runs], side=0),
        marked(texts[1], places[1], [(run.b, run.length) for run in runs], side=1),
    )


def common(texts: tuple[str, str], words: Sequence[Sequence[str]]) -> list[Run]:
    if len(words[0]) * len(words[1]) <= MOST_COMPARED:
        return aligned(*words)
    lines = [[tuple(PIECE.findall(line)) for line in text.split("\n")] for text in texts]
    return list(aligned_by_lines(*lines))


def aligned_by_lines(a: Sequence[Line], b: Sequence[Line]) -> Iterator[Run]:
    """Equal lines first, then words between them."""
    places_a, places_b = starts(a), starts(b)
    compared = 0
    for before, run in pairwise([Run(0, 0, 0), *aligned(a, b), Run(len(a), len(b), 0)]):
        here, there = before.a + before.length, before.b + before.length
        words_a = [word for line in a[here : run.a] for word in line]
        words_b = [word for line in b[there : run.b] for word in line]
        compared += len(words_a) * len(words_b)
        if compared > MOST_COMPARED:
            raise InputRefused(TOO_LONG)
        for inner in aligned(words_a, words_b):
            yield Run(places_a[here] + inner.a, places_b[there] + inner.b, inner.length)
        yield Run(places_a[run.a], places_b[run.b], places_a[run.a + run.length] - places_a[run.a])


def starts(parts: Sequence[Sized]) -> list[int]:
    """Where each part begins when they stand in a row, and where the last one ends."""
    return [0, *accumulate(map(len, parts))]


def without_coincidences(runs: Sequence[Run], a: Sequence[str], b: Sequence[str]) -> list[Run]:
    """Two texts on one matter share an “of” here and a comma there by chance, and marks between them are confetti.

    What is the same between two changes is taken for changed too where it is no longer, in
    characters, than each of them: the rule by which diff-match-patch tidies up for readers.
    """
    ends_a, ends_b = starts(a), starts(b)

    def changed(before: Run, after: Run) -> int:
        only_a = ends_a[after.a] - ends_a[before.a + before.length]
        only_b = ends_b[after.b] - ends_b[before.b + before.length]
        return max(only_a, only_b)

    kept = [Run(0, 0, 0)]
    for run in [*runs, Run(len(a), len(b), 0)]:
        while len(kept) > 1:
            last = kept[-1]
            same = ends_a[last.a + last.length] - ends_a[last.a]
            if same > changed(kept[-2], last) or same > changed(last, run):
                break
            kept.pop()
        kept.append(run)
    return kept[1:-1]


def marked(text: str, places: Sequence[tuple[int, int]], same: Sequence[tuple[int, int]], *, side: int) -> str:
    """The text with a mark round each stretch between two runs of words that are the same."""
    parts, shown = [], 0
    for (before, count), (run, _) in pairwise([(0, 0), *same, (len(places), 0)]):
        if before + count < run:
            start, end = places[before + count][0], places[run - 1][1]
            parts += [escape(text[shown:start]), mark(text[start:end], side)]
            shown = end
    return "".join([*parts, escape(text[shown:])])


def mark(text: str, side: int) -> str:
    spoken = f'<span class="visually-hidden" dir="ltr">{SPOKEN[side]}</span>'
    return f'<{ELEMENTS[side]} class="only">{spoken}{escape(text)}</{ELEMENTS[side]}>'

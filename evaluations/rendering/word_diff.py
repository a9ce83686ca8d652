"""A word-by-word diff of two texts, as safe HTML.

The common subsequence is exact. One row of the usual table is one long integer, in which a cleared bit is a step up
(Hyyrö 2004, "Bit-parallel LCS-length computation revisited"): words × words / 64 steps of the processor. A table too
large to keep is halved first (Hirschberg 1975).
"""

from collections import deque
from collections.abc import Hashable, Iterator, Sequence, Sized
from html import escape
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

from evaluations.domain.errors import InputRefused
from evaluations.rendering.markdown import replace_surrogates
from evaluations.rendering.text_length import PIECE

# The rows of a table are kept for tracing back, up to so many bits: 8 MB.
MAX_TABLE_BITS: Final = 1 << 26
# The bits of words with fewer positions are not cached: for all words they would take hundreds of MB.
MIN_CACHED_POSITIONS: Final = 8
WordSequence = Sequence[Hashable]


class MatchingRun(NamedTuple):
    """A run of words that are the same in both texts from these positions on."""

    a: int
    b: int
    length: int


def align_words(a: WordSequence, b: WordSequence) -> list[MatchingRun]:
    """The runs of words common to both texts, in order, with as many words as possible."""
    runs: list[MatchingRun] = []
    for position_a, position_b in matching_pairs(a, b):
        if runs and runs[-1].a + runs[-1].length == position_a and runs[-1].b + runs[-1].length == position_b:
            runs[-1] = runs[-1]._replace(length=runs[-1].length + 1)
        else:
            runs.append(MatchingRun(position_a, position_b, 1))
    return runs


def matching_pairs(a: WordSequence, b: WordSequence) -> Iterator[tuple[int, int]]:
    """Pairs of positions of the common words; equal beginnings and ends are matched first."""
    shorter = min(len(a), len(b))
    start = next((index for index in range(shorter) if a[index] != b[index]), shorter)
    left = shorter - start
    end = next((index for index in range(left) if a[-1 - index] != b[-1 - index]), left)
    yield from ((index, index) for index in range(start))
    for position_a, position_b in align_between(a[start : len(a) - end], b[start : len(b) - end]):
        yield start + position_a, start + position_b
    yield from ((len(a) - index, len(b) - index) for index in range(end, 0, -1))


def align_between(a: WordSequence, b: WordSequence) -> Iterator[tuple[int, int]]:
    if not a or not b:
        return
    if len(a) == 1 or len(a) * len(b) <= MAX_TABLE_BITS:
        yield from trace_back(a, b)
        return
    half = len(a) // 2
    split = find_best_split(a[:half], a[half:], b)
    yield from matching_pairs(a[:half], b[:split])
    yield from (
        (half + position_a, split + position_b) for position_a, position_b in matching_pairs(a[half:], b[split:])
    )


def find_best_split(first: WordSequence, second: WordSequence, b: WordSequence) -> int:
    """The position at which to split ``b`` so that its parts share most words with ``first`` and ``second``."""
    before = prefix_lcs_lengths(first, b)
    after = prefix_lcs_lengths(second[::-1], b[::-1])
    return max(range(len(b) + 1), key=lambda cut: before[cut] + after[len(b) - cut])


def prefix_lcs_lengths(a: WordSequence, b: WordSequence) -> list[int]:
    """The length of the longest common subsequence of ``a`` and each prefix of ``b``, the empty one first."""
    (last,) = deque(bit_rows(a, b), maxlen=1)
    bits = bin(last | 1 << len(b))[:2:-1]
    return list(accumulate((bit == "0" for bit in bits), initial=0))


def bit_rows(a: WordSequence, b: WordSequence) -> Iterator[int]:
    """The rows of the table, one for each word of ``a``, in bits from the first word of ``b`` on."""
    positions = word_positions(a, b)
    cached_bits = {
        word: bits_at_positions(positions_of_word)
        for word, positions_of_word in positions.items()
        if len(positions_of_word) >= MIN_CACHED_POSITIONS
    }
    full = row = (1 << len(b)) - 1
    for word in a:
        if word in positions:
            common = row & (cached_bits.get(word) or bits_at_positions(positions[word]))
            row = (row + common | row - common) & full
        yield row


def word_positions(a: WordSequence, b: WordSequence) -> dict[Hashable, list[int]]:
    """The positions in ``b`` of each word that both texts have."""
    positions: dict[Hashable, list[int]] = {word: [] for word in a}
    for position, word in enumerate(b):
        if word in positions:
            positions[word].append(position)
    return {word: found_positions for word, found_positions in positions.items() if found_positions}


def bits_at_positions(positions: Sequence[int]) -> int:
    bits = bytearray(positions[-1] // 8 + 1)
    for position in positions:
        bits[position >> 3] |= 1 << (position & 7)
    return int.from_bytes(bits, "little")


def trace_back(a: WordSequence, b: WordSequence) -> Iterator[tuple[int, int]]:
    """The common words, found from the last cell of the table to its first."""
    table = [(1 << len(b)) - 1, *bit_rows(a, b)]
    position_a, position_b = len(a), len(b)
    pairs: list[tuple[int, int]] = []
    while position_a and position_b:
        if table[position_a] >> (position_b - 1) & 1:
            position_b -= 1
        elif table[position_a - 1] >> (position_b - 1) & 1:
            position_a, position_b = position_a - 1, position_b - 1
            pairs.append((position_a, position_b))
        else:
            position_a -= 1
    return reversed(pairs)


# Up to this product of word counts words are compared directly, in less than a second. Above, only lines that differ
# are compared, and where these are too many, the comparison is refused.
MAX_COMPARED: Final = 2_500_000_000
MAX_LINES_COMPARED: Final = 1_000_000_000
TOO_LONG: Final = "These texts are too long and too different to be compared word by word: read them side by side."
ELEMENTS: Final = ("del", "ins")
SIDE_LABELS: Final = ("only in A: ", "only in B: ")
Line = tuple[str, ...]


def diff_words(a: str, b: str) -> tuple[str, str]:
    """Both texts as safe HTML, as they were written, in which the words that only one side has are marked.

    To be shown where white space is kept: ``<div class="plain-text" dir="auto">``. White space alone
    makes no difference. Raises InputRefused where the texts are too long.
    """
    texts = (replace_surrogates(a), replace_surrogates(b))
    spans = [[piece.span() for piece in PIECE.finditer(text)] for text in texts]
    words = [[text[start:end] for start, end in text_spans] for text, text_spans in zip(texts, spans, strict=True)]
    runs = drop_coincidental_matches(common_runs(texts, words), *words)
    return (
        mark_differences(texts[0], spans[0], [(run.a, run.length) for run in runs], side=0),
        mark_differences(texts[1], spans[1], [(run.b, run.length) for run in runs], side=1),
    )


def diff_turns(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """`diff_words` of each pair of turns. Raises InputRefused where all of them together are too long."""
    if len(pairs) > 1 and sum(count_pieces(a) * count_pieces(b) for a, b in pairs) > MAX_COMPARED:
        raise InputRefused(TOO_LONG)
    return [diff_words(a, b) for a, b in pairs]


def count_pieces(text: str) -> int:
    return sum(1 for _ in PIECE.finditer(text))


def common_runs(texts: tuple[str, str], words: Sequence[Sequence[str]]) -> list[MatchingRun]:
    if len(words[0]) * len(words[1]) <= MAX_COMPARED:
        return align_words(*words)
    lines = [[tuple(PIECE.findall(line)) for line in text.split("\n")] for text in texts]
    return list(align_by_lines(*lines))


def align_by_lines(a: Sequence[Line], b: Sequence[Line]) -> Iterator[MatchingRun]:
    """Equal lines first, then words between them."""
    starts_a, starts_b = part_starts(a), part_starts(b)
    compared = 0
    if len(a) * len(b) > MAX_LINES_COMPARED:
        raise InputRefused(TOO_LONG)
    for before, run in pairwise([MatchingRun(0, 0, 0), *align_words(a, b), MatchingRun(len(a), len(b), 0)]):
        line_a, line_b = before.a + before.length, before.b + before.length
        words_a = [word for line in a[line_a : run.a] for word in line]
        words_b = [word for line in b[line_b : run.b] for word in line]
        compared += len(words_a) * len(words_b)
        if compared > MAX_COMPARED:
            raise InputRefused(TOO_LONG)
        for inner in align_words(words_a, words_b):
            yield MatchingRun(starts_a[line_a] + inner.a, starts_b[line_b] + inner.b, inner.length)
        yield MatchingRun(starts_a[run.a], starts_b[run.b], starts_a[run.a + run.length] - starts_a[run.a])


def part_starts(parts: Sequence[Sized]) -> list[int]:
    """The start of each part when the parts are joined, and the end of the last one."""
    return [0, *accumulate(map(len, parts))]


def drop_coincidental_matches(runs: Sequence[MatchingRun], a: Sequence[str], b: Sequence[str]) -> list[MatchingRun]:
    """The runs without short ones between two changes, which two texts share by chance, such as “of” or a comma.

    A run is dropped where it has no more characters than each of its neighboring changes, as diff-match-patch does.
    """
    ends_a, ends_b = part_starts(a), part_starts(b)

    def changed(before: MatchingRun, after: MatchingRun) -> int:
        only_a = ends_a[after.a] - ends_a[before.a + before.length]
        only_b = ends_b[after.b] - ends_b[before.b + before.length]
        return max(only_a, only_b)

    remaining = [MatchingRun(0, 0, 0)]
    for run in [*runs, MatchingRun(len(a), len(b), 0)]:
        while len(remaining) > 1:
            last = remaining[-1]
            same = ends_a[last.a + last.length] - ends_a[last.a]
            if same > changed(remaining[-2], last) or same > changed(last, run):
                break
            remaining.pop()
        remaining.append(run)
    return remaining[1:-1]


def mark_differences(text: str, spans: Sequence[tuple[int, int]], same: Sequence[tuple[int, int]], *, side: int) -> str:
    """The text with a mark around each stretch that the other text does not have."""
    label = f'<span class="visually-hidden" dir="ltr">{SIDE_LABELS[side]}</span>'
    parts, end_of_output = [], 0
    for (before, count), (run, _) in pairwise([(0, 0), *same, (len(spans), 0)]):
        if before + count < run:
            start, end = spans[before + count][0], spans[run - 1][1]
            marked = f'<{ELEMENTS[side]} class="only">{label}{escape(text[start:end])}</{ELEMENTS[side]}>'
            parts += [escape(text[end_of_output:start]), marked]
            end_of_output = end
    return "".join([*parts, escape(text[end_of_output:])])

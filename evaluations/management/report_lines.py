"""The numbers of a report as lines of text."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise, zip_longest
from typing import Final

from evaluations.stats.agreement import AgreementBlock
from evaluations.stats.aspect_report import AspectReport
from evaluations.stats.corrected_means import CorrectedMean
from evaluations.stats.decisions.results import Decision
from evaluations.stats.estimates import Estimate
from evaluations.stats.full_report import Report
from evaluations.stats.judge_report import JudgeReport
from evaluations.stats.judge_sentences import format_points
from evaluations.stats.reviewer_screening import ReviewerScreening
from evaluations.stats.score_ceiling import ScoreCeiling
from evaluations.stats.score_report import ScoreAltTests, ScoreReport

HEADS = ("", "agree", "n", "agreement", "kappa", "AC1", "without ties", "n", "failed", "missing")
GAP = "  "
BRACKETED_COUNTS = (
    "In brackets: pointwise 95% CIs. The sentences claim what simultaneous CIs over all aspects and judges show."
)
MOST_DIFFERENCES: Final = 10  # of candidates that lines show
CONTROL_CHARACTERS: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
JOINED_EMOJI: Final = re.compile("\u200d[^\\w\\s]\ufe0f?")  # what a joiner makes one emoji with the character before it
EMOJI_STYLE: Final = "\ufe0f"  # makes the character before it an emoji, which is wide
SKIN_TONES: Final = re.compile("[\U0001f3fb-\U0001f3ff]")


def report_lines(report: Report) -> Iterator[str]:
    yield f"{report.evaluation}: {format_comparison_count(report.comparisons)}"
    yield from decision_lines(report)
    yield from (judge.sentence for judge in report.judges.values() if judge.sentence)
    yield from report.unanswered.values()
    if report.aspects or report.scores:
        yield BRACKETED_COUNTS
    for aspect in report.aspects.values():
        yield from ("", aspect.name, *aspect_lines(aspect))
    for key, scores in report.scores.items():
        yield from ("", f"{report.names[key]}, scores of single responses", *score_lines(scores))
    if not report.aspects and not report.scores:
        yield "No verdicts yet. Import some, run a judge, or review."
    yield ""
    yield from report.rules.values()


DECISION_HEADS: Final = ("", "judge", "reviewers", "constant", "n", "result")


def decision_lines(report: Report) -> Iterator[str]:
    """The card of each judge: the decision, a sentence, and a line for each aspect."""
    decisions = [*report.decisions.values(), *report.score_decisions.values()]
    for decision in decisions:
        called = f"{decision.judge} ({decision.label})" if decision.label else decision.judge
        yield from ("", f"{called}: {decision.headline}", decision.sentence)
        if decision.provisional:
            yield decision.provisional
        if everyone := report.decisions_with_excluded.get(decision.judge):
            yield f"With excluded reviewers: {everyone.headline}"
        rows: list[Sequence[str]] = [DECISION_HEADS]
        for aspect in decision.aspects.values():
            levels = (aspect.levels.judge, aspect.levels.reviewers, aspect.levels.constant)
            rows.append((aspect.name, *map(format_percent, levels), str(aspect.n), aspect.outcome.value))
        yield from align_columns(rows)
        yield from gauge_lines(decision)
    yield from screening_lines(report.screening)
    if decisions:
        yield ""


def screening_lines(screening: ReviewerScreening | None) -> Iterator[str]:
    if screening and (screening.flags or screening.note):
        yield from ("", "Screening of reviewers", *(flag.sentence for flag in screening.flags))
        yield from [screening.note] if screening.note else []


def gauge_lines(decision: Decision) -> Iterator[str]:
    gauges = decision.gauges
    shares = (("failed", gauges.failures), ("flips with order", gauges.inconsistency), ("first shown", gauges.position))
    differences = (("longer response", gauges.length), ("own family", gauges.own_family))
    parts = [f"{name} {format_percent(gauge.number)}" for name, gauge in shares if gauge.number.value is not None]
    parts += [
        f"{name} {format_points(gauge.number.value)} points vs. reviewers"
        for name, gauge in differences
        if gauge.number.value is not None
    ]
    if parts:
        yield ", ".join(parts)


def score_lines(scores: ScoreReport) -> Iterator[str]:
    lines = (
        mean_score_lines(scores),
        pass_rate_lines(scores),
        difference_lines(scores),
        reviewer_score_lines(scores),
        judge_score_lines(scores),
    )
    shown: list[Estimate] = []
    for line, numbers in chain(*lines):
        shown += numbers
        yield line
    yield from list_missing_reasons(shown)


# A line, and the numbers in it.
Line = tuple[str, list[Estimate]]


def mean_score_lines(scores: ScoreReport) -> Iterator[Line]:
    for name, candidate in scores.candidates.items():
        numbers = [candidate.people] if candidate.people.n else []
        parts = [format_with_count("reviewers", number) for number in numbers]
        for judge, mean in candidate.judges.items():
            if mean.n:
                corrected = candidate.corrected[judge]
                parts.append(f"{format_with_count(judge, mean)}, {format_corrected(corrected)}")
                numbers += [mean, corrected.corrected]
        yield f"{name}, mean score: {'; '.join(parts)}", numbers


def format_with_count(who: str, number: Estimate) -> str:
    return f"{who} {format_number(number)} (n {number.n:,})"


def format_corrected(mean: CorrectedMean) -> str:
    weight = f" (λ {mean.judge_weight:.2f})" if mean.judge_weight is not None else ""
    return f"corrected {format_number(mean.corrected)}{weight}"


def pass_rate_lines(scores: ScoreReport) -> Iterator[Line]:
    rates = scores.pass_rates
    if rates is None:
        return
    for name, candidate in rates.candidates.items():
        numbers = [candidate.people] if candidate.people.n else []
        parts = [format_with_count("reviewers", number) for number in numbers]
        for judge, rate in candidate.judges.items():
            if rate.judge.n:
                corrected = format_corrected(rate.corrected)
                rogan_gladen = f"Rogan–Gladen {format_number(rate.rogan_gladen)}"
                parts.append(f"{format_with_count(judge, rate.judge)}, {corrected}, {rogan_gladen}")
                numbers += [rate.judge, rate.corrected.corrected, rate.rogan_gladen]
        yield f"{name}, pass rate: {'; '.join(parts)}", numbers
    if rates.split:
        yield f"excluded: {rates.split:,} responses on which reviewers are evenly split", []
    for judge, classes in rates.judges.items():
        positive, negative = classes.true_positive_rate, classes.true_negative_rate
        if classes.accuracy.n:
            shares = (
                f"TPR {format_number(positive)} (n {positive.n:,}), TNR {format_number(negative)} (n {negative.n:,})"
            )
            yield f"{judge}, reviewers: {shares}", [positive, negative]


def difference_lines(scores: ScoreReport) -> Iterator[Line]:
    """The first differences; JSON has them all."""
    kinds = [
        ("mean score", scores.differences),
        ("pass rate", scores.pass_rates.differences if scores.pass_rates else ()),
    ]
    for what, differences in kinds:
        for one in differences[:MOST_DIFFERENCES]:
            numbers = {"reviewers": one.people} if one.people.value is not None else {}
            for judge, difference in one.judges.items():
                numbers |= {judge: difference.judge, "corrected": difference.corrected}
            parts = (f"{who} {format_number(number)}" for who, number in numbers.items())
            yield f"{one.first} − {one.second}, {what}: {', '.join(parts)}", list(numbers.values())


def reviewer_score_lines(scores: ScoreReport) -> Iterator[Line]:
    multi = scores.human_human.multi
    if multi.units:
        shown = [multi.krippendorff_alpha_interval, multi.krippendorff_alpha_ordinal, multi.icc_agreement]
        alpha, ordinal, icc = map(format_number, shown)
        units = f"{multi.units:,} response{'s' * (multi.units != 1)}, ICC over {multi.complete:,}"
        yield f"reviewers together: alpha {alpha}, ordinal {ordinal}, ICC {icc}, {units}", shown
    others = scores.human_human.others
    if others.n:
        shown = [others.pearson, others.spearman, others.icc_agreement]
        pearson, spearman, icc = map(format_number, shown)
        together = f"Pearson {pearson}, Spearman {spearman}, ICC {icc}, n {others.n:,}"
        yield f"each reviewer, mean of the others: {together}", shown


def judge_score_lines(scores: ScoreReport) -> Iterator[Line]:
    for name, judge in scores.judges.items():
        found = judge.people
        if not found.n:
            continue
        shown = [found.pearson, found.spearman, found.icc_agreement, found.mean_difference]
        pearson, spearman, icc, apart = map(format_number, shown)
        numbers = f"Pearson {pearson}, Spearman {spearman}, ICC {icc}, mean difference {apart}, n {found.n:,}"
        yield f"{name}, mean of reviewers: {numbers}", shown
        yield from ceiling_lines(name, judge.ceiling)
        yield from alt_test_lines(name, judge.alt_tests)
        large = judge.large_differences
        share = f"{format_percent(large.share)}, n {large.share.n:,}"
        yield f"{name}, difference from reviewers of {large.threshold:g} or more: {share}", [large.share]


def ceiling_lines(name: str, ceiling: ScoreCeiling) -> Iterator[Line]:
    distance = ceiling.mean_absolute_difference
    if ceiling.n:
        judge, people, lead = map(format_number, (distance.judge, distance.people, distance.difference))
        numbers = [distance.judge, distance.people, distance.difference]
        sides = f"judge {judge}, left-out reviewer {people}, difference {lead}, n {ceiling.n:,}"
        yield f"{name}, ceiling, mean absolute difference: {sides}", numbers


def alt_test_lines(name: str, tests: ScoreAltTests) -> Iterator[Line]:
    for measure, test in (("−|difference|", tests.absolute_difference), ("−RMSE", tests.root_mean_square_difference)):
        if test.why is None:
            chosen = test.by_skill[test.default]
            result = "passes" if chosen.by_item.passes else "does not pass"
            omega = f"ω {format_number(chosen.by_item.omega)} at ε {chosen.epsilon:g}"
            yield f"{name}, alt-test by {measure}: {result}, {omega}, ρ {format_number(test.rho)}", [test.rho]
        elif measure == "−RMSE":
            yield f"{name}, alt-test: {test.why}", []


def aspect_lines(aspect: AspectReport) -> Iterator[str]:
    rows: list[Sequence[str]] = [HEADS]
    remarks: list[str] = []
    for name, judge in aspect.answering.items():
        called = f"{name} ({judge.label})" if judge.label else name
        held = judge.judge_human.majority
        rows.append(
            (f"{called}, people", *format_row_cells(held), str(judge.failed.calls), str(judge.failed.incomplete))
        )
        if judge.judge_gold.with_ties.n:
            rows.append((f"{called}, gold", *format_row_cells(judge.judge_gold)))
        remarks += judge_remarks(called, judge)
        if judge.repaired:
            remarks.append(f"{called}: {judge.repaired:,} of its replies could be parsed only after a retry")
    rows.append(("reviewers, majority of the others", *format_row_cells(aspect.human_human.majority)))
    yield from align_columns(rows)
    yield from remarks
    multi = aspect.human_human.multi
    several = f"alpha {format_number(multi.krippendorff_alpha)}, Fleiss {format_number(multi.fleiss_kappa)}"
    yield f"reviewers together: {several}, AC1 {format_number(multi.gwet_ac1)}, {format_comparison_count(multi.units)}"
    yield from vote_remarks(aspect)
    yield from list_missing_reasons(list_numbers(aspect))
    yield f"rubric: {'; '.join(aspect.rubric_versions)}"
    yield from aspect.warnings


def judge_remarks(called: str, judge: JudgeReport) -> Iterator[str]:
    """Remarks that a reader needs next to the row of a judge."""
    covered, both = judge.coverage, judge.inconsistent
    if covered.judged < covered.comparisons:
        yield f"{called}: a verdict on {covered.judged:,} of {covered.comparisons:,} comparisons"
    if both.agree:
        yield f"{called}: inconsistent on {both.agree:,} of {both.n:,} comparisons judged in both orders"
    if judge.failed.elsewhere:
        yield f"{called}: {judge.failed.elsewhere:,} calls failed on aspects without a verdict"
    macro = judge.confusion.macro
    if macro.f1.value is not None:
        numbers = (("precision", macro.precision), ("recall", macro.recall), ("F1", macro.f1))
        yield f"{called}, reviewers: macro {', '.join(f'{name} {format_number(number)}' for name, number in numbers)}"


def vote_remarks(aspect: AspectReport) -> Iterator[str]:
    """Remarks on excluded votes and on the effect of seeing the judge."""
    votes = aspect.human_votes
    if votes.saw_judge_first:
        yield f"excluded: {votes.saw_judge_first:,} votes of reviewers who saw the judge first"
    if votes.not_drawn or votes.calibration:
        yield f"excluded: {votes.not_drawn:,} votes not drawn at random, {votes.calibration:,} calibration votes"
    for judge, anchoring in aspect.anchoring.items():
        if anchoring.difference.n:
            blind, shown = anchoring.blind, anchoring.shown
            yield (
                f"votes that agree with {judge}: {format_percent(blind)} of {blind.n:,} drawn blind, "
                f"{format_percent(shown)} of {shown.n:,} drawn to see it first"
            )
    for judge, later in aspect.after_reveal.items():
        if later.changed.n:
            share = f"{format_percent(later.changed)} of {later.changed.n:,}"
            yield f"changed after {judge} was revealed: {share}, {later.to_judge:,} to its choice"


def format_comparison_count(number: int) -> str:
    return f"{number:,} comparison{'s' * (number != 1)}"


def format_row_cells(block: AgreementBlock) -> tuple[str, ...]:
    ties, sides = block.with_ties, block.without_ties
    kappa, ac1 = format_number(ties.cohen_kappa), format_number(ties.gwet_ac1)
    return (
        str(ties.agree),
        str(ties.n),
        format_percent(ties.agreement),
        kappa,
        ac1,
        format_percent(sides.agreement),
        str(sides.n),
    )


def align_columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table whose columns are as wide as their widest cell, the first to the left and numbers to the right."""
    names = [flatten_text(first) for first, *_ in rows]
    first_width = max(map(display_width, names))
    widths = [max(map(len, column)) for column in zip_longest(*(cells for _, *cells in rows), fillvalue="")]
    for name, (_, *cells) in zip(names, rows, strict=True):
        cells_of_row = [text.rjust(width) for text, width in zip(cells, widths, strict=False)]
        yield GAP.join((name + " " * (first_width - display_width(name)), *cells_of_row))


def flatten_text(text: str) -> str:
    """Escape characters that would break the line, move the cursor or change the writing direction."""
    return CONTROL_CHARACTERS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def display_width(text: str) -> int:
    """How many columns of a terminal it takes: two for most East Asian characters and emoji, none for marks."""
    width = 0
    for before, character in pairwise(" " + JOINED_EMOJI.sub("", text)):
        if character == EMOJI_STYLE:
            width += not is_wide_character(before)
        elif not is_combining_mark(character):
            width += 1 + is_wide_character(character)
    return width


def is_wide_character(character: str) -> bool:
    return unicodedata.east_asian_width(character) in ("W", "F")


def is_combining_mark(character: str) -> bool:
    """Whether the character is drawn with the one before it."""
    return unicodedata.category(character) in ("Mn", "Me", "Cf") or SKIN_TONES.match(character) is not None


def format_number(number: Estimate) -> str:
    if number.value is None:
        return "n/a"
    return f"{number.value:.3f}{f' [{number.ci95[0]:.2f}, {number.ci95[1]:.2f}]' if number.ci95 else ''}"


def format_percent(number: Estimate) -> str:
    if number.value is None:
        return "n/a"
    return f"{number.value:.1%}{f' [{number.ci95[0]:.0%}–{number.ci95[1]:.0%}]' if number.ci95 else ''}"


def list_numbers(aspect: AspectReport) -> Iterator[Estimate]:
    """The numbers that the lines of a table show."""
    judges = aspect.answering.values()
    golden = [judge.judge_gold for judge in judges if judge.judge_gold.with_ties.n]
    for block in (*(judge.judge_human.majority for judge in judges), *golden, aspect.human_human.majority):
        ties = block.with_ties
        yield from (ties.agreement, ties.cohen_kappa, ties.gwet_ac1, block.without_ties.agreement)
    multi = aspect.human_human.multi
    yield from (multi.krippendorff_alpha, multi.fleiss_kappa, multi.gwet_ac1)


def list_missing_reasons(numbers: Iterable[Estimate]) -> list[str]:
    """Why numbers or their intervals are missing, each reason once."""
    shown = list(numbers)
    missing = [f"n/a: {number.why}" for number in shown if number.why]
    bare = [f"no CI: {number.ci95_why}" for number in shown if number.value is not None and number.ci95_why]
    return list(dict.fromkeys([*missing, *bare]))

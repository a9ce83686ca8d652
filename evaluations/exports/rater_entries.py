"""The entries of an exported row: what each judge or person said of a comparison."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from evaluations.domain.choices import CompleteSideScores, ShownOrder, Stage
from evaluations.domain.groups import group_values
from evaluations.domain.judges import FAILURE_STATES
from evaluations.domain.reviews import ReviewState, SelectionMethod
from evaluations.domain.roles import RaterKind
from evaluations.exports.chunk_reader import (
    CallRecord,
    ComparisonRow,
    JudgeScores,
    ReviewRecord,
    VerdictRecord,
    VerdictTexts,
)
from evaluations.exports.participants import Participants
from evaluations.formats.exported_rows import (
    ExportedJudge,
    ExportedJudgeChoice,
    ExportedPerson,
    ExportedPersonChoice,
    ExportedScores,
    ExportedSpan,
)
from evaluations.models.judges import Rater
from evaluations.models.verdicts import Span
from evaluations.verdicts.judge_choices import JudgeAnswers, SamplePositions, fill_positions, fold_all_choices
from evaluations.verdicts.score_choices import ImportedPreference, ReviewScores

FAILED_STATES: Final = frozenset(state.value for state in FAILURE_STATES)


def build_judge_entries(
    answers: Mapping[int, JudgeAnswers],
    calls: Mapping[int, list[CallRecord]],
    places: SamplePositions,
    participants: Participants,
) -> dict[int, ExportedJudge]:
    """Every judge by rater id, including those with only failures or unfinished orders."""
    return {pk: build_judge_entry(pk, own, calls.get(pk, ()), places[pk], participants) for pk, own in answers.items()}


def build_judge_entry(
    pk: int, answers: JudgeAnswers, calls: Sequence[CallRecord], places: Mapping[int, int], participants: Participants
) -> ExportedJudge:
    rationales: dict[str, list[str]] = {}
    failures: dict[str, int] = {}
    for _, _, shown, state, rationale, sample in calls:
        if rationale:
            texts = rationales.setdefault(shown, [])
            texts += [""] * (places[sample] - len(texts))  # inline: every call goes through this loop
            texts.append(rationale)
        if state in FAILED_STATES:
            failures[state] = failures.get(state, 0) + 1
    return {
        **participants.introduced[pk],
        "choices": fold_all_choices(answers, participants.groups),
        "rationales": rationales,
        "failures": failures,
    }


def add_judge_texts(
    judges: dict[int, ExportedJudge],
    words: Mapping[tuple[int, int, str], list[VerdictTexts]],
    comparison: int,
    places: SamplePositions,
) -> None:
    """Add imported rationales and notes to the choices of judges."""
    if not words:
        return
    for pk, judge in judges.items():
        for key, choice in judge["choices"].items():
            if texts := words.get((comparison, pk, key)):
                rationales = group_texts((text.shown, places[pk][text.sample], text.rationale) for text in texts)
                notes = group_texts((text.shown, places[pk][text.sample], text.note) for text in texts)
                entry = ExportedJudgeChoice(**choice)
                if rationales:
                    entry["rationales"] = rationales
                if notes:
                    entry["notes"] = notes
                judge["choices"] = {**judge["choices"], key: entry}


def build_scorer_entries(
    row: ComparisonRow, scoring: JudgeScores, participants: Participants
) -> dict[int, ExportedJudge]:
    """The judges, by rater id, that scored or were asked to score one of the two responses, with derived choices."""
    entries: dict[int, ExportedJudge] = {}
    for rater in participants.scorers:
        own_calls = scoring.calls.get(rater.pk, {})
        calls = [(side, *call) for side, pk in (("A", row.id_a), ("B", row.id_b)) for call in own_calls.get(pk, [])]
        derived = scoring.derived[rater.pk].get(row.pk, {})
        if calls or derived:
            entries[rater.pk] = {
                **participants.introduced[rater.pk],
                "choices": {
                    key: build_choice_from_scores(derived[key])
                    for key in participants.aspects.values()
                    if key in derived
                },
                "rationales": group_values((f"response_{side.lower()}", text) for side, _, text in calls if text),
                "failures": dict(Counter(state for _, state, _ in calls if state in FAILURE_STATES)),
            }
    return entries


def merge_scorers(
    choosing: Mapping[int, ExportedJudge], scoring: Mapping[int, ExportedJudge]
) -> dict[int, ExportedJudge]:
    """All of them; an imported judge may have chosen on some aspects and scored on others."""
    both = {
        pk: ExportedJudge(
            **{
                **choosing[pk],
                "choices": {**choosing[pk]["choices"], **scoring[pk]["choices"]},
                "rationales": {**choosing[pk]["rationales"], **scoring[pk]["rationales"]},
                "failures": dict(Counter(choosing[pk]["failures"]) + Counter(scoring[pk]["failures"])),
            }
        )
        for pk in choosing.keys() & scoring.keys()
    }
    return {**choosing, **scoring, **both}


def build_choice_from_scores(scores: CompleteSideScores) -> ExportedJudgeChoice:
    entry: ExportedScores = {"A": scores.score_a, "B": scores.score_b, "margin": scores.rule.margin}
    if scores.rule.lower_is_better:
        entry["lower_is_better"] = True
    return {"choice": scores.choice, "inconsistent": False, "orders": {}, "scores": entry}


def group_texts(rows: Iterable[tuple[str, int, str]]) -> dict[str, list[str]]:
    """By shown order the text of each sample, empty for samples without one."""
    by_order = group_values((shown, (place, text)) for shown, place, text in rows if text)
    return {shown: fill_positions(texts, "") for shown, texts in by_order.items()}


@dataclass(frozen=True)
class PeopleRecords:
    """Records of people on one comparison by rater id: verdicts, review scores, imported preferences."""

    verdicts: Mapping[int, list[VerdictRecord]]
    scores: Mapping[int, list[ReviewScores]]
    preferred: Mapping[int, list[ImportedPreference]]

    def raters(self) -> dict[int, list[VerdictRecord]]:
        return {**{pk: [] for pk in (*self.scores, *self.preferred)}, **self.verdicts}


def build_person_entries(
    row: ComparisonRow,
    records: PeopleRecords,
    reviews: Mapping[int, ReviewRecord],
    spans: Mapping[int, list[Span]],
    participants: Participants,
) -> list[ExportedPerson]:
    """One entry for every pass of a person: the imported votes of one sample and order; reviews, the newest last."""
    people: list[ExportedPerson] = []
    for rater, verdicts in participants.select_raters(RaterKind.HUMAN, records.raters()):
        by_review: dict[int, ExportedPerson] = {}
        passes = group_values((vote.review_id or (vote.sample, vote.shown), vote) for vote in verdicts)
        for own in passes.values():
            review = reviews.get(own[0].review_id or 0)
            choices = build_person_choices(own, review, participants)
            if review:
                by_review[review.pk] = build_review_entry(rater, review, choices, row, spans, participants)
            elif own[0].review_id is None:  # else the review was undone meanwhile
                people.append(build_imported_entry(rater, own[0].shown, choices))
        samples = group_values((score.sample, score) for score in records.preferred.get(rater.pk, ()))
        for _, sample in sorted(samples.items()):
            people.append(build_imported_entry(rater, ShownOrder.UNKNOWN, build_file_choices(sample, participants)))
        reviewed = group_values((score.review.number, score) for score in records.scores.get(rater.pk, ()))
        for pk, scores in reviewed.items():
            if pk in reviews:
                choices = build_scored_choices(scores, participants)
                by_review[pk] = build_review_entry(rater, reviews[pk], choices, row, spans, participants)
        people += [by_review[pk] for pk in sorted(by_review)]
    return people


def build_file_choices(
    preferred: Sequence[ImportedPreference], participants: Participants
) -> dict[str, ExportedPersonChoice]:
    """First and final at once, with the scores from which they are derived."""
    choices: dict[str, ExportedPersonChoice] = {}
    for preference in preferred:
        scores: dict[str, float | None] = {"A": preference.score_a, "B": preference.score_b}
        choice = choices[participants.aspects[preference.aspect]] = build_empty_choice()
        choice["first"] = choice["final"] = preference.choice
        choice["scores"] = {"first": scores, "final": scores, "margin": preference.rule.margin}
        if preference.rule.lower_is_better:
            choice["scores"]["lower_is_better"] = True
        if preference.rationale:
            choice["rationale"] = preference.rationale
    return choices


def build_person_choices(
    verdicts: Sequence[VerdictRecord], review: ReviewRecord | None, participants: Participants
) -> dict[str, ExportedPersonChoice]:
    """A person's first and final choices. Imported choices are both."""
    choices: dict[str, ExportedPersonChoice] = {}
    for verdict in verdicts:
        choice = choices.setdefault(participants.aspects[verdict.aspect_id], build_empty_choice())
        if verdict.stage == Stage.FIRST:
            choice["first"] = verdict.choice
        if verdict.stage == Stage.FINAL or review is None:
            choice["final"] = verdict.choice
        choice["note"] = verdict.note or choice["note"]
        choice["reason"] = verdict.reason or choice["reason"]
        if verdict.rationale:
            choice["rationale"] = verdict.rationale
    return choices


def build_empty_choice() -> ExportedPersonChoice:
    return {"first": None, "final": None, "note": "", "reason": None}


def build_scored_choices(pairs: Sequence[ReviewScores], participants: Participants) -> dict[str, ExportedPersonChoice]:
    """Scores of the two responses, with the choices that they make by the margin of the review's rubric."""
    choices: dict[str, ExportedPersonChoice] = {}
    for pair in pairs:
        choice = choices.setdefault(participants.aspects[pair.aspect], build_empty_choice())
        none: dict[str, float | None] = {"A": None, "B": None}
        scores = choice.setdefault("scores", {"first": none, "final": none, "margin": pair.rule.margin})
        stage: Literal["first", "final"] = "final" if pair.stage == Stage.FINAL else "first"
        scores[stage] = {"A": pair.score_a, "B": pair.score_b}
        choice[stage] = pair.choice
        choice["note"] = pair.note or choice["note"]
        choice["reason"] = pair.reason or choice["reason"]
    return choices


def build_imported_entry(rater: Rater, shown: str, choices: dict[str, ExportedPersonChoice]) -> ExportedPerson:
    """An entry without a review: whether it was blind or how it was selected is unknown."""
    return {
        "rater": rater.name,
        "rubric": None,
        "state": ReviewState.FINAL,
        "blind": None,
        "shown": shown,
        "note": "",
        "picked_by": None,
        "round": None,
        "probability": None,
        "calibration": False,
        "reveal": None,
        "judge_first": None,
        "judge_shown": None,
        "awaits_judge": None,
        "active_ms": None,
        "choices": choices,
        "spans": [],
    }


def build_review_entry(
    rater: Rater,
    review: ReviewRecord,
    choices: dict[str, ExportedPersonChoice],
    row: ComparisonRow,
    spans: Mapping[int, list[Span]],
    participants: Participants,
) -> ExportedPerson:
    person: ExportedPerson = {
        "rater": rater.name,
        "rubric": participants.rubrics[review.rubric_version_id],
        "state": review.state,
        "blind": review.blind,
        "shown": review.shown,
        "note": review.note,
        "picked_by": review.selection_method,
        "round": participants.queues[review.queue_id] if review.queue_id else None,
        "probability": review.probability,
        "calibration": review.selection_method == SelectionMethod.CALIBRATION,
        "reveal": review.reveal or None,
        "judge_first": review.judge_first,
        "judge_shown": participants.judge_names[review.judge_id] if review.judge_id else None,
        "awaits_judge": review.awaits_judge,
        "active_ms": review.active_ms,
        "choices": choices,
        "spans": [serialize_span(span, row, participants) for span in spans.get(review.pk, ())],
    }
    if review.is_example:
        person["is_example"] = True
    return person


def serialize_span(span: Span, row: ComparisonRow, participants: Participants) -> ExportedSpan:
    return {
        "response": "A" if span.response_id == row.id_a else "B",
        "turn": span.turn,
        "start": span.start,
        "end": span.end,
        "quote": span.quote,
        "comment": span.comment,
        "aspect": participants.aspects.get(span.aspect_id or 0),
    }

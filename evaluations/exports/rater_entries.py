"""The entries of an exported row: what each judge or person said of a comparison."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from evaluations.domain.choices import Choice, ShownOrder, Stage, choice_from_scores
from evaluations.domain.judges import FAILURE_STATES
from evaluations.domain.reviews import ReviewState, SelectionMethod
from evaluations.domain.roles import RaterKind
from evaluations.exports.chunk_reader import (
    CallRecord,
    ComparisonRow,
    JudgeScores,
    ReviewRecord,
    ScoreRecord,
    VerdictRecord,
    VerdictTexts,
)
from evaluations.exports.participants import Participants
from evaluations.formats.exported_rows import (
    ExportedJudge,
    ExportedJudgeChoice,
    ExportedPerson,
    ExportedPersonChoice,
    ExportedPersonScores,
    ExportedScores,
    ExportedSpan,
)
from evaluations.models.judges import Rater
from evaluations.models.verdicts import Span
from evaluations.verdicts.judge_choices import (
    JudgeAnswers,
    PackedVote,
    build_answer_sheet,
    fill_positions,
    fold_all_choices,
)
from evaluations.verdicts.score_choices import ImportedPreference, ScoreDerivation

FAILED_STATES: Final = frozenset(state.value for state in FAILURE_STATES)

ONE_SAMPLE: Final = {0: 0}

SamplePositions = Mapping[int, Mapping[int, int]]


def map_samples(
    votes: Mapping[int, list[PackedVote]], calls: Mapping[int, Sequence[tuple[Any, ...]]]
) -> SamplePositions:
    """By rater id the position of each of a judge's samples, equal for both orders."""
    places: dict[int, Mapping[int, int]] = {}
    for pk in votes.keys() | calls.keys():
        samples = {one[-1] for said in (votes, calls) for one in said.get(pk, ())}
        places[pk] = {sample: at for at, sample in enumerate(sorted(samples))} if samples != {0} else ONE_SAMPLE
    return places


def build_judge_answers(
    votes: Mapping[int, list[PackedVote]],
    calls: Mapping[int, Sequence[tuple[Any, ...]]],
    places: SamplePositions,
    cast: Participants,
) -> dict[int, JudgeAnswers]:
    """By rater id the orders asked with the answers of every judge. The shown order is the third item of a call."""
    return {
        pk: (
            frozenset([call[2] for call in calls.get(pk, ())]),
            build_answer_sheet(votes.get(pk, ()), of_samples, cast.groups),
        )
        for pk, of_samples in places.items()
        if pk in cast.judges
    }


def build_judge_entries(
    answers: Mapping[int, JudgeAnswers],
    calls: Mapping[int, list[CallRecord]],
    places: SamplePositions,
    cast: Participants,
) -> dict[int, ExportedJudge]:
    """By rater id every judge, failures and unfinished orders included."""
    return {pk: build_judge_entry(pk, given, calls.get(pk, ()), places[pk], cast) for pk, given in answers.items()}


def build_judge_entry(
    pk: int, answers: JudgeAnswers, calls: Sequence[CallRecord], places: Mapping[int, int], cast: Participants
) -> ExportedJudge:
    rationales: dict[str, list[str]] = {}
    failures: dict[str, int] = {}
    for _, _, shown, state, rationale, sample in calls:
        if rationale:
            texts = rationales.setdefault(shown, [])
            texts += [""] * (places[sample] - len(texts))  # as `texts_of`, in the loop that every call goes through
            texts.append(rationale)
        if state in FAILED_STATES:
            failures[state] = failures.get(state, 0) + 1
    return {
        **cast.introduced[pk],
        "choices": fold_all_choices(answers, cast.groups),
        "rationales": rationales,
        "failures": failures,
    }


def add_judge_texts(
    judges: dict[int, ExportedJudge],
    words: Mapping[tuple[int, int, str], list[VerdictTexts]],
    comparison: int,
    places: SamplePositions,
) -> dict[int, ExportedJudge]:
    """The entries with imported rationales and notes added to their choices."""
    if not words:
        return judges
    for pk, judge in judges.items():
        for key, choice in judge["choices"].items():
            if said := words.get((comparison, pk, key)):
                rationales = group_texts((one.shown, places[pk][one.sample], one.rationale) for one in said)
                notes = group_texts((one.shown, places[pk][one.sample], one.note) for one in said)
                told = ExportedJudgeChoice(**choice)
                if rationales:
                    told["rationales"] = rationales
                if notes:
                    told["notes"] = notes
                judge["choices"] = {**judge["choices"], key: told}
    return judges


def build_scorer_entries(one: ComparisonRow, scoring: JudgeScores, cast: Participants) -> dict[int, ExportedJudge]:
    """By rater id the judges that scored one of the two responses alone, or were to; what they choose is derived."""
    told: dict[int, ExportedJudge] = {}
    for rater in cast.scorers:
        asked = scoring.calls.get(rater.pk, {})
        calls = [(side, *call) for side, pk in (("A", one.id_a), ("B", one.id_b)) for call in asked.get(pk, [])]
        derived = scoring.derived[rater.pk].get(one.pk, {})
        if calls or derived:
            told[rater.pk] = {
                **cast.introduced[rater.pk],
                "choices": {
                    key: build_choice_from_scores(derived[key]) for key in cast.aspects.values() if key in derived
                },
                "rationales": group_by_order((f"response_{side.lower()}", text) for side, _, text in calls if text),
                "failures": dict(Counter(state for _, state, _ in calls if state in FAILURE_STATES)),
            }
    return told


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


def build_choice_from_scores(one: ScoreDerivation) -> ExportedJudgeChoice:
    scores: ExportedScores = {"A": one.score_a, "B": one.score_b, "margin": one.rule.margin}
    if one.rule.lower_is_better:
        scores["lower_is_better"] = True
    return {"choice": one.choice, "inconsistent": False, "orders": {}, "scores": scores}


def group_texts(told: Iterable[tuple[str, int, str]]) -> dict[str, list[str]]:
    """By shown order the text of each sample, empty for samples without one."""
    given = group_by_order((shown, (place, text)) for shown, place, text in told if text)
    return {shown: fill_positions(texts, "") for shown, texts in given.items()}


Given = TypeVar("Given")

Order = TypeVar("Order", bound=Hashable)


def group_by_order(pairs: Iterable[tuple[Order, Given]]) -> dict[Order, list[Given]]:
    """Group entries by the order shown."""
    given: dict[Order, list[Given]] = defaultdict(list)
    for shown, one in pairs:
        given[shown].append(one)
    return dict(given)


@dataclass(frozen=True)
class PeopleRecords:
    """Records of people on one comparison by rater id: verdicts, review scores, imported preferences."""

    verdicts: Mapping[int, list[VerdictRecord]]
    scores: Mapping[int, list[ScoreRecord]]
    preferred: Mapping[int, list[ImportedPreference]]

    def raters(self) -> dict[int, list[VerdictRecord]]:
        return {**{pk: [] for pk in (*self.scores, *self.preferred)}, **self.verdicts}


def build_person_entries(
    one: ComparisonRow,
    given: PeopleRecords,
    reviews: Mapping[int, ReviewRecord],
    spans: Mapping[int, list[Span]],
    cast: Participants,
) -> list[ExportedPerson]:
    """One entry for every pass of a person: the imported votes of one sample and order; reviews, the newest last."""
    people: list[ExportedPerson] = []
    for rater, said in cast.those(RaterKind.HUMAN, given.raters()):
        made: dict[int, ExportedPerson] = {}
        for told in group_passes(said):
            review = reviews.get(told[0].review_id or 0)
            choices = build_person_choices(told, review, cast)
            if review:
                made[review.pk] = build_review_entry(rater, review, choices, one, spans, cast)
            elif told[0].review_id is None:  # else it was undone meanwhile
                people.append(build_imported_entry(rater, told[0].shown, choices))
        for those in group_by_sample(given.preferred.get(rater.pk, ())):
            people.append(build_imported_entry(rater, ShownOrder.UNKNOWN, build_file_choices(those, cast)))
        for pk, scores in group_by_review(given.scores.get(rater.pk, ())).items():
            if pk in reviews:
                made[pk] = build_review_entry(
                    rater, reviews[pk], build_scored_choices(one, scores, reviews[pk], cast), one, spans, cast
                )
        people += [made[pk] for pk in sorted(made)]
    return people


def group_passes(said: Sequence[VerdictRecord]) -> list[list[VerdictRecord]]:
    passes: dict[object, list[VerdictRecord]] = defaultdict(list)
    for vote in said:
        passes[vote.review_id or (vote.sample, vote.shown)].append(vote)
    return list(passes.values())


def group_by_review(scores: Sequence[ScoreRecord]) -> Mapping[int, list[ScoreRecord]]:
    given: dict[int, list[ScoreRecord]] = defaultdict(list)
    for one in scores:
        given[one.review_id].append(one)
    return given


def group_by_sample(preferred: Sequence[ImportedPreference]) -> list[list[ImportedPreference]]:
    passes: dict[int, list[ImportedPreference]] = defaultdict(list)
    for one in preferred:
        passes[one.sample].append(one)
    return [passes[sample] for sample in sorted(passes)]


def build_file_choices(preferred: Sequence[ImportedPreference], cast: Participants) -> dict[str, ExportedPersonChoice]:
    """First and final at once, with the scores from which they are derived."""
    choices: dict[str, ExportedPersonChoice] = {}
    for one in preferred:
        given: dict[str, float | None] = {"A": one.score_a, "B": one.score_b}
        choice = choices[cast.aspects[one.aspect]] = build_empty_choice()
        choice["first"] = choice["final"] = one.choice
        choice["scores"] = {"first": given, "final": given, "margin": one.rule.margin}
        if one.rule.lower_is_better:
            choice["scores"]["lower_is_better"] = True
        if one.rationale:
            choice["rationale"] = one.rationale
    return choices


def build_person_choices(
    said: Sequence[VerdictRecord], review: ReviewRecord | None, cast: Participants
) -> dict[str, ExportedPersonChoice]:
    """A person's first and final choices. Imported choices are both."""
    choices: dict[str, ExportedPersonChoice] = {}
    for one in said:
        choice = choices.setdefault(cast.aspects[one.aspect_id], build_empty_choice())
        if one.stage == Stage.FIRST:
            choice["first"] = one.choice
        if one.stage == Stage.FINAL or review is None:
            choice["final"] = one.choice
        choice["note"] = one.note or choice["note"]
        choice["reason"] = one.reason or choice["reason"]
        if one.rationale:
            choice["rationale"] = one.rationale
    return choices


def build_empty_choice() -> ExportedPersonChoice:
    return {"first": None, "final": None, "note": "", "reason": None}


def build_scored_choices(
    one: ComparisonRow, given: Sequence[ScoreRecord], review: ReviewRecord, cast: Participants
) -> dict[str, ExportedPersonChoice]:
    """Scores of the two responses, with the choices that they make by the margin of the review's rubric."""
    sides = {one.id_a: "A", one.id_b: "B"}
    choices: dict[str, ExportedPersonChoice] = {}
    for score in given:
        key = cast.aspects[score.aspect_id]
        if key not in choices:
            margin = cast.margins.get((review.rubric_version_id, score.aspect_id), 0.0)
            choices[key] = build_empty_choice()
            choices[key]["scores"] = {
                "first": {"A": None, "B": None},
                "final": {"A": None, "B": None},
                "margin": margin,
            }
        scores = choices[key]["scores"]
        stage = scores["final"] if score.stage == Stage.FINAL else scores["first"]
        stage[sides[score.response_id]] = score.value
        choices[key]["note"] = score.note or choices[key]["note"]
        choices[key]["reason"] = score.reason or choices[key]["reason"]
    for choice in choices.values():
        choice["first"] = derive_exported_choice(choice["scores"], Stage.FIRST)
        choice["final"] = derive_exported_choice(choice["scores"], Stage.FINAL)
    return choices


def derive_exported_choice(scores: ExportedPersonScores, stage: Stage) -> Choice | None:
    given = scores["final"] if stage == Stage.FINAL else scores["first"]
    return choice_from_scores(given["A"], given["B"], scores["margin"])


def build_imported_entry(rater: Rater, shown: str, choices: dict[str, ExportedPersonChoice]) -> ExportedPerson:
    """Whether it was blind, and how it came before this person, is not known."""
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
    one: ComparisonRow,
    spans: Mapping[int, list[Span]],
    cast: Participants,
) -> ExportedPerson:
    person: ExportedPerson = {
        "rater": rater.name,
        "rubric": cast.rubrics[review.rubric_version_id],
        "state": review.state,
        "blind": review.blind,
        "shown": review.shown,
        "note": review.note,
        "picked_by": review.selection_method,
        "round": cast.queues[review.queue_id] if review.queue_id else None,
        "probability": review.probability,
        "calibration": review.selection_method == SelectionMethod.CALIBRATION,
        "reveal": review.reveal or None,
        "judge_first": review.judge_first,
        "judge_shown": cast.judge_names[review.judge_id] if review.judge_id else None,
        "awaits_judge": review.awaits_judge,
        "active_ms": review.active_ms,
        "choices": choices,
        "spans": [serialize_span(span, one, cast) for span in spans.get(review.pk, ())],
    }
    if review.is_example:
        person["is_example"] = True
    return person


def serialize_span(span: Span, one: ComparisonRow, cast: Participants) -> ExportedSpan:
    return {
        "response": "A" if span.response_id == one.id_a else "B",
        "turn": span.turn,
        "start": span.start,
        "end": span.end,
        "quote": span.quote,
        "comment": span.comment,
        "aspect": cast.aspects.get(span.aspect_id or 0),
    }

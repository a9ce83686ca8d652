"""What people said of a comparison, as a row of an exported file has it: pass by pass, with all that led to it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluations.domain import Choice, PickedBy, RaterKind, ReviewState, Shown, Stage, derived_choice
from evaluations.formats import exported
from evaluations.models import Rater, Span
from evaluations.services.exporting.casting import Cast
from evaluations.services.exporting.collecting import Given, Material, Passed, Said
from evaluations.services.importing.preferring import Preference


@dataclass(frozen=True)
class SaidByPeople:
    """Of one comparison by rater id: verdicts, scores in reviews, and what scores say that came in files."""

    verdicts: Mapping[int, list[Said]]
    scores: Mapping[int, list[Given]]
    preferred: Mapping[int, list[Preference]]

    def raters(self) -> dict[int, list[Said]]:
        return {**{pk: [] for pk in (*self.scores, *self.preferred)}, **self.verdicts}


def people_of(
    one: Material,
    given: SaidByPeople,
    reviews: Mapping[int, Passed],
    spans: Mapping[int, list[Span]],
    cast: Cast,
) -> list[exported.Person]:
    """One entry for every pass of a person: the imported votes of one sample and order; reviews, the newest last."""
    people: list[exported.Person] = []
    for rater, said in cast.those(RaterKind.HUMAN, given.raters()):
        made: dict[int, exported.Person] = {}
        for told in passes_of(said):
            review = reviews.get(told[0].review_id or 0)
            choices = choices_of(told, review, cast)
            if review:
                made[review.pk] = reviewed(rater, review, choices, one, spans, cast)
            elif told[0].review_id is None:  # else it was undone meanwhile
                people.append(imported(rater, told[0].shown, choices))
        for those in by_sample(given.preferred.get(rater.pk, ())):
            people.append(imported(rater, Shown.UNKNOWN, scored_in_file(those, cast)))
        for pk, scores in by_review(given.scores.get(rater.pk, ())).items():
            if pk in reviews:
                made[pk] = reviewed(rater, reviews[pk], scored(one, scores, reviews[pk], cast), one, spans, cast)
        people += [made[pk] for pk in sorted(made)]
    return people


def passes_of(said: Sequence[Said]) -> list[list[Said]]:
    passes: dict[object, list[Said]] = defaultdict(list)
    for vote in said:
        passes[vote.review_id or (vote.sample, vote.shown)].append(vote)
    return list(passes.values())


def by_review(scores: Sequence[Given]) -> Mapping[int, list[Given]]:
    given: dict[int, list[Given]] = defaultdict(list)
    for one in scores:
        given[one.review_id].append(one)
    return given


def by_sample(preferred: Sequence[Preference]) -> list[list[Preference]]:
    passes: dict[int, list[Preference]] = defaultdict(list)
    for one in preferred:
        passes[one.sample].append(one)
    return [passes[sample] for sample in sorted(passes)]


def scored_in_file(preferred: Sequence[Preference], cast: Cast) -> dict[str, exported.PersonsChoice]:
    """First and final at once, with the scores from which they are derived."""
    choices: dict[str, exported.PersonsChoice] = {}
    for one in preferred:
        given: dict[str, float | None] = {"A": one.score_a, "B": one.score_b}
        choice = choices[cast.aspects[one.aspect]] = nothing_yet()
        choice["first"] = choice["final"] = one.choice
        choice["scores"] = {"first": given, "final": given, "margin": one.rule.margin}
        if one.rule.lower_is_better:
            choice["scores"]["lower_is_better"] = True
        if one.rationale:
            choice["rationale"] = one.rationale
    return choices


def choices_of(said: Sequence[Said], review: Passed | None, cast: Cast) -> dict[str, exported.PersonsChoice]:
    """What is imported counts as first and final at once."""
    choices: dict[str, exported.PersonsChoice] = {}
    for one in said:
        choice = choices.setdefault(cast.aspects[one.aspect_id], nothing_yet())
        if one.stage == Stage.FIRST:
            choice["first"] = one.choice
        if one.stage == Stage.FINAL or review is None:
            choice["final"] = one.choice
        choice["note"] = one.note or choice["note"]
        choice["reason"] = one.reason or choice["reason"]
        if one.rationale:
            choice["rationale"] = one.rationale
    return choices


def nothing_yet() -> exported.PersonsChoice:
    return {"first": None, "final": None, "note": "", "reason": None}


def scored(one: Material, given: Sequence[Given], review: Passed, cast: Cast) -> dict[str, exported.PersonsChoice]:
    """Scores of the two responses, with the choices that they make by the margin of the review's rubric."""
    sides = {one.id_a: "A", one.id_b: "B"}
    choices: dict[str, exported.PersonsChoice] = {}
    for score in given:
        key = cast.aspects[score.aspect_id]
        if key not in choices:
            margin = cast.margins.get((review.rubric_version_id, score.aspect_id), 0.0)
            choices[key] = nothing_yet()
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
        choice["first"] = choice_from(choice["scores"], Stage.FIRST)
        choice["final"] = choice_from(choice["scores"], Stage.FINAL)
    return choices


def choice_from(scores: exported.PersonsScores, stage: Stage) -> Choice | None:
    given = scores["final"] if stage == Stage.FINAL else scores["first"]
    return derived_choice(given["A"], given["B"], scores["margin"])


def imported(rater: Rater, shown: str, choices: dict[str, exported.PersonsChoice]) -> exported.Person:
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


def reviewed(
    rater: Rater,
    review: Passed,
    choices: dict[str, exported.PersonsChoice],
    one: Material,
    spans: Mapping[int, list[Span]],
    cast: Cast,
) -> exported.Person:
    person: exported.Person = {
        "rater": rater.name,
        "rubric": cast.rubrics[review.rubric_version_id],
        "state": review.state,
        "blind": review.blind,
        "shown": review.shown,
        "note": review.note,
        "picked_by": review.picked_by,
        "round": cast.rounds[review.round_id] if review.round_id else None,
        "probability": review.probability,
        "calibration": review.picked_by == PickedBy.CALIBRATION,
        "reveal": review.reveal or None,
        "judge_first": review.judge_first,
        "judge_shown": cast.judge_names[review.judge_id] if review.judge_id else None,
        "awaits_judge": review.awaits_judge,
        "active_ms": review.active_ms,
        "choices": choices,
        "spans": [span_of(span, one, cast) for span in spans.get(review.pk, ())],
    }
    if review.is_example:
        person["is_example"] = True
    return person


def span_of(span: Span, one: Material, cast: Cast) -> exported.Span:
    return {
        "response": "A" if span.response_id == one.id_a else "B",
        "turn": span.turn,
        "start": span.start,
        "end": span.end,
        "quote": span.quote,
        "comment": span.comment,
        "aspect": cast.aspects.get(span.aspect_id or 0),
    }

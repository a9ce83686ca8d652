"""What judges said of a comparison, as a row of an exported file has it."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from evaluations.domain import FAILURE_STATES
from evaluations.formats import exported
from evaluations.services.exporting.casting import Cast
from evaluations.services.exporting.collecting import Asked, Material, Scoring, Words
from evaluations.services.exporting.unfolding import Answers, Packed, at_places, choices_on, sheet_of
from evaluations.services.judging.consolidating import Derivation

FAILED: Final = frozenset(state.value for state in FAILURE_STATES)


ONE_SAMPLE: Final = {0: 0}
Places = Mapping[int, Mapping[int, int]]


def places_of(ballots: Mapping[int, list[Packed]], calls: Mapping[int, Sequence[tuple[Any, ...]]]) -> Places:
    """By rater id of each judge its samples in their order, the same in both orders and in all that it wrote."""
    places: dict[int, Mapping[int, int]] = {}
    for pk in ballots.keys() | calls.keys():
        samples = {one[-1] for said in (ballots, calls) for one in said.get(pk, ())}
        places[pk] = {sample: at for at, sample in enumerate(sorted(samples))} if samples != {0} else ONE_SAMPLE
    return places


def answers_of(
    ballots: Mapping[int, list[Packed]], calls: Mapping[int, Sequence[tuple[Any, ...]]], places: Places, cast: Cast
) -> dict[int, Answers]:
    """By rater id every judge that was asked or has answered: the order shown stands third in each of the calls."""
    return {
        pk: (
            frozenset([call[2] for call in calls.get(pk, ())]),
            sheet_of(ballots.get(pk, ()), of_samples, cast.groups),
        )
        for pk, of_samples in places.items()
        if pk in cast.judges
    }


def judges_of(
    answers: Mapping[int, Answers], calls: Mapping[int, list[Asked]], places: Places, cast: Cast
) -> dict[int, exported.Judge]:
    """By rater id every judge, failures and unfinished orders included."""
    return {pk: judge_of(pk, given, calls.get(pk, ()), places[pk], cast) for pk, given in answers.items()}


def judge_of(
    pk: int, answers: Answers, calls: Sequence[Asked], places: Mapping[int, int], cast: Cast
) -> exported.Judge:
    rationales: dict[str, list[str]] = {}
    failures: dict[str, int] = {}
    for _, _, shown, state, rationale, sample in calls:
        if rationale:
            texts = rationales.setdefault(shown, [])
            texts += [""] * (places[sample] - len(texts))  # as `texts_of`, in the loop that every call goes through
            texts.append(rationale)
        if state in FAILED:
            failures[state] = failures.get(state, 0) + 1
    return {
        **cast.introduced[pk],
        "choices": choices_on(answers, cast.groups),
        "rationales": rationales,
        "failures": failures,
    }


def with_words(
    judges: dict[int, exported.Judge],
    words: Mapping[tuple[int, int, str], list[Words]],
    comparison: int,
    places: Places,
) -> dict[int, exported.Judge]:
    """The same with the rationales and notes that came in a file, each with the choice on its aspect."""
    if not words:
        return judges
    for pk, judge in judges.items():
        for key, choice in judge["choices"].items():
            if said := words.get((comparison, pk, key)):
                rationales = texts_of((one.shown, places[pk][one.sample], one.rationale) for one in said)
                notes = texts_of((one.shown, places[pk][one.sample], one.note) for one in said)
                told = exported.JudgesChoice(**choice)
                if rationales:
                    told["rationales"] = rationales
                if notes:
                    told["notes"] = notes
                judge["choices"] = {**judge["choices"], key: told}
    return judges


def scorers_of(one: Material, scoring: Scoring, cast: Cast) -> dict[int, exported.Judge]:
    """By rater id the judges that scored one of the two responses alone, or were to; what they choose is derived."""
    told: dict[int, exported.Judge] = {}
    for rater in cast.scorers:
        asked = scoring.calls.get(rater.pk, {})
        calls = [(side, *call) for side, pk in (("A", one.id_a), ("B", one.id_b)) for call in asked.get(pk, [])]
        derived = scoring.derived[rater.pk].get(one.pk, {})
        if calls or derived:
            told[rater.pk] = {
                **cast.introduced[rater.pk],
                "choices": {key: derived_from(derived[key]) for key in cast.aspects.values() if key in derived},
                "rationales": by_order((f"response_{side.lower()}", text) for side, _, text in calls if text),
                "failures": dict(Counter(state for _, state, _ in calls if state in FAILURE_STATES)),
            }
    return told


def with_scorers(
    choosing: Mapping[int, exported.Judge], scoring: Mapping[int, exported.Judge]
) -> dict[int, exported.Judge]:
    """All of them; an imported judge may have chosen on some aspects and scored on others."""
    both = {
        pk: exported.Judge(
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


def derived_from(one: Derivation) -> exported.JudgesChoice:
    scores: exported.Scores = {"A": one.score_a, "B": one.score_b, "margin": one.rule.margin}
    if one.rule.lower_is_better:
        scores["lower_is_better"] = True
    return {"choice": one.choice, "inconsistent": False, "orders": {}, "scores": scores}


def texts_of(told: Iterable[tuple[str, int, str]]) -> dict[str, list[str]]:
    """By the order shown the text of each sample, empty where it has none before one that has: as choices stand."""
    given = by_order((shown, (place, text)) for shown, place, text in told if text)
    return {shown: at_places(texts, "") for shown, texts in given.items()}


Given = TypeVar("Given")
Order = TypeVar("Order", bound=Hashable)


def by_order(pairs: Iterable[tuple[Order, Given]]) -> dict[Order, list[Given]]:
    """What was given, by the order shown."""
    given: dict[Order, list[Given]] = defaultdict(list)
    for shown, one in pairs:
        given[shown].append(one)
    return dict(given)

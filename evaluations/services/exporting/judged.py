"""What judges said of a comparison, as a row of an exported file has it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TypeVar

from evaluations.domain import BASELINE_REMARK, FAILURE_STATES, Choice, Folded, RaterKind, Shown, fold
from evaluations.formats import exported
from evaluations.models import Judge, Rater, RubricVersion
from evaluations.services.exporting.collecting import Asked, Cast, Material, Said, Scoring
from evaluations.services.judging.consolidating import Derivation


def rubric_name(version: RubricVersion) -> str:
    return f"{version.rubric.name} {version.number}"


def judges_of(
    said: Mapping[int, list[Said]], calls: Mapping[int, list[Asked]], cast: Cast
) -> dict[int, exported.Judge]:
    """By rater id every judge that was asked or has answered, failures and unfinished orders included."""
    silent: dict[int, list[Said]] = {rater_id: [] for rater_id in calls}
    return {
        rater.pk: judge_of(rater, given, calls.get(rater.pk, []), cast)
        for rater, given in cast.those(RaterKind.JUDGE, {**silent, **said})
    }


def judge_of(rater: Rater, said: list[Said], calls: list[Asked], cast: Cast) -> exported.Judge:
    by_aspect: dict[str, list[Said]] = defaultdict(list)
    for one in said:
        by_aspect[cast.aspects[one.aspect_id]].append(one)
    asked = frozenset(call.shown for call in calls)
    return {
        **introduced(cast.judges[rater.pk]),
        "choices": {aspect: judges_choice(given, asked) for aspect, given in by_aspect.items()},
        "rationales": by_order((call.shown, call.rationale) for call in calls if call.rationale),
        "failures": dict(Counter(call.state for call in calls if call.state in FAILURE_STATES)),
    }


def scorers_of(one: Material, scoring: Scoring, cast: Cast) -> dict[int, exported.Judge]:
    """By rater id the judges that scored one of the two responses alone, or were to; what they choose is derived."""
    told: dict[int, exported.Judge] = {}
    for rater in cast.scorers:
        asked = scoring.calls.get(rater.pk, {})
        calls = [(side, *call) for side, pk in (("A", one.id_a), ("B", one.id_b)) for call in asked.get(pk, [])]
        derived = scoring.derived[rater.pk].get(one.pk, {})
        if calls or derived:
            told[rater.pk] = {
                **introduced(cast.judges[rater.pk]),
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


def introduced(judge: Judge) -> exported.JudgesName:
    name: exported.JudgesName = {
        "judge": judge.name,
        "kind": judge.kind,
        "model": judge.model,
        "rubric": rubric_name(judge.rubric_version) if judge.rubric_version else None,
    }
    if judge.is_baseline:
        name["remark"] = BASELINE_REMARK
    return name


def judges_choice(said: list[Said], asked: frozenset[str]) -> exported.JudgesChoice:
    answers = by_order((one.shown, (one.choice, one.inconsistent)) for one in said)
    folded = consolidated(tuple((shown, tuple(given)) for shown, given in answers.items()), asked)
    choice: exported.JudgesChoice = {
        "choice": folded.choice if folded else None,
        "inconsistent": folded.inconsistent if folded else False,
        "orders": {shown: [choice for choice, _ in given] for shown, given in answers.items()},
    }
    if rationales := by_order((one.shown, one.rationale) for one in said if one.rationale):
        choice["rationales"] = rationales
    return choice


@lru_cache(maxsize=10_000)
def consolidated(answers: tuple[tuple[str, tuple[tuple[str, bool], ...]], ...], asked: frozenset[str]) -> Folded | None:
    """The judge's one verdict. Few patterns of answers occur, each many times."""
    given = {
        Shown(shown): [Folded(Choice(choice), inconsistent) for choice, inconsistent in said] for shown, said in answers
    }
    return fold(given, {Shown(shown) for shown in asked})


Given = TypeVar("Given")


def by_order(pairs: Iterable[tuple[str, Given]]) -> dict[str, list[Given]]:
    """What was given, by the order shown."""
    given: dict[str, list[Given]] = defaultdict(list)
    for shown, one in pairs:
        given[shown].append(one)
    return dict(given)

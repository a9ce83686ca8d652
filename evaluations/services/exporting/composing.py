"""What was collected of a comparison, composed into a row of an exported file."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from django.db.models import QuerySet

from evaluations.domain import (
    BASELINE_REMARK,
    FAILURE_STATES,
    Choice,
    Folded,
    Message,
    RaterKind,
    ReviewState,
    Shown,
    Stage,
    fold,
)
from evaluations.formats import exported
from evaluations.models import Comparison, Judge, Rater, Review, RubricVersion
from evaluations.services import labelling
from evaluations.services.exporting.collecting import (
    Asked,
    Cast,
    Material,
    Said,
    Scoring,
    calls_of,
    read_chunk,
    reviews_of,
    scoring_of,
    verdicts_of,
)
from evaluations.services.judging.consolidating import Derivation


def rows(comparisons: "QuerySet[Comparison]", cast: Cast) -> Iterator[exported.ExportedRow]:
    """Every comparison in the order of its making, read by keyset: five queries a chunk, memory flat."""
    after = 0
    while chunk := read_chunk(comparisons, after):
        yield from rows_of(chunk, cast)
        after = chunk[-1].pk


def rows_of(chunk: Sequence[Material], cast: Cast) -> Iterator[exported.ExportedRow]:
    """Verdicts are read before the reviews and calls they came from: none is met without its own."""
    ids = [one.pk for one in chunk]
    said, labels = verdicts_of(ids, cast), labelling.labels(ids)
    reviews, calls, scoring = reviews_of(ids), calls_of(ids), scoring_of(chunk, cast)
    for one in chunk:
        by_rater = said.get(one.pk, {})
        yield {
            **material_of(one),
            "labels": {aspect: label_of(label) for aspect, label in labels.get(one.pk, {}).items()},
            "gold": gold_of(by_rater, cast),
            "judges": in_order([*judges_of(by_rater, calls.get(one.pk, {}), cast), *scorers_of(one, scoring, cast)]),
            "people": people_of(by_rater, reviews, cast),
        }


def material_of(one: Material) -> exported.MaterialOf:
    """The names of comparison files: a query of one turn is its text, any other its messages."""
    (first, *others) = one.messages
    single = not others and first["role"] == "user"
    return {
        "query_id": one.key,
        "cluster": one.cluster,
        "category": one.category,
        "query": first["content"] if single else None,
        "messages": None if single else one.messages,
        "context": one.context,
        "reference": one.reference,
        "candidate_a": one.candidate_a,
        "response_a": words_of(one.response_a),
        "candidate_b": one.candidate_b,
        "response_b": words_of(one.response_b),
        "metadata": metadata_of(one),
    }


def metadata_of(one: Material) -> dict[str, Any]:
    """What came with query and comparison, and under the side's name what came with a response alone."""
    sides = {"response_a": one.metadata_a, "response_b": one.metadata_b}
    return one.query_metadata | one.metadata | {side: given for side, given in sides.items() if given}


def words_of(messages: list[Message]) -> str | list[Message]:
    if len(messages) == 1 and messages[0]["role"] == "assistant":
        return messages[0]["content"]
    return messages


def label_of(label: labelling.Label) -> exported.Label:
    return {
        "choice": label.choice,
        "source": label.source,
        "n": label.n,
        "votes": {str(choice): count for choice, count in label.votes.items()},
    }


def gold_of(said: Mapping[int, list[Said]], cast: Cast) -> list[exported.Gold]:
    return [
        {"rater": rater.name, "choices": {cast.aspects[one.aspect_id]: one.choice for one in given}}
        for rater, given in cast.those(RaterKind.GOLD, said)
    ]


def people_of(said: Mapping[int, list[Said]], reviews: Mapping[int, Review], cast: Cast) -> list[exported.Person]:
    """One entry for every pass of a person: a review, or the imported votes of one sample and order."""
    people: list[exported.Person] = []
    for rater, given in cast.those(RaterKind.HUMAN, said):
        passes: dict[object, list[Said]] = defaultdict(list)
        for one in given:
            if one.review_id is None or one.review_id in reviews:  # else it was undone meanwhile
                passes[one.review_id or (one.sample, one.shown)].append(one)
        people += [pass_of(rater, told, reviews.get(told[0].review_id or 0), cast) for told in passes.values()]
    return people


def pass_of(rater: Rater, said: list[Said], review: Review | None, cast: Cast) -> exported.Person:
    """What is imported counts as first and final at once; whether it was blind is not known."""
    choices: dict[str, exported.PersonsChoice] = {}
    for one in said:
        choice = choices.setdefault(cast.aspects[one.aspect_id], {"first": None, "final": None, "note": ""})
        if one.stage == Stage.FIRST:
            choice["first"] = one.choice
        if one.stage == Stage.FINAL or review is None:
            choice["final"] = one.choice
        choice["note"] = one.note or choice["note"]
        if one.rationale:
            choice["rationale"] = one.rationale
    person: exported.Person = {
        "rater": rater.name,
        "rubric": rubric_name(review.rubric_version) if review else None,
        "state": review.state if review else ReviewState.FINAL,
        "blind": review.blind if review else None,
        "shown": review.shown if review else said[0].shown,
        "note": review.note if review else "",
        "choices": choices,
    }
    if review and review.is_example:
        person["is_example"] = True
    return person


def rubric_name(version: RubricVersion) -> str:
    return f"{version.rubric.name} {version.number}"


def judges_of(said: dict[int, list[Said]], calls: Mapping[int, list[Asked]], cast: Cast) -> list[exported.Judge]:
    """Every judge that was asked or has answered, failures and unfinished orders included."""
    silent: dict[int, list[Said]] = {rater_id: [] for rater_id in calls}
    return [
        judge_of(rater, given, calls.get(rater.pk, []), cast)
        for rater, given in cast.those(RaterKind.JUDGE, silent | said)
    ]


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


def in_order(judges: list[exported.Judge]) -> list[exported.Judge]:
    return sorted(judges, key=lambda judge: judge["judge"])


def scorers_of(one: Material, scoring: Scoring, cast: Cast) -> Iterator[exported.Judge]:
    """The judges that were asked about one of the two responses alone; what they choose is derived."""
    for rater in cast.scorers:
        asked = scoring.calls.get(rater.pk, {})
        calls = [(side, *call) for side, pk in (("A", one.id_a), ("B", one.id_b)) for call in asked.get(pk, [])]
        derived = scoring.derived[rater.pk].get(one.pk, {})
        if calls or derived:
            yield {
                **introduced(cast.judges[rater.pk]),
                "choices": {key: derived_from(derived[key]) for key in cast.aspects.values() if key in derived},
                "rationales": by_order((f"response_{side.lower()}", text) for side, _, text in calls if text),
                "failures": dict(Counter(state for _, state, _ in calls if state in FAILURE_STATES)),
            }


def derived_from(one: Derivation) -> exported.JudgesChoice:
    scores: exported.Scores = {"A": one.score_a, "B": one.score_b, "margin": one.margin}
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

"""The whole report: every number of every aspect, in the shape in which it is printed as JSON."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from evaluations.domain import Part, Rules
from evaluations.stats.bias.board import BiasBoard
from evaluations.stats.confidence import Confidence
from evaluations.stats.facts import AspectFacts, facts_of
from evaluations.stats.judges import Failed, JudgeReport
from evaluations.stats.known import Known
from evaluations.stats.looks import ComparedJudges
from evaluations.stats.methods import methods
from evaluations.stats.parts import (
    AspectPeople,
    AspectScores,
    LookAt,
    Weights,
    bias_boards,
    compared_judges,
    confidences,
    people_of_aspect,
    scores_of,
    wins_of,
)
from evaluations.stats.report import AspectMaterial, AspectReport, aspect_reports, sharing_turnout
from evaluations.stats.rules import in_words
from evaluations.stats.scores import ScoresReport
from evaluations.stats.sentences import sentence
from evaluations.stats.simultaneous import Simultaneous, simultaneous
from evaluations.stats.wins import Wins


@dataclass(frozen=True)
class JudgeSummary:
    """What must be said of a judge wherever it is shown, and what its numbers say together."""

    label: str | None
    sentence: str


@dataclass(frozen=True)
class Report:
    """``names``: by key the names of the aspects that this report has anything on. ``no_verdicts``: names of those that

    nobody has given a verdict on yet. ``unanswered``: what became of the calls of judges that have answered none, by
    name. ``parts``: which of those below were asked for; the others are empty. All of them are by the key of the
    aspect, ``bias`` and ``simultaneous`` then by the judge.
    """

    evaluation: str
    comparisons: int
    clusters: int
    names: Mapping[str, str]
    judges: Mapping[str, JudgeSummary]
    unanswered: Mapping[str, str]
    no_verdicts: tuple[str, ...]
    rules: Mapping[str, str]
    methods: str
    parts: tuple[str, ...]
    aspects_by_part: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    aspects: Mapping[str, AspectReport] = field(default_factory=dict)
    simultaneous: Mapping[str, Mapping[str, Simultaneous]] = field(default_factory=dict)
    bias: Mapping[str, Mapping[str, BiasBoard]] = field(default_factory=dict)
    wins: Mapping[str, Wins] = field(default_factory=dict)
    people: Mapping[str, AspectPeople] = field(default_factory=dict)
    compared_judges: tuple[ComparedJudges, ...] = ()
    confidence: Mapping[str, Mapping[str, Confidence]] = field(default_factory=dict)
    scores: Mapping[str, ScoresReport] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


# Label budgets start from what agreement is so far.
NEED_AGREEMENT: Final = frozenset({Part.AGREEMENT, Part.PEOPLE})
# Each page of these shows one aspect.
BY_ASPECT: Final = (Part.BIAS, Part.WINS, Part.PEOPLE)


def whole_report(
    evaluation: str,
    materials: Iterable[tuple[str, AspectMaterial]],
    known: Known,
    rules: Rules,
    parts: tuple[Part, ...],
    weights: Mapping[str, Mapping[str, Weights]],
    scores: Mapping[str, AspectScores],
    no_verdicts: tuple[str, ...],
    aspect: str | None = None,
    look_at: LookAt | None = None,
) -> Report:
    """``materials``, made one after the other, and ``scores``: by the aspect's key; ``weights``: by that and then by

    the judge's name. ``aspect``: bias, wins and people are about this one alone, or the first on which they have
    anything. ``look_at``: as `compared_judges` has it.
    """
    wanted = set(parts)
    facts, kept = read(materials, parts, aspect)
    if wanted & NEED_AGREEMENT:
        kept = sharing_turnout(kept)
    heard = {part.value: tuple(heard_on(part, facts)) for part in parts if part in BY_ASPECT}
    about = {part: one_of(kept, heard[part.value], aspect) for part in parts if part in BY_ASPECT}
    bias, won, people = (about.get(part, {}) for part in BY_ASPECT)
    in_full = kept if Part.AGREEMENT in wanted else people
    compared = Part.AGREEMENT in wanted
    aspects, differences = aspect_reports(in_full, rules, compared=compared) if wanted & NEED_AGREEMENT else ({}, {})
    claims = claims_of(simultaneous(differences), aspects)
    clusters = int(known.items.cluster.max(initial=-1)) + 1
    return Report(
        evaluation=evaluation,
        comparisons=len(known.items),
        clusters=clusters,
        names={key: one.name for by_key in (facts, scores) for key, one in by_key.items()},
        judges=summaries(aspects, claims) if compared and aspects else labels(facts, {*bias, *won, *people}),
        unanswered=unanswered(facts),
        no_verdicts=no_verdicts,
        rules=in_words(rules),
        methods=methods(facts, scores, clusters, rules, parts),
        parts=tuple(part.value for part in parts),
        aspects_by_part=heard,
        aspects=aspects,
        simultaneous=claims,
        bias=bias_boards(bias, known, rules, len(heard.get(Part.BIAS.value, ()))),
        wins={key: wins_of(one, known, rules, len(heard[Part.WINS.value])) for key, one in won.items()},
        people={key: people_of_aspect(one, known, rules, aspects[key]) for key, one in people.items()},
        compared_judges=compared_judges(kept, known, look_at) if Part.JUDGES in wanted else (),
        confidence={key: confidences(kept[key], known, rules, one) for key, one in weights.items()},
        scores={key: scores_of(one, rules) for key, one in scores.items()},
    )


def read(
    materials: Iterable[tuple[str, AspectMaterial]], parts: Sequence[Part], aspect: str | None
) -> tuple[dict[str, AspectFacts], dict[str, AspectMaterial]]:
    """The facts of every aspect, and the material of those that these parts may be about: of a page mostly one."""
    facts: dict[str, AspectFacts] = {}
    kept: dict[str, AspectMaterial] = {}
    of_all = aspect is None or not set(parts) <= set(BY_ASPECT)
    silent = set(parts)
    for key, one in materials:
        facts[key] = facts_of(one)
        first = set() if of_all else {part for part in silent if facts[key].tells(part)}
        silent -= first
        if of_all or first or key == aspect:
            kept[key] = one
    return facts, kept


def heard_on(part: Part, facts: Mapping[str, AspectFacts]) -> Iterator[str]:
    """The keys of the aspects on which a part has anything to say."""
    return (key for key, one in facts.items() if one.tells(part))


def one_of(
    materials: Mapping[str, AspectMaterial], heard: Sequence[str], aspect: str | None
) -> Mapping[str, AspectMaterial]:
    """All of them, or only the one asked for, or the first that was heard on."""
    if aspect is None:
        return materials
    key = aspect if aspect in heard else next(iter(heard), "")
    return {key: materials[key]} if key else {}


def claims_of(
    shown: Mapping[tuple[str, str], Simultaneous], aspects: Mapping[str, AspectReport]
) -> dict[str, dict[str, Simultaneous]]:
    """Those of the judges that the report is about, by the aspect's key and the judge's name."""
    if not shown:
        return {}
    return {key: {name: shown[key, name] for name in aspect.answering} for key, aspect in aspects.items()}


def summaries(
    aspects: Mapping[str, AspectReport], claims: Mapping[str, Mapping[str, Simultaneous]]
) -> dict[str, JudgeSummary]:
    """By the judge's name, over all aspects that it was asked about."""
    by_judge: dict[str, dict[str, JudgeReport]] = {}
    claimed: dict[str, dict[str, Simultaneous]] = {}
    for key, aspect in aspects.items():
        for name, judge in aspect.answering.items():
            by_judge.setdefault(name, {})[aspect.name] = judge
            claimed.setdefault(name, {})[aspect.name] = claims[key][name]
    return {
        name: JudgeSummary(next(iter(by_aspect.values())).label, sentence(name, by_aspect, claimed[name]))
        for name, by_aspect in by_judge.items()
    }


def unanswered(facts: Mapping[str, AspectFacts]) -> dict[str, str]:
    """By the name of each judge that has answered nothing on any aspect, in words."""
    answering = {name for one in facts.values() for name in one.judges}
    most: dict[str, Failed] = {}
    for one in facts.values():
        for name, calls in one.unanswered.items():
            if name not in answering and calls.calls >= most.get(name, calls).calls:
                most[name] = calls
    return {name: f"{name}: {calls.in_words or 'no call was answered'}." for name, calls in most.items()}


def labels(facts: Mapping[str, AspectFacts], shown: Collection[str]) -> dict[str, JudgeSummary]:
    """By the judge's name, where nothing was reckoned that a sentence could be made of.

    A judge may have given its choices on one aspect and scores on another: what is said of it is that of an aspect that
    is shown, the first that it was asked about.
    """
    found: dict[str, JudgeSummary] = {}
    for key in sorted(facts, key=lambda key: key not in shown):
        for name, label in facts[key].judges.items():
            found.setdefault(name, JudgeSummary(label, ""))
    return found

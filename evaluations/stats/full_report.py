"""The whole report in the shape in which it is printed as JSON."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Final

from evaluations.domain.json_values import JsonDict
from evaluations.domain.reports import ReportPart, ReportRules
from evaluations.stats.aspect_facts import AspectFacts, count_aspect_facts
from evaluations.stats.aspect_report import AspectMaterial, AspectReport, aspect_reports, share_rating_designs
from evaluations.stats.bias.board import BiasBoard
from evaluations.stats.confidence_calibration import ConfidenceCalibration
from evaluations.stats.decisions.breakdowns import AgreementBreakdowns, break_down_agreement
from evaluations.stats.decisions.judges import decide_judges
from evaluations.stats.decisions.leaders import Leader, find_leaders
from evaluations.stats.decisions.results import Decision
from evaluations.stats.decisions.score_judges import decide_score_judges
from evaluations.stats.judge_comparison import ComparedJudges
from evaluations.stats.judge_report import FailedCalls, JudgeReport
from evaluations.stats.judge_sentences import judge_sentence
from evaluations.stats.judge_verdicts import JudgeCoverage
from evaluations.stats.methods_paragraph import methods_paragraph
from evaluations.stats.report_parts import (
    AspectPeople,
    JudgeWeights,
    LookAt,
    StudyMaterial,
    bias_boards,
    compare_all_judges,
    confidence_part,
    people_part,
    wins_part,
)
from evaluations.stats.reviewer_flags import describe_open_flags
from evaluations.stats.reviewer_screening import ReviewerScreening, screen_reviewers
from evaluations.stats.rule_descriptions import describe_rules
from evaluations.stats.score_report import AspectScores, ScoreReport, score_report
from evaluations.stats.simultaneous_intervals import SimultaneousDifference, simultaneous_intervals
from evaluations.stats.wins import Wins


@dataclass(frozen=True)
class JudgeSummary:
    """The label of a judge, with a sentence on its numbers."""

    label: str | None
    sentence: str


@dataclass(frozen=True)
class Report:
    """The report on an evaluation, in the shape of its JSON.

    ``names``: of the aspects in this report, by key. ``no_verdicts``: names of the aspects without any verdict.
    ``unanswered``: by name of each judge without any answer, a sentence on its calls. ``parts``: the parts that were
    requested; the fields of the others are empty. Parts are by aspect key; ``bias`` and ``simultaneous`` then by judge,
    ``leaders`` too, ``decisions``, ``breakdowns`` and ``coverage`` by
    judge. ``screening``: of all reviewers, excluded
    ones among them. ``decisions_with_excluded``: the decisions with these, if there are any.
    ``score_decisions``: by judge that scores single responses.
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
    decisions: Mapping[str, Decision] = field(default_factory=dict)
    score_decisions: Mapping[str, Decision] = field(default_factory=dict)
    decisions_with_excluded: Mapping[str, Decision] = field(default_factory=dict)
    leaders: Mapping[str, Mapping[str, Leader]] = field(default_factory=dict)
    screening: ReviewerScreening | None = None
    coverage: Mapping[str, JudgeCoverage] = field(default_factory=dict)
    aspects: Mapping[str, AspectReport] = field(default_factory=dict)
    breakdowns: Mapping[str, AgreementBreakdowns] = field(default_factory=dict)
    simultaneous: Mapping[str, Mapping[str, SimultaneousDifference]] = field(default_factory=dict)
    bias: Mapping[str, Mapping[str, BiasBoard]] = field(default_factory=dict)
    wins: Mapping[str, Wins] = field(default_factory=dict)
    people: Mapping[str, AspectPeople] = field(default_factory=dict)
    compared_judges: tuple[ComparedJudges, ...] = ()
    confidence: Mapping[str, Mapping[str, ConfidenceCalibration]] = field(default_factory=dict)
    scores: Mapping[str, ScoreReport] = field(default_factory=dict)

    def as_json(self) -> JsonDict:
        return asdict(self)


# Label budgets start from the present agreement.
ALL_OF_AGREEMENT: Final = frozenset({ReportPart.AGREEMENT, ReportPart.METHODOLOGY})
NEED_AGREEMENT: Final = ALL_OF_AGREEMENT | {ReportPart.PEOPLE}
NEED_SCREENING: Final = frozenset({ReportPart.DECISIONS, ReportPart.PEOPLE})
NEED_SHARED_DESIGNS: Final = NEED_AGREEMENT | {ReportPart.DECISIONS}
# Each page of these shows one aspect.
BY_ASPECT: Final = (ReportPart.BIAS, ReportPart.WINS, ReportPart.PEOPLE)


def full_report(
    evaluation: str,
    materials: Iterable[tuple[str, AspectMaterial]],
    study: StudyMaterial,
    rules: ReportRules,
    parts: tuple[ReportPart, ...],
    weights: Mapping[str, Mapping[str, JudgeWeights]],
    scores: Mapping[str, AspectScores],
    no_verdicts: tuple[str, ...],
    aspect: str | None = None,
    look_at: LookAt | None = None,
) -> Report:
    """The requested parts of the report.

    ``materials``: pairs of aspect key and material, read one by one. ``scores``: by aspect key. ``weights``: by aspect
    key and judge name. ``aspect``: the only aspect of bias, wins and people, or the first on which they have content;
    None: all. ``look_at``: as in `compare_all_judges`.
    """
    requested = set(parts)
    facts, kept = read_materials(materials, parts, aspect)
    if requested & NEED_SHARED_DESIGNS:
        kept = share_rating_designs(kept)
    by_part = {
        part.value: tuple(key for key, fact in facts.items() if fact.has_part(part))
        for part in parts
        if part in BY_ASPECT
    }
    selected = {part: select_materials(kept, by_part[part.value], aspect) for part in parts if part in BY_ASPECT}
    bias, won, people = (selected.get(part, {}) for part in BY_ASPECT)
    compared = bool(requested & ALL_OF_AGREEMENT)
    in_full = kept if compared else people
    aspects, differences = aspect_reports(in_full, rules, compared=compared) if requested & NEED_AGREEMENT else ({}, {})
    claims = claims_by_aspect(simultaneous_intervals(differences), aspects)
    clusters = int(study.items.cluster.max(initial=-1)) + 1
    screening = screen_reviewers(kept) if requested & NEED_SCREENING and study.screens_reviewers else None
    caution = describe_open_flags(screening, study.kept_reviewers)
    decided = kept if ReportPart.DECISIONS in requested else {}
    decisions = {
        name: replace(decision, provisional=caution)
        for name, decision in decide_judges(decided, study.items, study.families, study.bars, study.judges).items()
    }
    scored = scores if ReportPart.SCORES in requested else {}
    return Report(
        evaluation=evaluation,
        comparisons=len(study.items),
        clusters=clusters,
        names={key: aspect_of_key.name for by_key in (facts, scores) for key, aspect_of_key in by_key.items()},
        judges=summarise_judges(aspects, claims)
        if compared and aspects
        else judge_labels(facts, {*bias, *won, *people}),
        unanswered=unanswered_judges(facts),
        no_verdicts=no_verdicts,
        rules=describe_rules(rules),
        methods=methods_paragraph(
            facts, scores, clusters, rules, described_parts(parts), excluded_reviewers=study.excluded_reviewers
        ),
        parts=tuple(part.value for part in parts),
        aspects_by_part=by_part,
        decisions=decisions,
        leaders=find_leaders(decided, study.matches, rules) if decided else {},
        screening=screening,
        coverage={name: decision.coverage for name, decision in decisions.items()},
        aspects=aspects,
        breakdowns=break_down_agreement(kept, study.items) if compared else {},
        simultaneous=claims,
        bias=bias_boards(bias, study, rules, len(by_part.get(ReportPart.BIAS.value, ()))),
        wins={
            key: wins_part(material, study, rules, len(by_part[ReportPart.WINS.value])) for key, material in won.items()
        },
        people={key: people_part(material, study, rules, aspects[key], caution) for key, material in people.items()},
        compared_judges=compare_all_judges(kept, study, look_at) if ReportPart.JUDGES in requested else (),
        confidence={key: confidence_part(kept[key], study, rules, by_judge) for key, by_judge in weights.items()},
        scores={key: score_report(of_aspect, rules) for key, of_aspect in scored.items()},
        score_decisions=decide_score_judges(scored, study.bars, study.judges, rules.pass_from),
    )


def described_parts(parts: Sequence[ReportPart]) -> tuple[ReportPart, ...]:
    """The parts that the methods paragraph describes: these, or all on the page of methods."""
    return tuple(ReportPart) if ReportPart.METHODOLOGY in parts else tuple(parts)


def read_materials(
    materials: Iterable[tuple[str, AspectMaterial]], parts: Sequence[ReportPart], aspect: str | None
) -> tuple[dict[str, AspectFacts], dict[str, AspectMaterial]]:
    """The facts of every aspect, and the material of those that these parts need, mostly a single one for a page."""
    facts: dict[str, AspectFacts] = {}
    kept: dict[str, AspectMaterial] = {}
    of_all = aspect is None or not set(parts) <= set(BY_ASPECT) or not NEED_SCREENING.isdisjoint(parts)
    without_content = set(parts)
    for key, material in materials:
        facts[key] = count_aspect_facts(material)
        first_with_content = set() if of_all else {part for part in without_content if facts[key].has_part(part)}
        without_content -= first_with_content
        if of_all or first_with_content or key == aspect:
            kept[key] = material
    return facts, kept


def select_materials(
    materials: Mapping[str, AspectMaterial], with_content: Sequence[str], aspect: str | None
) -> Mapping[str, AspectMaterial]:
    """The material of all aspects, of the requested one, or of the first with content."""
    if aspect is None:
        return materials
    key = aspect if aspect in with_content else next(iter(with_content), "")
    return {key: materials[key]} if key else {}


def claims_by_aspect(
    shown: Mapping[tuple[str, str], SimultaneousDifference], aspects: Mapping[str, AspectReport]
) -> dict[str, dict[str, SimultaneousDifference]]:
    if not shown:
        return {}
    return {key: {name: shown[key, name] for name in aspect.answering} for key, aspect in aspects.items()}


def summarise_judges(
    aspects: Mapping[str, AspectReport], claims: Mapping[str, Mapping[str, SimultaneousDifference]]
) -> dict[str, JudgeSummary]:
    """Summaries by judge name over all aspects with answers."""
    by_judge: dict[str, dict[str, JudgeReport]] = {}
    claimed: dict[str, dict[str, SimultaneousDifference]] = {}
    for key, aspect in aspects.items():
        for name, judge in aspect.answering.items():
            by_judge.setdefault(name, {})[aspect.name] = judge
            claimed.setdefault(name, {})[aspect.name] = claims[key][name]
    return {
        name: JudgeSummary(next(iter(by_aspect.values())).label, judge_sentence(name, by_aspect, claimed[name]))
        for name, by_aspect in by_judge.items()
    }


def unanswered_judges(facts: Mapping[str, AspectFacts]) -> dict[str, str]:
    """For each judge without any answer, its failed calls in words."""
    answering = {name for fact in facts.values() for name in fact.judges}
    most: dict[str, FailedCalls] = {}
    for fact in facts.values():
        for name, calls in fact.unanswered.items():
            if name not in answering and calls.calls >= most.get(name, calls).calls:
                most[name] = calls
    return {name: f"{name}: {calls.in_words or 'no call succeeded'}." for name, calls in most.items()}


def judge_labels(facts: Mapping[str, AspectFacts], shown: Collection[str]) -> dict[str, JudgeSummary]:
    """Labels of judges, by name, where there are no numbers to summarise.

    A judge may have chosen on one aspect and scored on another: its label is that on the first aspect that is shown and
    that it was asked about.
    """
    summaries: dict[str, JudgeSummary] = {}
    for key in sorted(facts, key=lambda key: key not in shown):
        for name, label in facts[key].judges.items():
            summaries.setdefault(name, JudgeSummary(label, ""))
    return summaries

"""The label of each comparison and aspect by the evaluation's policy."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from django.db.models import Count, Max

from evaluations.domain.choices import Choice, LabelPolicy, LabelSource
from evaluations.domain.judges import JudgeKind
from evaluations.domain.roles import RaterKind
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.rubrics import Aspect
from evaluations.models.runs import Run
from evaluations.models.verdicts import Adjudication
from evaluations.verdicts.judge_choices import load_choices_of_judges
from evaluations.verdicts.votes import compute_label_row, count_votes


@dataclass(frozen=True)
class DecidedLabel:
    """``choice`` is None where the votes are split. ``n`` counts them, ties included.

    ``by``: who resolved it, or which judges chose it; empty for the votes of people.
    """

    choice: Choice | None
    source: LabelSource
    n: int
    votes: Mapping[Choice, int] = field(default_factory=dict)
    by: str = ""

    @property
    def in_words(self) -> str:
        """The source of the label, as pages show it next to the choice."""
        return {
            LabelSource.ADJUDICATED: f"resolved by {self.by}",
            LabelSource.MAJORITY: f"{max(self.votes.values(), default=self.n)} of {self.n}",
            LabelSource.SINGLE: "1 reviewer",
            LabelSource.SPLIT: f"{self.n} votes, no majority",
            LabelSource.PANEL: f"panel of {self.n} judges",
            LabelSource.JUDGE: f"judge {self.by}",
        }[self.source]

    @property
    def votes_in_words(self) -> str:
        return ", ".join(
            f"{choice.replace('_', ' ')} {self.votes[choice]}" for choice in Choice if choice in self.votes
        )


DecidedLabels = Mapping[int, Mapping[str, DecidedLabel]]


@dataclass(frozen=True)
class LabelJudges:
    """The judges whose choices may become labels, rules left out; by rater id. Empty where judges may not speak."""

    raters: Mapping[int, Rater] = field(default_factory=dict)
    panel: frozenset[int] = frozenset()
    shown: int | None = None

    def label(self, choices: Mapping[int, Choice]) -> DecidedLabel | None:
        """The label by judges where no person voted: the panel's, else the shown judge's, else the only one."""
        return self.of_panel(choices) or self.of_judge(choices)

    def of_panel(self, choices: Mapping[int, Choice]) -> DecidedLabel | None:
        """The choice of more than half of its judges that answered, else a tie; none where fewer than half did."""
        answered = {pk: choices[pk] for pk in self.panel if pk in choices}
        if not answered or 2 * len(answered) < len(self.panel):
            return None
        votes = Counter(answered.values())
        choice, count = votes.most_common(1)[0]
        agreed = choice if 2 * count > len(answered) else Choice.TIE
        names = ", ".join(sorted(self.raters[pk].name for pk in answered))
        return DecidedLabel(agreed, LabelSource.PANEL, len(answered), votes, names)

    def of_judge(self, choices: Mapping[int, Choice]) -> DecidedLabel | None:
        speaking = self.shown if self.shown in choices else None
        if speaking is None:
            answered = choices.keys() & self.raters.keys()
            if len(answered) != 1:
                return None
            (speaking,) = answered
        choice = choices[speaking]
        return DecidedLabel(choice, LabelSource.JUDGE, 1, {choice: 1}, self.raters[speaking].name)


NO_LABEL_JUDGES = LabelJudges()


def decide_labels(evaluation: Evaluation, comparison_ids: Iterable[int], *, judges: bool = True) -> DecidedLabels:
    """Comparison id → aspect key → label. ``judges``: whether their labels may be seen, where the policy has any."""
    ids = list(comparison_ids)
    labels = {pk: dict(by_aspect) for pk, by_aspect in decide_human_labels(evaluation, ids).items()}
    bench = get_label_judges(evaluation) if judges else NO_LABEL_JUDGES
    if not bench.raters:
        return labels
    for (pk, aspect), choices in read_label_judge_choices(bench, ids).items():
        if aspect not in labels.get(pk, {}) and (label := bench.label(choices)):
            labels.setdefault(pk, {})[aspect] = label
    return labels


def decide_human_labels(evaluation: Evaluation, comparison_ids: Collection[int]) -> DecidedLabels:
    """The labels that rest on votes of people, or on adjudications."""
    keys = dict(Aspect.objects.filter(evaluation=evaluation).values_list("pk", "key"))
    votes, ids = count_votes(list(comparison_ids)), list(comparison_ids)
    labels: dict[int, dict[str, DecidedLabel]] = defaultdict(dict)
    for (pk, aspect), counts in votes.items():
        labels[pk][keys[aspect]] = decide_by_votes(counts)
    settled = Adjudication.objects.filter(comparison__in=ids).order_by("pk")
    columns = settled.values_list("comparison_id", "aspect_id", "choice", "user__username")
    for pk, aspect, decided, by in columns:
        labels[pk][keys[aspect]] = decide_by_resolution(Choice(decided), by, votes.get((pk, aspect), {}))
    return labels


def decide_by_votes(votes: Mapping[Choice, int]) -> DecidedLabel:
    row = compute_label_row(votes)
    return DecidedLabel(Choice(row.choice) if row.choice else None, LabelSource(row.source), row.votes, votes)


def decide_by_resolution(choice: Choice, by: str, votes: Mapping[Choice, int]) -> DecidedLabel:
    return DecidedLabel(choice, LabelSource.ADJUDICATED, sum(votes.values()), votes, by)


def get_label_judges(evaluation: Evaluation, policy: LabelPolicy | None = None) -> LabelJudges:
    """The judges that may speak under the evaluation's policy, or under another one."""
    if (policy or evaluation.label_policy) != LabelPolicy.PEOPLE_THEN_JUDGES:
        return NO_LABEL_JUDGES
    candidates = (
        Rater.objects.current().filter(evaluation=evaluation, kind=RaterKind.JUDGE).exclude(judge__kind=JudgeKind.RULE)
    )
    raters = {rater.pk: rater for rater in candidates.select_related("judge__rubric_version__rubric").order_by("name")}
    of_judge = {rater.judge_id: pk for pk, rater in raters.items()}
    panel = frozenset(of_judge[judge] for judge in get_newest_panel(evaluation) if judge in of_judge)
    return LabelJudges(raters, panel, of_judge.get(evaluation.shown_judge_id))


def get_newest_panel(evaluation: Evaluation) -> set[int]:
    """The judges that were started together last, several of them; rules have no seat."""
    runs = Run.objects.filter(evaluation=evaluation).exclude(judge__kind=JudgeKind.RULE)
    batches = runs.values("batch").annotate(judges=Count("judge", distinct=True), newest=Max("pk"))
    newest = batches.filter(judges__gt=1).order_by("-newest").values("batch")[:1]
    return set(runs.filter(batch__in=list(newest.values_list("batch", flat=True))).values_list("judge_id", flat=True))


def read_label_judge_choices(
    bench: LabelJudges, comparison_ids: Collection[int]
) -> Mapping[tuple[int, str], Mapping[int, Choice]]:
    """Comparison id and aspect key → rater id → choice."""
    by_subject: dict[tuple[int, str], dict[int, Choice]] = defaultdict(dict)
    for rater, choices in load_choices_of_judges(list(bench.raters.values()), comparison_ids).items():
        for pk, by_aspect in choices.items():
            for aspect, consolidated in by_aspect.items():
                by_subject[pk, aspect][rater] = consolidated.choice
    return by_subject

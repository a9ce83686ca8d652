"""What the evaluation finally says: one label per comparison and aspect, by its policy.

Adjudicated before the majority of people, before a single person; where no person voted, what a
panel of judges or one judge says, if the policy lets judges speak. A split among people is open.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from django.db.models import Count, Max

from evaluations.domain import Choice, JudgeKind, LabelPolicy, LabelSource, RaterKind
from evaluations.models import Adjudication, Aspect, Evaluation, Rater, Run
from evaluations.services.judging.consolidating import judges_choices
from evaluations.services.reviewing.tallying import counted, votes_on


@dataclass(frozen=True)
class Label:
    """``choice`` is None where the votes are split. ``n`` counts them, ties included.

    ``by``: who settled it, or which judges chose it; empty for the votes of people.
    """

    choice: Choice | None
    source: LabelSource
    n: int
    votes: Mapping[Choice, int] = field(default_factory=dict)
    by: str = ""

    @property
    def in_words(self) -> str:
        """Where it comes from, as pages say it beside the choice."""
        return {
            LabelSource.ADJUDICATED: f"adjudicated by {self.by}",
            LabelSource.MAJORITY: f"majority of {self.n}",
            LabelSource.SINGLE: "one person",
            LabelSource.SPLIT: f"{self.n} people, no majority",
            LabelSource.PANEL: f"panel of {self.n} judges, no person",
            LabelSource.JUDGE: f"judge {self.by}, no person",
        }[self.source]

    @property
    def votes_in_words(self) -> str:
        return ", ".join(
            f"{choice.replace('_', ' ')} {self.votes[choice]}" for choice in Choice if choice in self.votes
        )


Labels = Mapping[int, Mapping[str, Label]]


@dataclass(frozen=True)
class Bench:
    """The judges whose choices may become labels, rules left out; by rater id. Empty where judges may not speak."""

    raters: Mapping[int, Rater] = field(default_factory=dict)
    panel: frozenset[int] = frozenset()
    shown: int | None = None

    def label(self, said: Mapping[int, Choice]) -> Label | None:
        """What these say where no person voted: the panel, else the shown judge, else the only one that answered."""
        return self.of_panel(said) or self.of_judge(said)

    def of_panel(self, said: Mapping[int, Choice]) -> Label | None:
        """The choice of more than half of its judges that answered, else a tie; none where fewer than half did."""
        answered = {pk: said[pk] for pk in self.panel if pk in said}
        if not answered or 2 * len(answered) < len(self.panel):
            return None
        votes = Counter(answered.values())
        choice, most = votes.most_common(1)[0]
        agreed = choice if 2 * most > len(answered) else Choice.TIE
        names = ", ".join(sorted(self.raters[pk].name for pk in answered))
        return Label(agreed, LabelSource.PANEL, len(answered), votes, names)

    def of_judge(self, said: Mapping[int, Choice]) -> Label | None:
        speaking = self.shown if self.shown in said else None
        if speaking is None:
            answered = said.keys() & self.raters.keys()
            if len(answered) != 1:
                return None
            (speaking,) = answered
        choice = said[speaking]
        return Label(choice, LabelSource.JUDGE, 1, {choice: 1}, self.raters[speaking].name)


NOBODY = Bench()


def labels(evaluation: Evaluation, comparison_ids: Iterable[int], *, judges: bool = True) -> Labels:
    """Comparison id → aspect key → label, in the same few queries however many they are.

    ``judges``: whether their labels may be seen, where the policy has any.
    """
    ids = list(comparison_ids)
    told = {pk: dict(given) for pk, given in labels_of_people(evaluation, ids).items()}
    bench = bench_of(evaluation) if judges else NOBODY
    if not bench.raters:
        return told
    for (pk, aspect), said in said_by(bench, ids).items():
        if aspect not in told.get(pk, {}) and (label := bench.label(said)):
            told.setdefault(pk, {})[aspect] = label
    return told


def labels_of_people(evaluation: Evaluation, comparison_ids: Collection[int]) -> Labels:
    """The labels that rest on votes of people, or on adjudications."""
    keys = dict(Aspect.objects.filter(evaluation=evaluation).values_list("pk", "key"))
    votes, ids = votes_on(list(comparison_ids)), list(comparison_ids)
    told: dict[int, dict[str, Label]] = defaultdict(dict)
    for (pk, aspect), given in votes.items():
        told[pk][keys[aspect]] = voted(given)
    settled = Adjudication.objects.filter(comparison__in=ids).order_by("pk")
    columns = settled.values_list("comparison_id", "aspect_id", "choice", "user__username")
    for pk, aspect, decided, by in columns:
        told[pk][keys[aspect]] = adjudicated(Choice(decided), by, votes.get((pk, aspect), {}))
    return told


def voted(votes: Mapping[Choice, int]) -> Label:
    row = counted(votes)
    return Label(Choice(row.choice) if row.choice else None, LabelSource(row.source), row.votes, votes)


def adjudicated(choice: Choice, by: str, votes: Mapping[Choice, int]) -> Label:
    return Label(choice, LabelSource.ADJUDICATED, sum(votes.values()), votes, by)


def bench_of(evaluation: Evaluation, policy: LabelPolicy | None = None) -> Bench:
    """The judges that may speak under the evaluation's policy, or under another one."""
    if (policy or evaluation.label_policy) != LabelPolicy.PEOPLE_THEN_JUDGES:
        return NOBODY
    known = (
        Rater.objects.current().filter(evaluation=evaluation, kind=RaterKind.JUDGE).exclude(judge__kind=JudgeKind.RULE)
    )
    raters = {rater.pk: rater for rater in known.select_related("judge__rubric_version__rubric").order_by("name")}
    of_judge = {rater.judge_id: pk for pk, rater in raters.items()}
    panel = frozenset(of_judge[judge] for judge in newest_panel(evaluation) if judge in of_judge)
    return Bench(raters, panel, of_judge.get(evaluation.shown_judge_id))


def newest_panel(evaluation: Evaluation) -> set[int]:
    """The judges that were started together last, several of them; rules have no seat."""
    runs = Run.objects.filter(evaluation=evaluation).exclude(judge__kind=JudgeKind.RULE)
    batches = runs.values("batch").annotate(judges=Count("judge", distinct=True), newest=Max("pk"))
    newest = batches.filter(judges__gt=1).order_by("-newest").values("batch")[:1]
    return set(runs.filter(batch__in=list(newest.values_list("batch", flat=True))).values_list("judge_id", flat=True))


def said_by(bench: Bench, comparison_ids: Collection[int]) -> Mapping[tuple[int, str], Mapping[int, Choice]]:
    """Comparison id and aspect key → rater id → choice."""
    said: dict[tuple[int, str], dict[int, Choice]] = defaultdict(dict)
    for rater, choices in judges_choices(list(bench.raters.values()), comparison_ids).items():
        for pk, given in choices.items():
            for aspect, folded in given.items():
                said[pk, aspect][rater] = folded.choice
    return said

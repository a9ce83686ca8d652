"""A study of any size, written past the services: a judge in both orders on everything, people on a share.

Two comparisons of three candidates a query, six aspects. A judge agrees with what people mostly see about
as often as a good one does, prefers the first shown a little and the longer one; a few calls fail.
"""

import uuid
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
from django.core.management.color import no_style
from django.db import connection, transaction
from django.utils import timezone

from benchmarks.row_writer import insert_rows
from evaluations.domain.choices import PACKED_CHOICES, ShownOrder, Stage
from evaluations.domain.judges import RunState
from evaluations.domain.packed_votes import BITS_PER_CHOICE
from evaluations.domain.texts import ComparisonOrigin
from evaluations.models.comparisons import Candidate, Comparison, Query, Response
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Endpoint, Judge, Rater
from evaluations.models.rubrics import Aspect
from evaluations.models.runs import Call, Run
from evaluations.models.verdicts import PackedVotes, Review, Verdict
from evaluations.overview.services import create_evaluation
from evaluations.rubrics.services import freeze_version

SLUG: Final = "large"
CANDIDATES: Final = ("alpha", "beta", "delta", "gamma")
CATEGORIES: Final = ("math", "code", "writing", "facts", "chat")
QUERIES_AT_ONCE: Final = 5_000
FAILED: Final = 0.002
NOW: Final = timezone.now()
MOMENT: Final = 20_000 * 86_400_000


# From a number and about how many words to a text.
Words = Callable[[int, int], str]


def make_large_study(
    comparisons: int, *, people: int = 2, share: float = 0.1, bare: bool = False, words: Words | None = None
) -> Evaluation:
    """``people`` of them each review the same ``share`` of the comparisons.

    ``bare``: without the rows of verdicts, four in five of all, which no report reads. ``words``: what is asked
    and answered; without it every answer is the same.
    """
    evaluation = create_evaluation(slug=SLUG, name="Large", owner=None, by=None)
    assert evaluation.review_rubric is not None
    freeze_version(evaluation.review_rubric)
    Candidate.objects.bulk_create(Candidate(evaluation=evaluation, name=name, family=name[0]) for name in CANDIDATES)
    endpoint = Endpoint.objects.create(name="nowhere", base_url="http://127.0.0.1:9/v1")
    judge = make_judge(evaluation, endpoint)
    humans = [Rater.objects.create(evaluation=evaluation, kind="human", name=f"person {n}") for n in range(people)]
    Rater.objects.filter(evaluation=evaluation).update(verdicts_changed_at=NOW)
    writer = Writer(evaluation, [judge], humans, share, bare, words)
    queries = comparisons // 2
    for first in range(0, queries, QUERIES_AT_ONCE):
        with transaction.atomic():
            writer.write(first, min(first + QUERIES_AT_ONCE, queries))
    advance_sequences()
    evaluation.comparisons_changed_at = NOW
    evaluation.save()
    return evaluation


def make_judge(evaluation: Evaluation, endpoint: Endpoint) -> Rater:
    judge = Judge.objects.create(
        evaluation=evaluation,
        name="judge 0",
        kind="llm",
        model="model",
        family="a",
        endpoint=endpoint,
        rubric_version=evaluation.review_rubric,
        fingerprint="0" * 64,
    )
    return Rater.objects.create(evaluation=evaluation, kind="judge", name=judge.name, judge=judge)


def make_run(rater: Rater) -> Run:
    assert rater.judge is not None
    return Run.objects.create(evaluation=rater.evaluation, judge=rater.judge, batch=uuid.uuid4(), state=RunState.DONE)


def advance_sequences() -> None:
    """The rows brought their own ids."""
    tables = [Query, Response, Comparison, Call, Review, Verdict, PackedVotes]
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), tables):
            cursor.execute(statement)


class Writer:
    def __init__(
        self,
        evaluation: Evaluation,
        judges: list[Rater],
        people: list[Rater],
        share: float,
        bare: bool,
        words: Words | None = None,
    ) -> None:
        self.words = words
        self.evaluation, self.judges, self.people, self.share, self.bare = evaluation, judges, people, share, bare
        self.runs = {rater.pk: make_run(rater).pk for rater in judges}
        self.aspects = list(Aspect.objects.filter(evaluation=evaluation).order_by("slot"))
        self.candidates = list(Candidate.objects.filter(evaluation=evaluation).order_by("name"))
        self.rng = np.random.default_rng(7)
        self.calls = self.reviews = self.verdicts = self.packed_votes = 0

    def write(self, first: int, last: int) -> None:
        self.write_material(first, last)
        items = np.arange(2 * first, 2 * last)
        truth = self.rng.choice(3, (len(items), len(self.aspects)), p=[0.42, 0.4, 0.18])
        for rater in self.judges:
            self.write_calls(rater, items, truth)
        reviewed = self.rng.random(len(items)) < self.share
        for rater in self.people:
            self.write_reviews(rater, items[reviewed], truth[reviewed])

    def write_material(self, first: int, last: int) -> None:
        queries, responses, comparisons = [], [], []
        for number in range(first, last):
            columns = (NOW, self.evaluation.pk, f"q{number}", f"q{number}", hash_of(number))
            text = self.words(number, 60) if self.words else f"Question {number}?"
            messages = [{"role": "user", "content": text}]
            category = CATEGORIES[number % len(CATEGORIES)]
            queries.append((number + 1, *columns, messages, text if self.words else "", category, {}, "", "0" * 64))
            sides = sorted((number + place) % len(self.candidates) for place in range(3))
            characters = self.rng.integers(200, 2_000, 3)
            for place, side in enumerate(sides):
                pk = 3 * number + place + 1
                answer = self.words(pk, 150) if self.words else "An answer."
                words = [{"role": "assistant", "content": answer}]
                row = (pk, NOW, number + 1, self.candidates[side].pk, words)
                responses.append((*row, f"{pk:064}", int(characters[place]), {}, "", 0))
            for place in (0, 1):
                a, b = 3 * number + 1, 3 * number + 2 + place
                row = (2 * number + place + 1, NOW, self.evaluation.pk, number + 1, a, b)
                repeated = (self.candidates[sides[0]].pk, self.candidates[sides[1 + place]].pk, category)
                random_order = int(self.rng.integers(1 << 62))
                comparisons.append((*row, ComparisonOrigin.IMPORTED.value, False, random_order, *repeated, {}))
        names = ("id", "created_at", "evaluation_id", "key", "cluster", "cluster_number", "messages", "text")
        insert_rows(Query, (*names, "category", "metadata", "flags", "sha256"), queries)
        names = ("id", "created_at", "query_id", "candidate_id", "messages", "sha256", "characters", "metadata")
        insert_rows(Response, (*names, "flags", "markup"), responses)
        names = ("id", "created_at", "evaluation_id", "query_id", "response_a_id", "response_b_id", "origin")
        insert_rows(
            Comparison,
            (*names, "swapped", "random_order", "candidate_a", "candidate_b", "category", "metadata"),
            comparisons,
        )

    def chosen(self, truth: np.ndarray, right: float) -> np.ndarray:
        guess = self.rng.choice(3, truth.shape, p=[0.45, 0.4, 0.15])
        return np.where(self.rng.random(truth.shape) < right, truth, guess)

    def write_calls(self, rater: Rater, items: np.ndarray, truth: np.ndarray) -> None:
        own_choice = self.chosen(truth, 0.6)
        calls, answers = [], []
        for shown in (ShownOrder.AS_STORED, ShownOrder.SWAPPED):
            # One in ten of its choices goes to whatever stood first.
            first = 0 if shown == ShownOrder.AS_STORED else 1
            choice = np.where(self.rng.random(truth.shape) < 0.1, first, own_choice)
            failed = self.rng.random(len(items)) < FAILED
            ids = np.arange(self.calls, self.calls + len(items)) + 1
            self.calls += len(items)
            for pk, item, bad in zip(ids.tolist(), items.tolist(), failed.tolist(), strict=True):
                state = "unreadable" if bad else "answered"
                row = (pk, NOW, rater.judge_id, self.runs[rater.pk], item + 1, shown.value, 0, state, "ask")
                calls.append((*row, False, 0, "", "", "", "Because." if not bad else ""))
            good = ~failed
            answers.append((items[good], choice[good], shown, ids[good]))
        names = ("id", "created_at", "judge_id", "run_id", "comparison_id", "shown", "sample", "state", "step")
        insert_rows(Call, (*names, "repaired", "reserved", "prompt_sha256", "reuse_key", "error", "rationale"), calls)
        for about, choice, shown, ids in answers:
            self.write_choices(rater, about, choice, shown, "call_id", ids, (Stage.FIRST,))

    def write_reviews(self, rater: Rater, items: np.ndarray, truth: np.ndarray) -> None:
        choice = self.chosen(truth, 0.7)
        ids = np.arange(self.reviews, self.reviews + len(items)) + 1
        self.reviews += len(items)
        version = self.evaluation.review_rubric_id
        rows = [
            (
                *(pk, NOW, rater.pk, item + 1, version, "as_stored", "final", 2, True, False, "", "random", False),
                *({}, 0, "", NOW, NOW, 40_000, "", "", False),
            )
            for pk, item in zip(ids.tolist(), items.tolist(), strict=True)
        ]
        names = ("id", "created_at", "rater_id", "comparison_id", "rubric_version_id", "shown", "state", "version")
        more = (
            "blind",
            "judge_first",
            "reveal",
            "selection_method",
            "awaits_judge",
            "draft",
            "draft_number",
            "draft_tab",
        )
        rest = ("first_saved_at", "finished_at", "active_ms", "skip_reason", "note", "is_example")
        insert_rows(Review, (*names, *more, *rest), rows)
        self.write_choices(rater, items, choice, ShownOrder.AS_STORED, "review_id", ids, tuple(Stage))

    def write_choices(
        self, rater: Rater, items: Any, choice: Any, shown: ShownOrder, source: str, ids: Any, stages: tuple[Stage, ...]
    ) -> None:
        if not self.bare:
            names = ("created_at", "rater_id", "comparison_id", "aspect_id", "sample", "shown", "choice", source)
            verdicts = list(self.verdict_rows(rater, items, choice, shown, ids, stages))
            insert_rows(Verdict, (*names, "stage", "inconsistent", "rationale", "note", "reason"), verdicts)
        first = sum(
            (choice[:, place] + 1) << (BITS_PER_CHOICE * aspect.slot) for place, aspect in enumerate(self.aspects)
        )
        order, is_final = list(ShownOrder).index(shown), len(stages) > 1
        rows = [
            (NOW, rater.pk, item + 1, order, 0, pk, 0, code, code if is_final else 0, 0, MOMENT)
            for item, pk, code in zip(items.tolist(), ids.tolist(), first.tolist(), strict=True)
        ]
        names = ("created_at", "rater_id", "comparison_id", "shown", "sample", source, "aspect_block")
        insert_rows(
            PackedVotes, (*names, "first_choices", "final_choices", "inconsistent_aspects", "decided_at_ms"), rows
        )

    def verdict_rows(
        self, rater: Rater, items: Any, choice: Any, shown: ShownOrder, ids: Any, stages: tuple[Stage, ...]
    ) -> Iterator[tuple[Any, ...]]:
        words = [one.value for one in PACKED_CHOICES]
        for item, pk, said in zip(items.tolist(), ids.tolist(), choice.tolist(), strict=True):
            for stage in stages:
                for aspect, code in zip(self.aspects, said, strict=True):
                    about = (NOW, rater.pk, item + 1, aspect.pk, 0, shown.value, words[code], pk, stage.value)
                    yield (*about, False, "", "", "")


def hash_of(number: int) -> int:
    return number * 0x9E3779B97F4A7C15 % (1 << 62)

"""One comparison on which raters differ: everyone's choices and reasons, what is said about it, how it was settled."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from evaluations import access
from evaluations.access import Action
from evaluations.domain import REASONS_IN_WORDS, SAVED_REVIEW_STATES, Choice, RaterKind, Reason
from evaluations.forms.disagreement import CommentForm, SettleForm
from evaluations.models import Aspect, Comparison, Evaluation, Review, RubricAspect, User
from evaluations.services.adjudicating.disagreeing import Difference, Wanted, neighbours, on_comparison
from evaluations.services.adjudicating.discussing import note_read, thread
from evaluations.services.adjudicating.hearing import Voice, passages_of, voices_on
from evaluations.services.adjudicating.retelling import history
from evaluations.services.labelling import Label
from evaluations.services.reporting.noticing import note_seen
from evaluations.services.reporting.tabulating import Cell, Row, Table, table_of
from evaluations.services.reviewing.arranging import turns_of
from evaluations.services.reviewing.typesetting import html_of, texts_of
from evaluations.web.disagreements import filter_of, wanted_of

WHOLE = ("query", "response_a__candidate", "response_b__candidate", "evaluation__review_rubric__rubric")
IN_WORDS: Mapping[Choice, str] = {Choice.A: "A", Choice.TIE: "Tie", Choice.BOTH_BAD: "Both bad", Choice.B: "B"}


@dataclass(frozen=True)
class Question:
    """One aspect: what people and machines chose, and the form that settles it (None for who may not)."""

    aspect: Aspect
    voices: Sequence[Voice]
    others: Sequence[tuple[Row, Cell]]
    difference: Difference | None
    label: Label | None
    offered: Sequence[tuple[Choice, str]]
    form: SettleForm | None = None
    refusal: str = ""

    @property
    def is_open(self) -> bool:
        return self.difference is not None and not self.difference.settled and bool(self.difference.kinds)


@dataclass(frozen=True)
class Refused:
    """What was sent about one aspect, and why it was not stored."""

    aspect: str
    reason: str
    sent: Mapping[str, Any] | None = None


def opened(request: HttpRequest, slug: str, pk: int, action: Action = Action.LOOK) -> Comparison:
    """The comparison, for who may see what others chose on it; to all others it is not here."""
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug, action)
    visible = access.open_comparisons(user, evaluation).select_related(*WHOLE)
    comparison: Comparison = get_object_or_404(visible, pk=pk)
    return comparison


@require_safe
def disagreement(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    comparison, user = opened(request, slug, pk), cast(User, request.user)
    evaluation = comparison.evaluation
    if access.may(user, Action.REVIEW, evaluation):
        note_seen(user, evaluation, [comparison], judges=access.may_see_judges(user, evaluation))
    note_read(user, comparison)
    return shown(request, comparison)


def shown(
    request: HttpRequest, comparison: Comparison, *, refused: Refused | None = None, comment: CommentForm | None = None
) -> HttpResponse:
    user, evaluation = cast(User, request.user), comparison.evaluation
    wanted = wanted_of(request, evaluation)
    before, after = neighbours(wanted, comparison)
    table = table_of(comparison, with_judges=access.may_see_judges(user, evaluation))
    asked = list(questions(comparison, wanted, table, refused, access.may(user, Action.ADJUDICATE, evaluation)))
    said = thread(comparison)
    html = html_of([*texts_of(comparison), *table.rationales, *(one.text for one in said)])
    context = {
        "page": "disagreements",
        "evaluation": evaluation,
        "comparison": comparison,
        "sides": [
            (side, response, turns_of(response.messages, html))
            for side, response in (("A", comparison.response_a), ("B", comparison.response_b))
        ],
        "html": html,
        "table": table,
        "differing": [one for one in asked if one.is_open or (one.difference and one.difference.settled)],
        "agreed": [one for one in asked if not (one.is_open or (one.difference and one.difference.settled))],
        "open_questions": sum(one.is_open for one in asked),
        "passages": passages_of(comparison),
        "thread": said,
        "comment": comment or CommentForm(aspects=table.aspects),
        "readers": access.who_may_see(comparison),
        "history": history(comparison),
        "own": Review.objects.filter(rater__user=user, comparison=comparison, state__in=SAVED_REVIEW_STATES).first(),
        "reasons": [(reason.value, REASONS_IN_WORDS[reason]) for reason in Reason],
        "before": before,
        "after": after,
        "filter": filter_of(request.GET),
    }
    status = 422 if refused or comment else 200
    return render(request, "disagreement/disagreement.html", context, status=status)


def questions(
    comparison: Comparison, wanted: Wanted, table: Table, refused: Refused | None, may_settle: bool
) -> Iterator[Question]:
    """Every aspect that somebody spoke of or that the rubric asks about, in the order of the rubric."""
    voices = voices_on(comparison)
    differ = on_comparison(comparison, wanted.judge)
    offered = choices_offered(comparison.evaluation)
    for place, aspect in enumerate(table.aspects):
        others = [
            (row, cell) for row in table.rows if row.kind != RaterKind.HUMAN and (cell := row.cells[place]) is not None
        ]
        difference, choices = differ.get(aspect.pk), offered.get(aspect.pk, [])
        mine = refused if refused and refused.aspect == aspect.key else None
        settled = difference.settled if difference else None
        form = SettleForm.for_aspect(aspect, settled, mine.sent if mine else None) if may_settle and choices else None
        yield Question(
            aspect,
            voices.get(aspect, []),
            others,
            difference,
            table.labels[place],
            choices,
            form,
            mine.reason if mine else "",
        )


def choices_offered(evaluation: Evaluation) -> Mapping[int, Sequence[tuple[Choice, str]]]:
    """By aspect what its rubrics offer: that in force if it asks about it, else the newest."""
    asked = RubricAspect.objects.filter(version__rubric__evaluation=evaluation).select_related("aspect")
    told: dict[int, RubricAspect] = {}
    for one in asked.order_by("version_id"):
        if told.get(one.aspect_id) is None or told[one.aspect_id].version_id != evaluation.review_rubric_id:
            told[one.aspect_id] = one
    return {aspect: [(choice, in_words(choice, one)) for choice in one.choices] for aspect, one in told.items()}


def in_words(choice: Choice, asked: RubricAspect) -> str:
    """Where “both bad” can be chosen, a tie is two good ones."""
    return "Both good" if choice == Choice.TIE and asked.offers_both_bad else IN_WORDS[choice]

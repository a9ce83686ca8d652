"""One comparison written by hand."""

from dataclasses import asdict, dataclass

from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from evaluations.domain import ComparisonOrigin, InputRefused, Message, content_sha256
from evaluations.formats.values import MAX_CATEGORY, MAX_KEY, RowRefused, refuse_unstorable
from evaluations.models import Candidate, Comparison, Evaluation, Query, Response, Score, User
from evaluations.services.importing.flagging import flag
from evaluations.services.importing.indexing import make_findable
from evaluations.services.importing.pairing import comparison_of
from evaluations.services.importing.recounting import imports_of, recount_later
from evaluations.services.recording import record


@dataclass(frozen=True)
class Written:
    """What a person wrote, in the order in which they wrote it: which response is A comes of the names."""

    query: str
    first_candidate: str
    first_response: str
    second_candidate: str
    second_response: str
    category: str = ""
    context: str = ""
    reference: str = ""


def add_comparison(evaluation: Evaluation, written: Written, *, user: User | None) -> Comparison:
    refuse_unusable(written)
    try:
        return stored(evaluation, written, user)
    except IntegrityError as error:  # the same rows are on their way in through another door
        raise InputRefused("An import is bringing in the same texts: try again when it is done.") from error


def refuse_unusable(written: Written) -> None:
    if not written.query.strip():
        raise InputRefused("Write the query first.")
    names = (written.first_candidate, written.second_candidate)
    if not all(name.strip() for name in names):
        raise InputRefused("Name both candidates.")
    if names[0] == names[1]:
        raise InputRefused(f"Both responses are by “{names[0]}”: a comparison holds two candidates against each other.")
    if max(map(len, names)) > MAX_KEY:
        raise InputRefused(f"The name of a candidate has at most {MAX_KEY} characters.")
    if len(written.category) > MAX_CATEGORY:
        raise InputRefused(f"A category has at most {MAX_CATEGORY} characters.")
    try:
        for field, text in asdict(written).items():
            refuse_unstorable(text, f"The {field.replace('_', ' ')}")
    except RowRefused as error:
        raise InputRefused(f"{error}: no database keeps it. Take it out.") from error


@transaction.atomic
def stored(evaluation: Evaluation, written: Written, user: User | None) -> Comparison:
    query = query_of(evaluation, written)
    comparison = comparison_of(
        query,
        response_of(query, written.first_candidate, written.first_response),
        response_of(query, written.second_candidate, written.second_response),
        origin=ComparisonOrigin.BY_HAND,
    )
    same = Comparison.objects.filter(response_a=comparison.response_a, response_b=comparison.response_b).first()
    if same is not None:
        raise InputRefused(f"This comparison is here already, as number {same.pk}.")
    comparison.save()
    make_findable([comparison])
    Evaluation.objects.filter(pk=evaluation.pk).update(comparisons_changed_at=Now())
    recount_later(imports_of(Score.objects.filter(response__in=[comparison.response_a, comparison.response_b])))
    after = {"query": query.key, "candidates": [written.first_candidate, written.second_candidate]}
    record("added", comparison, user=user, evaluation=evaluation, after=after)
    return comparison


def query_of(evaluation: Evaluation, written: Written) -> Query:
    """The query of these words: one that is here already stays one query, so that its cluster holds together."""
    messages = [Message(role="user", content=written.query)]
    context, reference = written.context or None, written.reference or None
    sha256 = content_sha256([messages, context, reference])
    known = Query.objects.filter(evaluation=evaluation, sha256=sha256).order_by("pk").first()
    if known is not None:
        if written.category not in ("", known.category):
            raise InputRefused(f"This query is here already, in the category “{known.category or '–'}”: use that one.")
        return known
    key = f"by-hand-{sha256[:16]}"
    query = Query(
        evaluation=evaluation,
        key=key,
        cluster=key,
        messages=messages,
        text=written.query,
        context=context,
        reference=reference,
        category=written.category,
        sha256=sha256,
    )
    flag([query])
    query.save()
    return query


def response_of(query: Query, name: str, text: str) -> Response:
    candidate, _ = Candidate.objects.get_or_create(evaluation=query.evaluation, name=name)
    messages = [Message(role="assistant", content=text)]
    sha256 = content_sha256(messages)
    same = Response.objects.filter(query=query, candidate=candidate, sha256=sha256).first()
    if same is not None:
        return same
    response = Response(query=query, candidate=candidate, sha256=sha256, messages=messages, characters=len(text))
    flag([response])
    response.save()
    return response

"""Comparisons that people enter by hand."""

from dataclasses import asdict, dataclass

from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from evaluations.audit.events import record_event
from evaluations.comparisons.pairing.selectors import build_comparison
from evaluations.comparisons.search.services import add_to_search_index
from evaluations.domain.errors import InputRefused
from evaluations.domain.texts import ComparisonOrigin, Message, content_sha256
from evaluations.formats.values import MAX_CATEGORY, MAX_KEY, RowRefused, refuse_unstorable
from evaluations.models.comparisons import Candidate, Comparison, Query, Response
from evaluations.models.evaluations import Evaluation
from evaluations.models.text_flags import set_flags
from evaluations.models.users import User
from evaluations.models.verdicts import Score
from evaluations.verdicts.label_updates import find_score_imports, recount_labels_later


@dataclass(frozen=True)
class ManualComparison:
    """The texts of a comparison as entered; the order of the names decides which response is A."""

    query: str
    first_candidate: str
    first_response: str
    second_candidate: str
    second_response: str
    category: str = ""
    context: str = ""
    reference: str = ""

    def normalized(self) -> "ManualComparison":
        """With the line ends of this site, and names without surrounding spaces."""
        texts = {field: text.replace("\r\n", "\n") for field, text in asdict(self).items()}
        names = {field: texts[field].strip() for field in ("first_candidate", "second_candidate", "category")}
        return ManualComparison(**{**texts, **names})


def add_comparison(evaluation: Evaluation, written: ManualComparison, *, user: User | None) -> Comparison:
    written = written.normalized()
    refuse_unusable_texts(written)
    try:
        return store_manual_comparison(evaluation, written, user)
    except IntegrityError as error:  # the same rows are on their way in through another door
        raise InputRefused("An import is adding the same texts. Try again when it is done.") from error


def refuse_unusable_texts(written: ManualComparison) -> None:
    if not written.query.strip():
        raise InputRefused("Enter a prompt.")
    names = (written.first_candidate, written.second_candidate)
    if not all(name.strip() for name in names):
        raise InputRefused("Name both models.")
    if names[0] == names[1]:
        raise InputRefused(f"Both responses are from “{names[0]}”. Name two different models.")
    if max(map(len, names)) > MAX_KEY:
        raise InputRefused(f"A model name can have up to {MAX_KEY} characters.")
    if len(written.category) > MAX_CATEGORY:
        raise InputRefused(f"A category can have up to {MAX_CATEGORY} characters.")
    try:
        for field, text in asdict(written).items():
            refuse_unstorable(text, f"The {field.replace('_', ' ')}")
    except RowRefused as error:
        raise InputRefused(f"{error}, which cannot be stored. Remove it.") from error


@transaction.atomic
def store_manual_comparison(evaluation: Evaluation, written: ManualComparison, user: User | None) -> Comparison:
    query = get_or_create_query(evaluation, written)
    comparison = build_comparison(
        query,
        get_or_create_response(query, written.first_candidate, written.first_response),
        get_or_create_response(query, written.second_candidate, written.second_response),
        origin=ComparisonOrigin.BY_HAND,
    )
    same = Comparison.objects.filter(response_a=comparison.response_a, response_b=comparison.response_b).first()
    if same is not None:
        raise InputRefused(f"This comparison already exists as number {same.pk}.")
    comparison.save()
    add_to_search_index([comparison])
    Evaluation.objects.filter(pk=evaluation.pk).update(comparisons_changed_at=Now())
    recount_labels_later(
        find_score_imports(Score.objects.filter(response__in=[comparison.response_a, comparison.response_b]))
    )
    after = {"query": query.key, "candidates": [written.first_candidate, written.second_candidate]}
    record_event("added", comparison, user=user, evaluation=evaluation, after=after)
    return comparison


def get_or_create_query(evaluation: Evaluation, written: ManualComparison) -> Query:
    """The query with these texts; an existing one is used, so that its cluster holds together."""
    messages = [Message(role="user", content=written.query)]
    context, reference = written.context or None, written.reference or None
    sha256 = content_sha256([messages, context, reference])
    query = Query.objects.filter(evaluation=evaluation, sha256=sha256).order_by("pk").first()
    if query is not None:
        if written.category not in ("", query.category):
            raise InputRefused(
                f"This prompt already exists in the category “{query.category or '–'}”. Use that category."
            )
        return query
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
    set_flags([query])
    query.save()
    return query


def get_or_create_response(query: Query, name: str, text: str) -> Response:
    candidate, _ = Candidate.objects.get_or_create(evaluation=query.evaluation, name=name)
    messages = [Message(role="assistant", content=text)]
    sha256 = content_sha256(messages)
    same = Response.objects.filter(query=query, candidate=candidate, sha256=sha256).first()
    if same is not None:
        return same
    response = Response(query=query, candidate=candidate, sha256=sha256, messages=messages, characters=len(text))
    set_flags([response])
    response.save()
    return response

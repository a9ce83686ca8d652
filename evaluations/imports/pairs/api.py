"""Pairs and near-duplicates in the API."""

from typing import BinaryIO, Final, cast

from ninja import Field, Query, Schema

from evaluations.access import Action, require_evaluation
from evaluations.api.operations import BYTES_TYPE, FORM_TYPE, OperationRouter
from evaluations.api.pagination import PageQuery, decode_cursor, encode_cursor
from evaluations.api.problems import FieldError, Problem
from evaluations.api.schemas import NameText
from evaluations.api.serializers import serialize_row
from evaluations.api.uploads import describe_upload, read_sent_file
from evaluations.comparisons.pairing.selectors import CONFIRMED_ABOVE
from evaluations.domain.roles import Scope
from evaluations.imports.duplicates.selectors import (
    GROUPS_PER_PAGE,
    IdenticalResponses,
    find_identical_responses,
    find_near_duplicates,
    find_overlap_with_evaluations,
    find_overlap_with_examples,
    find_overlap_with_file,
    find_repeated_responses,
)
from evaluations.imports.duplicates.services import merge_clusters
from evaluations.imports.pairs.services import complete_pairing, count_pairing_options, start_pairing
from evaluations.imports.schemas import (
    IdenticalResponsesOut,
    ImportDetailOut,
    MergeClustersIn,
    MergedClusterOut,
    NearDuplicatePageOut,
    NearDuplicateQueryOut,
    NearDuplicatesOut,
    PairCountOut,
    PairCountsOut,
    PairsIn,
    PairsPerQuery,
    QueryOverlapOut,
    RepeatsOut,
)
from evaluations.imports.serializers import serialize_import_detail
from evaluations.web.requests import AuthenticatedRequest

operations = OperationRouter(tags=["pairs"])
MAX_GROUP: Final = 2**63 - 1


class PairCountIn(Schema):
    baseline: NameText = Field("", description="The baseline model; by default the first by name.")
    pairs_each: PairsPerQuery = Field(1, description="Random pairs per prompt.")


@operations.get_one("/evaluations/{slug:slug}/pairs", Scope.READ, PairCountsOut)
def count_new_pairs(request: AuthenticatedRequest, slug: str, query: Query[PairCountIn]) -> PairCountsOut:
    """Count the new comparisons of each way of pairing. Nothing is created."""
    evaluation = require_evaluation(request.user, slug, Action.MANAGE)
    options = count_pairing_options(evaluation, query.baseline, query.pairs_each)
    return serialize_row(
        PairCountsOut,
        options,
        items=[
            PairCountOut(
                pair=pairing.way,
                baseline=pairing.baseline or None,
                pairs_each=pairing.number or None,
                comparisons=number,
            )
            for pairing, number in options.counts.items()
        ],
        ranking=list(options.ranking.names),
        ranked_by=options.ranking.by,
        unranked_because=options.unranked,
        confirmed_above=CONFIRMED_ABOVE,
    )


@operations.make("/evaluations/{slug:slug}/pairs", Scope.WRITE, ImportDetailOut)
def make_pairs(request: AuthenticatedRequest, slug: str, body: PairsIn) -> ImportDetailOut:
    """Generate missing comparisons in the background, as one import: all or none."""
    evaluation = require_evaluation(request.user, slug, Action.MANAGE)
    pairing = complete_pairing(evaluation, body.pair, body.baseline, body.pairs_each)
    return serialize_import_detail(start_pairing(evaluation, pairing, confirmed=body.confirmed, user=request.user))


@operations.get_one("/evaluations/{slug:slug}/duplicates", Scope.READ, NearDuplicatePageOut)
def list_duplicates(request: AuthenticatedRequest, slug: str, paging: Query[PageQuery]) -> NearDuplicatePageOut:
    """List groups of prompts that differ only in case, spaces and punctuation."""
    evaluation = require_evaluation(request.user, slug, Action.MANAGE)
    duplicates = find_near_duplicates(evaluation, decode_cursor(paging))
    groups = duplicates[: paging.limit]
    has_more = len(duplicates) > len(groups) or len(duplicates) == GROUPS_PER_PAGE
    return NearDuplicatePageOut(
        items=[
            serialize_row(
                NearDuplicatesOut,
                group,
                group=str(group.key),
                queries=[
                    NearDuplicateQueryOut(query_id=query.key, query=query.text, cluster=query.cluster)
                    for query in group.queries
                ],
            )
            for group in groups
        ],
        next=encode_cursor(groups[-1].key) if has_more else None,
    )


@operations.get_one("/evaluations/{slug:slug}/repeats", Scope.READ, RepeatsOut)
def list_repeats(request: AuthenticatedRequest, slug: str) -> RepeatsOut:
    """List identical responses, and prompts that also occur in other evaluations or in rubric examples."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    overlaps = find_overlap_with_evaluations(evaluation, user)
    return RepeatsOut(
        same_responses=[serialize_identical_responses(repeat) for repeat in find_identical_responses(evaluation)],
        repeated_responses=[serialize_identical_responses(repeat) for repeat in find_repeated_responses(evaluation)],
        other_evaluations=[serialize_row(QueryOverlapOut, overlap) for overlap in overlaps],
        worked_examples=[serialize_row(QueryOverlapOut, overlap) for overlap in find_overlap_with_examples(evaluation)],
    )


@operations.do(
    "/evaluations/{slug:slug}/repeats/file",
    Scope.READ,
    QueryOverlapOut,
    takes=f"{FORM_TYPE}, {BYTES_TYPE}",
    needs=Action.MANAGE,
    extra=describe_upload(),
)
def check_file_overlap(request: AuthenticatedRequest, slug: str) -> QueryOverlapOut:
    """Count the prompts that also occur in a file, such as a test set. The file is not stored."""
    evaluation = require_evaluation(request.user, slug, Action.MANAGE)
    file, name = read_sent_file(request)
    return serialize_row(QueryOverlapOut, find_overlap_with_file(evaluation, cast(BinaryIO, file), name))


@operations.do("/evaluations/{slug:slug}/duplicates/together", Scope.WRITE, MergedClusterOut)
def merge_duplicates(request: AuthenticatedRequest, slug: str, body: MergeClustersIn) -> MergedClusterOut:
    """Merge the clusters of near-duplicate prompts, so that no split separates them."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    is_number = body.group.isascii() and body.group.isdecimal()
    if not is_number or int(body.group) > MAX_GROUP:
        fault = FieldError("body.group", "Unknown group. Send `group` as in the list of duplicates.")
        raise Problem("invalid", fault.message, faults=[fault])
    return MergedClusterOut(cluster=merge_clusters(evaluation, int(body.group), user=user))


def serialize_identical_responses(responses: IdenticalResponses) -> IdenticalResponsesOut:
    return serialize_row(IdenticalResponsesOut, responses, query_id=responses.key or None)

"""Comparisons made of the responses that are here, and what is here more than once."""

from typing import Any, BinaryIO, Final, cast

from django.http import HttpRequest
from ninja import Field, Query, Schema

from evaluations import access
from evaluations.access import Action
from evaluations.api.admission import person
from evaluations.api.forms import checked, sent
from evaluations.api.imports import FILE_NAME, WHOLE_FILE, sent_file, whole
from evaluations.api.operations import BYTES, FORM, Operations
from evaluations.api.paging import Paging, after_of, written
from evaluations.api.problems import Fault, Problem
from evaluations.api.schemas.files import ImportWhole
from evaluations.api.schemas.pairs import (
    AlikePage,
    AlikeTold,
    Each,
    OverlapTold,
    PairsCounted,
    PairsNew,
    PairsTold,
    QueryAlike,
    RepeatsTold,
    SameTold,
    Together,
    TogetherTold,
    Way,
)
from evaluations.api.schemas.shared import Name
from evaluations.domain import Scope
from evaluations.forms.make_pairs import PairsForm
from evaluations.services.importing.counting import CONFIRMED_ABOVE
from evaluations.services.importing.coupling import count_ways, couple
from evaluations.services.importing.likening import (
    AT_ONCE,
    Overlap,
    Same,
    alike,
    in_examples,
    in_file,
    in_other_evaluations,
    put_together,
    repeated_responses,
    same_responses,
)
from evaluations.services.importing.pairing import read_pairing
from evaluations.tasks import nudge, store_import

operations = Operations(tags=["pairs"])
LAST_GROUP: Final = 2**63 - 1
TEST_SET: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            FORM: {"schema": {"type": "object", "required": ["file"], "properties": {"file": WHOLE_FILE}}},
            BYTES: {"schema": WHOLE_FILE},
        },
    },
}


class Counting(Schema):
    baseline: Name = Field("", description="the candidate to hold the others against; empty: the first by name")
    pairs_each: Each = Field(1, description="how many pairs of each query are drawn at random")


@operations.get_one("/evaluations/{slug:slug}/pairs", Scope.READ, PairsTold)
def count_new_pairs(request: HttpRequest, slug: str, asked: Query[Counting]) -> PairsTold:
    """How many comparisons each way of pairing the responses that are here would make; none is made."""
    evaluation = access.evaluation_for(person(request), slug, Action.MANAGE)
    form = PairsForm(evaluation, {"pair": "all", **asked.model_dump()})
    checked(form, "query")
    ways = count_ways(evaluation, form.ways())
    return PairsTold(
        items=[way_told(way, as_told, ways.counted[way]) for way, as_told in ways.told.items()],
        ranking=list(ways.ranking.names),
        ranked_by=ways.ranking.by,
        unranked_because=ways.unranked,
        is_whole=ways.is_whole,
        queries=ways.queries,
        confirmed_above=CONFIRMED_ABOVE,
    )


def way_told(way: str, as_told: str, comparisons: int) -> PairsCounted:
    pairing = read_pairing(as_told)
    return PairsCounted(
        pair=cast(Way, way),
        baseline=pairing.baseline or None,
        pairs_each=pairing.number or None,
        comparisons=comparisons,
    )


@operations.make("/evaluations/{slug:slug}/pairs", Scope.WRITE, ImportWhole)
def make_pairs(request: HttpRequest, slug: str, body: PairsNew) -> ImportWhole:
    """Make them in the background, those alone that are not here: as an import, all of them or none."""
    user = person(request)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    form = PairsForm(evaluation, sent(body) | {"pair": body.pair})
    asked = checked(form)
    importing = couple(evaluation, form.ways()[asked["pair"]], confirmed=asked["confirmed"], user=user)
    nudge(store_import, importing.pk)
    return whole(importing)


# ---- more than once ------------------------------------------------------------------------------


@operations.get_one("/evaluations/{slug:slug}/duplicates", Scope.READ, AlikePage)
def list_duplicates(request: HttpRequest, slug: str, paging: Query[Paging]) -> AlikePage:
    """Queries that differ at most in case, blank space and punctuation, in groups of at least two."""
    evaluation = access.evaluation_for(person(request), slug, Action.MANAGE)
    found = alike(evaluation, after_of(paging))
    groups = found[: paging.limit]
    more = len(found) > len(groups) or len(found) == AT_ONCE
    return AlikePage(
        items=[
            AlikeTold(
                group=str(one.likeness),
                number=one.number,
                exact=one.exact,
                clusters=one.clusters,
                queries=[QueryAlike(query_id=row.key, query=row.text, cluster=row.cluster) for row in one.queries],
            )
            for one in groups
        ],
        next=written(groups[-1].likeness) if more else None,
    )


@operations.get_one("/evaluations/{slug:slug}/repeats", Scope.READ, RepeatsTold)
def list_repeats(request: HttpRequest, slug: str) -> RepeatsTold:
    """Texts given more than once, and queries that stand in other evaluations or in a rubric's examples, too."""
    user = person(request)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    return RepeatsTold(
        same_responses=[same_told(one) for one in same_responses(evaluation)],
        repeated_responses=[same_told(one) for one in repeated_responses(evaluation)],
        other_evaluations=[overlap_told(one) for one in in_other_evaluations(evaluation, user)],
        worked_examples=[overlap_told(one) for one in in_examples(evaluation)],
    )


@operations.do(
    "/evaluations/{slug:slug}/repeats/file",
    Scope.READ,
    OverlapTold,
    takes=f"{FORM}, {BYTES}",
    needs=Action.MANAGE,
    extra={"parameters": [FILE_NAME], **TEST_SET},
)
def hold_file_against(request: HttpRequest, slug: str) -> OverlapTold:
    """How many queries of the evaluation stand in a file, such as a benchmark's test set. Nothing of it is kept."""
    evaluation = access.evaluation_for(person(request), slug, Action.MANAGE)
    file, name = sent_file(request)
    return overlap_told(in_file(evaluation, cast(BinaryIO, file), name))


@operations.do("/evaluations/{slug:slug}/duplicates/together", Scope.WRITE, TogetherTold)
def put_in_one_cluster(request: HttpRequest, slug: str, body: Together) -> TogetherTold:
    """Give queries that are alike one cluster, so that no split parts them. Their older clusters come with them."""
    user = person(request)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    is_number = body.group.isascii() and body.group.isdecimal()
    if not is_number or int(body.group) > LAST_GROUP:
        fault = Fault("body.group", "This is no group: take `group` of the list of duplicates as it is.")
        raise Problem("invalid", f"{fault.message} Nothing was done.", faults=[fault])
    return TogetherTold(cluster=put_together(evaluation, int(body.group), user=user))


def same_told(one: Same) -> SameTold:
    return SameTold(text=one.text, query_id=one.key or None, number=one.number)


def overlap_told(one: Overlap) -> OverlapTold:
    return OverlapTold(where=one.where, number=one.number, examples=one.examples)

"""Shapes of the API for pairs, as well as for near-duplicates."""

from typing import Annotated

from ninja import Field, Schema

from evaluations.api.schemas import NameText, StrictIn
from evaluations.domain.pairing import PairingWay
from evaluations.imports.schemas import PairsPerQuery


class PairCountOut(Schema):
    pair: PairingWay
    baseline: str | None
    pairs_each: int | None
    comparisons: int = Field(description="how many it would make: those that are here do not count")


class PairCountsOut(Schema):
    items: list[PairCountOut]
    ranking: list[str] = Field(description="the rated candidates, the best first, for pairs of neighbours")
    ranked_by: str
    unranked_because: str = Field(description="why there are no neighbours by rating; empty where there are")
    is_whole: bool = Field(description="false where time was up after `queries` of them: there may be more comparisons")
    queries: int = Field(description="of how many queries these were counted")
    confirmed_above: int = Field(description="more than this, or not wholly counted, are made only when `confirmed`")


class PairsIn(StrictIn):
    pair: PairingWay = PairingWay.ALL
    baseline: NameText = Field("", description="the candidate to hold the others against")
    pairs_each: PairsPerQuery | None = Field(None, description="how many pairs of each query are drawn at random")
    confirmed: bool = False


class NearDuplicateQueryOut(Schema):
    query_id: str
    query: str
    cluster: str


class NearDuplicatesOut(Schema):
    group: str = Field(description="to put them together by")
    number: int
    exact: bool = Field(description="whether they differ in nothing, rather than in case, blanks and punctuation")
    clusters: int = Field(description="in how many clusters they are: more than one, and a split may part them")
    queries: list[NearDuplicateQueryOut] = Field(description="the first of them")


class NearDuplicatePageOut(Schema):
    items: list[NearDuplicatesOut]
    next: str | None


class IdenticalResponsesOut(Schema):
    text: str
    query_id: str | None = Field(description="null where it was given to several queries")
    number: int = Field(description="of candidates that gave it to the query, or of queries that it was given to")


class QueryOverlapOut(Schema):
    where: str
    number: int = Field(description="of queries that stand there, too")
    examples: list[str]


class RepeatsOut(Schema):
    same_responses: list[IdenticalResponsesOut] = Field(description="one text of several candidates to one query")
    repeated_responses: list[IdenticalResponsesOut] = Field(description="one text to several queries")
    other_evaluations: list[QueryOverlapOut] = Field(description="of yours")
    worked_examples: list[QueryOverlapOut] = Field(description="rubrics whose examples tell the judge the answer")


class MergeClustersIn(StrictIn):
    group: Annotated[str, Field(min_length=1, max_length=19, description="of queries that are alike")]


class MergedClusterOut(Schema):
    cluster: str

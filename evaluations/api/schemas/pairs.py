from typing import Annotated, Literal

from ninja import Field, Schema

from evaluations.api.schemas.shared import Name, Sent

Way = Literal["all", "baseline", "random", "adjacent"]
Each = Annotated[int, Field(ge=1, le=999_999)]


class PairsCounted(Schema):
    pair: Way
    baseline: str | None
    pairs_each: int | None
    comparisons: int = Field(description="how many it would make: those that are here do not count")


class PairsTold(Schema):
    items: list[PairsCounted]
    ranking: list[str] = Field(description="the rated candidates, the best first, for pairs of neighbours")
    ranked_by: str
    unranked_because: str = Field(description="why there are no neighbours by rating; empty where there are")
    is_whole: bool = Field(description="false where time was up after `queries` of them: there may be more comparisons")
    queries: int = Field(description="of how many queries these were counted")
    confirmed_above: int = Field(description="more than this, or not wholly counted, are made only when `confirmed`")


class PairsNew(Sent):
    pair: Way = "all"
    baseline: Name = Field("", description="the candidate to hold the others against")
    pairs_each: Each | None = Field(None, description="how many pairs of each query are drawn at random")
    confirmed: bool = False


class QueryAlike(Schema):
    query_id: str
    query: str
    cluster: str


class AlikeTold(Schema):
    group: str = Field(description="to put them together by")
    number: int
    exact: bool = Field(description="whether they differ in nothing, rather than in case, blanks and punctuation")
    clusters: int = Field(description="in how many clusters they are: more than one, and a split may part them")
    queries: list[QueryAlike] = Field(description="the first of them")


class AlikePage(Schema):
    items: list[AlikeTold]
    next: str | None


class SameTold(Schema):
    text: str
    query_id: str | None = Field(description="null where it was given to several queries")
    number: int = Field(description="of candidates that gave it to the query, or of queries that it was given to")


class OverlapTold(Schema):
    where: str
    number: int = Field(description="of queries that stand there, too")
    examples: list[str]


class RepeatsTold(Schema):
    same_responses: list[SameTold] = Field(description="one text of several candidates to one query")
    repeated_responses: list[SameTold] = Field(description="one text to several queries")
    other_evaluations: list[OverlapTold] = Field(description="of yours")
    worked_examples: list[OverlapTold] = Field(description="rubrics whose examples tell the judge the answer")


class Together(Sent):
    group: Annotated[str, Field(min_length=1, max_length=19, description="of queries that are alike")]


class TogetherTold(Schema):
    cluster: str

"""Comparisons with their queries, responses, tags and saved filters."""

import random
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, cast

from django.db import connection, models
from django.db.models import F, Q
from django.db.models.functions import Greatest, Least

from evaluations.domain.filters import ComparisonFilter, NamedFilter, parse_filter
from evaluations.domain.json_values import JsonDict
from evaluations.domain.rubrics import RubricKind
from evaluations.domain.texts import (
    ComparisonOrigin,
    Flag,
    Message,
    PairTexts,
    ResponseTexts,
    cluster_number,
    detect_markup,
    messages_to_text,
    near_duplicate_key,
)
from evaluations.models.base import Row, enum_choices, enum_constraint
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import FinishedManager, Import
from evaluations.models.users import User


class DerivedColumn:
    """A column derived from the row's others whenever it is written; migrations see a column of type ``plain``."""

    plain: str
    attname: str

    def __init__(self, *args: Any, derive: Callable[..., Any] = int, **kwargs: Any) -> None:
        self.derive = derive
        super().__init__(*args, **kwargs)

    def deconstruct(self) -> tuple[str, str, Sequence[object], JsonDict]:
        name, _, args, kwargs = super().deconstruct()  # type: ignore[misc]
        return name, self.plain, args, kwargs

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        value = self.derive(model_instance)
        setattr(model_instance, self.attname, value)
        return value


class DerivedNumber(DerivedColumn, models.BigIntegerField):  # type: ignore[type-arg]
    plain = "django.db.models.BigIntegerField"


class DerivedText(DerivedColumn, models.CharField):  # type: ignore[type-arg]
    plain = "django.db.models.CharField"


class Candidate(Row):
    """A model. ``first_name``: its name before the first renaming, by which A and B stay in order."""

    evaluation = models.ForeignKey(Evaluation, on_delete=models.PROTECT, related_name="candidates")
    name = models.CharField(max_length=200)
    first_name = models.CharField(max_length=200, blank=True)
    family = models.CharField(max_length=80, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["evaluation", "name"], name="candidate_name")]

    @property
    def sort_name(self) -> str:
        """Of two candidates, A is the one whose first name sorts first. Renaming changes no side."""
        return self.first_name or self.name


class Query(Row):
    # All of its indexes begin with it.
    evaluation = models.ForeignKey(Evaluation, on_delete=models.PROTECT, related_name="queries", db_index=False)
    source_import = models.ForeignKey(Import, on_delete=models.PROTECT, null=True, related_name="queries")
    key = models.CharField(max_length=200)
    cluster = models.CharField(max_length=200)
    cluster_number = DerivedNumber(default=0, derive=lambda query: cluster_number(query.cluster))
    messages = models.JSONField()
    text = models.TextField(blank=True)
    context = models.TextField(null=True)
    reference = models.TextField(null=True)
    category = models.CharField(max_length=120, blank=True)
    metadata = models.JSONField(default=dict)
    # What is suspect in its turns, context or reference: words of Flag, with commas between.
    flags = models.CharField(max_length=120, blank=True)
    sha256 = models.CharField(max_length=64)
    # Queries that differ only in spelling or spacing share it. 0 if the row was inserted without the ORM.
    near_duplicate_key = DerivedNumber(
        default=0, db_default=0, derive=lambda query: near_duplicate_key(query.text, query.context)
    )

    objects = FinishedManager["Query"]()
    all_rows = models.Manager["Query"]()

    class Meta:
        verbose_name_plural = "queries"
        constraints = [models.UniqueConstraint(fields=["evaluation", "key"], name="query_key")]
        indexes = [
            models.Index(fields=["evaluation", "category"], name="query_category"),
            models.Index(fields=["evaluation"], condition=~Q(flags=""), name="query_flagged"),
            # Read whole where near-duplicates are looked for: by this key it would be written at random places.
            models.Index(fields=["evaluation", "id", "source_import", "near_duplicate_key"], name="query_in_order"),
        ]

    def __str__(self) -> str:
        return self.key


class Response(Row):
    """One candidate's answer, as chat messages that continue the query's."""

    # `response_once` begins with it.
    query = models.ForeignKey(Query, on_delete=models.PROTECT, related_name="responses", db_index=False)
    candidate = models.ForeignKey(Candidate, on_delete=models.PROTECT, related_name="responses")
    source_import = models.ForeignKey(Import, on_delete=models.PROTECT, null=True, related_name="responses")
    messages = models.JSONField()
    sha256 = models.CharField(max_length=64)
    characters = models.PositiveIntegerField()
    # The bits of Markup.
    markup = DerivedNumber(default=0, derive=lambda response: int(detect_markup(messages_to_text(response.messages))))
    metadata = models.JSONField(default=dict)
    flags = models.CharField(max_length=120, blank=True)

    objects = FinishedManager["Response"]()
    all_rows = models.Manager["Response"]()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["query", "candidate", "sha256"], name="response_once")]
        indexes = [
            models.Index(fields=["query"], condition=~Q(flags=""), name="response_flagged"),
        ]

    @property
    def text(self) -> str:
        return messages_to_text(cast("list[Message]", self.messages))

    def judged_texts(self) -> ResponseTexts:
        """The texts that a judge receives about this response."""
        query = self.query
        return ResponseTexts(
            messages=cast("list[Message]", query.messages),
            response=cast("list[Message]", self.messages),
            context=query.context,
            reference=query.reference,
        )


# A comparison whose query or one of whose responses holds something suspect.
FLAGGED_TEXTS: Final = Q(query__flags__gt="") | Q(response_a__flags__gt="") | Q(response_b__flags__gt="")


IS_SINGLE: Final = Q(origin=ComparisonOrigin.SINGLE.value)


def draw_random_order() -> int:
    """A random number that orders comparisons for review."""
    return random.getrandbits(63)


class PairManager(FinishedManager["Comparison"]):
    """Hides single comparisons as well."""

    def filter_rows(self, rows: "models.QuerySet[Comparison]") -> "models.QuerySet[Comparison]":
        return super().filter_rows(rows).exclude(IS_SINGLE)


class ReviewableManager(FinishedManager["Comparison"]):
    """Hides single comparisons where reviews do not ask for scores."""

    def filter_rows(self, rows: "models.QuerySet[Comparison]") -> "models.QuerySet[Comparison]":
        asks_for_scores = Q(evaluation__review_rubric__rubric__kind=RubricKind.POINTWISE.value)
        return super().filter_rows(rows).filter(~IS_SINGLE | asks_for_scores)


class Comparison(Row):
    """Two responses to one query; A is the candidate whose name sorts first.

    A single comparison holds one response as both A and B, for reviews that score it by itself: `objects` has pairs
    alone, `reviewable` what reviews are about by now.


    ``swapped``: the imported file had the candidates in the other order.
    ``random_order``: a random number drawn once; reviewers and judges get comparisons in this order.
    ``candidate_a``, ``candidate_b`` and ``category`` repeat what its responses and its query say and never change:
    an index with all three is read whole where looking up four rows for each comparison would take seconds.
    """

    # Both indexes below begin with it.
    evaluation = models.ForeignKey(Evaluation, on_delete=models.PROTECT, related_name="comparisons", db_index=False)
    query = models.ForeignKey(Query, on_delete=models.PROTECT, related_name="comparisons")
    response_a = models.ForeignKey(Response, on_delete=models.PROTECT, related_name="comparisons_as_a")
    response_b = models.ForeignKey(Response, on_delete=models.PROTECT, related_name="comparisons_as_b")
    source_import = models.ForeignKey(Import, on_delete=models.PROTECT, null=True, related_name="comparisons")
    origin = models.CharField(max_length=12, choices=enum_choices(ComparisonOrigin))
    swapped = models.BooleanField(default=False)
    random_order = models.BigIntegerField()
    candidate_a = DerivedNumber(default=0, derive=lambda comparison: comparison.response_a.candidate_id)
    candidate_b = DerivedNumber(default=0, derive=lambda comparison: comparison.response_b.candidate_id)
    category = DerivedText(max_length=120, blank=True, default="", derive=lambda comparison: comparison.query.category)
    metadata = models.JSONField(default=dict)
    # Withdrawn resolutions included: the version of each comes from it, so that none has that of an earlier one.
    resolution_count = models.PositiveIntegerField(default=0, db_default=0)

    objects = PairManager()
    reviewable = ReviewableManager()
    with_singles = FinishedManager["Comparison"]()
    all_rows = models.Manager["Comparison"]()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=(IS_SINGLE & Q(response_a=F("response_b"))) | ~(IS_SINGLE | Q(response_a=F("response_b"))),
                name="comparison_single_or_of_two",
            ),
            models.UniqueConstraint(
                Least("response_a", "response_b"), Greatest("response_a", "response_b"), name="comparison_once"
            ),
            enum_constraint("origin", ComparisonOrigin, "comparison_origin"),
        ]
        indexes = [
            models.Index(fields=["evaluation", "random_order"], name="comparison_random_order"),
            models.Index(
                fields=["evaluation", "id", "candidate_a", "candidate_b", "category", "origin", "source_import"],
                name="comparison_in_order",
            ),
            models.Index(
                # Its origin is the same throughout: without it SQLite would rather read the index above whole.
                fields=["evaluation", "origin"],
                condition=Q(origin=ComparisonOrigin.BY_HAND.value),
                name="comparison_by_hand",
            ),
            models.Index(fields=["evaluation", "origin", "id"], condition=IS_SINGLE, name="comparison_single"),
        ]

    @property
    def is_single(self) -> bool:
        return self.origin == ComparisonOrigin.SINGLE

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags of all its texts, in the order of Flag. The flags of one text would reveal which side it is."""
        words = ",".join((self.query.flags, self.response_a.flags, self.response_b.flags)).split(",")
        return tuple(flag.value for flag in Flag if flag in words)

    def judged_texts(self) -> PairTexts:
        """The texts that a judge receives about this comparison."""
        query = self.query
        return PairTexts(
            messages=cast("list[Message]", query.messages),
            response_a=cast("list[Message]", self.response_a.messages),
            response_b=cast("list[Message]", self.response_b.messages),
            context=query.context,
            reference=query.reference,
        )


class Tag(Row):
    """A word that people put to comparisons."""

    evaluation = models.ForeignKey(Evaluation, on_delete=models.PROTECT, related_name="tags", db_index=False)
    name = models.CharField(max_length=60)
    comparisons = models.ManyToManyField(Comparison, through="Tagging", related_name="tags")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["evaluation", "name"], name="tag_name")]


class Tagging(Row):
    """A tag on a comparison, with its time and author."""

    tag = models.ForeignKey(Tag, on_delete=models.PROTECT, related_name="taggings", db_index=False)
    comparison = models.ForeignKey(Comparison, on_delete=models.PROTECT, related_name="taggings")
    user = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="taggings")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tag", "comparison"], name="tagging_once")]


class SavedFilter(Row):
    """A saved filter."""

    evaluation = models.ForeignKey(Evaluation, on_delete=models.PROTECT, related_name="saved_filters", db_index=False)
    name = models.CharField(max_length=80)
    filter = models.JSONField(default=dict)
    user = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="saved_filters")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["evaluation", "name"], name="saved_filter_name")]

    @property
    def comparison_filter(self) -> ComparisonFilter:
        return parse_filter(self.filter)

    @property
    def named(self) -> NamedFilter:
        return NamedFilter(self.name, self.comparison_filter)


class TagChange(Row):
    """A tag added to, or removed from, comparisons: chosen ones at once, or by a job all that match the filters.

    ``changed``: how many got or lost the tag. ``comparisons``: their ids, for undo; empty where a job changed them.
    ``tag`` is null once the tag is deleted; undo then creates it again as ``tag_name``.
    """

    evaluation = models.ForeignKey(Evaluation, on_delete=models.PROTECT, related_name="tag_changes")
    tag = models.ForeignKey(Tag, on_delete=models.PROTECT, null=True, related_name="changes")
    tag_name = models.CharField(max_length=60, blank=True)
    user = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="tag_changes")
    filters = models.JSONField(default=list)
    removes = models.BooleanField(default=False)
    changed = models.PositiveIntegerField(default=0)
    comparisons = models.JSONField(default=list)
    undone_at = models.DateTimeField(null=True)

    @property
    def name(self) -> str:
        return self.tag.name if self.tag else self.tag_name


class Rendering(Row):
    """A text as safe HTML, found by its content, so that equal texts are rendered once."""

    sha256 = models.CharField(max_length=64)
    renderer = models.PositiveSmallIntegerField()  # the version of the renderer that made it
    html = models.TextField()

    class Meta:
        # The version first: what older versions left behind is found by the same index.
        constraints = [models.UniqueConstraint(fields=["renderer", "sha256"], name="rendering_once")]


SELECT_RENDERINGS: Final = "SELECT sha256, html FROM evaluations_rendering WHERE renderer = %s AND sha256 IN ({marks})"


def load_rendered_html(renderer: int, keys: Collection[str]) -> dict[str, str]:
    """The stored HTML by the hash of its text; those without any are absent."""
    if not keys:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(SELECT_RENDERINGS.format(marks=", ".join(["%s"] * len(keys))), [renderer, *keys])
        return dict(cursor.fetchall())


def load_tag_names(comparison_ids: Collection[int]) -> Mapping[int, list[str]]:
    """Comparison id → its tags by name; those without any are absent."""
    names: dict[int, list[str]] = defaultdict(list)
    rows = Tagging.objects.filter(comparison__in=comparison_ids).order_by("tag__name")
    for comparison, name in rows.values_list("comparison_id", "tag__name"):
        names[comparison].append(name)
    return names

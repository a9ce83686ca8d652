"""What is judged: imports, candidates, queries, responses and comparisons."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Greatest, Least

from evaluations.domain import (
    ComparisonOrigin,
    Flag,
    ImportState,
    Message,
    cluster_number,
    likeness,
    markup_of,
    text_of,
)
from evaluations.models.evaluations import Evaluation
from evaluations.models.people import User
from evaluations.models.row import Row, closed_list, one_of


def finished_imports(prefix: str = "") -> Q:
    """Rows that came in no import, or in one whose last step is done."""
    column = f"{prefix}source_import"
    return Q(**{f"{column}__isnull": True}) | Q(**{f"{column}__state": ImportState.DONE})


if TYPE_CHECKING:
    WholeNumber = models.BigIntegerField[int, int]
else:
    WholeNumber = models.BigIntegerField


class DerivedNumber(WholeNumber):
    """A number that the row makes of its other columns whenever it is written; to migrations a plain column."""

    def deconstruct(self) -> tuple[str, str, Sequence[Any], dict[str, Any]]:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.BigIntegerField", args, kwargs


ImportedRow = TypeVar("ImportedRow", bound=models.Model)


class FinishedManager(models.Manager[ImportedRow]):
    """Hides the rows of an import that is not done; `all_rows` shows them to the importer alone."""

    def get_queryset(self) -> models.QuerySet[ImportedRow]:
        return super().get_queryset().filter(finished_imports())


TOLD: Final = ("queries", "responses", "comparisons", "verdicts", "scores", "failures")
ONE_OF: Final = {word: "query" if word == "queries" else word.removesuffix("s") for word in TOLD}


MODELS_NAMED: Final = 8
NAMED_BY: Final = {"file": ", by the file’s name", "form": ", as given for the whole file"}


def counted_rows(told: Mapping[str, Any]) -> str:
    counts = [(kind, told[kind]) for kind in TOLD if kind in told]
    return ", ".join(f"{number:,} {ONE_OF[kind] if number == 1 else kind}" for kind, number in counts)


class Import(Row):
    evaluation = models.ForeignKey(Evaluation, on_delete=models.PROTECT, related_name="imports")
    user = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="imports")
    file = models.FileField(upload_to="uploads/%Y/%m/", blank=True)
    file_name = models.CharField(max_length=255)
    sha256 = models.CharField(max_length=64)
    format = models.CharField(max_length=40)
    mapping = models.JSONField(default=dict)
    options = models.JSONField(default=dict)
    state = models.CharField(max_length=12, default=ImportState.PREVIEWED.value, choices=one_of(ImportState))
    rows_read = models.PositiveBigIntegerField(default=0)
    rows_stored = models.PositiveBigIntegerField(default=0)
    rows_unchanged = models.PositiveBigIntegerField(default=0)
    rows_bad = models.PositiveBigIntegerField(default=0)
    rows_skipped = models.PositiveBigIntegerField(default=0)
    bad_rows = models.JSONField(default=list)
    summary = models.JSONField(default=dict)
    reason = models.TextField(blank=True)
    finished_at = models.DateTimeField(null=True)
    seen_at = models.DateTimeField(null=True)
    # Whether the labels that its verdicts make are kept yet: begun once everything is stored.
    tallied = models.BooleanField(default=False)

    class Meta:
        constraints = [
            closed_list("state", ImportState, "import_state"),
            models.UniqueConstraint(
                fields=["evaluation"], condition=Q(state=ImportState.STORING.value), name="import_one_at_a_time"
            ),
        ]

    def __str__(self) -> str:
        return self.file_name

    @property
    def is_checked(self) -> bool:
        """Whether it is known what storing the file would do."""
        return bool(self.summary)

    @property
    def stored_at(self) -> datetime:
        """When its rows were shown, or came in where that is not known."""
        return self.finished_at or self.created_at

    @property
    def rows_done(self) -> int:
        """How many rows of the file were come to."""
        return self.rows_stored + self.rows_unchanged + self.rows_skipped + self.rows_bad

    @property
    def models_in_words(self) -> str:
        """The first line of a preview: the models, what names them, and how many rows are about each."""
        listed, number = self.summary.get("models", []), self.summary.get("models_number", 0)
        if not listed:
            return ""
        names = [f"{one['name']} ({counted_rows(one)})" for one in listed[:MODELS_NAMED]]
        more = [f"{number - len(names):,} more"] if number > len(names) else []
        by = NAMED_BY.get(self.summary.get("named_by", ""), "")
        return f"{'Model' if number == 1 else 'Models'}{by}: {', '.join([*names, *more])}."

    @property
    def brought(self) -> dict[str, int]:
        """How much of each is new, in the order in which people are told: not every database keeps that of JSON."""
        new = self.summary.get("new", {})
        return {
            word: new[word] for word in sorted(new, key=lambda word: (TOLD.index(word) if word in TOLD else 99, word))
        }

    @property
    def brought_in_words(self) -> list[tuple[int, str]]:
        """How many, and what those are called: one is called otherwise."""
        return [(number, ONE_OF.get(word, word) if number == 1 else word) for word, number in self.brought.items()]


class Candidate(Row):
    evaluation = models.ForeignKey(Evaluation, on_delete=models.PROTECT, related_name="candidates")
    name = models.CharField(max_length=200)
    family = models.CharField(max_length=80, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["evaluation", "name"], name="candidate_name")]

    def __str__(self) -> str:
        return self.name


class ClusterNumber(DerivedNumber):
    """The cluster's own number, made of its name whenever the row is written."""

    def pre_save(self, model_instance: Any, add: bool) -> int:
        model_instance.cluster_number = number = cluster_number(model_instance.cluster)
        return number


class LikenessOf(DerivedNumber):
    """The number that queries share which differ only in how they are written."""

    def pre_save(self, model_instance: Any, add: bool) -> int:
        model_instance.likeness = number = likeness(model_instance.text, model_instance.context)
        return number


class Query(Row):
    # All of its indexes begin with it.
    evaluation = models.ForeignKey(Evaluation, on_delete=models.PROTECT, related_name="queries", db_index=False)
    source_import = models.ForeignKey(Import, on_delete=models.PROTECT, null=True, related_name="queries")
    key = models.CharField(max_length=200)
    cluster = models.CharField(max_length=200)
    cluster_number = ClusterNumber(default=0)
    messages = models.JSONField()
    text = models.TextField(blank=True)
    context = models.TextField(null=True)
    reference = models.TextField(null=True)
    category = models.CharField(max_length=120, blank=True)
    metadata = models.JSONField(default=dict)
    # What is suspect in its turns, context or reference: words of Flag, with commas between.
    flags = models.CharField(max_length=120, blank=True)
    sha256 = models.CharField(max_length=64)
    # 0 where the row was written past the ORM by something that does not know it.
    likeness = LikenessOf(default=0, db_default=0)

    objects = FinishedManager["Query"]()
    all_rows = models.Manager["Query"]()

    class Meta:
        verbose_name_plural = "queries"
        constraints = [models.UniqueConstraint(fields=["evaluation", "key"], name="query_key")]
        indexes = [
            models.Index(fields=["evaluation", "category"], name="query_category"),
            models.Index(fields=["evaluation"], condition=~Q(flags=""), name="query_flagged"),
            # Read whole where alike ones are looked for: by likeness it would be written at random places.
            models.Index(fields=["evaluation", "id", "source_import", "likeness"], name="query_in_order"),
        ]

    def __str__(self) -> str:
        return self.key


class MarkupOf(DerivedNumber):
    """Which kinds of Markdown the response holds, the bits of Markup, found whenever the row is written."""

    def pre_save(self, model_instance: Any, add: bool) -> int:
        model_instance.markup = found = int(markup_of(text_of(model_instance.messages)))
        return found


class Response(Row):
    """One candidate's answer, as chat messages that continue the query's."""

    # `response_once` begins with it.
    query = models.ForeignKey(Query, on_delete=models.PROTECT, related_name="responses", db_index=False)
    candidate = models.ForeignKey(Candidate, on_delete=models.PROTECT, related_name="responses")
    source_import = models.ForeignKey(Import, on_delete=models.PROTECT, null=True, related_name="responses")
    messages = models.JSONField()
    sha256 = models.CharField(max_length=64)
    characters = models.PositiveIntegerField()
    markup = MarkupOf(default=0)
    metadata = models.JSONField(default=dict)
    flags = models.CharField(max_length=120, blank=True)

    objects = FinishedManager["Response"]()
    all_rows = models.Manager["Response"]()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["query", "candidate", "sha256"], name="response_once")]
        indexes = [
            models.Index(fields=["query"], condition=~Q(flags=""), name="response_flagged"),
        ]

    def __str__(self) -> str:
        return f"{self.candidate} on {self.query}"

    @property
    def text(self) -> str:
        return text_of(cast("list[Message]", self.messages))


# A comparison whose query or one of whose responses holds something suspect.
FLAGGED: Final = Q(query__flags__gt="") | Q(response_a__flags__gt="") | Q(response_b__flags__gt="")


class ComparisonQuerySet(models.QuerySet["Comparison"]):
    def flagged(self) -> "ComparisonQuerySet":
        return self.filter(FLAGGED)


class ComparisonManager(FinishedManager["Comparison"]):
    def get_queryset(self) -> ComparisonQuerySet:
        return ComparisonQuerySet(self.model, using=self._db).filter(finished_imports())

    def flagged(self) -> ComparisonQuerySet:
        """Those that hold a text which speaks to the judge, or imitates a verdict or a delimiter."""
        return self.get_queryset().flagged()


class CandidateOf(DerivedNumber):
    """The id of the candidate of one of the responses: lists are filtered by it a million at a time."""

    def __init__(self, *args: Any, response: str = "", **kwargs: Any) -> None:
        self.response = response
        super().__init__(*args, **kwargs)

    def pre_save(self, model_instance: Any, add: bool) -> int:
        number: int = getattr(model_instance, self.response).candidate_id
        setattr(model_instance, self.attname, number)
        return number


if TYPE_CHECKING:
    ShortText = models.CharField[str, str]
else:
    ShortText = models.CharField


class CategoryOf(ShortText):
    """The category of the query, which never changes; to migrations a plain column."""

    def deconstruct(self) -> tuple[str, str, Sequence[Any], dict[str, Any]]:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.CharField", args, kwargs

    def pre_save(self, model_instance: Any, add: bool) -> str:
        model_instance.category = category = model_instance.query.category
        return str(category)


class Comparison(Row):
    """Two responses to one query; A is the candidate whose name sorts first.

    ``turned``: the file it came from named the candidates in the other order.
    ``shuffle``: a random number drawn once, the order in which people meet comparisons.
    ``candidate_a``, ``candidate_b`` and ``category`` repeat what its responses and its query say and never change:
    an index with all three is read whole where looking up four rows for each comparison would take seconds.
    """

    # Both indexes below begin with it.
    evaluation = models.ForeignKey(Evaluation, on_delete=models.PROTECT, related_name="comparisons", db_index=False)
    query = models.ForeignKey(Query, on_delete=models.PROTECT, related_name="comparisons")
    response_a = models.ForeignKey(Response, on_delete=models.PROTECT, related_name="comparisons_as_a")
    response_b = models.ForeignKey(Response, on_delete=models.PROTECT, related_name="comparisons_as_b")
    source_import = models.ForeignKey(Import, on_delete=models.PROTECT, null=True, related_name="comparisons")
    origin = models.CharField(max_length=12, choices=one_of(ComparisonOrigin))
    turned = models.BooleanField(default=False)
    shuffle = models.BigIntegerField()
    candidate_a = CandidateOf(default=0, response="response_a")
    candidate_b = CandidateOf(default=0, response="response_b")
    category = CategoryOf(max_length=120, blank=True, default="")
    metadata = models.JSONField(default=dict)

    objects = ComparisonManager()
    all_rows = models.Manager["Comparison"]()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=~Q(response_a=F("response_b")), name="comparison_of_two"),
            models.UniqueConstraint(
                Least("response_a", "response_b"), Greatest("response_a", "response_b"), name="comparison_once"
            ),
            closed_list("origin", ComparisonOrigin, "comparison_origin"),
        ]
        indexes = [
            models.Index(fields=["evaluation", "shuffle"], name="comparison_shuffled"),
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
        ]

    def __str__(self) -> str:
        return f"comparison {self.pk}"

    @property
    def flags(self) -> tuple[str, ...]:
        """What is suspect in any of its texts, in the order of Flag: the texts’ own would tell A from B."""
        words = ",".join((self.query.flags, self.response_a.flags, self.response_b.flags)).split(",")
        return tuple(flag.value for flag in Flag if flag in words)

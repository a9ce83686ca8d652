"""What helps people to find comparisons again: tags, and filters that were given a name."""

from django.db import models

from evaluations.domain import Filter, NamedFilter, filter_from
from evaluations.models.evaluations import Evaluation
from evaluations.models.material import Comparison
from evaluations.models.people import User
from evaluations.models.row import Row


class Tag(Row):
    """A word that people put to comparisons."""

    evaluation = models.ForeignKey(Evaluation, on_delete=models.PROTECT, related_name="tags", db_index=False)
    name = models.CharField(max_length=60)
    comparisons = models.ManyToManyField(Comparison, through="Tagging", related_name="tags")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["evaluation", "name"], name="tag_name")]

    def __str__(self) -> str:
        return self.name


class Tagging(Row):
    """That a comparison has a tag: since when, and who put it there. Taken away, it stands in the Events."""

    tag = models.ForeignKey(Tag, on_delete=models.PROTECT, related_name="taggings", db_index=False)
    comparison = models.ForeignKey(Comparison, on_delete=models.PROTECT, related_name="taggings")
    user = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="taggings")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tag", "comparison"], name="tagging_once")]

    def __str__(self) -> str:
        return f"tag {self.tag_id} on comparison {self.comparison_id}"


class Slice(Row):
    """A filter with a name: what it finds may change from day to day, what it says does not."""

    evaluation = models.ForeignKey(Evaluation, on_delete=models.PROTECT, related_name="slices", db_index=False)
    name = models.CharField(max_length=80)
    filter = models.JSONField(default=dict)
    user = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="slices")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["evaluation", "name"], name="slice_name")]

    def __str__(self) -> str:
        return self.name

    @property
    def wanted(self) -> Filter:
        return filter_from(self.filter)

    @property
    def named(self) -> NamedFilter:
        return NamedFilter(self.name, self.wanted)


class TagWork(Row):
    """A tag put to, or taken from, more comparisons than a request should wait for; the worker goes on with it.

    ``filters`` must all hold. ``reached``: how far it came, ``up_to``: the last comparison there was when it was
    asked for, ``changed``: how many were given the tag, or lost it.
    """

    tag = models.ForeignKey(Tag, on_delete=models.PROTECT, related_name="works")
    user = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="tag_works")
    filters = models.JSONField(default=list)
    takes_away = models.BooleanField(default=False)
    reached = models.BigIntegerField(default=0)
    up_to = models.BigIntegerField()
    changed = models.PositiveIntegerField(default=0)
    reason = models.TextField(blank=True)
    finished_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{'without' if self.takes_away else 'with'} tag {self.tag_id}, up to {self.reached}"

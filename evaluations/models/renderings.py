"""Texts as HTML, made once."""

from django.db import models

from evaluations.models.row import Row


class Rendering(Row):
    """A text as safe HTML, found by its content: equal texts are rendered once, whoever wrote them."""

    sha256 = models.CharField(max_length=64)
    renderer = models.PositiveSmallIntegerField()  # the version of the renderer that made it
    html = models.TextField()

    class Meta:
        # The version first: what older versions left behind is found by the same index.
        constraints = [models.UniqueConstraint(fields=["renderer", "sha256"], name="rendering_once")]

    def __str__(self) -> str:
        return f"{self.sha256[:8]} by renderer {self.renderer}"

import numpy as np
import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evaluations.domain import Markup
from evaluations.models import Candidate, Comparison
from evaluations.services.reporting.items import items_of, known_comparisons, places_of
from evaluations.services.reporting.unpacking import Places
from tests.importing import bring, comparison
from tests.making import make_evaluation

pytestmark = pytest.mark.django_db


def test_every_comparison_has_its_cluster_category_sides_lengths_and_markup_in_its_place() -> None:
    evaluation = make_evaluation()
    first = {"cluster": "same", "category": "math", "response_a": "- a list", "response_b": "four"}
    bring(
        evaluation,
        comparison("q1", **first),
        comparison("q2", cluster="same"),
        comparison("q3", category="code", candidate_a="zeta", response_a="", candidate_b="beta", response_b="Other."),
    )
    Candidate.objects.filter(name="beta").update(family="B")
    known = known_comparisons(evaluation)
    ids = sorted(Comparison.objects.values_list("pk", flat=True))
    assert known["comparison"].tolist() == ids
    assert len(items_of(evaluation, known, Places(np.array([ids[0], ids[2]])), np.ones(2))) == 2
    found = items_of(evaluation, known, places_of(known, None), np.ones(3))
    assert found.cluster[0] == found.cluster[1] != found.cluster[2]
    assert found.categories == ("code", "math")
    assert found.category.tolist() == [1, -1, 0]
    assert (found.candidates, found.families) == (("alpha", "beta", "zeta"), ("", "B", ""))
    # A is the candidate whose name sorts first: in the third row the two were turned round.
    assert (found.candidate_a.tolist(), found.candidate_b.tolist()) == ([0, 0, 1], [1, 1, 2])
    assert found.characters_a.tolist()[::2] == [len("- a list"), len("Other.")]
    assert found.characters_b.tolist()[::2] == [len("four"), 0]
    assert found.markup_a.tolist() == [Markup.LIST, 0, 0]
    assert found.markup_b.tolist() == [0, 0, 0]


def test_it_is_read_once_until_comparisons_come_in() -> None:
    evaluation = make_evaluation()
    bring(evaluation, comparison("q1"))
    evaluation.refresh_from_db()
    known_comparisons(evaluation)
    with CaptureQueriesContext(connection) as queries:
        assert len(known_comparisons(evaluation)) == 1
    assert not queries
    bring(evaluation, comparison("q2"))
    evaluation.refresh_from_db()
    assert len(known_comparisons(evaluation)) == 2
    assert len(list(settings.CACHE_DIR.glob(f"comparisons-{evaluation.pk}-*"))) == 1

"""Who wins on each aspect."""

import numpy as np
import pytest

from evaluations.domain.reports import ReportRules
from evaluations.stats.decisions.leaders import REVIEWERS_ALONE, find_leaders
from evaluations.stats.matches import Matches
from tests.stats.decisions.study import aspect_material, codes, verdicts
from tests.stats.match_items import make_match_items


def test_of_two_models_all_aspects_show_the_one_that_leads_overall() -> None:
    """Candidate 0 is A. It wins ¾ on clarity and none on depth, candidate 1 so ¼ and all, which is more."""
    cluster = np.arange(4)
    clarity = aspect_material("Clarity", [codes("AAAB")] * 2, {"gpt": verdicts("AABB")}, cluster)
    depth = aspect_material("Depth", [codes("BBBB")] * 2, {"gpt": verdicts("BBBB")}, cluster)
    matches = Matches(make_match_items([0] * 4, [1] * 4))
    made = find_leaders({"clarity": clarity, "depth": depth}, matches, ReportRules())
    assert {leader.candidate for by_judge in made.values() for leader in by_judge.values()} == {"candidate 1"}
    assert made["clarity"]["gpt"].rates.people.value == pytest.approx(0.25)
    assert made["depth"]["gpt"].rates.judge.value == pytest.approx(1.0)


def test_of_several_models_each_aspect_has_its_own_leader() -> None:
    cluster = np.arange(6)
    pairs = [0, 0, 1, 0, 0, 1], [1, 2, 2, 1, 2, 2]
    matches = Matches(make_match_items(*pairs))
    first = aspect_material("Clarity", [codes("AAAAAA")], {}, cluster)  # 0 beats all
    last = aspect_material("Depth", [codes("BBBBBB")], {}, cluster)  # 2 beats all
    made = find_leaders({"clarity": first, "depth": last}, matches, ReportRules())
    assert made["clarity"][REVIEWERS_ALONE].candidate == "candidate 0"
    assert made["depth"][REVIEWERS_ALONE].candidate == "candidate 2"
    assert made["depth"][REVIEWERS_ALONE].models == 3
    assert made["clarity"][REVIEWERS_ALONE].rates.people.value == 1


def test_without_any_verdict_nobody_leads() -> None:
    material = aspect_material("Clarity", [codes("..")], {}, np.arange(2))
    assert find_leaders({"clarity": material}, Matches(make_match_items([0, 0], [1, 1])), ReportRules()) == {}

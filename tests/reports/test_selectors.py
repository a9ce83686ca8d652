import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from evaluations.domain.choices import Choice, ShownOrder, Stage
from evaluations.domain.errors import InputRefused
from evaluations.domain.judges import CallState
from evaluations.domain.reports import FailedRule, ReportPart, ReportRules, SeenRule, SideCoding, SplitRule
from evaluations.domain.reviews import Reveal, SelectionMethod
from evaluations.domain.rubrics import AspectSpec, RubricKind, RubricOrigin, RubricSpec
from evaluations.judge_prompts.builtin_rubrics import SIX_ASPECT
from evaluations.judges.services import archive_judge
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.queues import QueueItem
from evaluations.models.verdicts import Score
from evaluations.reports.cells.selectors import find_comparisons_in_cell
from evaluations.reports.selectors import build_report
from evaluations.rubrics.services import add_rubric
from evaluations.stats.aspect_report import AspectReport
from evaluations.stats.estimates import Estimate
from evaluations.verdicts import judge_arrays
from evaluations.verdicts import sql as verdicts_sql
from evaluations.verdicts.judge_choices import load_judge_choices
from evaluations.verdicts.verdict_arrays import list_judges_in_claim_family
from tests.factories.evaluations import make_comparison, make_human
from tests.factories.imports import comparison_row, import_rows, verdict_row
from tests.factories.verdicts import (
    ALL_A,
    ALL_B,
    ALL_TIE,
    Choices,
    get_or_make_aspect,
    make_imported_votes,
    make_judge_verdicts,
    make_next_rubric_version,
    make_review,
    make_scored_review,
)

pytestmark = pytest.mark.django_db

CLARITY = "clarity"


def every(evaluation: Evaluation) -> QuerySet[Comparison]:
    return Comparison.objects.filter(evaluation=evaluation)


def reported(
    evaluation: Evaluation, rules: ReportRules | None = None, aspect: str = CLARITY, **wanted: Any
) -> AspectReport:
    return build_report(evaluation, every(evaluation), rules or ReportRules(), **wanted).aspects[aspect]


def both(choices: Choices) -> dict[str, Any]:
    return {ShownOrder.AS_STORED.value: choices, ShownOrder.SWAPPED.value: choices}


def make_small_study(evaluation: Evaluation) -> list[Comparison]:
    """Four comparisons. Majorities of ann, ben, cem: A, tie (split), B, –. The judge: A, B, tie (inconsistent), A."""
    ann, ben, cem = (make_human(evaluation, name) for name in ("ann", "ben", "cem"))
    made = [make_comparison(evaluation) for _ in range(4)]
    for rater, comparison, choices in (
        (ann, made[0], ALL_A),
        (ben, made[0], ALL_A),
        (cem, made[0], ALL_B),
        (ann, made[1], ALL_A),
        (ben, made[1], ALL_B),
        (ann, made[2], ALL_B),
    ):
        make_review(rater, comparison, choices)
    make_judge_verdicts(made[0], **both(ALL_A))
    make_judge_verdicts(made[1], **both(ALL_B))
    make_judge_verdicts(made[2], as_stored=ALL_B, swapped=ALL_A)
    make_judge_verdicts(made[3], **both(ALL_A))
    return made


# ---- the shape ------------------------------------------------------------------------------


def test_the_json_has_the_promised_keys_and_only_json_in_it(evaluation: Evaluation) -> None:
    make_small_study(evaluation)
    report = json.loads(
        json.dumps(build_report(evaluation, every(evaluation), ReportRules()).as_json(), allow_nan=False)
    )
    assert list(report["aspects"]) == ["helpfulness", "factuality", "clarity", "depth", "engagement", "safety"]
    assert all(isinstance(words, str) for words in report["rules"].values())
    aspect = report["aspects"][CLARITY]
    assert {"votes", "majority", "pairs", "multi"} <= set(aspect["human_human"])
    assert {"krippendorff_alpha", "krippendorff_alpha_ordinal", "fleiss_kappa", "gwet_ac1", "units"} == set(
        aspect["human_human"]["multi"]
    )
    assert {"rater_1", "rater_2", "with_ties", "without_ties"} <= set(aspect["human_human"]["pairs"][0])
    judge = aspect["judges"]["longest"]
    assert {"judge_human", "judge_gold", "each_order", "confusion", "position", "failed"} <= set(judge)
    assert set(judge["judge_human"]) == {"votes", "majority", "people"}


@pytest.mark.parametrize("part", [ReportPart.BIAS, ReportPart.WINS, ReportPart.PEOPLE])
def test_a_part_about_one_aspect_says_of_it_what_the_whole_report_does(
    evaluation: Evaluation, part: ReportPart
) -> None:
    made = make_small_study(evaluation)
    get_or_make_aspect(evaluation, "silent")
    make_judge_verdicts(make_comparison(evaluation), as_stored={"only judged": Choice.A})
    make_review(make_human(evaluation, "dan"), made[0], {"only voted": Choice.A})
    whole = build_report(evaluation, None, ReportRules()).as_json()
    held = whole["aspects_by_part"][part.value]
    everywhere = {*ALL_A, "only judged", "only voted"}
    expected = {
        ReportPart.BIAS: everywhere - {"only voted"},
        ReportPart.WINS: everywhere,
        ReportPart.PEOPLE: everywhere - {"only judged"},
    }
    assert set(held) == expected[part]
    for asked, about in ((CLARITY, CLARITY), ("silent", held[0]), ("", held[0])):
        found = build_report(evaluation, None, ReportRules(), parts=(part,), aspect=asked).as_json()
        assert found[part.value] == {about: whole[part.value][about]}
        assert found["aspects_by_part"] == {part.value: held}
        assert found["names"] == whole["names"]


@pytest.mark.parametrize("piece", [1, 2, 3])
def test_it_says_the_same_read_in_however_small_pieces(
    evaluation: Evaluation, piece: int, monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path
) -> None:
    make_small_study(evaluation)
    at_once = build_report(evaluation, None, ReportRules()).as_json()
    monkeypatch.setattr(verdicts_sql, "ROWS_PER_PIECE", piece)
    monkeypatch.setattr(judge_arrays, "MAX_LOOKUPS", 0)
    settings.CACHE_DIR = tmp_path  # where nothing is kept yet
    with CaptureQueriesContext(connection) as queries:
        assert build_report(evaluation, None, ReportRules()).as_json() == at_once
    for column in ('"evaluations_packedvotes"."comparison_id"', '"evaluations_comparison"."id"'):
        assert any(f"{column} >= " in query["sql"] for query in queries)


def test_imported_votes_count_on_their_own_day_and_in_their_own_order(evaluation: Evaluation) -> None:
    import_rows(evaluation, comparison_row("q1"))
    votes = [
        ("bob", "B", "overall", "2026-03-05T00:00:00Z"),
        ("ann", "A", "overall", "2026-03-01T00:00:00Z"),
        ("ann", "A", "other", "2026-01-01T00:00:00Z"),
        ("cem", "tie", "overall", "2026-03-01T12:00:00Z"),
    ]
    dated = [verdict_row(rater=who, choice=choice, aspect=about, created_at=told) for who, choice, about, told in votes]
    import_rows(evaluation, *dated, verdict_row(rater="gpt", rater_kind="judge", choice="A", aspect="overall"))

    def counted(aspect: str, since: date | None = None, until: date | None = None) -> int:
        return reported(evaluation, ReportRules(since=since, until=until), aspect).human_votes.unknown

    def agreed(rule: SplitRule) -> int | None:
        found = reported(evaluation, ReportRules(split_rule=rule), "overall").judges["gpt"].judge_human.majority
        return found.with_ties.agree

    assert (agreed(SplitRule.FIRST), agreed(SplitRule.TIE)) == (1, 0)  # ann's vote is the earliest of the three
    assert (counted("overall"), counted("overall", since=date(2026, 3, 2))) == (3, 1)
    assert (counted("other"), counted("other", since=date(2026, 2, 1))) == (1, 0)
    assert (counted("overall", until=date(2026, 2, 1)), counted("other", until=date(2026, 2, 1))) == (0, 1)
    people = build_report(evaluation, None, ReportRules()).people
    assert {key: [(one.start, one.votes) for one in people[key].timeline.points] for key in ("overall", "other")} == {
        "overall": [("2026-03-01", 2), ("2026-03-05", 1)],
        "other": [("2026-01-01", 1)],
    }


def blocks(found: Any) -> list[dict[str, Any]]:
    """Every block of agreement in a report, however deep it stands."""
    if isinstance(found, dict):
        inside = [block for value in found.values() for block in blocks(value)]
        return [found, *inside] if "with_ties" in found else inside
    return [block for value in found for block in blocks(value)] if isinstance(found, list) else []


def test_every_block_has_both_ways_with_ties_and_every_number_its_interval_or_why(evaluation: Evaluation) -> None:
    make_small_study(evaluation)
    report = json.loads(json.dumps(build_report(evaluation, every(evaluation), ReportRules()).as_json()))
    found = blocks(report)
    assert len(found) > 6 * 4
    for block in found:
        for way in (block["with_ties"], block["without_ties"]):
            assert isinstance(way["agree"], int)
            assert isinstance(way["n"], int)
            for name in ("agreement", "cohen_kappa", "gwet_ac1"):
                assert (way[name]["ci95"] is None) == bool(way[name]["ci95_why"])
                assert (way[name]["value"] is None) == bool(way[name]["why"])


# ---- the numbers ----------------------------------------------------------------------------


def test_a_judge_is_held_against_the_majority_and_against_every_vote(evaluation: Evaluation) -> None:
    make_small_study(evaluation)
    judge = reported(evaluation).judges["longest"]
    # Majorities A, tie, B against A, B, tie: one of three. Votes A A B | A B | B against A A A | B B | tie: 3 of 6.
    majority, votes = judge.judge_human.majority, judge.judge_human.votes
    assert (majority.with_ties.agree, majority.with_ties.n, majority.n_split) == (1, 3, 1)
    assert (majority.without_ties.agree, majority.without_ties.n) == (1, 1)
    assert majority.dropped.value == pytest.approx(2 / 3)
    assert (votes.with_ties.agree, votes.with_ties.n) == (3, 6)
    assert judge.confusion.choices == ("A", "tie", "B")
    assert judge.confusion.counts == ((1, 0, 0), (0, 0, 1), (0, 1, 0))
    assert judge.label == "rule-based"
    assert (judge.position.consistency.agree, judge.position.consistency.n) == (3, 4)


def test_a_split_can_be_dropped(evaluation: Evaluation) -> None:
    make_small_study(evaluation)
    majority = reported(evaluation, ReportRules(split_rule=SplitRule.DROP)).judges["longest"].judge_human.majority
    assert (majority.with_ties.agree, majority.with_ties.n, majority.n_split) == (1, 2, 1)


def test_a_split_is_no_tie_where_the_rubric_offers_none(evaluation: Evaluation) -> None:
    aspect = AspectSpec("overall", "Overall", "Which is better?", offers_tie=False)
    spec = RubricSpec(RubricKind.PAIRWISE, "", (aspect,), ("overall",))
    version = add_rubric(evaluation, name="no ties", spec=spec, origin=RubricOrigin.OWN, user=None)
    ann, ben, cem = (make_human(evaluation, name) for name in ("ann", "ben", "cem"))
    made = [make_comparison(evaluation) for _ in range(4)]
    for comparison, said in zip(made, ("AAA", "BBA", "AB", "BB"), strict=True):
        for rater, choice in zip((ann, ben, cem), said, strict=False):
            make_review(rater, comparison, {"overall": Choice(choice)}, rubric_version=version)
    found = reported(evaluation, aspect="overall").human_human
    # The split on the third is dropped, and counted; so is that of the two who remain where one of three is left out.
    assert (found.majority_choices.n, found.majority_choices.n_split) == (3, 1)
    assert found.majority_choices.choices["tie"] == 0
    # Held against the others: A A A on the first; on the second cem against B B, the others against a split.
    assert (found.majority.with_ties.agree, found.majority.with_ties.n, found.majority.n_split) == (5, 8, 2)
    numbers = vars(found.majority.with_ties).values()
    assert {number.n for number in numbers if isinstance(number, Estimate)} == {8}
    # A has 5 of the 8 and 4 of the majorities, B the rest: π = 9/16, pe = 2 · 9/16 · 7/16 ÷ (2 − 1).
    pe = 2 * 9 / 16 * 7 / 16
    assert found.majority.with_ties.gwet_ac1.value == pytest.approx((5 / 8 - pe) / (1 - pe))
    first = reported(evaluation, ReportRules(split_rule=SplitRule.FIRST), aspect="overall").human_human
    assert first.majority_choices.n == 4


def test_claims_are_controlled_over_every_judge_whatever_the_page_filters(evaluation: Evaluation) -> None:
    ann, ben = make_human(evaluation, "ann"), make_human(evaluation, "ben")
    for number in range(48):
        comparison = make_comparison(evaluation, key=f"q{number + 1}")
        for place, rater in enumerate((ann, ben)):
            make_review(rater, comparison, ALL_A if (number + place) % 5 else ALL_B)
        make_judge_verdicts(comparison, judge="one", **both(ALL_B if number % 9 else ALL_A))
        make_judge_verdicts(comparison, judge="rival", **both(ALL_A if number % 5 else ALL_TIE))
    whole = build_report(evaluation, every(evaluation), ReportRules(), parts=(ReportPart.AGREEMENT,))
    alone = build_report(evaluation, every(evaluation), ReportRules(judges=("one",)), parts=(ReportPart.AGREEMENT,))
    globbed = build_report(evaluation, every(evaluation), ReportRules(raters="on*"), parts=(ReportPart.AGREEMENT,))
    shown = whole.simultaneous[CLARITY]["one"]
    assert shown.family == 12
    assert shown.ci95 is not None
    assert shown.claim == "below"
    for filtered in (alone, globbed):
        assert list(filtered.aspects[CLARITY].judges) == ["one"]
        assert list(filtered.judges) == ["one"]
        assert filtered.simultaneous[CLARITY]["one"] == shown
    # A table's interval is pointwise, and narrower.
    pointwise = whole.aspects[CLARITY].judges["one"].ceiling.s1.difference.ci95
    assert pointwise is not None
    assert pointwise[1] - pointwise[0] < shown.ci95[1] - shown.ci95[0]
    assert "below reviewers on" in whole.judges["one"].sentence
    assert "over all 12 differences at once" in alone.judges["one"].sentence
    # Of judges that are left out nothing else is said.
    assert "rival" not in json.dumps(alone.as_json(), default=str)


def test_archived_judges_and_judges_without_answers_are_not_in_the_family_of_claims(evaluation: Evaluation) -> None:
    ann, ben = make_human(evaluation, "ann"), make_human(evaluation, "ben")
    for _ in range(2):
        comparison = make_comparison(evaluation)
        for rater in (ann, ben):
            make_review(rater, comparison, ALL_A)
        for judge in ("one", "rival", "broken"):
            said = CallState.UNREADABLE if judge == "broken" else ALL_A
            make_judge_verdicts(comparison, judge=judge, kind="llm", as_stored=said)

    def families(rules: ReportRules) -> set[int]:
        found = build_report(evaluation, every(evaluation), rules, parts=(ReportPart.AGREEMENT,)).simultaneous
        assert found
        return {claim.family for by_judge in found.values() for claim in by_judge.values()}

    aspects = evaluation.aspects.count()
    for rules in (ReportRules(), ReportRules(failed=FailedRule.TIE), ReportRules(judges=("one",))):
        assert families(rules) == {2 * aspects}
        assert [rater.name for rater in list_judges_in_claim_family(evaluation)] == ["one", "rival"]
    archive_judge(evaluation.judges.get(name="rival"), user=None)
    assert families(ReportRules()) == families(ReportRules(judges=("one",))) == {aspects}


def test_people_are_held_against_each_other_without_the_judge_and_without_gold(evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    make_review(make_human(evaluation, "ann"), comparison, ALL_A)
    make_review(make_human(evaluation, "ben"), comparison, ALL_A)
    make_imported_votes(comparison, "label", ALL_B, kind="gold")
    make_judge_verdicts(comparison, **both(ALL_B))
    found = reported(evaluation)
    assert (found.human_human.votes.with_ties.agree, found.human_human.votes.with_ties.n) == (1, 1)
    assert found.human_human.multi.units == 1
    assert found.judges["longest"].judge_gold.with_ties.agree == 1
    assert found.judges["longest"].judge_human.majority.with_ties.agree == 0


def test_gold_labels_that_contradict_each_other_count_as_none(evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    make_imported_votes(comparison, "one", ALL_A, kind="gold")
    make_imported_votes(comparison, "other", ALL_B, kind="gold")
    make_judge_verdicts(comparison, **both(ALL_A))
    gold = reported(evaluation).judges["longest"].judge_gold
    assert (gold.with_ties.n, gold.n_split) == (0, 1)
    make_imported_votes(comparison, "third", ALL_A, kind="gold")  # more of the one are a contradiction too
    found = reported(evaluation).judges["longest"]
    assert (found.judge_gold.with_ties.n, found.judge_gold.n_split, found.each_order.accuracy.n) == (0, 1, 0)


def test_first_choices_count_and_what_was_changed_after_the_reveal_does_not(evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    make_review(make_human(evaluation, "ann"), comparison, ALL_A, final=ALL_B)
    make_review(make_human(evaluation, "ben"), comparison, ALL_B, confirmed=False)
    make_judge_verdicts(comparison, **both(ALL_B))
    votes = reported(evaluation).judges["longest"].judge_human.votes.with_ties
    assert (votes.agree, votes.n) == (1, 2)


def test_reviews_that_saw_the_judge_first_stand_apart_and_are_counted(evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    make_review(make_human(evaluation, "ann"), comparison, ALL_A)
    make_review(make_human(evaluation, "ben"), comparison, ALL_B, blind=False)
    make_imported_votes(comparison, "cem", ALL_TIE)
    make_judge_verdicts(comparison, **both(ALL_B))
    found = reported(evaluation)
    counted = found.human_votes
    assert (counted.blind, counted.unknown, counted.saw_judge_first) == (1, 1, 1)
    assert found.judges["longest"].judge_human.votes.with_ties.n == 2
    apart = found.saw_judge_first.judges["longest"].votes.with_ties
    assert (found.saw_judge_first.votes, apart.agree, apart.n) == (1, 1, 1)


def test_failed_calls_are_counted_by_state_and_never_verdicts(evaluation: Evaluation) -> None:
    comparisons = [make_comparison(evaluation) for _ in range(3)]
    ann = make_human(evaluation, "ann")
    for comparison in comparisons:
        make_review(ann, comparison, ALL_TIE)
    make_judge_verdicts(comparisons[0], **both(ALL_TIE))
    make_judge_verdicts(comparisons[1], as_stored=ALL_A, swapped=CallState.UNREADABLE.value)
    make_judge_verdicts(comparisons[2], as_stored=CallState.REFUSED.value, swapped=CallState.PENDING.value)
    judge = reported(evaluation).judges["longest"]
    assert (judge.failed.unreadable, judge.failed.refused, judge.failed.waiting, judge.failed.incomplete) == (
        1,
        1,
        1,
        2,
    )
    assert judge.failed.by_state == {"unreadable": 1, "refused": 1, "waiting": 1}
    assert (judge.judge_human.majority.with_ties.n, judge.verdicts) == (1, 1)
    # As ties: the failed one counts, the one that still waits does not.
    as_ties = reported(evaluation, ReportRules(failed=FailedRule.TIE)).judges["longest"]
    assert (as_ties.judge_human.majority.with_ties.agree, as_ties.judge_human.majority.with_ties.n) == (2, 2)


def test_first_and_second_shown_need_the_same_known_order(evaluation: Evaluation) -> None:
    together, apart, unknown = (make_comparison(evaluation) for _ in range(3))
    ann = make_human(evaluation, "ann")
    make_review(ann, together, ALL_A, shown=ShownOrder.SWAPPED)
    make_review(ann, apart, ALL_A, shown=ShownOrder.AS_STORED)
    make_imported_votes(unknown, "ann", ALL_A)
    for comparison in (together, apart, unknown):
        make_judge_verdicts(comparison, swapped=ALL_A)
    judge = reported(evaluation, ReportRules(coding=SideCoding.SHOWN)).judges["longest"]
    assert judge.judge_human.majority.with_ties.n == 1
    assert judge.confusion.choices == ("first", "tie", "second")
    assert judge.confusion.counts == ((0, 0, 0), (0, 0, 0), (0, 0, 1))


def test_a_judge_asked_in_both_orders_has_no_order_shown(evaluation: Evaluation) -> None:
    make_small_study(evaluation)
    found = reported(evaluation, ReportRules(coding=SideCoding.SHOWN)).judges["longest"].judge_human.majority.with_ties
    assert found.agreement.value is None
    assert found.agreement.why == "No comparison was shown to all compared raters in the same known order."


def test_the_report_reads_a_judge_as_the_rest_of_the_product_does(evaluation: Evaluation) -> None:
    made = make_small_study(evaluation)
    rater = Rater.objects.get(name="longest")
    told = load_judge_choices(rater, [comparison.pk for comparison in made])
    choices = [told[comparison.pk][CLARITY].choice for comparison in made]
    assert choices == ["A", "B", "tie", "A"]
    assert reported(evaluation).judges["longest"].verdicts == len(choices)


# ---- what it speaks of ----------------------------------------------------------------------


def test_only_comparisons_of_a_category_candidate_or_metadata(evaluation: Evaluation) -> None:
    ann = make_human(evaluation, "ann")
    make_review(ann, make_comparison(evaluation, category="math", metadata={"level": 3, "hard": True}), ALL_A)
    make_review(ann, make_comparison(evaluation, candidates=("alpha", "gamma")), ALL_A)
    for where in ("category=math", "candidate=beta", "candidate_b=gamma", "level=3", "hard=true"):
        key, value = where.split("=")
        report = build_report(evaluation, every(evaluation), ReportRules(where=((key, value),)))
        assert report.comparisons == 1, where
        assert f"{key} is “{value}”" in report.rules["comparisons"]


@pytest.mark.parametrize(("key", "value"), [("category", "chess"), ("no__such", "x"), ("level", "NaN"), ("1", "2")])
def test_a_filter_that_fits_nothing_is_refused_in_one_sentence(evaluation: Evaluation, key: str, value: str) -> None:
    make_comparison(evaluation, category="math", metadata={"level": 3})
    with pytest.raises(InputRefused, match=f"No comparison has {key}={value}"):
        build_report(evaluation, every(evaluation), ReportRules(where=((key, value),)))


def test_a_pattern_narrows_people_and_judges_each_to_those_it_matches(evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    for name in ("expert_1", "expert_2", "author_1"):
        make_review(make_human(evaluation, name), comparison, ALL_A)
    make_judge_verdicts(comparison, judge="longest", **both(ALL_A))
    make_judge_verdicts(comparison, judge="first", **both(ALL_A))
    experts = reported(evaluation, ReportRules(raters="expert_*"))
    assert experts.human_votes.blind == 2
    assert set(experts.judges) == {"longest", "first"}
    one_judge = reported(evaluation, ReportRules(raters="long*"))
    assert (one_judge.human_votes.blind, set(one_judge.judges)) == (3, {"longest"})
    with pytest.raises(InputRefused, match="No rater's name matches “zoe”"):
        reported(evaluation, ReportRules(raters="zoe"))


def test_without_judges_nothing_of_them_is_told(evaluation: Evaluation) -> None:
    make_small_study(evaluation)
    report = build_report(evaluation, every(evaluation), ReportRules(), with_judges=False)
    assert report.judges == {}
    assert all(not aspect.judges for aspect in report.aspects.values())


def test_an_aspect_that_nobody_has_a_verdict_on_is_named_and_has_no_numbers(evaluation: Evaluation) -> None:
    make_review(make_human(evaluation, "ann"), make_comparison(evaluation), {CLARITY: "A"})
    report = build_report(evaluation, every(evaluation), ReportRules())
    assert list(report.aspects) == [CLARITY]
    assert report.no_verdicts == ("Helpfulness", "Factuality", "Depth", "Engagement", "Safety")


def test_an_evaluation_without_anything_makes_an_empty_report(evaluation: Evaluation) -> None:
    report = build_report(evaluation, every(evaluation), ReportRules())
    assert (report.comparisons, report.aspects) == (0, {})


# ---- the comparisons behind a cell ------------------------------------------------------------


@pytest.mark.parametrize("split_rule", SplitRule)
def test_every_cell_counts_the_comparisons_that_it_opens(evaluation: Evaluation, split_rule: SplitRule) -> None:
    made = make_small_study(evaluation)
    rules = ReportRules(split_rule=split_rule)
    judge = reported(evaluation, rules).judges["longest"]
    assert judge.rater_id is not None
    found: list[int] = []
    for row, counts in zip(judge.confusion.choices, judge.confusion.counts, strict=True):
        for column, count in zip(judge.confusion.choices, counts, strict=True):
            behind = find_comparisons_in_cell(
                evaluation, every(evaluation), CLARITY, judge.rater_id, row, column, rules=rules
            )
            assert len(behind) == count
            found += behind
    assert set(found) <= {comparison.pk for comparison in made}


def test_a_cell_stays_within_the_comparisons_that_the_reader_may_see(evaluation: Evaluation) -> None:
    made = make_small_study(evaluation)
    rater = Rater.objects.get(name="longest").pk
    assert find_comparisons_in_cell(evaluation, every(evaluation), CLARITY, rater, "A", "A") == [made[0].pk]
    others = every(evaluation).exclude(pk=made[0].pk)
    assert find_comparisons_in_cell(evaluation, others, CLARITY, rater, "A", "A") == []


@pytest.mark.parametrize(("aspect", "choice"), [("beauty", "A"), (CLARITY, "first")])
def test_a_cell_that_cannot_be_is_refused(evaluation: Evaluation, aspect: str, choice: str) -> None:
    with pytest.raises(InputRefused):
        find_comparisons_in_cell(evaluation, every(evaluation), aspect, 1, choice, "A")


# ---- whose votes ----------------------------------------------------------------------------


def test_people_judges_days_and_what_was_seen_narrow_whose_votes_count(evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    make_judge_verdicts(comparison, **both(ALL_A))
    make_judge_verdicts(comparison, judge="other", **both(ALL_B))
    ann, ben, cem = (make_human(evaluation, name) for name in ("ann", "ben", "cem"))
    old, new = (timezone.make_aware(datetime(2026, 3, day)) for day in (1, 20))
    make_review(ann, comparison, ALL_A, first_saved_at=old)
    make_review(ben, comparison, ALL_B, first_saved_at=new)
    make_review(cem, comparison, ALL_TIE, first_saved_at=new, blind=False)

    def votes(**rules: Any) -> tuple[int, int | None]:
        found = reported(evaluation, ReportRules(**rules)).judges["longest"].judge_human.votes.with_ties
        return found.agree, found.n

    assert votes() == (1, 2)
    assert votes(reviewers=("ann",)) == (1, 1)
    assert votes(since=date(2026, 3, 2)) == (0, 1)
    assert votes(until=date(2026, 3, 19)) == (1, 1)
    assert votes(since=date(2026, 3, 1), until=date(2026, 3, 20)) == (1, 2)
    assert votes(seen=SeenRule.BLIND) == (1, 2)
    assert votes(seen=SeenRule.JUDGE) == (0, 1)
    only = reported(evaluation, ReportRules(judges=("other",)))
    assert list(only.judges) == ["other"]
    with pytest.raises(InputRefused, match="There is no reviewer “zoe” here"):
        reported(evaluation, ReportRules(reviewers=("zoe",)))


# ---- what it costs --------------------------------------------------------------------------


def test_the_number_of_queries_does_not_grow_with_the_data(evaluation: Evaluation) -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            build_report(evaluation, every(evaluation), ReportRules())
        return len(queries)

    make_imported_votes(make_small_study(evaluation)[0], "label", ALL_A, kind="gold")
    make_comparison(evaluation, category="c")
    few = cost()
    for number in range(5):
        comparison = make_comparison(evaluation, category=f"c{number}")
        make_review(make_human(evaluation), comparison, ALL_A)
        make_judge_verdicts(comparison, judge=f"judge {number}", as_stored=ALL_A, swapped=CallState.FAILED.value)
        make_imported_votes(comparison, "label", ALL_A, kind="gold")
    assert cost() == few
    for _ in range(5):
        make_review(make_human(evaluation), make_comparison(evaluation), ALL_A)
    assert cost() == few


# ---- what estimates may use ------------------------------------------------------------------


def test_votes_on_what_a_strategy_picked_are_left_out_and_counted_until_the_random_order_comes(
    evaluation: Evaluation,
) -> None:
    ann, ben = make_human(evaluation, "ann"), make_human(evaluation, "ben")
    drawn, flipped, by_hand, practice = (make_comparison(evaluation) for _ in range(4))
    for comparison, picked in (
        (drawn, SelectionMethod.RANDOM),
        (flipped, SelectionMethod.FLIPS),
        (by_hand, SelectionMethod.BY_HAND),
        (practice, SelectionMethod.CALIBRATION),
    ):
        make_review(ann, comparison, ALL_A, selection_method=picked)
        make_judge_verdicts(comparison, **both(ALL_A))
    make_review(ben, drawn, ALL_A, selection_method=SelectionMethod.STRATIFIED, probability=0.5)
    found = reported(evaluation)
    assert (found.human_votes.blind, found.human_votes.not_drawn, found.human_votes.calibration) == (2, 2, 1)
    assert found.judges["longest"].judge_human.votes.with_ties.n == 2
    assert evaluation.review_rubric is not None
    for comparison in (flipped, practice):
        QueueItem.objects.create(
            rubric_version=evaluation.review_rubric, comparison=comparison, position=1, wanted=1, drawn=True
        )
    later = reported(evaluation).human_votes
    assert (later.blind, later.not_drawn, later.calibration) == (3, 1, 1)


def test_a_review_by_another_rubric_is_not_drawn_because_the_comparison_is(evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    make_review(make_human(evaluation), comparison, ALL_A, selection_method=SelectionMethod.FLIPS)
    other = add_rubric(evaluation, name="other", spec=SIX_ASPECT, origin=RubricOrigin.OWN, user=None)
    QueueItem.objects.create(rubric_version=other, comparison=comparison, position=1, wanted=1, drawn=True)
    assert reported(evaluation).human_votes.not_drawn == 1


def test_who_reviews_again_by_another_version_counts_once_with_the_newest_review(evaluation: Evaluation) -> None:
    """ann says A, by the next version B, by a rubric of scores B; ben says B: one pair of people, and it agrees."""
    comparison, ann = make_comparison(evaluation), make_human(evaluation, "ann")
    make_scored_review(ann, comparison, {CLARITY: (4, 2)})
    make_review(ann, comparison, {CLARITY: "A", "depth": "A"})
    make_review(ann, comparison, {CLARITY: "B"}, rubric_version=make_next_rubric_version(evaluation))
    make_review(make_human(evaluation, "ben"), comparison, {CLARITY: "B", "depth": "A"})
    found = reported(evaluation)
    assert found.human_votes.blind == 2
    assert (found.human_human.votes.with_ties.n, found.human_human.votes.self_pairs) == (1, 0)
    assert found.human_human.majority_choices.choices["B"] == 1
    assert reported(evaluation, aspect="depth").human_human.votes.with_ties.n == 1


def test_a_newer_review_that_estimates_may_not_use_takes_nothing_from_them(evaluation: Evaluation) -> None:
    comparison, ann = make_comparison(evaluation), make_human(evaluation, "ann")
    make_review(ann, comparison, ALL_A)
    make_review(
        ann,
        comparison,
        ALL_B,
        rubric_version=make_next_rubric_version(evaluation),
        selection_method=SelectionMethod.FLIPS,
    )
    found = reported(evaluation)
    assert (found.human_votes.blind, found.human_votes.not_drawn) == (1, 1)
    assert found.human_human.majority_choices.choices["A"] == 1


# ---- seeing the judge ------------------------------------------------------------------------


def test_the_anchoring_effect_is_the_agreement_of_those_drawn_to_see_the_judge_minus_the_others(
    evaluation: Evaluation,
) -> None:
    """The judge says A. Drawn blind: A, A, B, B → 2/4. Drawn to see it: A, A, A, B → 3/4. One was not drawn at all."""
    judge = make_judge_verdicts(make_comparison(evaluation), **both(ALL_A))
    Evaluation.objects.filter(pk=evaluation.pk).update(shown_judge=judge.judge)
    evaluation.refresh_from_db()
    for saw, choices in ((False, (ALL_A, ALL_A, ALL_B, ALL_B)), (True, (ALL_A, ALL_A, ALL_A, ALL_B))):
        for said in choices:
            comparison = make_comparison(evaluation)
            make_judge_verdicts(comparison, **both(ALL_A))
            columns: dict[str, Any] = {"reveal": Reveal.RANDOMISED, "judge_first": saw, "blind": not saw}
            make_review(make_human(evaluation), comparison, said, judge=judge.judge, **columns)
    make_review(make_human(evaluation), comparison, ALL_B, reveal=Reveal.BLIND)
    found = reported(evaluation).anchoring["longest"]
    assert (found.blind.value, found.shown.value) == (0.5, 0.75)
    assert (found.difference.value, found.difference.n) == (0.25, 8)


def test_the_anchoring_effect_is_that_of_the_judge_who_was_shown_whichever_is_shown_by_now(
    evaluation: Evaluation,
) -> None:
    """The one that was shown says A, the other B. Drawn blind: B → 0. Drawn to see it: A → 1."""
    for saw, said in ((False, ALL_B), (True, ALL_A)):
        comparison = make_comparison(evaluation)
        judge = make_judge_verdicts(comparison, **both(ALL_A))
        other = make_judge_verdicts(comparison, judge="other", **both(ALL_B))
        columns: dict[str, Any] = {"reveal": Reveal.RANDOMISED, "judge_first": saw, "blind": not saw}
        make_review(make_human(evaluation), comparison, said, judge=judge.judge, **columns)
    for shown in (judge, other):
        Evaluation.objects.filter(pk=evaluation.pk).update(shown_judge=shown.judge)
        evaluation.refresh_from_db()
        found = reported(evaluation).anchoring
        assert list(found) == ["longest"]
        assert (found["longest"].difference.value, found["longest"].difference.n) == (1.0, 2)


def test_reviews_that_were_shown_different_judges_stand_apart(evaluation: Evaluation) -> None:
    """Shown first by “longest”, which says A: A. Shown first by “other”, which says B: A."""
    comparison = make_comparison(evaluation)
    now = timezone.now()
    revealed: dict[str, Any] = {"first_saved_at": now, "finished_at": now + timedelta(minutes=1)}
    for name, said, changed in (("longest", ALL_A, ALL_B), ("other", ALL_B, ALL_B)):
        judge = make_judge_verdicts(comparison, judge=name, **both(said)).judge
        drawn: dict[str, Any] = {"reveal": Reveal.RANDOMISED, "judge": judge}
        make_review(make_human(evaluation), comparison, ALL_A, judge_first=True, blind=False, **drawn)
        make_review(make_human(evaluation), comparison, ALL_A, final=changed, **drawn, **revealed)
    found = reported(evaluation)
    assert {name: one.shown.value for name, one in found.anchoring.items()} == {"longest": 1.0, "other": 0.0}
    told = {name: (one.changed.n, one.to_judge, one.away_from_judge) for name, one in found.after_reveal.items()}
    assert told == {"longest": (1, 0, 1), "other": (1, 1, 0)}


def test_no_effect_is_claimed_where_nothing_was_drawn(evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    judge = make_judge_verdicts(comparison, **both(ALL_A))
    Evaluation.objects.filter(pk=evaluation.pk).update(shown_judge=judge.judge)
    evaluation.refresh_from_db()
    make_review(make_human(evaluation), comparison, ALL_A, reveal=Reveal.BLIND, judge=judge.judge)
    found = reported(evaluation).anchoring["longest"]
    assert found.difference.value is None
    assert "not randomized" in (found.difference.why or "")


def test_what_was_changed_after_the_reveal_is_counted_towards_and_away_from_the_judge(evaluation: Evaluation) -> None:
    """Of three revealed reviews one goes to the judge's A, one leaves it, one stays; a fourth never saw the judge."""
    comparison = make_comparison(evaluation)
    judge = make_judge_verdicts(comparison, **both(ALL_A))
    Evaluation.objects.filter(pk=evaluation.pk).update(shown_judge=judge.judge)
    evaluation.refresh_from_db()
    now = timezone.now()
    later = now + timedelta(minutes=1)
    revealed: dict[str, Any] = {"first_saved_at": now, "finished_at": later, "judge": judge.judge}
    make_review(make_human(evaluation), comparison, ALL_B, final=ALL_A, **revealed)
    make_review(make_human(evaluation), comparison, ALL_A, final=ALL_TIE, **revealed)
    make_review(make_human(evaluation), comparison, ALL_A, **revealed)
    make_review(make_human(evaluation), comparison, ALL_A, first_saved_at=now, finished_at=now)
    found = reported(evaluation).after_reveal["longest"]
    assert (found.changed.value, found.changed.n, found.to_judge, found.away_from_judge) == (2 / 3, 3, 1, 1)


def test_what_was_changed_after_the_reveal_keeps_to_the_days_asked_for(evaluation: Evaluation) -> None:
    """Two reviews that went to the judge's A, one saved on the 1st and one on the 3rd of March."""
    comparison = make_comparison(evaluation)
    judge = make_judge_verdicts(comparison, **both(ALL_A)).judge
    for day in (1, 3):
        saved = datetime(2026, 3, day, 12, tzinfo=UTC)
        seen: dict[str, Any] = {"first_saved_at": saved, "finished_at": saved + timedelta(minutes=1), "judge": judge}
        make_review(make_human(evaluation), comparison, ALL_B, final=ALL_A, **seen)

    def changed(since: date | None = None, until: date | None = None) -> int:
        return reported(evaluation, ReportRules(since=since, until=until)).after_reveal["longest"].changed.n

    assert changed() == 2
    assert changed(since=date(2026, 3, 2)) == changed(until=date(2026, 3, 2)) == 1
    assert changed(since=date(2026, 3, 3), until=date(2026, 3, 3)) == 1


# ---- people who score ------------------------------------------------------------------------


def test_peoples_first_scores_make_votes_by_the_margin_of_the_rubric(evaluation: Evaluation) -> None:
    """Margin 0.5. ann: 4 to 3 → A. ben: 3 to 3.5 → tie. cem scored one side only: no vote. Only first scores are."""
    asked = AspectSpec("overall", "Overall", "", scale_min=1, scale_max=5, tie_margin=0.5)
    spec = RubricSpec(RubricKind.POINTWISE, "Rate.", (asked,), ("overall",))
    version = add_rubric(evaluation, name="scores", spec=spec, origin=RubricOrigin.OWN, user=None)
    comparison = make_comparison(evaluation)
    for name, a, b in (("ann", 4, 3), ("ben", 3, 3.5), ("cem", 2, None)):
        rater = make_human(evaluation, name)
        review = make_review(rater, comparison, {}, rubric_version=version)
        for response, value in ((comparison.response_a, a), (comparison.response_b, b)):
            for stage, shift in ((Stage.FIRST, 0), (Stage.FINAL, -1 if response == comparison.response_a else 1)):
                if value is not None:
                    Score.objects.create(
                        rater=rater,
                        response=response,
                        aspect=get_or_make_aspect(evaluation, "overall"),
                        value=value + shift,
                        stage=stage,
                        review=review,
                    )
    found = reported(evaluation, aspect="overall").human_human
    assert found.majority_choices.n_split == 1
    assert (found.votes.with_ties.agree, found.votes.with_ties.n) == (0, 1)

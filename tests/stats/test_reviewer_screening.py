import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

import numpy as np
import pytest

from evaluations.stats import reviewer_pairs
from evaluations.stats.aspect_report import AspectMaterial
from evaluations.stats.coding import AS_STORED, BOTH_BAD, FLIP, MISSING, SWAPPED, TIE, UNKNOWN, A, B, IntArray
from evaluations.stats.reviewer_agreement import FEW_CLUSTERS, FEW_VARIED, NO_KAPPA, NO_OTHER_PAIRS, TOO_FEW_REVIEWERS
from evaluations.stats.reviewer_flags import FlagKind, ReviewerFlag
from evaluations.stats.reviewer_habits import NO_ORDERS, NO_TIMES
from evaluations.stats.reviewer_kappas import kappas_of_all
from evaluations.stats.reviewer_pairs import ReviewerPairs, pair_reviewers, weighted_kappas
from evaluations.stats.reviewer_screening import ReviewerScreening, screen_reviewers
from evaluations.stats.shared_verdicts import gather_verdicts
from evaluations.stats.votes import Votes

NONE = np.zeros(0, dtype=np.int64)
NOBODY = Votes(NONE, NONE, NONE, NONE)


def material(
    votes: Votes, names: Sequence[str], cluster: IntArray, active_ms: IntArray | None = None
) -> AspectMaterial:
    return AspectMaterial(
        name="Clarity",
        items=len(cluster),
        cluster=cluster,
        people=votes,
        saw_judge_first=NOBODY,
        picked_by_hand=NOBODY,
        reveal_votes={},
        gold=NOBODY,
        blind=0,
        not_drawn=0,
        calibration=0,
        judges=(),
        panels={},
        days=np.zeros(len(votes.item), dtype=np.int64),
        active_ms=np.zeros(len(votes.item), dtype=np.int64) if active_ms is None else active_ms,
        names=tuple(names),
        offered=frozenset({A, B, TIE}),
        rubric_versions=(),
        warnings=(),
    )


def aspect(
    choices: Mapping[str, IntArray],
    cluster: IntArray | None = None,
    shown: int = UNKNOWN,
    active_ms: Mapping[str, int] | None = None,
) -> AspectMaterial:
    """One aspect by the choices of each reviewer on the same comparisons, MISSING where there is none."""
    names, table = list(choices), np.array(list(choices.values()), dtype=np.int8)
    rater, item = np.nonzero(table != MISSING)
    votes = Votes(item, rater, np.full(len(item), shown), table[rater, item])
    times = None if active_ms is None else np.array([active_ms.get(name, 0) for name in names])[rater]
    return material(votes, names, np.arange(table.shape[1]) if cluster is None else cluster, times)


def screen(choices: Mapping[str, IntArray], cluster: IntArray | None = None) -> ReviewerScreening:
    return screen_reviewers({"clarity": aspect(choices, cluster)})


def flags_by_kind(screening: ReviewerScreening) -> dict[FlagKind, ReviewerFlag]:
    return {flag.kind: flag for flag in screening.flags}


def kinds(screening: ReviewerScreening) -> set[tuple[str, tuple[str, ...]]]:
    return {(flag.kind.value, flag.reviewers) for flag in screening.flags}


def reasons(screening: ReviewerScreening) -> dict[str, tuple[str, ...]]:
    return {one.why: one.reviewers for one in screening.not_checked}


def honest(rng: np.random.Generator, truth: IntArray, knows: float = 0.8) -> IntArray:
    return np.where(rng.random(len(truth)) < knows, truth, rng.integers(2, size=len(truth)))


def five(seed: int = 5, items: int = 200) -> dict[str, IntArray]:
    """Two who know 80% of what is true, a copy of one but for two comparisons, one by chance, one turned round."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=items)
    ann, bob = honest(rng, truth), honest(rng, truth)
    copy = ann.copy()
    copy[[7, 70]] = 1 - copy[[7, 70]]
    return {
        "ann": ann,
        "bob": bob,
        "cop": copy,
        "ran": rng.integers(2, size=items),
        "inv": 1 - honest(rng, truth),
    }


# ---- kappas ----------------------------------------------------------------------------------


def test_kappa_of_two_choices_is_cohens() -> None:
    # 20 + 15 of 50 the same: .7; by chance .5 · .6 + .5 · .4 = .5; (.7 − .5) ÷ .5 = .4.
    table = np.zeros((1, 4, 4))
    table[0, :2, :2] = [[20, 5], [10, 15]]
    assert weighted_kappas(table)[0] == pytest.approx([0.4])


def test_a_tie_is_half_as_far_from_a_as_b_is() -> None:
    # (A, A), (B, B), (A, tie), (tie, B): distances 0, 0, ½, ½, together 1. By chance: rows A 2, B 1, tie 1; columns
    # A 1, B 2, tie 1; Σ row · column · distance = 2·2 + 2·1·½ + 1·1 + 1·1·½ + 1·1·½ + 1·2·½ = 8. 1 − 4 · 1 ÷ 8 = ½.
    table = np.zeros((1, 4, 4))
    table[0, [A, B, A, TIE], [A, B, TIE, B]] = 1
    assert weighted_kappas(table)[0] == pytest.approx([0.5])


Verdicts = dict[tuple[str, int, str], int]  # by reviewer, comparison and aspect


def kappa_by_loops(verdicts: Verdicts, one: str, other: str) -> tuple[float, int]:
    """Weighted kappa of two reviewers from the list of their pairs, and how many verdicts they share."""
    place = {A: 0.0, TIE: 0.5, BOTH_BAD: 0.5, B: 1.0}
    shared = [
        (place[choice], place[verdicts[other, item, key]])
        for (name, item, key), choice in verdicts.items()
        if name == one and (other, item, key) in verdicts
    ]
    if len(shared) < 20 or len({first for first, _ in shared}) == 1 or len({second for _, second in shared}) == 1:
        return float("nan"), len(shared)
    observed = sum(abs(first - second) for first, second in shared) / len(shared)
    expected = sum(abs(first - second) for first, _ in shared for _, second in shared) / len(shared) ** 2
    return 1 - observed / expected, len(shared)


def sparse(seed: int) -> tuple[dict[str, AspectMaterial], Verdicts, list[str]]:
    """Six reviewers with 60% of 80 comparisons each, on two aspects that some leave out; clusters of any size."""
    rng = np.random.default_rng(seed)
    names, cluster = [f"r{number}" for number in range(6)], rng.integers(30, size=80)
    materials, verdicts = {}, {}
    for key in ("clarity", "depth"):
        truth = rng.integers(4, size=80)
        choices = np.where(rng.random((6, 80)) < 0.6, truth, rng.integers(4, size=(6, 80)))
        choices[rng.random((6, 80)) < 0.4] = MISSING
        materials[key] = aspect(dict(zip(names, choices, strict=True)), cluster)
        for rater, item in np.argwhere(choices != MISSING).tolist():
            verdicts[names[rater], item, key] = int(choices[rater, item])
    return materials, verdicts, names


def pairs_of(materials: Mapping[str, AspectMaterial]) -> ReviewerPairs:
    names = next(iter(materials.values())).names
    return pair_reviewers(gather_verdicts(materials.values()), len(names))


@pytest.mark.parametrize("seed", range(5))
def test_kappas_of_pairs_equal_those_counted_one_verdict_at_a_time(seed: int) -> None:
    materials, verdicts, names = sparse(seed)
    pairs = pairs_of(materials)
    kappa, n = pairs.square(pairs.kappa), pairs.square(pairs.n)
    for one in range(6):
        for other in range(6):
            if one != other:
                value, shared = kappa_by_loops(verdicts, names[one], names[other])
                assert kappa[one, other] == pytest.approx(value, nan_ok=True)
                assert np.isnan(n[one, other]) == (shared < 20)


def test_mean_kappas_stay_right_while_reviewers_are_removed() -> None:
    materials, verdicts, names = sparse(1)
    kappas, remaining = kappas_of_all(pairs_of(materials)), list(range(6))
    for removed in (4, 0, 2):
        kappas = kappas.without(removed)
        remaining.remove(removed)
        for one in remaining:
            others = [other for other in remaining if other != one]
            own = [kappa_by_loops(verdicts, names[one], names[other])[0] for other in others]
            among = [
                kappa_by_loops(verdicts, names[low], names[high])[0] for low in others for high in others if low < high
            ]
            assert kappas.with_others.value[one] == pytest.approx(np.mean(own))
            assert kappas.among_others.value[one] == pytest.approx(np.mean(among))
    assert kappas.counts.tolist() == [0, 2, 0, 2, 0, 2]


def test_errors_after_removal_are_those_without_the_reviewer_from_the_beginning() -> None:
    materials, _, names = sparse(2)
    kappas = kappas_of_all(pairs_of(materials)).without(5)
    fewer = {key: replace(one, people=one.people.where(one.people.rater < 5)) for key, one in materials.items()}
    fresh = kappas_of_all(pairs_of({key: replace(one, names=tuple(names[:5])) for key, one in fewer.items()}))
    for one, other in ((kappas.with_others, fresh.with_others), (kappas.among_others, fresh.among_others)):
        assert one.error[:5] == pytest.approx(other.error)
        assert one.n[:5] == pytest.approx(other.n)
    assert kappas.difference_t_error[:5] == pytest.approx(fresh.difference_t_error, rel=0.02)


def without_cluster(one: AspectMaterial, cluster: int) -> AspectMaterial:
    return replace(one, people=one.people.where(one.cluster[one.people.item] != cluster))


def test_the_error_of_a_mean_kappa_is_about_that_of_the_jackknife_over_clusters() -> None:
    materials, _, _ = sparse(3)
    left_out = [
        kappas_of_all(pairs_of({key: without_cluster(one, cluster) for key, one in materials.items()}))
        for cluster in range(30)
    ]
    kappas = kappas_of_all(pairs_of(materials))
    for of_all, by_cluster in (
        (kappas.with_others.error, [one.with_others.value for one in left_out]),
        (kappas.among_others.error, [one.among_others.value for one in left_out]),
    ):
        jackknife = np.sqrt(29 / 30 * ((by_cluster - np.mean(by_cluster, axis=0)) ** 2).sum(axis=0))
        assert of_all == pytest.approx(jackknife, rel=0.12)


def test_clusters_that_are_put_together_keep_the_size_of_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    materials = {"clarity": aspect(five(items=2_000))}
    exact = kappas_of_all(pairs_of(materials)).with_others.error
    monkeypatch.setattr(reviewer_pairs, "MAX_SUMS", 5 * 500)
    pairs = pairs_of(materials)
    assert pairs.clusters == 500
    assert kappas_of_all(pairs).with_others.error == pytest.approx(exact, rel=0.1)


# ---- flags -----------------------------------------------------------------------------------


def test_a_copy_a_random_and_an_inverting_reviewer_are_named() -> None:
    screening = screen(five())
    assert kinds(screening) == {("copies", ("ann", "cop")), ("inverted", ("inv",)), ("random", ("ran",))}
    assert screening.has_flags
    assert screening.flagged == ("ann", "cop", "inv", "ran")
    flags = flags_by_kind(screening)
    assert flags[FlagKind.COPIES].own.value == 0.99
    assert flags[FlagKind.COPIES].sentence.startswith(
        "ann and cop gave the same verdict on 99% of 200 shared verdicts."
    )
    assert flags[FlagKind.INVERTED].sentence.startswith("inv chooses the opposite of the others (kappa −0.")
    assert flags[FlagKind.RANDOM].sentence.startswith("ran agrees with the others no better than chance (kappa ")
    assert [one.reviewer for one in screening.reviewers] == ["ann", "bob", "ran", "inv"]


def test_numbers_of_a_flag_are_those_of_the_reviewers_who_remained() -> None:
    # inv is removed first, from ann, bob and ran; ran then from ann and bob, whose own kappa is its comparison.
    choices = five()
    flags = flags_by_kind(screen(choices))
    verdicts = {(name, item, ""): int(one) for name, own in choices.items() for item, one in enumerate(own.tolist())}

    def kappa(one: str, other: str) -> float:
        return kappa_by_loops(verdicts, one, other)[0]

    inverted, random = flags[FlagKind.INVERTED], flags[FlagKind.RANDOM]
    assert inverted.own.value == pytest.approx(np.mean([kappa("inv", one) for one in ("ann", "bob", "ran")]))
    assert inverted.own.n == 600
    assert random.own.value == pytest.approx(np.mean([kappa("ran", one) for one in ("ann", "bob")]))
    assert random.others.value == pytest.approx(kappa("ann", "bob"))
    assert random.others.n == 200


def test_an_inverting_reviewer_is_recognised_among_many_ties() -> None:
    # Ties stay ties where A and B are turned round, so plain agreement is that of chance.
    rng = np.random.default_rng(2)
    truth = rng.integers(3, size=300)
    choices = {
        name: np.where(rng.random(300) < 0.8, truth, rng.integers(3, size=300)) for name in ("ann", "bob", "inv")
    }
    assert kinds(screen(choices | {"inv": FLIP[choices["inv"]]})) == {("inverted", ("inv",))}


def test_three_copies_are_one_group() -> None:
    choices = five()
    twice = choices["cop"].copy()
    twice[9] = 1 - twice[9]
    screening = screen(choices | {"two": twice})
    copies = flags_by_kind(screening)[FlagKind.COPIES]
    assert copies.reviewers == ("ann", "cop", "two")
    assert copies.sentence.startswith(
        "ann, cop and two gave the same verdict on at least 98% of their shared verdicts."
    )
    assert ("inverted", ("inv",)) in kinds(screening)
    assert ("random", ("ran",)) in kinds(screening)


def test_of_copies_the_one_with_most_verdicts_is_kept() -> None:
    choices = five()
    choices["ann"][:20] = MISSING
    assert [one.reviewer for one in screen(choices).reviewers] == ["bob", "cop", "ran", "inv"]


def test_reviewers_who_agree_nearly_always_are_no_copies() -> None:
    rng = np.random.default_rng(8)
    truth = rng.integers(2, size=300)
    names = ("ann", "bob", "cem", "dee")
    assert screen({name: honest(rng, truth, 0.985) for name in names}).flags == ()
    # Three of them at 97% and more make a group; the random one outside shows nothing about honest agreement.
    with_random = {name: honest(rng, truth, 0.99) for name in names[:3]} | {"ran": rng.integers(2, size=300)}
    screening = screen(with_random)
    assert kinds(screening) == {("random", ("ran",))}
    assert any(why.startswith("No other pair of reviewers agrees beyond chance") for why in reasons(screening))


def test_two_identical_reviewers_alone_are_no_copies() -> None:
    choices = five()
    screening = screen({"ann": choices["ann"], "cop": choices["cop"]})
    assert screening.flags == ()
    assert any(why.startswith("Copies are found by comparison") for why in reasons(screening))


def test_one_of_two_constant_reviewers_is_no_copy_and_has_no_kappa() -> None:
    choices = five() | {"yes": np.full(200, A), "yea": np.full(200, A)}
    screening = screen(choices)
    assert {("one_sided", ("yes",)), ("one_sided", ("yea",)), ("copies", ("ann", "cop"))} <= kinds(screening)
    assert reasons(screening)[NO_KAPPA] == ("yes", "yea")
    assert not {("random", ("yes",)), ("copies", ("yea", "yes"))} & kinds(screening)


def test_one_option_nearly_always_is_one_sided_where_the_others_differ() -> None:
    # 98 of 100 for A; of the others' 200 verdicts there, 50 + 60 are for A: 55%.
    ann, bob, cem = np.zeros(100, int), np.zeros(100, int), np.zeros(100, int)
    ann[:2], bob[:50], cem[30:70] = B, B, B
    flag = flags_by_kind(screen({"ann": ann, "bob": bob, "cem": cem}))[FlagKind.ONE_SIDED]
    assert flag.sentence == "ann chose A in 98% of 100 verdicts. On the same ones, the others did in 55%."
    assert (flag.own.value, flag.own.n, flag.others.value) == (0.98, 100, 0.55)
    assert flag.own.ci95 is not None
    # Where the others choose it on 80% and more it is the material.
    bob[:50], cem[30:70] = A, A
    bob[:20], cem[:20] = B, B
    assert FlagKind.ONE_SIDED not in flags_by_kind(screen({"ann": ann, "bob": bob, "cem": cem}))


def test_a_few_comparisons_do_not_make_anybody_one_sided() -> None:
    # 20 of 20 for A and 79% by the others on ten clusters of two: ten clusters could all be so by chance.
    ann, bob = np.zeros(20, int), np.zeros(20, int)
    bob[:4] = B
    bob[4] = TIE
    assert screen({"ann": ann, "bob": bob}, np.arange(20) // 2).flags == ()


def test_one_position_nearly_always_is_one_sided() -> None:
    # ann always chooses what is shown first: A as stored, B where sides are swapped; bob follows the truth.
    rng = np.random.default_rng(4)
    swapped, truth = rng.integers(2, size=120), rng.integers(2, size=120)
    item, rater = np.tile(np.arange(120), 2), np.repeat([0, 1], 120)
    votes = Votes(item, rater, np.tile(swapped, 2), np.concatenate([swapped, truth]).astype(np.int8))
    screening = screen_reviewers({"clarity": material(votes, ("ann", "bob"), np.arange(120))})
    assert (AS_STORED, SWAPPED, A, B) == (0, 1, 0, 1)
    assert kinds(screening) == {("one_sided", ("ann",))}
    assert screening.flags[0].sentence.startswith("ann chose the response shown first in 100% of 120 verdicts.")
    assert NO_ORDERS not in reasons(screening)


def test_less_than_a_fifth_of_the_others_time_is_too_fast() -> None:
    # 5 s against the middle of 30, 40 and 60 s; 9 s against the middle of 5, 40 and 60 s is more than a fifth of 40.
    choices = {name: five()["ann"] for name in ("ann", "bob", "cem", "dee")}
    times = {"ann": 5_000, "bob": 30_000, "cem": 40_000, "dee": 60_000}
    materials = {key: aspect(choices, active_ms=times) for key in ("clarity", "depth")}
    flag = flags_by_kind(screen_reviewers(materials))[FlagKind.TOO_FAST]
    assert flag.sentence == "ann took a median of 5.0 s for each of 200 reviews; the others took 40 s."
    assert (flag.own.n, flag.others.n) == (200, 600)
    slower = {"clarity": aspect(choices, active_ms=times | {"ann": 9_000})}
    assert FlagKind.TOO_FAST not in flags_by_kind(screen_reviewers(slower))


def test_reviews_of_two_aspects_with_different_votes_are_timed_once() -> None:
    choices = {name: five()["ann"] for name in ("ann", "bob")}
    fewer = {name: np.where(np.arange(200) < 150, own, MISSING) for name, own in choices.items()}
    times = {"ann": 5_000, "bob": 30_000}
    materials = {"clarity": aspect(choices, active_ms=times), "depth": aspect(fewer, active_ms=times)}
    assert flags_by_kind(screen_reviewers(materials))[FlagKind.TOO_FAST].own.n == 200


# ---- what cannot be checked ------------------------------------------------------------------


def test_without_aspects_or_votes_there_is_nothing_to_check() -> None:
    assert screen_reviewers({}).flags == ()
    nobody = screen_reviewers({"clarity": material(NOBODY, ("ann", "bob"), np.arange(3))})
    assert (nobody.flags, nobody.note, nobody.reviewers) == ((), None, ())
    assert {TOO_FEW_REVIEWERS, NO_ORDERS, NO_TIMES} <= reasons(nobody).keys()
    alone = screen({"ann": five()["ann"]})
    assert (alone.flags, alone.note) == ((), None)
    assert reasons(alone)["They share 0 verdicts with other reviewers, and 20 are needed."] == ("ann",)


def test_of_two_who_disagree_nobody_can_tell_who_is_right() -> None:
    choices = five()
    screening = screen({"bob": choices["bob"], "ran": choices["ran"]})
    assert screening.flags == ()
    assert screening.note is not None
    assert screening.note.startswith("bob and ran disagree (kappa ")
    assert screening.note.endswith("), and nobody can tell who is right.")
    assert TOO_FEW_REVIEWERS in reasons(screening)
    assert screen({"ann": choices["ann"], "bob": choices["bob"]}).note is None


def test_reviewers_without_shared_comparisons_are_not_checked() -> None:
    rng = np.random.default_rng(3)
    truth, places = rng.integers(2, size=100), np.arange(100)
    choices = {name: honest(rng, truth) for name in ("ann", "bob", "cem", "few")}
    choices["few"][19:] = MISSING
    choices |= {"one": np.full(100, MISSING), "two": np.where(places < 0, A, MISSING)}
    screening = screen(choices)
    assert reasons(screening)["They share 19 verdicts with other reviewers, and 20 are needed."] == ("few",)
    assert reasons(screening)["They share 0 verdicts with other reviewers, and 20 are needed."] == ("one", "two")
    assert [one.reviewer for one in screening.reviewers] == ["ann", "bob", "cem"]


def test_two_pairs_that_share_nothing_with_each_other_do_not_break_it() -> None:
    rng = np.random.default_rng(6)
    truth, is_first = rng.integers(2, size=200), np.arange(200) < 100
    choices = {name: np.where(is_first, honest(rng, truth), MISSING) for name in ("ann", "bob")}
    choices |= {name: np.where(is_first, MISSING, honest(rng, truth)) for name in ("cem", "dee")}
    screening = screen(choices)
    assert screening.flags == ()
    assert [one.others.n for one in screening.reviewers] == [100] * 4


def test_where_all_share_with_one_only_there_are_no_others_to_compare() -> None:
    rng = np.random.default_rng(6)
    truth, is_first = rng.integers(2, size=200), np.arange(200) < 100
    choices = {
        "hub": honest(rng, truth),
        "ann": np.where(is_first, honest(rng, truth), MISSING),
        "bob": np.where(is_first, MISSING, honest(rng, truth)),
    }
    assert reasons(screen(choices))[NO_OTHER_PAIRS] == ("hub",)


def test_few_clusters_and_a_rare_choice_are_reasons_not_to_check() -> None:
    assert reasons(screen(five(), np.arange(200) % 9))[FEW_CLUSTERS] == ("ann", "bob", "ran", "inv")
    choices = five()
    rare = np.zeros(200, int)
    rare[:9] = B
    assert reasons(screen(choices | {"rar": rare}))[FEW_VARIED] == ("rar",)


# ---- votes -----------------------------------------------------------------------------------


def test_two_votes_of_one_person_count_once() -> None:
    once = aspect(five())
    people = once.people
    twice = Votes(
        *(np.concatenate([column, column]) for column in (people.item, people.rater, people.shown, people.choice))
    )
    again = screen_reviewers({"clarity": material(twice, once.names, once.cluster)})
    assert again == screen_reviewers({"clarity": once})


def test_the_order_of_votes_makes_no_difference() -> None:
    once = aspect(five())
    order = np.random.default_rng(1).permutation(len(once.people.item))
    people = once.people
    mixed = Votes(*(column[order] for column in (people.item, people.rater, people.shown, people.choice)))
    assert screen_reviewers({"clarity": replace(once, people=mixed)}) == screen_reviewers({"clarity": once})


def test_aspects_are_pooled() -> None:
    # Each aspect has too few shared verdicts; together there are 40 on 20 comparisons.
    rng = np.random.default_rng(2)
    truth = rng.integers(2, size=(2, 19))
    names = ("ann", "bob", "cem")
    materials = {
        key: aspect({name: honest(rng, own) for name in names}) for key, own in zip(("a", "b"), truth, strict=True)
    }
    assert screen_reviewers({"a": materials["a"]}).reviewers == ()
    assert [one.verdicts for one in screen_reviewers(materials).reviewers] == [38] * 3


def test_it_is_plain_json() -> None:
    found = json.loads(json.dumps(asdict(screen(five())), allow_nan=False))
    assert [flag["kind"] for flag in found["flags"]] == ["copies", "inverted", "random"]
    assert found["flags"][1]["own"]["ci95"][1] < 0


# ---- simulation ------------------------------------------------------------------------------


def test_of_a_hundred_studies_nearly_all_have_the_right_flags() -> None:
    """`benchmarks/reviewer_screening.py` measures it on many populations."""
    expected = {("copies", ("ann", "cop")), ("inverted", ("inv",)), ("random", ("ran",))}
    found = [kinds(screen(five(seed))) for seed in range(100)]
    assert sum(one == expected for one in found) >= 95
    without = [
        screen({name: five(seed)[name] for name in ("ann", "bob")} | {"cem": third(seed)}) for seed in range(100)
    ]
    assert sum(one.has_flags for one in without) <= 1


def third(seed: int) -> IntArray:
    """Another honest reviewer of `five`."""
    truth = np.random.default_rng(seed).integers(2, size=200)
    return honest(np.random.default_rng([seed, 3]), truth)

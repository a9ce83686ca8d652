"""What a study says by the written rules of the numbers, reckoned from plain data by brute force.

Nothing here asks the product. A person's vote on an aspect is in the newest finished review that has the aspect; one of
a calibration is none. Statistics take first choices, of reviews that were blind and of reviews that saw the judge each
by itself, and of those alone whose comparison was drawn at random. What is not confirmed counts there until something
is.
"""

from collections import Counter
from dataclasses import dataclass

from evaluations.domain.choices import Choice
from evaluations.domain.judges import CallState
from evaluations.domain.reviews import SelectionMethod
from tests.verdicts.studies import ALONE, MARGIN, Case, Numbers, Pass

FIRST, FINAL = 0, 1
A, B, TIE, BAD = Choice.A, Choice.B, Choice.TIE, Choice.BOTH_BAD


@dataclass(frozen=True)
class Label:
    choice: Choice | None
    source: str
    votes: dict[Choice, int]


def of_scores(numbers: Numbers) -> Choice:
    apart = numbers[0] - numbers[1]
    return TIE if abs(apart) <= MARGIN else A if apart > 0 else B


def choice_in(one: Pass, aspect: str, stage: int) -> Choice | None:
    """What the review says on the aspect; None where it says nothing, finally nothing before it is confirmed."""
    if stage == FINAL and not one.confirmed:
        return None
    if aspect in one.choices:
        return one.choices[aspect][stage]
    return of_scores(one.scores[aspect][stage]) if aspect in one.scores else None


def has(one: Pass, aspect: str) -> bool:
    return aspect in one.choices or aspect in one.scores


# ---- people -----------------------------------------------------------------------------------


def holder(passes: list[Pass], aspect: str) -> Pass | None:
    """Of one person's reviews that count for something the newest confirmed one, else the newest."""
    having = [one for one in passes if has(one, aspect) and one.selection_method != SelectionMethod.CALIBRATION]
    confirmed = [one for one in having if one.confirmed]
    ranked = confirmed or having
    return ranked[-1] if ranked else None


def people_in(case: Case) -> list[str]:
    return sorted({one.person for one in case.passes})


def of_person(case: Case, person: str) -> list[Pass]:
    return [one for one in case.passes if one.person == person]


def vote_of(case: Case, person: str, aspect: str) -> Pass | None:
    """The review that holds this person's vote for the label."""
    one = holder(of_person(case, person), aspect)
    return one if one is not None and one.confirmed else None


def votes(case: Case, aspect: str) -> list[tuple[str, Choice]]:
    """Who voted, and what for."""
    found = []
    for person in people_in(case):
        one = vote_of(case, person, aspect)
        choice = choice_in(one, aspect, FINAL) if one else None
        if choice:
            found.append((person, choice))
    return sorted([*found, *((case.brought_by, said[aspect]) for said in case.brought if aspect in said)])


def seen_by(case: Case, person: str, aspect: str, *, blind: bool) -> Pass | None:
    """The review whose first choice statistics take for this person."""
    drawn = [
        one for one in of_person(case, person) if one.selection_method == SelectionMethod.RANDOM and one.blind == blind
    ]
    return holder(drawn, aspect)


def first_votes(case: Case, aspect: str, *, blind: bool) -> list[tuple[str, Choice]]:
    """What statistics count; of a file nobody knows whether it was blind, and it counts with those who were."""
    found = []
    for person in people_in(case):
        one = seen_by(case, person, aspect, blind=blind)
        choice = choice_in(one, aspect, FIRST) if one else None
        if choice:
            found.append((person, choice))
    brought = [(case.brought_by, said[aspect]) for said in case.brought if aspect in said] if blind else []
    return sorted([*found, *brought])


def counted_somewhere(case: Case, person: str, aspect: str) -> list[Pass]:
    """The reviews whose choice counts for the label or in a block of the report, oldest first."""
    holders = [
        holder(of_person(case, person), aspect),
        seen_by(case, person, aspect, blind=True),
        seen_by(case, person, aspect, blind=False),
    ]
    return [one for one in case.passes if any(one is held for held in holders)]


# ---- judges -----------------------------------------------------------------------------------


def plurality(choices: list[Choice]) -> Choice:
    (first, most), *others = Counter(choices).most_common()
    return TIE if others and others[0][1] == most else first


def judged(case: Case, aspect: str) -> tuple[Choice, bool] | None:
    """The judge's one verdict and whether it contradicts itself; None where an order has no answer."""
    if aspect == ALONE:
        graded_a, graded_b = case.graded
        if not graded_a or not graded_b:
            return None
        return of_scores((sum(graded_a) / len(graded_a), sum(graded_b) / len(graded_b))), False
    by_order: dict[str, list[Choice]] = {}
    for call in case.asked:
        said = by_order.setdefault(call.shown, [])
        if not isinstance(call.choices, CallState) and aspect in call.choices:
            said.append(call.choices[aspect])
    if not by_order or not all(by_order.values()):
        return None
    orders = {plurality(said) for said in by_order.values()}
    if len(orders) == 1:
        return orders.pop(), False
    return TIE, bool(orders & {A, B})


# ---- the label --------------------------------------------------------------------------------


def label(case: Case, aspect: str) -> Label | None:
    counts = Counter(choice for _, choice in votes(case, aspect))
    if aspect in case.settled:
        return Label(case.settled[aspect], "adjudicated", dict(counts))
    if counts:
        (first, most), *others = counts.most_common()
        if others and others[0][1] == most:
            return Label(None, "split", dict(counts))
        return Label(first, "single" if counts.total() == 1 else "majority", dict(counts))
    said = judged(case, aspect)
    return Label(said[0], "judge", {said[0]: 1}) if said else None

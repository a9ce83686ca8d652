"""What a score row means in an evaluation: which response it is on, and whether it is here already."""

from evaluations.domain import ScoreRow, Shown
from evaluations.formats.values import RowRefused
from evaluations.models import Rater, Verdict
from evaluations.services.importing.knowing import key_of_failure, key_of_score, score_word
from evaluations.services.importing.naming import Addition, named_aspect, rater_meant, refuse_second_way
from evaluations.services.importing.scaling import Scale
from evaluations.services.importing.sketching import FailureSketch, ResponseSketch, SaidKey, ScoreSketch, where


def add_score(added: Addition, row: ScoreRow) -> None:
    response = response_meant(added, row)
    rater = rater_meant(added, row)
    if row.value is None:
        add_failure(added, row, response, rater)
        return
    aspect = named_aspect(added, row.aspect)
    refuse_second_way(added, rater, aspect, Verdict)
    if is_new(added, response, key_of_score(rater, aspect.key, row.sample or 0), score_word(row.value)):
        added.new.append(ScoreSketch(rater, response, aspect, row, row.value))
    added.scales.append((row.aspect, Scale(row.value, row.value, row.lower_is_better)))


def add_failure(added: Addition, row: ScoreRow, response: ResponseSketch, rater: Rater) -> None:
    """A judge's failure is a call without an answer: one for all aspects. It brings no aspect and no scale."""
    shown, sample = Shown.AS_STORED.value, row.sample or 0
    if is_new(added, response, key_of_failure(rater, shown, sample), row.failure):
        added.new.append(FailureSketch(rater, response, shown, sample, row.failure, row.rationale))


def is_new(added: Addition, response: ResponseSketch, key: SaidKey, word: str) -> bool:
    """Whether nothing stands there yet. What says otherwise is refused."""
    subject = ("score", *response.key)
    found = added.said(response.query, subject, response.said, key)
    if found is None:
        added.say(response.query, subject, response.said, key, word)
    elif found[0] != word:
        raise RowRefused(f"the same score stands {where(found[1])} with the value {found[0]}, not {word}")
    return found is None


def response_meant(added: Addition, row: ScoreRow) -> ResponseSketch:
    query = added.batch.queries.get(row.query_key)
    known = query.responses.values() if query else ()
    matching = [one for one in known if one.candidate.name == row.candidate]
    if len(matching) > 1:  # the one that stands beside the score, if any
        matching = [one for one in matching if one in added.answered] or matching
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise RowRefused(
            f"query “{row.query_key}” has {len(matching)} responses of “{row.candidate}”: which one is not clear"
        )
    if query is None:
        raise RowRefused(f"there is no query “{row.query_key}” in this evaluation")
    if row.candidate not in added.batch.around.candidates:
        raise RowRefused(f"there is no candidate “{row.candidate}” in this evaluation")
    raise RowRefused(f"query “{row.query_key}” has no response of “{row.candidate}”")

"""The filter, the selection that a request for comparisons holds."""

from typing import Final

from evaluations.access import Action, is_allowed
from evaluations.comparisons.forms import FilterForm
from evaluations.domain.filters import ComparisonFilter
from evaluations.models.evaluations import Evaluation
from evaluations.visibility import can_see_judges
from evaluations.web.requests import AuthenticatedRequest

SESSION_KEY: Final = "asked of comparisons"  # in the session
MAX_SELECTED: Final = 500


def keep_refused_action(request: AuthenticatedRequest, slug: str) -> None:
    """Keep the input of a refused bulk action in the session, for the list that is shown next."""
    words = {name: request.POST.get(name, "")[:200] for name in ("which", "tag", "queue")}
    ids = {name: read_ids(request, name) for name in ("comparison", "people")}
    request.session[SESSION_KEY] = {"slug": slug, **words, **ids}


def pop_refused_action(request: AuthenticatedRequest, slug: str) -> dict[str, object]:
    refused: dict[str, object] = request.session.pop(SESSION_KEY, {})
    return refused if refused.get("slug") == slug else {}


def read_ids(request: AuthenticatedRequest, name: str) -> list[int]:
    given = request.POST.getlist(name)[:MAX_SELECTED]
    return [int(one) for one in given if one.isdecimal() and len(one) < 19]


def build_filter_form(request: AuthenticatedRequest, evaluation: Evaluation) -> FilterForm:
    """The filter form of a request, with the fields that this person may use."""
    user = request.user
    sees_all, sees_judges = is_allowed(user, Action.SEE_ALL, evaluation), can_see_judges(user, evaluation)
    return FilterForm(
        request.GET,
        evaluation=evaluation,
        sees_all=sees_all,
        sees_judges=sees_judges,
        in_cell="judge_choice" in request.GET,
    )


def list_filters(form: FilterForm) -> list[ComparisonFilter]:
    """The filters that must all match: the form's own, and the saved filter it is limited to."""
    sliced = form.sliced()
    return [one for one in (form.wanted(), sliced.wanted if sliced else ComparisonFilter()) if one]

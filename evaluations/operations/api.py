"""The API of the site's status, for site administrators."""

from dataclasses import asdict

from evaluations.access import require_site_administrator
from evaluations.api.operations import OperationRouter
from evaluations.domain.roles import Scope
from evaluations.operations.schemas import StatusOut
from evaluations.operations.site_status import build_site_status
from evaluations.web.requests import AuthenticatedRequest

operations = OperationRouter(tags=["site"])


@operations.get_one("/status", Scope.ADMIN, StatusOut)
def get_status(request: AuthenticatedRequest) -> StatusOut:
    """How background work stands on the whole site."""
    require_site_administrator(request.user)
    return StatusOut(**asdict(build_site_status()))

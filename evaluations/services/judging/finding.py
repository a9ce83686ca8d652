"""The local server of models that a worker sees: kept while it answers, forgotten when it is gone."""

from django.utils import timezone

from evaluations.domain import storable
from evaluations.models import LocalServer
from evaluations.outside.local_servers import look_at


def find_local_server(address: str) -> LocalServer | None:
    """Look at this address now and keep what answers there; an empty address means not to look.

    Whatever else was found before is forgotten; endpoints that were made of it stay.
    """
    found = look_at(address) if address else None
    gone = LocalServer.objects.exclude(base_url=found.base_url) if found else LocalServer.objects.all()
    if gone.exists():  # on SQLite even a DELETE of nothing waits for the other writers
        gone.delete()
    if found is None:
        return None
    names = [storable(name) for name in found.model_names]
    server, _ = LocalServer.objects.update_or_create(
        base_url=found.base_url,
        defaults={"kind": found.kind, "model_names": names, "seen_at": timezone.now()},
    )
    return server

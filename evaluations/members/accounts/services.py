"""Changes to site policy and to the rights of accounts."""

from collections.abc import Mapping

from django.db import transaction

from evaluations.access import RIGHT_COLUMNS, Right, require_site_administrator
from evaluations.audit.events import record_event
from evaluations.audit.security import record_security_event
from evaluations.domain.security import SecurityEventKind
from evaluations.models.users import SitePolicy, User


@transaction.atomic
def change_site_policy(rights: Mapping[Right, bool], *, by: User) -> SitePolicy:
    """Give the rights to every account, or take them back. Rights that are not named stay as they are."""
    require_site_administrator(User.objects.select_for_update(no_key=True).get(pk=by.pk))
    SitePolicy.objects.bulk_create([SitePolicy(pk=1)], ignore_conflicts=True)
    policy = SitePolicy.objects.select_for_update(no_key=True).get(pk=1)
    columns = {RIGHT_COLUMNS[right].policy: value for right, value in rights.items()}
    before, after = apply_changes(policy, columns)
    if after:
        record_event("changed site policy", policy, user=by, evaluation=None, before=before, after=after)
        record_security_event(SecurityEventKind.POLICY_CHANGED, None, by=by, detail=f"everyone: {format_rights(after)}")
    return policy


@transaction.atomic
def change_account_rights(user: User, rights: Mapping[Right, bool], *, by: User) -> User:
    """Give the rights to one account, or take them back. Rights that are not named stay as they are."""
    locked = User.objects.select_for_update(no_key=True).filter(pk__in={user.pk, by.pk}).order_by("pk")
    accounts = {row.pk: row for row in locked}
    require_site_administrator(accounts[by.pk])
    account = accounts[user.pk]
    before, after = apply_changes(account, {RIGHT_COLUMNS[right].account: value for right, value in rights.items()})
    if after:
        record_event("changed rights", account, user=by, evaluation=None, before=before, after=after)
        record_security_event(SecurityEventKind.POLICY_CHANGED, account, by=by, detail=format_rights(after))
    return account


def apply_changes(row: SitePolicy | User, columns: Mapping[str, bool]) -> tuple[dict[str, bool], dict[str, bool]]:
    """Store the values that differ; the values before and after."""
    before = {name: getattr(row, name) for name, value in columns.items() if getattr(row, name) != value}
    after = {name: columns[name] for name in before}
    for name, value in after.items():
        setattr(row, name, value)
    if after:
        row.save(update_fields=list(after))
    return before, after


def format_rights(columns: Mapping[str, bool]) -> str:
    names = {name: right for right, pair in RIGHT_COLUMNS.items() for name in (pair.account, pair.policy)}
    return ", ".join(f"{'may' if value else 'may not'} {names[name]}" for name, value in columns.items())

"""``manage.py grant_endpoint NAME [SLUG]``"""

import json
from argparse import ArgumentParser
from dataclasses import replace
from typing import Any, Final

from django.db import transaction

from evaluations.domain.errors import InputRefused
from evaluations.domain.money import parse_budget_usd
from evaluations.judges.endpoints.grants import (
    find_account_of_today,
    find_grant,
    grant_endpoint,
    list_grants,
    list_spending,
    sum_spending,
    withdraw_grant,
)
from evaluations.judges.endpoints.services import change_endpoint, read_stored_settings
from evaluations.management.product_command import CommandOptions, ProductCommand, find_evaluation
from evaluations.management.run_summary import round_to_usd
from evaluations.models.judges import Endpoint

NO_BUDGET: Final = "none"


class Command(ProductCommand):
    help = (
        "Grant an endpoint to an evaluation, withdraw a grant, or set the endpoint's daily budget. Prints "
        "grants and spending as JSON."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="the endpoint")
        parser.add_argument("slug", nargs="?", help="URL name of the evaluation (default: only print)")
        change = parser.add_mutually_exclusive_group()
        change.add_argument(
            "--budget",
            metavar="USD",
            help=f"limit for all its runs at this endpoint; “{NO_BUDGET}” for none (default: unchanged)",
        )
        change.add_argument("--withdraw", action="store_true", help="withdraw the grant; its runs stop")
        parser.add_argument(
            "--daily-budget", metavar="USD", help=f"limit for all evaluations per UTC day; “{NO_BUDGET}” for none"
        )
        parser.add_argument(
            "--offer", choices=["yes", "no"], help="whether every evaluation can use it without a grant"
        )

    def handle(self, *args: object, **options: Any) -> None:
        endpoint = change_from_options(options)
        self.stdout.write(json.dumps(summarize_endpoint(endpoint), ensure_ascii=False))


@transaction.atomic
def change_from_options(options: CommandOptions) -> Endpoint:
    endpoint = Endpoint.objects.filter(name=options["name"]).first()
    if endpoint is None:
        raise InputRefused(f"There is no endpoint “{options['name']}”.")
    settings = stored = read_stored_settings(endpoint)
    if daily_budget := options["daily_budget"]:
        settings = replace(settings, daily_budget=parse_optional_budget(daily_budget, "Daily budget"))
    if options["offer"]:
        settings = replace(settings, is_offered=options["offer"] == "yes")
    if settings != stored:
        change_endpoint(endpoint, settings, user=None)
    change_grant(endpoint, options)
    endpoint.refresh_from_db()
    return endpoint


def change_grant(endpoint: Endpoint, options: CommandOptions) -> None:
    if options["slug"] is None:
        if options["budget"] or options["withdraw"]:
            raise InputRefused("Name the evaluation whose grant to change.")
        return
    evaluation = find_evaluation(options["slug"])
    grant = find_grant(endpoint, evaluation)
    if not options["withdraw"]:
        kept = grant.budget if grant else None
        budget = parse_optional_budget(options["budget"], "Budget") if options["budget"] else kept
        grant_endpoint(endpoint, evaluation, budget=budget, user=None)
        return
    if grant is None or not withdraw_grant(grant, user=None):
        raise InputRefused(f"“{endpoint.name}” is not granted to “{evaluation.slug}”.")


def parse_optional_budget(text: str, what: str) -> int | None:
    return None if text == NO_BUDGET else parse_budget_usd(text, what)


def summarize_endpoint(endpoint: Endpoint) -> dict[str, object]:
    account, total = find_account_of_today(endpoint), sum_spending(list_spending(endpoint))
    return {
        "endpoint": endpoint.name,
        "offered": endpoint.is_offered,
        "daily_budget_usd": round_to_usd(endpoint.daily_budget),
        "spent_today_usd": round_to_usd(account.spent),
        "reserved_usd": round_to_usd(account.reserved),
        "spent_usd": round_to_usd(total["cost"]),
        "requests": total["requests"],
        "grants": [
            {
                "evaluation": grant.evaluation.slug,
                "active": grant.is_active,
                "budget_usd": round_to_usd(grant.budget),
                "spent_usd": round_to_usd(grant.spent),
            }
            for grant in list_grants(endpoint)
        ],
    }

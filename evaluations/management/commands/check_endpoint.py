"""``manage.py check_endpoint NAME`` or ``--base-url URL``"""

import json
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from evaluations.judges.endpoints.selectors import latest_model
from evaluations.management.product_command import ProductCommand

if TYPE_CHECKING:
    from evaluations.judges.endpoints.checks import CheckFinding


class Command(ProductCommand):
    help = "Test an endpoint with one tiny request: what it takes for a model, and what to do where it fails."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", nargs="?", help="the endpoint's name; what is found is kept with it")
        parser.add_argument("--base-url", metavar="URL", help="an address that is no endpoint yet")
        parser.add_argument("--key-env", default="", metavar="NAME", help="environment variable of its key")
        parser.add_argument("--model", default="", metavar="M", help="default: one that its judges use, or it offers")
        parser.add_argument("--long", action="store_true", help="test a long prompt too, also where that costs money")
        parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")

    def handle(self, *args: object, **options: Any) -> None:
        from evaluations.judges.endpoints.checks import (  # noqa: PLC0415 - importing openai takes half a second
            find_endpoint_at,
            find_endpoint_by_name,
            perform_check,
            server_for_check,
            store_check,
        )

        endpoint = find_endpoint_by_name(options["name"]) if options["name"] else None
        server = server_for_check(endpoint, options["base_url"], options["key_env"])
        model = options["model"] or (latest_model(endpoint) if endpoint else "")
        charged = endpoint or find_endpoint_at(server)
        result = perform_check(server, model, endpoint=charged, long=True if options["long"] else None)
        if endpoint and result.model:
            store_check(endpoint, result)
        if options["json"]:
            self.stdout.write(json.dumps(result.as_json(), ensure_ascii=False, indent=2))
        else:
            self.write_table(result.findings)
        if problem := result.problem:
            raise CommandError(f"{problem.found} {problem.do}".strip())

    def write_table(self, findings: Sequence["CheckFinding"]) -> None:
        width = max((len(finding.about) for finding in findings), default=0)
        for finding in findings:
            mark = {"ok": "ok     ", "warning": "warning", "problem": "PROBLEM"}[finding.health]
            self.stdout.write(f"{mark}  {finding.about:<{width}}  {finding.found}")
            if finding.do:
                self.stdout.write(f"{'':<{width + 11}}→ {finding.do}")

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
    help = "Test an endpoint with one tiny request, and list what a model supports."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", nargs="?", help="the endpoint's name; the result is stored")
        parser.add_argument("--base-url", metavar="URL", help="a server that is not an endpoint yet")
        parser.add_argument("--key-env", default="", metavar="NAME", help="environment variable with its API key")
        parser.add_argument(
            "--model", default="", metavar="M", help="default: one that its judges use, or that it lists"
        )
        parser.add_argument("--long", action="store_true", help="also test a long prompt, even if it costs money")
        parser.add_argument("--json", action="store_true", help="print JSON")

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

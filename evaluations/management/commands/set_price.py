"""``manage.py set_price --endpoint NAME --model MODEL --in USD --out USD``, or ``--list-price``"""

from argparse import ArgumentParser
from typing import Final

from evaluations.domain.errors import InputRefused
from evaluations.domain.money import format_exact_usd
from evaluations.judges.endpoints.price_settings import PriceSettings, set_price, use_list_price
from evaluations.judges.endpoints.selectors import endpoints_at_address
from evaluations.management.product_command import CommandOptions, ProductCommand
from evaluations.models.judges import Endpoint, Price

PRICE_OPTIONS: Final = ("tokens_in", "tokens_out", "tokens_cached", "most_tokens_out")


class Command(ProductCommand):
    help = "Set the price of a model at an endpoint, in USD per million tokens. Budgets and costs need it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        where = parser.add_mutually_exclusive_group(required=True)
        where.add_argument("--endpoint", metavar="NAME")
        where.add_argument("--base-url", metavar="URL", help="all endpoints at this address")
        parser.add_argument("--model", required=True, help="model ID at the endpoint")
        parser.add_argument("--list-price", action="store_true", help="use the provider's list price, if known")
        parser.add_argument("--in", dest="tokens_in", metavar="USD", help="input, per million tokens")
        parser.add_argument("--out", dest="tokens_out", metavar="USD", help="output, per million tokens")
        parser.add_argument("--cached", dest="tokens_cached", metavar="USD", help="cached input (default: as --in)")
        parser.add_argument(
            "--batch-percent", type=int, default=50, metavar="N", help="percent of the price with the Batch API"
        )
        parser.add_argument(
            "--most-tokens-out", type=int, metavar="N", help="max output tokens, reasoning included (default: unknown)"
        )

    def handle(self, *args: object, **options: object) -> None:
        for endpoint in find_endpoints(options):
            price = set_price_from_options(endpoint, options)
            origin = f" List price {price.source}." if price.source else ""
            self.stdout.write(
                f"{price}: USD {format_exact_usd(price.tokens_in)} in, "
                f"{format_exact_usd(price.tokens_cached)} cached and "
                f"{format_exact_usd(price.tokens_out)} out per million tokens; "
                f"{price.batch_percent}% with the Batch API.{origin}"
            )


def set_price_from_options(endpoint: Endpoint, options: CommandOptions) -> Price:
    set_options = [name for name in PRICE_OPTIONS if options[name] is not None]
    if options["list_price"]:
        if set_options:
            raise InputRefused(
                "--list-price sets the whole price: leave out --in, --out, --cached and --most-tokens-out."
            )
        return use_list_price(endpoint, model=options["model"], user=None)
    if options["tokens_in"] is None or options["tokens_out"] is None:
        raise InputRefused("A price needs --in and --out, or --list-price.")
    columns = {name: options[name] for name in (*PRICE_OPTIONS, "model", "batch_percent")}
    return set_price(endpoint, PriceSettings(**columns), user=None)


def find_endpoints(options: CommandOptions) -> list[Endpoint]:
    if options["endpoint"] is not None:
        endpoints, name = Endpoint.objects.filter(name=options["endpoint"]), options["endpoint"]
    else:
        endpoints, name = endpoints_at_address(options["base_url"]), options["base_url"]
    if not endpoints:
        raise InputRefused(f"There is no endpoint “{name}”. Create one with create_judge first.")
    return list(endpoints)

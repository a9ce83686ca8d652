#!/usr/bin/env python
"""The command line of the product; `manage.py help` lists what it can do."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "judgeweb.settings")
    try:
        from django.conf import settings
        from django.core.exceptions import ImproperlyConfigured
        from django.core.management import execute_from_command_line
    except ImportError:
        sys.exit("Django is not installed here. Run `make run` once, then use .venv/bin/python manage.py.")
    try:
        _ = settings.DEBUG  # the first look reads them all: a value that cannot be used is named
    except ImproperlyConfigured as error:
        sys.exit(f"judgeweb stopped: {error}")
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()

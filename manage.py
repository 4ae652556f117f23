#!/usr/bin/env python
"""Django's command line for Vitrine; `serve` starts everything."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    from webapp.serving.on_demand import ready_for

    try:
        with ready_for(sys.argv):
            execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(str(error))  # it names the variable: where the program was adds nothing


if __name__ == "__main__":
    main()

"""What the processes of the shell must not load."""

import subprocess
import sys

from tests.sites import ROOT

IMPORT_EVERYTHING = """
import webapp.asgi
import importlib, pkgutil, webapp, chat
from django.urls import get_resolver
get_resolver().url_patterns
for package in (webapp, chat):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
import sys
print([name for name in ("torch", "transformers", "numpy") if name in sys.modules])
"""

SUPERVISOR = """
import sys, threading
import django
from webapp.serving.supervisor import Supervisor
from webapp.serving.prepare import preload
django.setup()
preload()
unwanted = ("twisted.internet.reactor", "torch")
print([name for name in unwanted if name in sys.modules], threading.active_count())
"""


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_web_process_never_loads_torch() -> None:
    assert run(IMPORT_EVERYTHING) == "[]"


def test_the_supervisor_holds_no_reactor_and_no_thread_when_it_forks() -> None:
    assert run(SUPERVISOR) == "[] 1"


def test_scopes_of_keys_are_known_without_settings() -> None:
    """A benchmark makes a key in a database that it reaches by itself."""
    assert run("import webapp.scopes, sys; print('django.conf' in sys.modules)") == "False"

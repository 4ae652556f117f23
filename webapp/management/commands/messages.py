"""`manage.py messages`: bring the catalogs up to what the source says, and compile them."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from webapp.catalogs import (
    DOMAINS,
    Catalog,
    mo_bytes,
    po_path,
    read_po,
    updated,
    used,
    write_po,
)

_PLURALS = {
    "ar": "nplurals=6; plural=n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 :"
    " n%100>=11 && n%100<=99 ? 4 : 5;"
}


class Command(BaseCommand):
    help = __doc__

    def handle(self, *args: Any, **options: Any) -> None:
        for language, name in settings.LANGUAGES:
            for domain in DOMAINS if language != settings.LANGUAGE_CODE else ():
                path = po_path(language, domain)
                path.parent.mkdir(parents=True, exist_ok=True)
                old = read_po(path) if path.exists() else Catalog(_header(language))
                catalog = updated(old, used(domain))
                write_po(path, catalog)
                path.with_suffix(".mo").write_bytes(mo_bytes(catalog))
                missing = [text for text, e in catalog.entries.items() if not e.is_translated]
                self.stdout.write(
                    f"{name} {domain}: {len(missing)} of {len(catalog.entries)} missing"
                )
                for text in missing:
                    self.stdout.write(f"  {text!r}")


def _header(language: str) -> str:
    plurals = _PLURALS.get(language, "nplurals=2; plural=(n != 1);")
    return (
        f"Language: {language}\nMIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\n"
        f"Content-Transfer-Encoding: 8bit\nPlural-Forms: {plurals}\n"
    )

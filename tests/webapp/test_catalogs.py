"""Every text of the interface is there in each language, whole, and as Python's gettext reads it."""

import io
import re
from gettext import GNUTranslations
from pathlib import Path

import pytest
from django.conf import settings

from webapp.catalogs import (
    DOMAINS,
    Catalog,
    Entry,
    mo_bytes,
    placeholders,
    po_path,
    read_po,
    updated,
    used,
    write_po,
)

LANGUAGES = [code for code, _ in settings.LANGUAGES if code != settings.LANGUAGE_CODE]
# Within a sentence: at its beginning it may speak of somebody else.
_SIE = re.compile(r"(?<=[\w,)] )(Sie|Ihr|Ihre[mnrs]?|Ihnen)\b")
every_catalog = pytest.mark.parametrize(
    ("language", "domain"), [(language, domain) for language in LANGUAGES for domain in DOMAINS]
)


@every_catalog
def test_every_text_of_the_source_is_translated(language: str, domain: str) -> None:
    texts = used(domain)
    assert len(texts) > 100, "the source is read"
    entries = read_po(po_path(language, domain)).entries
    missing = [text for text in texts if text not in entries or not entries[text].is_translated]
    assert not missing, "`manage.py messages` lists them in the catalogs, to be translated"
    plurals = {text: entry.plural for text, entry in texts.items()}
    assert {text: entries[text].plural for text in texts} == plurals


@every_catalog
def test_translations_have_the_places_of_their_texts(language: str, domain: str) -> None:
    catalog = read_po(po_path(language, domain))
    for entry in catalog.entries.values():
        assert len(entry.forms) == (catalog.num_plurals if entry.plural else 1), entry.text
        wanted = placeholders(entry.text) | placeholders(entry.plural)
        for form in entry.forms:
            missing = wanted - placeholders(form) - ({"n"} if entry.plural else set())
            assert not missing, (entry.text, form)
            assert placeholders(form) <= wanted, (entry.text, form)
            assert form[:1].isspace() == entry.text[:1].isspace(), entry.text


def test_german_says_du_wherever_it_speaks_to_somebody() -> None:
    forms = [
        form
        for domain in DOMAINS
        for entry in read_po(po_path("de", domain)).entries.values()
        for form in entry.forms
    ]
    assert not [form for form in forms if _SIE.search(form)]


@every_catalog
def test_what_is_compiled_is_what_is_written(language: str, domain: str) -> None:
    path = po_path(language, domain)
    catalog = read_po(path)
    compiled = path.with_suffix(".mo").read_bytes()
    assert compiled == mo_bytes(catalog), "`manage.py messages` compiles"
    gettext = GNUTranslations(io.BytesIO(compiled))
    for entry in catalog.entries.values():
        if entry.plural:
            said = {gettext.ngettext(entry.text, entry.plural, number) for number in range(200)}
            assert said == set(entry.forms), entry.text
        else:
            assert gettext.gettext(entry.text) == entry.forms[0]


def test_a_catalog_stays_the_same_when_it_is_written_and_read(tmp_path: Path) -> None:
    odd = Entry('a "b" \\ c\n%(n)s', "", ["«d»\n\t%(n)s"], {"static/js/a.js", "static/js/b.js"})
    plural = Entry("one", "%(n)s many", ["eins", "%(n)s viele"], {"static/js/a.js"})
    header = "Language: de\nPlural-Forms: nplurals=2; plural=(n != 1);\n"
    catalog = Catalog(header, {odd.text: odd, plural.text: plural})
    write_po(tmp_path / "a.po", catalog)
    assert read_po(tmp_path / "a.po") == catalog


def test_what_the_source_says_no_more_is_dropped_and_what_is_new_is_empty() -> None:
    catalog = Catalog("", {"old": Entry("old", "", ["alt"]), "kept": Entry("kept", "", ["bleibt"])})
    now = updated(catalog, {"kept": Entry("kept"), "new": Entry("new", "news")})
    assert {text: entry.forms for text, entry in now.entries.items()} == {
        "kept": ["bleibt"],
        "new": ["", ""],
    }
    assert GNUTranslations(io.BytesIO(mo_bytes(now))).gettext("new") == "new", "English stands in"

"""`{% module "chat.js" %}` and `{% sheets "chat" %}`: what a page begins with, from few files."""

from pathlib import PurePath

from django import template
from django.conf import settings
from django.templatetags.static import static
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from webapp.page_files import ENTRIES, SHEETS, joined_sheet, needed_by

register = template.Library()


@register.simple_tag
def module(name: str) -> SafeString:
    """A script of static/js, and at once all files that it waits for, which else name each other.

    Raises LookupError for one that is not among `ENTRIES`.
    """
    if name not in ENTRIES:
        raise LookupError(name)
    others = [] if settings.DEBUG else needed_by(name)
    preloads = format_html_join(
        "", '<link rel="modulepreload" href="{}">', ((static(f"js/{other}"),) for other in others)
    )
    return preloads + format_html('<script type="module" src="{}"></script>', static(f"js/{name}"))


@register.simple_tag
def sheets(name: str) -> SafeString:
    """The style sheets of `SHEETS[name]`, as one that says which it holds."""
    if settings.DEBUG:
        return format_html_join(
            "", '<link rel="stylesheet" href="{}">', ((static(sheet),) for sheet in SHEETS[name])
        )
    held = " ".join(PurePath(sheet).stem for sheet in SHEETS[name])
    href = static(joined_sheet(name))
    return format_html('<link rel="stylesheet" href="{}" data-sheets="{}">', href, held)

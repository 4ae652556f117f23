"""`{% importmap %}`: ES modules find their hashed files.

Maps each /static/js/**/*.js to its hashed URL, so that plain relative imports work as they stand
in the source, and `#vendor/NAME.js` to the vendored file; style sheets there too, for those that are
fetched when they are needed (`import.meta.resolve`). It has to stand before the first module.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

from django import template
from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import staticfiles_storage
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString

from webapp.templatetags.page_data import inside_script

register = template.Library()


@register.simple_tag(takes_context=True)
def importmap(context: template.Context) -> SafeString:
    imports = _import_map() if settings.DEBUG else _cached_import_map()
    return format_html(
        '<script type="importmap" nonce="{}">{}</script>',
        context.get("csp_nonce", ""),
        inside_script(imports),
    )


def _import_map() -> str:
    imports: dict[str, str] = {}
    for name in _script_names():
        if name.startswith("js/"):
            imports[settings.STATIC_URL + name] = static(name)
        elif name.startswith("vendor/"):
            imports["#" + name] = static(name)
    return json.dumps({"imports": imports}, sort_keys=True)


_cached_import_map = cache(_import_map)


def _script_names() -> list[str]:
    hashed: dict[str, Any] = getattr(staticfiles_storage, "hashed_files", {})
    names = hashed or [name for finder in finders.get_finders() for name, _ in finder.list([])]
    return sorted(name for name in names if Path(name).suffix in (".js", ".mjs", ".css"))

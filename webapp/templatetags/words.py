"""`{% words %}`: the translations of the page's modules, as data that no script can come out of."""

from django import template
from django.utils.safestring import SafeString
from django.utils.translation import get_language

from webapp.languages import words_json
from webapp.templatetags.page_data import as_script

register = template.Library()


@register.simple_tag
def words() -> SafeString:
    texts = words_json(get_language() or "en")
    if texts == "{}":
        return SafeString("")
    return as_script(texts, "words")

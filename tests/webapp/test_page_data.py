"""Data for a page's modules: nothing in it ends its element, and all of it arrives."""

import json
import re

from django.utils.html import json_script
from hypothesis import given
from hypothesis import strategies as st

from webapp.templatetags.page_data import page_data

HOSTILE = st.text(alphabet=st.sampled_from("<>&\\u003c/script!-\"'\u2028é😀\x00 ")) | st.text()


@given(st.dictionaries(HOSTILE, st.lists(HOSTILE)))
def test_it_is_what_django_writes(value: dict[str, list[str]]) -> None:
    written = page_data(value, "data")
    assert written == json_script(value, "data")
    found = re.fullmatch(r'<script id="data" type="application/json">(.*)</script>', written, re.S)
    assert found is not None
    assert not re.search("[<>&]", found[1])
    assert json.loads(found[1]) == value

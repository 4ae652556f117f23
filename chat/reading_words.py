"""Why a file could not be read, and what of it was left out, in the language of the reader.

Files are read for everybody, by a process of its own, and what it says of them is kept in English; each
sentence is looked up when it is shown. Numbers and names in it are put into the translation.
"""

import re

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

_SENTENCES = (
    _("The file is empty."),
    _("The file is gone."),
    _("The file could not be read."),
    _("There is no text in the file."),
    _("The file could not be read: it is damaged, or not what its kind should be."),
    _("The file is damaged (%(error)s)."),
    _("The file is damaged: a part of it cannot be unpacked."),
    _("The file is damaged: a part of it is missing."),
    _("The file is damaged: a part of it is no XML."),
    _("The file is damaged: its end or its index is missing."),
    _("The file is damaged: its index cannot be read."),
    _("The file is damaged: its parts overlap."),
    _("The file is packed in a way that its kind does not know."),
    _("The file declares entities, which its kind forbids."),
    _("The file is nested too deeply to be read."),
    _("The file is protected by a password. Save it without one."),
    _("The file has no page %(n)s."),
    _("The file is larger than %(n)s MiB."),
    _("The file is made of over %(n)s parts."),
    _("The file unpacks to over %(n)s MiB."),
    _("The file unpacks to far more than it should."),
    _("The file holds over %(n)s characters of text. Split it."),
    _("The file has more than %(n)s pages. Split it."),
    _("Reading the file took too long. Split it, or save it in a simpler format."),
    _("Reading the file takes more memory than it may. Split it, or save it anew."),
    _("Reading this file has failed several times. It may be damaged; try to save it anew."),
    _("This kind of file cannot be read. Text, PDF, office files, web pages and e-mail can."),
    _("This is an archive. Unpack it and add the files in it."),
    _("Office files from before 2007 cannot be read. Save it as docx, xlsx, pptx or PDF."),
    _("RTF cannot be read. Save it as docx or PDF."),
    _("The PDF is damaged and cannot be opened."),
    _("The PDF is damaged: none of its pages can be read."),
    _("The PDF is protected by a password. Save it without one."),
    _(
        "The PDF holds pictures of pages and no text, and the program that reads pictures of text"
        " (tesseract) is not installed."
    ),
    _("This is a picture, and the program that reads it (tesseract) is not installed."),
    _("Tesseract has no data for the languages “%(languages)s”."),
    _("“%(languages)s” are no languages that tesseract knows."),
    _("The picture is damaged."),
    _("The picture has more than %(n)s million pixels."),
    _("Of such a file there is no picture."),
    _("Page %(n)s is damaged."),
    _("Page %(n)s has no size."),
    _("The document is damaged: a part of it is missing."),
    _("The presentation is damaged: a part of it is missing."),
    _("The workbook is damaged: a part of it is missing or wrong."),
    _("The book is damaged: it does not say where it begins."),
    _("The book is protected against copying."),
    _("The message has over %(n)s parts."),
    _("It was cancelled before it was read."),
    _("A chapter that the book lists is missing from the file."),
    _("Only the first %(n)s pages were read."),
    _("Only the first %(n)s rows were read."),
    _("Messages nested deeper than %(n)s were left out."),
    _("Formulas without results were left out. Save the file in a spreadsheet program."),
    _("Of the sheet “%(sheet)s” only the first %(n)s rows were read."),
    _("Of the sheet “%(sheet)s” only %(n)s columns were read."),
    _("Hidden sheets were left out: %(names)s."),
    _("Hidden slides were left out: %(numbers)s."),
    _("1 page is damaged and could not be read."),
    _("%(n)s pages are damaged and could not be read."),
    _(
        "1 page holds no text, and the program that reads pictures of text (tesseract) is not"
        " installed."
    ),
    _(
        "%(n)s pages hold no text, and the program that reads pictures of text (tesseract) is not"
        " installed."
    ),
    _("1 page holds no text; of such pages only the first %(most)s were read."),
    _("%(n)s pages hold no text; of such pages only the first %(most)s were read."),
)
_VALUE = re.compile(r"%\((\w+)\)s")


def _pattern(sentence: str) -> re.Pattern[str]:
    """Odd pieces are the names of values."""
    pieces = _VALUE.split(sentence)
    names = (f"(?P<{piece}>.+)" if at % 2 else re.escape(piece) for at, piece in enumerate(pieces))
    return re.compile("".join(names), re.DOTALL)


_EXACT = frozenset(sentence for sentence in _SENTENCES if "%(" not in sentence)
_WITH_VALUES = [(_pattern(each), each) for each in _SENTENCES if each not in _EXACT]


def reading_words(sentence: str) -> str:
    """As it is where nobody has translated it."""
    if sentence in _EXACT:
        return gettext(sentence)
    for pattern, english in _WITH_VALUES:
        if found := pattern.fullmatch(sentence):
            return gettext(english) % found.groupdict()
    return sentence

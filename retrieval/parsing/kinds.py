"""Which kind of file this is: by what is in it, and between kinds of text by its name as well."""

import re
import zipfile

from retrieval.parsing.errors import Unreadable, locked
from retrieval.parsing.source import Source

_OFFICE = "application/vnd.openxmlformats-officedocument."
DOCX = f"{_OFFICE}wordprocessingml.document"
PPTX = f"{_OFFICE}presentationml.presentation"
XLSX = f"{_OFFICE}spreadsheetml.sheet"
ODT = "application/vnd.oasis.opendocument.text"
EPUB = "application/epub+zip"
PDF = "application/pdf"
MAIL = "message/rfc822"

# The module of formats/ that reads it.
READERS = {
    PDF: "pdf",
    DOCX: "word",
    PPTX: "slides",
    XLSX: "sheets",
    ODT: "opendocument",
    EPUB: "book",
    MAIL: "mail",
    "text/html": "webpage",
    "text/markdown": "markdown",
    "text/csv": "delimited",
    "text/tab-separated-values": "delimited",
    "text/x-code": "code",
    "text/plain": "plain",
    "image/png": "image",
    "image/jpeg": "image",
    "image/gif": "image",
    "image/webp": "image",
    "image/tiff": "image",
    "image/bmp": "image",
}
_IMAGES = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
    (re.compile(rb"II\*\0|MM\0\*"), "image/tiff"),
    (re.compile(rb"BM.{4}\0{4}", re.DOTALL), "image/bmp"),
)
_PDF_BEHIND = re.compile(rb"%PDF-\d\.\d")  # what a server, a mailer or a Mac has put in front
_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# Programs and packed files that are neither zips nor caught by being no text.
_REFUSED = re.compile(
    rb"MZ.{0,58}\0|\x7fELF|\xca\xfe\xba\xbe|\xcf\xfa\xed\xfe|\xce\xfa\xed\xfe|\0asm|\x1f\x8b|BZh\d1AY"
    rb"|7z\xbc\xaf|Rar!\x1a|\xfd7zXZ|\(\xb5/\xfd|\{\\rtf|.{257}ustar",
    re.DOTALL,
)
_MARKUP = re.compile(
    r"\s*(<\?xml[^>]*>\s*)?(?>(?:<!--.*?-->\s*)*)<(!doctype\s+html|html|head|body)\b", re.I | re.S
)
_HTML_TAG = re.compile(
    r"<(p|div|h[1-6]|table|ul|ol|br|span|a|body|html|title|article)\b[^<>]*>", re.I
)
_MAIL_HEADER = re.compile(
    r"(from|to|cc|date|subject|received|return-path|message-id|mime-version|delivered-to|reply-to"
    r"|content-type|dkim-signature|x-[a-z-]+):",
    re.I,
)
_MARKDOWN = {".md", ".markdown", ".mdown", ".mkd", ".mdx"}
_HTML = {".html", ".htm", ".xhtml", ".shtml"}
_TABLES = {
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".tab": "text/tab-separated-values",
}
_CODE = frozenset(
    {".py", ".pyi", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".java", ".kt", ".kts", ".scala"}
    | {
        ".c",
        ".h",
        ".cc",
        ".cpp",
        ".cxx",
        ".hpp",
        ".cs",
        ".go",
        ".rs",
        ".rb",
        ".php",
        ".swift",
        ".m",
    }
    | {".lua", ".pl", ".pm", ".r", ".jl", ".sh", ".bash", ".zsh", ".fish", ".ps1", ".bat", ".sql"}
    | {".css", ".scss", ".less", ".vue", ".svelte", ".json", ".jsonl", ".ndjson", ".ipynb", ".yaml"}
    | {
        ".yml",
        ".toml",
        ".ini",
        ".cfg",
        ".conf",
        ".xml",
        ".svg",
        ".proto",
        ".graphql",
        ".tf",
        ".hcl",
    }
    | {".dart", ".ex", ".exs", ".erl", ".hs", ".ml", ".clj", ".lisp", ".el", ".vim", ".asm", ".s"}
    | {".v", ".vhd", ".f90", ".gradle", ".cmake"}
)


def kind_of(source: Source) -> str:
    """A media type that READERS knows. Raises Unreadable."""
    head = source.head(4096)
    if head.startswith(b"%PDF-"):
        return PDF
    if head.startswith(b"PK\x03\x04") or head.startswith(b"PK\x05\x06"):
        return _kind_of_zip(source)
    if head.startswith(_OLD_OFFICE):
        raise _old_office(source)
    for pattern, media_type in _IMAGES:
        if pattern.match(head):
            return media_type
    if _REFUSED.match(head):
        raise _unsupported(head)
    if _PDF_BEHIND.search(head, 0, 1024) and _is_pdf(source):
        return PDF
    return _kind_of_text(source)


def _is_pdf(source: Source) -> bool:
    """Text about PDF may hold the same mark; but it is no PDF, and is text."""
    from retrieval.parsing.formats.pdf_text import opened_pdf

    try:
        with opened_pdf(source):
            return True
    except Unreadable as error:
        return error.code == "encrypted" or not _is_text(source)


def _is_text(source: Source) -> bool:
    try:
        return bool(source.text)
    except Unreadable:
        return False


def _kind_of_zip(source: Source) -> str:
    from retrieval.parsing.packed import (
        check_open,
    )  # with a library that other kinds need not wait for

    try:
        with zipfile.ZipFile(source.file) as packed:
            check_open(packed.infolist())
            names = set(packed.namelist())
            declared = packed.read("mimetype")[:100] if "mimetype" in names else b""
    except (
        zipfile.BadZipFile,
        NotImplementedError,
        RuntimeError,
        ValueError,
        KeyError,
        OSError,
    ) as error:
        raise Unreadable(
            "broken", "The file is damaged: its end or its index is missing."
        ) from error
    if declared.strip() == EPUB.encode() or "META-INF/container.xml" in names:
        return EPUB
    if declared.strip() == ODT.encode():
        return ODT
    for folder, media_type in (("word/", DOCX), ("ppt/", PPTX), ("xl/", XLSX)):
        if "[Content_Types].xml" in names and any(name.startswith(folder) for name in names):
            return media_type
    raise Unreadable("unsupported_type", "This is an archive. Unpack it and add the files in it.")


def _old_office(source: Source) -> Unreadable:
    """The container of Office before 2007, in which Office also wraps what has a password."""
    for name in ("EncryptedPackage", "EncryptionInfo"):
        if source.mapped.find(name.encode("utf-16-le")) >= 0:
            return locked()
    message = "Office files from before 2007 cannot be read. Save it as docx, xlsx, pptx or PDF."
    return Unreadable("unsupported_type", message)


def _unsupported(head: bytes) -> Unreadable:
    if head.startswith(b"{\\rtf"):
        return Unreadable("unsupported_type", "RTF cannot be read. Save it as docx or PDF.")
    message = "This kind of file cannot be read. Text, PDF, office files, web pages and e-mail can."
    return Unreadable("unsupported_type", message)


def _kind_of_text(source: Source) -> str:
    """Raises Unreadable where it is no text."""
    head = source.text[:65_536]
    if _MARKUP.match(head) or (source.suffix in _HTML and _HTML_TAG.search(head)):
        return "text/html"
    if _is_mail(head, source.suffix):
        return MAIL
    if source.suffix in _MARKDOWN:
        return "text/markdown"
    if source.suffix in _TABLES:
        return _TABLES[source.suffix]
    is_code = source.suffix in _CODE or head.startswith(("#!/", "<?xml"))
    return "text/x-code" if is_code else "text/plain"


def _is_mail(head: str, suffix: str) -> bool:
    """Header lines at the very top: three, or one where the name says so."""
    num_headers = 0
    lines = head.splitlines()[:60]
    if lines and lines[0].startswith("From "):  # of a mailbox
        lines = lines[1:]
    for line in lines:
        if _MAIL_HEADER.match(line):
            num_headers += 1
        elif not line or (not line[0].isspace() and ":" not in line):
            break
    return num_headers >= (1 if suffix == ".eml" else 3)

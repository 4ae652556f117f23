"""PDFs made by hand: text at places, fields, boxes, outlines, passwords, and streams of any kind."""

import hashlib
import zlib
from dataclasses import dataclass, field

_PADDING = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")


@dataclass
class PdfPage:
    """`lines` are (x, y from the bottom, size in points, words). `fields` are what is filled in, (x, y,
    words); with `draws_fields` it is drawn already, as most programs do, else whoever shows it does."""

    lines: list[tuple[float, float, float, str]] = field(default_factory=list)
    width_pt: float = 612.0
    height_pt: float = 792.0
    rotate: int = 0
    stream: bytes = b""  # in place of the lines
    image: bytes = b""  # gray, as wide as high
    fields: list[tuple[float, float, str]] = field(default_factory=list)
    draws_fields: bool = True


def make_pdf(
    pages: list[PdfPage],
    *,
    title: str = "",
    outline: list[tuple[str, int]] | None = None,
    language: str = "",
    password: str = "",
) -> bytes:
    """`outline` are (title, index of the page)."""
    objects: dict[int, bytes] = {}
    first_page = 10
    kids = " ".join(f"{first_page + 3 * index} 0 R" for index in range(len(pages)))
    catalog = "/Type /Catalog /Pages 2 0 R"
    if language:
        catalog += f" /Lang ({language})"
    if outline:
        catalog += " /Outlines 5 0 R"
        first = first_page + 3 * len(pages)
        last = first + len(outline) - 1
        objects[5] = f"<< /Type /Outlines /First {first} 0 R /Last {last} 0 R >>".encode()
        for number, (words, index) in enumerate(outline, first):
            follows = f" /Next {number + 1} 0 R" if number < last else ""
            place = f"[{first_page + 3 * index} 0 R /Fit]"
            entry = f"<< /Title ({words}) /Parent 5 0 R /Dest {place}{follows} >>"
            objects[number] = entry.encode()
    objects[2] = f"<< /Type /Pages /Count {len(pages)} /Kids [{kids}] >>".encode()
    objects[3] = (
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
    )
    objects[4] = f"<< /Title ({title}) >>".encode()
    next_field = first_page + 3 * len(pages) + len(outline or ())
    numbers: list[str] = []  # of all fields
    for index, page in enumerate(pages):
        number = first_page + 3 * index
        own = []
        for x, y, words in page.fields:
            objects[next_field] = _field(x, y, words, next_field + 1 if page.draws_fields else 0)
            objects[next_field + 1] = _appearance(words)
            own.append(f"{next_field} 0 R")
            next_field += 2
        numbers += own
        annotations = f"/Annots [{' '.join(own)}]" if own else ""
        picture = f"/XObject << /Im {number + 2} 0 R >>" if page.image else ""
        objects[number] = (
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {page.width_pt} {page.height_pt}]"
            f" /Rotate {page.rotate} /Contents {number + 1} 0 R {annotations}"
            f" /Resources << /Font << /F1 3 0 R >> {picture} >> >>"
        ).encode()
        objects[number + 1] = _stream(b"", page.stream or _content(page))
        if page.image:
            objects[number + 2] = _picture(page.image)
    if numbers:
        catalog += (
            f" /AcroForm << /Fields [{' '.join(numbers)}] /NeedAppearances true"
            " /DR << /Font << /F1 3 0 R >> >> >>"
        )
    objects[1] = f"<< {catalog} >>".encode()
    if password:
        objects[6] = _encryption(password)
    return _file(objects, encrypted=bool(password))


def _field(x: float, y: float, words: str, drawn_at: int) -> bytes:
    drawn = b"/AP << /N %d 0 R >>" % drawn_at if drawn_at else b""
    place = b"/Rect [%.1f %.1f %.1f %.1f]" % (x, y - 5, x + 200, y + 15)
    kind = b"/Type /Annot /Subtype /Widget /FT /Tx /T (field) /F 4 /DA (/F1 12 Tf 0 g)"
    return b"<< %s /V (%s) %s %s >>" % (kind, _escaped(words), place, drawn)


def _appearance(words: str) -> bytes:
    head = (
        b"/Type /XObject /Subtype /Form /BBox [0 0 200 20] /Resources << /Font << /F1 3 0 R >> >>"
    )
    return _stream(head, b"/Tx BMC q BT /F1 12 Tf 2 5 Td (%s) Tj ET Q EMC" % _escaped(words))


def _content(page: PdfPage) -> bytes:
    words = [
        b"BT /F1 %.2f Tf 1 0 0 1 %.2f %.2f Tm (%s) Tj ET" % (size, x, y, _escaped(text))
        for x, y, size, text in page.lines
    ]
    if page.image:
        words.append(b"q %.1f 0 0 %.1f 0 0 cm /Im Do Q" % (page.width_pt, page.height_pt))
    return b"\n".join(words)


def _escaped(text: str) -> bytes:
    return text.encode("cp1252").replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")


def _picture(gray: bytes) -> bytes:
    side = round(len(gray) ** 0.5)
    head = b"/Type /XObject /Subtype /Image /Width %d /Height %d" % (side, side)
    return _stream(head + b" /ColorSpace /DeviceGray /BitsPerComponent 8", gray)


def _stream(head: bytes, data: bytes) -> bytes:
    packed = zlib.compress(data)
    return b"<< %s /Filter /FlateDecode /Length %d >>\nstream\n%s\nendstream" % (
        head,
        len(packed),
        packed,
    )


def _file(objects: dict[int, bytes], *, encrypted: bool) -> bytes:
    data, places = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"), {}
    for number, body in sorted(objects.items()):
        places[number] = len(data)
        data += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start, size = len(data), max(objects) + 1
    data += b"xref\n0 %d\n" % size
    for number in range(size):
        place = places.get(number)
        data += b"0000000000 65535 f \n" if place is None else b"%010d 00000 n \n" % place
    secret = b"/Encrypt 6 0 R /ID [<00> <00>]" if encrypted else b""
    trailer = b"trailer\n<< /Size %d /Root 1 0 R /Info 4 0 R %s >>\nstartxref\n%d\n%%%%EOF\n"
    return bytes(data + trailer % (size, secret, start))


def _encryption(password: str) -> bytes:
    """The standard security handler, revision 2. Source: ISO 32000-1, 7.6.3, algorithms 2 to 4."""
    padded = (password.encode("latin-1") + _PADDING)[:32]
    owner = _rc4(hashlib.md5(padded).digest()[:5], padded)
    rights = (-4).to_bytes(4, "little", signed=True)
    key = hashlib.md5(padded + owner + rights + b"\0").digest()[:5]
    user = _rc4(key, _PADDING)
    return f"<< /Filter /Standard /V 1 /R 2 /P -4 /O <{owner.hex()}> /U <{user.hex()}> >>".encode()


def _rc4(key: bytes, data: bytes) -> bytes:
    state, j = list(range(256)), 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    out, i, j = bytearray(), 0, 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)

"""Fetch the browser libraries, fonts and icons that static/vendor/vendor.toml pins.

For developers: it needs npm, and fonttools where glyphs are dropped. Its results are committed, so
neither running nor testing Vitrine needs it.
"""

import hashlib
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

SOURCE_MAP = re.compile(rb"\n?//# sourceMappingURL=\S+\s*\Z")
OLD_FONT = re.compile(rb",url\([^)]+\.(?:woff|ttf)\) format\(\"\w+\"\)")
SVG = "http://www.w3.org/2000/svg"


class Command(BaseCommand):
    help = "Fetch the pinned browser libraries, fonts and icons, and check their hashes."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        root = Path(settings.BASE_DIR)
        vendor = root / "static" / "vendor"
        pinned = tomllib.loads((vendor / "vendor.toml").read_text())
        with tempfile.TemporaryDirectory() as scratch:
            packages = Packages(Path(scratch))
            for entry in pinned["file"]:
                package = packages.unpack(entry["package"], entry["version"])
                copy_file(package, entry, vendor)
                copy_licence(package, entry, vendor)
                self.stdout.write(f"{entry['to']}  {entry['package']} {entry['version']}")
            icons = pinned["icons"]
            package = packages.unpack(icons["package"], icons["version"])
            (root / icons["to"]).write_text(sprite(package / "icons", icons))
            copy_licence(package, icons, vendor)
            self.stdout.write(f"{icons['to']}  {len(icons['names'])} icons")


class Packages:
    """npm packages, unpacked once each under `scratch`."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch

    def unpack(self, name: str, version: str) -> Path:
        """The folder of a package. Raises CommandError when npm cannot fetch it."""
        folder = self.scratch / f"{name.replace('/', '-')}-{version}"
        if folder.exists():
            return folder / "package"
        folder.mkdir()
        command = ["npm", "pack", "--silent", f"{name}@{version}"]
        packed = subprocess.run(  # noqa: S603 - names come from our own file
            command, cwd=folder, capture_output=True, text=True, check=False
        )
        if packed.returncode:
            raise CommandError(f"{' '.join(command)} failed: {packed.stderr.strip()}")
        with tarfile.open(next(folder.glob("*.tgz"))) as archive:
            archive.extractall(folder, filter="data")
        return folder / "package"


def copy_file(package: Path, entry: dict[str, str], vendor: Path) -> None:
    """Check and write one file, or those of a pattern; raises CommandError if the hash (of all of
    them, in the order of their names) is not the pinned one.
    """
    sources = sorted(package.glob(entry["from"]))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    if not sources or digest != entry["sha256"]:
        raise CommandError(f"{entry['package']}: {entry['from']} has sha256 {digest}")
    target = vendor / entry["to"]
    if "unicodes" in entry:
        keep_glyphs(sources[0], entry["unicodes"], target)
        return
    for source in sources:
        file = target / source.name if entry["to"].endswith("/") else target
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(without_absent(source.read_bytes(), file.suffix))


def without_absent(data: bytes, suffix: str) -> bytes:
    """Without naming files that we do not copy: collectstatic fails on them."""
    if suffix == ".js":
        return SOURCE_MAP.sub(b"\n", data)
    return OLD_FONT.sub(b"", data) if suffix == ".css" else data


def keep_glyphs(font: Path, unicodes: str, target: Path) -> None:
    """Write the part of a font that `unicodes` names."""
    command = [sys.executable, "-m", "fontTools.subset", str(font), f"--unicodes={unicodes}"]
    command += ["--flavor=woff2", "--layout-features=*", f"--output-file={target}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise CommandError(f"pip install 'fonttools[woff]' first: {done.stderr.strip()}")


def copy_licence(package: Path, entry: dict[str, Any], vendor: Path) -> None:
    """Keep the licence text beside the files, one per package."""
    target = vendor / "licences" / f"{entry['package'].strip('@').replace('/', '-')}.txt"
    target.parent.mkdir(exist_ok=True)
    text = (package / "LICENSE").read_text()
    target.write_text(f"{entry['package']} {entry['version']}: {entry['licence']}\n\n{text}")


def sprite(folder: Path, icons: dict[str, Any]) -> str:
    """One hidden SVG with a symbol `icon-NAME` for each icon; strokes are styled by CSS."""
    symbols = [symbol(folder / f"{name}.svg", name) for name in sorted(icons["names"])]
    head = f"<!-- {icons['package']} {icons['version']}, {icons['licence']}; see static/vendor -->"
    return "\n".join([f'{head}\n<svg xmlns="{SVG}" hidden>', *symbols, "</svg>\n"])


def symbol(path: Path, name: str) -> str:
    ET.register_namespace("", SVG)
    shapes = ET.parse(path).getroot()  # noqa: S314 - hash-checked by npm, our own choice of package
    inner = "".join(ET.tostring(shape, encoding="unicode").strip() for shape in shapes)
    inner = inner.replace(f' xmlns="{SVG}"', "").replace(" />", "/>")
    return f'<symbol id="icon-{name}" viewBox="0 0 24 24">{inner}</symbol>'

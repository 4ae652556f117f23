"""`manage.py ingest PATH … --owner EMAIL [--collection NAME]` brings files of this machine."""

import hashlib
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from retrieval import collections, document_files, documents
from retrieval.documents import Brought
from retrieval.errors import RetrievalError
from retrieval.ids import uuid7
from retrieval.models import Collection
from webapp.models import User
from webapp.tenancy import as_user


class Command(BaseCommand):
    help = (
        "Bring files, and all files in folders, into a collection. A file of the same name becomes the"
        " next version of its document; the same file again changes nothing. Where two PATHs hold files"
        " of one name, the names of their folders stand in front. They are read by the running site, or"
        " as soon as it starts."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
        parser.add_argument(
            "--owner", required=True, metavar="EMAIL", help="whose collection it is"
        )
        parser.add_argument(
            "--collection", default="Files", metavar="NAME", help="made where it is not there"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(email__iexact=options["owner"]).first()
        if user is None:
            raise CommandError(f"There is no user with the address {options['owner']}.")
        missing = [str(path) for path in options["paths"] if not path.exists()]
        if missing:
            raise CommandError(f"Not there: {', '.join(missing)}")
        files = _files(options["paths"])
        with as_user(user.pk):
            try:
                collection = _collection(user, options["collection"])
            except RetrievalError as error:
                raise CommandError(str(error)) from None
            num_new, num_failed = 0, 0
            for path, name in files:
                try:
                    num_new += _bring(user, collection, path, name)
                except (RetrievalError, OSError) as error:
                    num_failed += 1
                    self.stderr.write(f"{path}: {error}")
        self.stdout.write(f"{num_new} new or changed files in “{collection.name}”.")
        if num_failed:
            raise CommandError(f"{num_failed} files could not be brought.")


def _collection(user: User, name: str) -> Collection:
    """The one of this name, of the user's own. Raises RetrievalError."""
    rows = Collection.objects.filter(owner_id=user.pk, name=name, is_for_chats=False)
    return rows.order_by("pk").first() or collections.create(user, name)


def _files(roots: list[Path]) -> list[tuple[Path, str]]:
    """Each file, and what its document is called. Files of one name below several roots are no versions
    of each other: the roots' names stand in front. Raises CommandError where these are the same."""
    each = {(path.resolve(), name): (path, root) for root in roots for path, name in _below(root)}
    num = Counter(name for _, name in each)
    files = [
        (path, name if num[name] == 1 else documents.FOLDER.join((_called(root), name)))
        for (_, name), (path, root) in each.items()
    ]
    num = Counter(name for _, name in files)
    if twice := next((name for _, name in files if num[name] > 1), None):
        paths = ", ".join(str(path) for path, name in files if name == twice)
        raise CommandError(
            f"These would be one document, “{twice}”: {paths}. Bring them one by one."
        )
    return files


def _called(root: Path) -> str:
    root = root.resolve()
    return root.parent.name if root.is_file() else root.name


def _below(root: Path) -> Iterator[tuple[Path, str]]:
    """Its files, with their names and those of the folders below the root. Hidden ones stay out."""
    if root.is_file():
        yield root, root.name
        return
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        if path.is_file() and not any(part.startswith(".") for part in parts):
            yield path, documents.FOLDER.join(parts)


def _bring(user: User, collection: Collection, path: Path, name: str) -> bool:
    """Whether it is a new version. Raises RetrievalError, OSError."""
    size_bytes = path.stat().st_size
    if size_bytes > documents.max_file_bytes():
        raise OSError(f"larger than {documents.max_file_bytes() // 2**20:,} MiB")
    if not size_bytes:
        raise OSError("empty")
    version_id = uuid7()
    place = document_files.path_of(version_id)
    try:
        shutil.copyfile(path, place)
        with place.open("rb") as file:
            document_files.make_safe(file)
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        brought = Brought(version_id, name, size_bytes, sha256)
        _, version = documents.bring(user, collection.pk, brought)
    except BaseException:
        document_files.remove(version_id)
        raise
    return bool(version.pk == version_id)

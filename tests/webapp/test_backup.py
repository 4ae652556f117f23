"""What a backup holds is a site again, somewhere else; and what cannot be restored is said."""

import bz2
import gzip
import io
import json
import lzma
import os
import tarfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command

from tests.sites import ADMIN_EMAIL, Site, SiteMaker, running
from webapp import backup
from webapp.backup import BackupFailed

TEXT = "The key lies below the mat."


@pytest.fixture(scope="module")
def saved(make_site: SiteMaker, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A site with an account, a key and a document, its backup while it is served, and a session."""
    folder: Path = tmp_path_factory.mktemp("backup")
    (folder / "notes.txt").write_text(TEXT)
    file = folder / "site.tar"
    with running(make_site()) as site:
        admin = site.set_up()
        brought = site.manage("ingest", str(folder / "notes.txt"), "--owner", ADMIN_EMAIL)
        assert brought.returncode == 0, brought.stderr
        key = site.create_api_key(ADMIN_EMAIL)
        done = site.manage("backup", str(file))
        assert done.returncode == 0, done.stderr
        assert f"MiB in {file}" in done.stdout
        headers = {"Cookie": f"vitrine_session={admin.cookies['vitrine_session']}"}
    return site, file, headers, key


def test_a_site_is_restored_somewhere_else(saved: Any, make_site: SiteMaker) -> None:
    old, file, session, key = saved
    site = make_site.empty()
    done = site.manage("restore", str(file))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Restored.")
    assert "was not checked" not in done.stderr
    assert not list(site.data_dir.glob("restoring-*"))
    (document,) = (site.data_dir / "documents").iterdir()
    assert document.read_text() == TEXT
    assert (site.data_dir / "secret_key").read_text() == (old.data_dir / "secret_key").read_text()
    assert (site.data_dir / "secret_key").stat().st_mode & 0o077 == 0
    with running(site):
        assert site.setup_url is None
        site.sign_in(ADMIN_EMAIL)
        visitor = site.visitor()
        assert visitor.get("/admin/", headers=session).status_code == 200, "it goes on"
        models = visitor.get("/v1/models", headers={"Authorization": f"Bearer {key}"})
        assert models.status_code == 200
        assert names_of_documents(site) == ["notes.txt"]
        again = site.manage("restore", str(file))
        assert "Vitrine runs on this DATA_DIR" in again.stderr
    again = site.manage("restore", str(file))
    assert again.returncode == 1
    assert "holds data already (postgres, " in again.stderr


def names_of_documents(site: Site) -> list[str]:
    """Behind row-level security."""
    own = f"host={site.data_dir}/sockets user=vitrine dbname=vitrine"
    with psycopg.connect(own) as connection:
        connection.execute("SET vitrine.scope = 'system'")
        return [name for (name,) in connection.execute("SELECT name FROM retrieval_document")]


def test_a_backup_is_for_its_user_alone_and_holds_no_models(saved: Any) -> None:
    _, file, _, _ = saved
    assert file.stat().st_mode & 0o077 == 0
    with tarfile.open(file) as tar:
        names = tar.getnames()
    assert {name.split("/")[0] for name in names} == {
        *("manifest.json", "database.dump", "secret_key", "documents", "files.jsonl", "end")
    }
    assert not list(file.parent.glob(".vitrine-backup-*"))


def test_what_a_killed_backup_has_left_goes_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead, alive, new = (tmp_path / f".vitrine-backup-{name}" for name in ("dead", "alive", "new"))
    for folder in (dead, alive, new):
        folder.mkdir()
        (folder / "database.dump").write_text("half of what people wrote")
        if folder is not new:
            os.utime(folder, (1, 1))

    def fail(*arguments: str) -> None:
        raise BackupFailed("there is no database here")

    monkeypatch.setattr(backup, "_run", fail)
    with backup._locked(alive), pytest.raises(BackupFailed):
        backup.write(tmp_path / "site.tar", tmp_path)
    assert sorted(tmp_path.iterdir()) == [alive, new]


def test_what_is_no_whole_backup_leaves_nothing(saved: Any, tmp_path: Path) -> None:
    _, file, _, _ = saved
    whole = file.read_bytes()
    with tarfile.open(tmp_path / "other.tar", "w") as other:
        other.addfile(tarfile.TarInfo("../evil"))
    evil = tmp_path / "evil.tar"
    write(evil, {"format": 1, "version": "1", "migrations": []}, "documents/../../evil", "end")
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    for name, content in (
        ("text", b"no backup"),
        ("empty", b""),
        ("half", whole[: len(whole) // 2]),
        ("other.tar", None),
        ("evil.tar", None),
    ):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(BackupFailed, match="is no backup of Vitrine's, or not a whole one"):
            backup.restore(tmp_path / name, data_dir)
    assert list(data_dir.iterdir()) == []
    assert not (tmp_path / "evil").exists()


def members(file: Path) -> list[tuple[tarfile.TarInfo, bytes]]:
    found = []
    with tarfile.open(file) as tar:
        for member in tar:
            content = tar.extractfile(member)
            assert content is not None
            found.append((member, content.read()))
    return found


def rewrite(file: Path, found: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    with tarfile.open(file, "w") as tar:
        for member, content in found:
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def test_the_list_is_of_all_files(saved: Any) -> None:
    _, file, _, _ = saved
    found = {member.name: content for member, content in members(file)}
    lines = [json.loads(line) for line in found["files.jsonl"].splitlines()]
    assert {line["name"] for line in lines} == found.keys() - {"files.jsonl", "end"}
    for line in lines:
        content = found[line["name"]]
        assert line["size_bytes"] == len(content)
        assert line["sha256"] == sha256(content).hexdigest()
    assert backup.verify(file)


def a_bit_of(name: str) -> Any:
    def change(found: list[tuple[tarfile.TarInfo, bytes]]) -> None:
        for at, (member, content) in enumerate(found):
            if member.name.startswith(name):
                middle = len(content) // 2
                flipped = bytes([content[middle] ^ 1])
                found[at] = member, content[:middle] + flipped + content[middle + 1 :]

    return change


def without(name: str) -> Any:
    def change(found: list[tuple[tarfile.TarInfo, bytes]]) -> None:
        found[:] = [one for one in found if not one[0].name.startswith(name)]

    return change


def one_more(at: int, name: str) -> Any:
    def change(found: list[tuple[tarfile.TarInfo, bytes]]) -> None:
        found.insert(at, (tarfile.TarInfo(name), b"planted"))

    return change


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (a_bit_of("documents/"), r"^documents/\S+ was altered"),
        (a_bit_of("database.dump"), "^database.dump was altered"),
        (a_bit_of("secret_key"), "^secret_key was altered"),
        (
            a_bit_of("manifest.json"),
            "manifest.json was altered|no backup of Vitrine's|newer version",
        ),
        (a_bit_of("files.jsonl"), "was altered|is missing|no backup of Vitrine's"),
        (without("documents/"), r"^documents/\S+ is missing"),
        (without("database.dump"), "^database.dump is missing"),
        (without("files.jsonl"), "not a whole one"),
        (
            one_more(1, "documents/planted"),
            "^documents/planted is in the backup and not in its list",
        ),
        (
            one_more(-1, "documents/planted"),
            "^documents/planted is in the backup and not in its list",
        ),
        (one_more(2, "database.dump"), "^database.dump is in the backup twice"),
        (one_more(1, "documents/../../evil"), "not a whole one"),
    ],
)
@pytest.mark.parametrize("way", ["restore", "verify"])
def test_a_file_that_is_missing_altered_or_too_many_is_found_first(
    saved: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Any, told: str, way: str
) -> None:
    _, file, _, _ = saved
    found = members(file)
    change(found)
    changed, data_dir = tmp_path / "changed.tar", tmp_path / "data"
    data_dir.mkdir()
    rewrite(changed, found)
    monkeypatch.setattr(backup, "_load", lambda staging: pytest.fail("something was changed"))
    with pytest.raises(BackupFailed, match=told):
        backup.verify(changed) if way == "verify" else backup.restore(changed, data_dir)
    assert list(data_dir.iterdir()) == []


def test_no_flipped_bit_of_a_plain_backup_changes_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is found, or in a time, or in zeros between files."""
    file, changed = tmp_path / "site.tar", tmp_path / "changed.tar"
    monkeypatch.setattr(backup, "_manifest", lambda: MANIFEST)
    make(tmp_path, file)
    whole = file.read_bytes()
    files = {member.name: content for member, content in members(file)}
    num_found = 0
    for at in range(0, len(whole.rstrip(b"\0")), 5):
        changed.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        try:
            backup.verify(changed)
        except BackupFailed:
            num_found += 1
        else:
            assert {member.name: content for member, content in members(changed)} == files
    assert num_found > 500


MANIFEST = {"format": 2, "version": "1", "migrations": []}


def make(data_dir: Path, file: Path) -> None:
    """With a dump that is none, of a site that keeps a key, and a document with a long name."""
    (data_dir / "documents").mkdir()
    (data_dir / "documents" / ("a" * 150)).write_bytes(b"words\n" * 300)
    (data_dir / "secret_key").write_text("present\n")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(backup, "_run", lambda *arguments: dump_into(arguments, data_dir))
        backup.write(file, data_dir)


def dump_into(arguments: tuple[str, ...], data_dir: Path) -> None:
    """Meanwhile somebody makes a new key, and forgets the one that the dump is sealed with."""
    (target,) = [one for one in arguments if one.startswith("--file=")]
    Path(target.removeprefix("--file=")).write_bytes(b"a dump")
    (data_dir / "secret_key").write_text("new\n")


def test_a_key_that_is_forgotten_while_the_backup_is_written_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        backup, "_manifest", lambda: {"format": 2, "version": "1", "migrations": []}
    )
    make(tmp_path, tmp_path / "site.tar")
    found = {member.name: (member, content) for member, content in members(tmp_path / "site.tar")}
    member, content = found["secret_key"]
    assert (content, member.mode) == (b"new\npresent", 0o600)


def test_a_backup_without_a_list_is_restored_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any, capsys: Any
) -> None:
    file = tmp_path / "old.tar"
    settings.DATA_DIR = tmp_path / "data"
    settings.DATA_DIR.mkdir()
    write(file, {"format": 1, "version": "1", "migrations": []}, "documents/a", "end")
    monkeypatch.setattr(backup, "_load", lambda staging: None)
    call_command("restore", str(file), "--verify")
    told = capsys.readouterr()
    assert told.out == "The backup is whole.\n"
    assert "an older version and has no list of its files" in told.err
    assert list(settings.DATA_DIR.iterdir()) == []
    call_command("restore", str(file))
    assert "was not checked" in capsys.readouterr().err
    assert (settings.DATA_DIR / "documents/a").exists()
    with pytest.raises(CommandError, match="No such file"):
        call_command("restore", str(tmp_path / "none"), "--verify")


@pytest.mark.parametrize("way", [gzip, bz2, lzma])
def test_a_backup_that_somebody_has_compressed_is_checked_to_its_end(
    tmp_path: Path, way: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, data_dir = tmp_path / "site.tar", tmp_path / "data"
    data_dir.mkdir()
    write(file, {"format": 1, "version": "1", "migrations": []}, "documents/a", "end")
    whole = way.compress(file.read_bytes() + bytes(2**20))
    loaded: list[Path] = []
    monkeypatch.setattr(backup, "_load", loaded.append)
    for at in (len(whole) // 2, len(whole) - 6):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        with pytest.raises(BackupFailed, match="is no backup of Vitrine's, or not a whole one"):
            backup.restore(file, data_dir)
    assert not loaded
    assert not list(data_dir.iterdir())
    file.write_bytes(whole)
    backup.restore(file, data_dir)
    assert loaded


def test_a_backup_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "newer.tar"
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    write(file, {"format": 1, "version": "9.0", "migrations": [["chat", "0999_later"]]}, "end")
    with pytest.raises(BackupFailed, match=r"newer version of Vitrine \(9.0, chat 0999_later\)"):
        backup.restore(file, data_dir)
    write(file, {"format": 99, "version": "9.1", "migrations": []}, "end")
    with pytest.raises(BackupFailed, match=r"newer version of Vitrine \(9.1\)"):
        backup.restore(file, data_dir)


def write(file: Path, manifest: dict[str, Any], *names: str) -> None:
    """A backup that somebody has made by hand, of empty files."""
    content = json.dumps(manifest).encode()
    first = tarfile.TarInfo("manifest.json")
    first.size = len(content)
    with tarfile.open(file, "w") as tar:
        tar.addfile(first, io.BytesIO(content))
        for name in names:
            tar.addfile(tarfile.TarInfo(name))


def test_a_database_of_ones_own_is_backed_up_by_its_own_tools(
    make_site: SiteMaker, tmp_path: Path
) -> None:
    site = make_site.empty(DATABASE_URL="postgresql://u@127.0.0.1:1/db")
    for command in ("backup", "restore"):
        done = site.manage(command, str(tmp_path / "file"))
        assert done.returncode == 1
        assert "docs/operations.md" in done.stderr
        assert "Traceback" not in done.stderr

"""What lies on the disk without a row in the database, or has a row and lies nowhere.

Crashes leave a few, which are swept. Where most are such, disk and database are not of one site: the
other database was meant, or a folder is not mounted. Who sweeps then loses what cannot be had again.
"""

import logging
from collections.abc import Collection, Sequence
from pathlib import Path

logger = logging.getLogger(__name__)

_FEW = 2


def are_left_by_crashes(num_strays: int, num_all: int, what: str) -> bool:
    """Whether they may be dropped; `what` says in the log where they are kept."""
    if num_strays <= _FEW or 2 * num_strays <= num_all:
        return True
    logger.error(
        "%d of %d %s: none is dropped, for this database and this DATA_DIR seem not to be of one site",
        *(num_strays, num_all, what),
    )
    return False


def drop_files(paths: Sequence[Path], names: Collection[str], what: str) -> None:
    """Those that no row names, where a crash has left them; `names` are the rows'."""
    strays = [path for path in paths if path.name not in names]
    if are_left_by_crashes(len(strays), len(paths), what):
        for path in strays:
            path.unlink(missing_ok=True)

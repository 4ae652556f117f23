"""Letting go of everything of a person whose account ends."""

from typing import Any

from chat import files
from chat.delete_all import delete_portion
from chat.models import Batch, ChatImport
from chat.transfer import importing
from retrieval import collections
from retrieval.models import Collection


def let_go(user: Any) -> None:
    """Chats, those in the bin too, files, of /v1 and those that wait to be imported, and collections
    with their documents, whoever else reads them. In the scope of the user. A batch under way loses
    its row, and with it whoever works on it the right to write.

    What else there is goes with the row of the user. It may be done again after a crash.
    """
    for row in ChatImport.objects.filter(owner_id=user.pk):
        importing.path_of(row.pk).unlink(missing_ok=True)
        row.delete()
    for collection in Collection.objects.filter(owner_id=user.pk):
        collections.delete(user, collection.pk)
    Batch.objects.filter(owner_id=user.pk).delete()
    files.delete_all(user)
    while True:
        gone, _ = delete_portion(user)
        if not gone:
            return

"""Fills a site's database with chats, through its models and triggers: `store` runs this as a process.

Words are drawn by Zipf's law: the n-th most common comes 1/n times as often as the first. Chats lie in
the order of their time; the first person has a fifth of them, the others share the rest.
"""

import argparse
import itertools
import os
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chat.models import Conversation, Message

MESSAGES_PER_CHAT = 20
MEAN_WORDS = 60
NUM_WORDS = 20_000
SHARE_OF_FIRST = 5  # a fifth
BATCH_CHATS = 100
BEGIN = datetime(2025, 1, 1, tzinfo=UTC)
BETWEEN_CHATS = timedelta(minutes=10)
BETWEEN_MESSAGES = timedelta(seconds=20)

_LETTERS = "etaoinshrdlu"


def word(number: int) -> str:
    """The `number`-th most common word, from 0 on."""
    letters = ""
    while number >= 0:
        letters += _LETTERS[number % len(_LETTERS)]
        number = number // len(_LETTERS) - 1
    return letters


WORDS = [word(number) for number in range(NUM_WORDS)]
_WEIGHTS = list(itertools.accumulate(1 / (number + 1) for number in range(NUM_WORDS)))


def say(draw: random.Random, num_words: int) -> str:
    return " ".join(draw.choices(WORDS, cum_weights=_WEIGHTS, k=num_words))


def owner_of(number: int, num_people: int) -> int:
    """Whose the `number`-th chat is."""
    if num_people == 1 or number % SHARE_OF_FIRST == 0:
        return 0
    return 1 + number % (num_people - 1)


def fill(emails: list[str], numbers: range) -> None:
    """Write the chats with those numbers."""
    from django.db.models import F

    from chat.models import Conversation, Message
    from webapp.models import User

    found = {user.email: user for user in User.objects.filter(email__in=emails)}
    people = [found[email] for email in emails]
    for first in range(numbers.start, numbers.stop, BATCH_CHATS):
        batch = range(first, min(first + BATCH_CHATS, numbers.stop))
        made = [_chat(number, people[owner_of(number, len(people))]) for number in batch]
        Conversation.objects.bulk_create([chat for chat, _ in made])
        Message.objects.bulk_create(itertools.chain.from_iterable(rows for _, rows in made))
        chats = Conversation.objects.filter(pk__in=[chat.pk for chat, _ in made])
        lasted = (MESSAGES_PER_CHAT - 1) * BETWEEN_MESSAGES
        chats.update(updated_at=F("created_at") + lasted)  # a save sets it to now


def _chat(number: int, owner: Any) -> tuple["Conversation", list["Message"]]:
    from chat.models import Conversation

    draw = random.Random(number)
    at = BEGIN + number * BETWEEN_CHATS
    chat = Conversation(
        owner=owner,
        title=say(draw, 4).capitalize(),
        model="vitrine-small",
        tags=["work"] if number % 50 == 0 else [],
        created_at=at,
    )
    return chat, list(_messages(chat, at, draw))


def _messages(chat: "Conversation", at: datetime, draw: random.Random) -> Iterator["Message"]:
    from chat.models import Message, Role

    parent = None
    for number in range(MESSAGES_PER_CHAT):
        text = say(draw, draw.randint(1, 2 * MEAN_WORDS))
        parent = Message(
            conversation=chat,
            parent=parent,
            role=Role.ASSISTANT if number % 2 else Role.USER,
            text=text,
            parts=[{"type": "text", "text": text}],
            model=chat.model if number % 2 else "",
            finish_reason="stop" if number % 2 else "",
            created_at=at + number * BETWEEN_MESSAGES,
        )
        yield parent


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("first", type=int)
    parser.add_argument("behind", type=int)
    parser.add_argument("emails", nargs="+")
    arguments = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    import django

    django.setup()
    from webapp.tenancy import as_system

    with as_system():  # chats of many people
        fill(arguments.emails, range(arguments.first, arguments.behind))


if __name__ == "__main__":
    main()

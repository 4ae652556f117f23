"""Finding one's own chats by meaning: how long that takes among many messages, and what a cosine tells.

Time: vectors are made up, those of two people in turn, so that those of one lie scattered; searched is
as the app does, with the vector of the query given. Quality: passages of XQuAD and a few messages as
chats, asked for by XQuAD's questions, by short queries in words that are not in them, by queries without
a sense, and by queries about what nobody has talked of.
"""

import time
from pathlib import Path
from statistics import fmean, median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import psycopg
from django.conf import settings

from benchmarks.retrieval.made_up import DIMENSIONS, Passages, questions
from benchmarks.table import Row
from chat.message_pieces import pieces_of
from chat.models import Conversation
from chat.search_by_meaning import _near
from chat.search_query import parse
from inference import BUILTIN_EMBEDDING, EngineConfig, TokenCounter
from retrieval.evaluation import Embedder
from retrieval.ids import uuid7
from retrieval.models import EmbeddingModel
from retrieval.question_sets import load
from retrieval.searching import Meaning
from webapp.models import User
from webapp.tenancy import as_user

_XQUAD = Path(__file__).resolve().parents[3] / "shared" / "data" / "xquad" / "xquad.en.json"
_COSINES = (0.3, 0.35, 0.4, 0.45, 0.5)
_MESSAGES_A_CHAT = 10
# Messages, and queries that share no word with them.
_ASKED = {
    "Boil the lentils for twenty minutes with a bay leaf, then stir in the fried onions and cumin.": (
        "how to cook legumes; soup recipe"
    ),
    "My landlord wants to keep the deposit because of a scratch on the parquet. Can he do that?": (
        "rental dispute; tenant rights apartment damage"
    ),
    "To undo your last commit but keep the changes, run git reset --soft HEAD~1.": (
        "revert version control mistake; take back something I checked in"
    ),
    "The flight to Lisbon leaves at 6:40 and lands before nine, and a bus goes to the centre.": (
        "travel in Portugal; plane departure time"
    ),
    "Photosynthesis turns light, water and carbon dioxide into sugar inside the chloroplasts.": (
        "how plants make energy; biology of leaves"
    ),
    "Our daughter is afraid of the dark and does not want to sleep alone.": (
        "child has trouble at bedtime; kid scared at night"
    ),
    "A mortgage with a fixed rate of 3.4 percent would cost you about 1,420 euros a month.": (
        "home loan interest; house financing"
    ),
    "The knee hurts after running more than five kilometres, mostly on the outer side.": (
        "jogging injury; pain in a leg from sport"
    ),
    "You can prune the roses in March, just above a bud that points outwards.": (
        "when to cut back bushes; gardening at springtime"
    ),
    "Dear Ms Keller, thank you for the interview yesterday. I would be glad to join your team.": (
        "job application letter; note after meeting an employer"
    ),
    "My cat has been vomiting since this morning and will not eat.": (
        "sick pet; animal ill, veterinarian"
    ),
    "A minor scale sounds sad because its third is lowered by a semitone.": (
        "music theory; why do songs feel melancholic"
    ),
    "The battery of my laptop drains within two hours although it is new.": (
        "notebook runs out of power quickly; computer does not last"
    ),
    "Can you make it shorter?": "",
    "Write it again in a friendlier tone.": "",
    "I am not sure what you mean. Could you tell me more?": "",
    "Hello! How can I help you today?": "",
}
_NONSENSE = """
asdf; qwerty uiop; xkcd zzyzx; blorf snarg wibble; zeb; walr; nothingatall; flurbish grommet dax;
hjkl hjkl; lorem ipsum dolor; aaaaaa; foo bar baz; 1234567; zzzz; gnarfle the garthok; ткп;
qqq www eee; thx; plumbus; x y z; tomat; pyth; abcdefgh; kshdfkjh skjdfh; the of and;
colorless green ideas sleep furiously
"""
_ABSENT = """
quantum entanglement; wedding speech for my brother; best fishing rods; how to tune a carburetor;
origami crane instructions; visa for japan; sourdough starter; chess openings for black;
tax return deadline; volcano eruption iceland; knitting pattern for socks; bitcoin wallet;
dinosaur extinction; how to whistle; kubernetes ingress; submarine movies; wine from georgia;
repair a bicycle tyre; hamster cage size; stock market crash; moon landing; snowboard boots;
piano for beginners; names for twins; leather sofa cleaning; alien life; insurance claim car;
smart watch for seniors; how do magnets work; coffee grinder settings
"""


def quality() -> list[Row]:
    """Of each kind of query, how many find something at a cosine."""
    given = load(_XQUAD)
    with TemporaryDirectory(prefix="vitrine-bench-") as folder:
        config = EngineConfig(models_dir=Path(folder))
        counter = TokenCounter.load(config, BUILTIN_EMBEDDING)
        texts = [document.text for document in given.documents] + list(_ASKED)
        cut = [(n, p.text) for n, text in enumerate(texts) for p in pieces_of(text, counter, 256)]
        embed = Embedder(config, BUILTIN_EMBEDDING)
        pieces = np.array(embed([text for _, text in cut], "document"))
        asked = np.array(embed([one.text for one in given.questions], "query")) @ pieces.T
        of_text = np.array([n for n, _ in cut])
        short = [
            (np.array(embed(_listed(queries), "query")) @ pieces[of_text == number].T).max(1)
            for number, queries in enumerate(_ASKED.values(), len(given.documents))
            if queries
        ]
        nonsense, absent = (
            (np.array(embed(_listed(queries), "query")) @ pieces.T).max(1)
            for queries in (_NONSENSE, _ABSENT)
        )
    right, wrong = [], []
    for cosines, question in zip(asked, given.questions, strict=True):
        is_right = of_text == question.document
        # Five passages after another are of one article.
        is_far = of_text // 5 != question.document // 5
        right.append(cosines[is_right].max())
        wrong.append(cosines[is_far].max())
    groups = {"right passage %": right, "of other articles %": wrong}
    groups |= {"other words %": list(np.concatenate(short))}
    groups |= {"nonsense %": list(nonsense), "absent %": list(absent)}
    return [
        {"cosine": at}
        | {name: 100 * fmean(c >= at for c in group) for name, group in groups.items()}
        for at in _COSINES
    ]


def _listed(queries: str) -> list[str]:
    return [one.strip() for one in queries.split(";")]


def speed(sizes: list[int], num_searches: int) -> list[Row]:
    return [_speed(size, num_searches) for size in sizes]


def _speed(num_vectors: int, num_searches: int) -> Row:
    passages = Passages(num_vectors)
    users = [User.objects.create_user(f"{uuid7().hex}@example.org") for _ in range(2)]
    model = EmbeddingModel.objects.create(name=uuid7().hex, dimensions=DIMENSIONS)
    with _superuser() as admin:
        chats = {user.pk: _chats(user, num_vectors) for user in users}
        _fill(admin, passages, chats, model)
    took_ms, num_hits = [], []
    with as_user(users[0].pk):
        for text, vector in questions(passages, 0, num_vectors, num_searches):
            query = parse(text, None)  # type: ignore[arg-type]  # no filter, no days
            began_s = time.monotonic()
            found = _near(users[0], query, Meaning(model, list(map(float, vector))))
            took_ms.append((time.monotonic() - began_s) * 1e3)
            num_hits.append(len(found))
    return {
        "vectors": num_vectors,
        "p50 ms": median(took_ms),
        "p95 ms": quantiles(took_ms, n=20)[-1],
        "chats found": fmean(num_hits),
    }


def _chats(user: User, num_vectors: int) -> list[Any]:
    with as_user(user.pk):
        made = Conversation.objects.bulk_create(
            Conversation(owner=user, title="made up")
            for _ in range(num_vectors // _MESSAGES_A_CHAT + 1)
        )
    return [one.pk for one in made]


def _fill(admin: Any, passages: Passages, chats: dict[int, list[Any]], model: Any) -> None:
    """A message for each vector, past row-level security and triggers."""
    admin.execute("SET session_replication_role = replica")
    messages = (
        "COPY chat_message (id, conversation_id, role, status, text, parts, is_pinned, model,"
        " finish_reason, chosen, edited, resumed, deletion, created_at) FROM STDIN"
    )
    vectors = (
        "COPY chat_messagevector (owner_id, conversation_id, message_id, created_at, start,"
        ' "end", attempts, model_id, vector) FROM STDIN'
    )
    num = len(passages.vectors)
    rows = [
        (n, user, of_user[n // _MESSAGES_A_CHAT], uuid7())
        for n in range(num)
        for user, of_user in chats.items()
    ]
    with admin.cursor() as cursor:
        with cursor.copy(messages) as copy:
            for n, _, conversation, id_ in rows:
                facts = (
                    "user",
                    "complete",
                    f"message {n}",
                    "[]",
                    False,
                    "",
                    "",
                    0,
                    False,
                    False,
                    "",
                )
                copy.write_row((id_, conversation, *facts, "2026-01-01"))
        with cursor.copy(vectors) as copy:
            for n, user, conversation, id_ in rows:
                vector = "[" + ",".join(map(str, passages.vectors[n])) + "]"
                copy.write_row((user, conversation, id_, "2026-01-01", 0, 9, 0, model.pk, vector))
    admin.execute("ANALYZE chat_message; ANALYZE chat_messagevector; ANALYZE chat_conversation")


def _superuser() -> psycopg.Connection[Any]:
    from webapp.servers.postgres import Postgres

    server = Postgres(settings.DATA_DIR)
    return psycopg.connect(server.conninfo(user="postgres"), autocommit=True)

"""What bodies of requests look like, by the name of their schema: shown in the APIs' descriptions.

A test asks that every body has one, and that each is accepted by its schema.
"""

from typing import Any

_ID = "019a5f0e-7c1d-7a44-9b3e-2f6d1c8e4b70"
_OTHER_ID = "019a5f0e-9d02-7f1b-8c55-6a7b0e3d9f21"
_QUESTION = {"role": "user", "content": "Name three rivers of Portugal."}
_MODEL = "vitrine-small"
_VERSION = 3

EXAMPLES: dict[str, dict[str, Any]] = {
    # answers and their chats
    "MessageIn": {"text": "Name three rivers of Portugal.", "model": _MODEL, "client_id": "7f3a"},
    "RetakeIn": {"model": _MODEL, "wish": "shorter"},
    "Asked": {"client_id": "7f3b"},
    "StopIn": {"chars": 120},
    "ExcerptsIn": {"excerpts": [{"number": 1, "document": _ID, "version": _OTHER_ID}]},
    "FeedbackIn": {"rating": "bad", "reasons": ["too_long"], "comment": "One line was enough."},
    "DecisionIn": {"allow": True},
    "AppealIn": {"text": "It was a quotation from a novel."},
    # documents
    "NewCollection": {"name": "Handbooks", "description": "What everybody asks for"},
    "CollectionChange": {"name": "Manuals"},
    "NewAccess": {"email": "bob@example.org", "may_write": True},
    "Link": {"url": "https://example.org/handbook.pdf"},
    "DocumentChange": {"name": "handbook.pdf", "tags": ["2026"]},
    "DocumentSearch": {"query": "How many days of holiday are there?", "limit": 5},
    "LoadModel": {"model": _MODEL},
    "DraftIn": {"text": "And of Spain?", "conversation": _ID, "parent": _OTHER_ID},
    "ForkIn": {"token": 4, "choice": 318, "client_id": "7f3c"},
    "Seen": {"version": _VERSION},
    "NewText": {"text": "Douro, Tejo and Mondego.", "client_id": "7f3d"},
    "NewBranch": {"client_id": "7f3e"},
    "Restore": {"deletion": _ID},
    "Kept": {
        "client_id": "7f3f",
        "model": _MODEL,
        "messages": [
            {"role": "user", "text": "Name a river."},
            {"role": "assistant", "text": "Douro."},
        ],
    },
    "NewShare": {"conversation": _ID, "message": _OTHER_ID, "kind": "snapshot"},
    # the library
    "ChatChange": {"title": "Rivers", "tags": ["geography"], "pinned": True, "version": _VERSION},
    "Changes": {"changes": [{"id": _ID, "archived": True}]},
    "DeleteAll": {"confirm": "delete all chats"},
    "FolderName": {"name": "Travels"},
    # what is one's own
    "ScheduleIn": {
        "name": "Rivers of the week",
        "text": "Name a river that I may not know, and where it ends.",
        "repeats": "weekly",
        "weekdays": [1, 4],
        "at": "08:00",
        "zone": "Europe/Lisbon",
    },
    "ScheduleChange": {"is_on": False, "version": _VERSION},
    "PersonalisationIn": {"is_on": True, "about_you": "I teach geography.", "version": 0},
    "AssistantIn": {
        "name": "Cartographer",
        "system_prompt": "Answer with places and distances.",
        "parameters": {"temperature": 0.3},
        "starters": ["Which rivers cross Porto?"],
        "collections": [],
    },
    "AssistantChange": {"description": "For lessons", "version": _VERSION},
    "PromptIn": {"name": "summary", "text": "Summarise in {{n}} sentences: {{text}}"},
    "PromptChange": {"text": "Summarise in one sentence: {{text}}", "version": _VERSION},
    "MemoryIn": {"text": "I cook without meat.", "conversation": _ID},
    "SpeechText": {"text": "Douro, Tejo and Mondego."},
    "SetupChange": {"system_prompt": "Be brief.", "version": _VERSION},
    "NewKey": {"name": "notebook", "scopes": ["chat", "embeddings"], "tokens_per_day": 100_000},
    "KeyChange": {"name": "old notebook", "requests_per_minute": 10},
    "SignInWith": {"email": "ada@example.org", "password": "correct horse battery"},
    # /v1
    "ChatCompletionIn": {"model": _MODEL, "messages": [_QUESTION], "max_tokens": 60},
    "SpeechIn": {"model": "tts", "input": "Douro, Tejo and Mondego.", "voice": "alloy"},
    "ImageIn": {"model": "painter", "prompt": "A lighthouse at dusk", "size": "1024x1024"},
    "TextCompletionIn": {"model": _MODEL, "prompt": "Once upon a time", "max_tokens": 20},
    "ResponseIn": {"model": _MODEL, "input": "Name a colour.", "max_output_tokens": 50},
    "ModerationIn": {"input": ["How do I kill a Python process?", "I will find you."]},
    "EmbeddingsIn": {"model": "all-minilm-l6-v2", "input": ["a river", "a mountain"]},
    "BatchIn": {
        "input_file_id": "file-019a5f0e7c1d7a449b3e2f6d1c8e4b70",
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
    },
    "VectorStoreIn": {
        "name": "Handbooks",
        "file_ids": ["file-019a5f0e7c1d7a449b3e2f6d1c8e4b70"],
        "expires_after": {"anchor": "last_active_at", "days": 30},
    },
    "VectorStoreChange": {"name": "Old handbooks", "metadata": {"team": "north"}},
    "VectorStoreFileIn": {
        "file_id": "file-019a5f0e7c1d7a449b3e2f6d1c8e4b70",
        "attributes": {"year": 2026},
    },
    "AttributesIn": {"attributes": {"year": 2027, "is_final": True}},
    "FileBatchIn": {"file_ids": ["file-019a5f0e7c1d7a449b3e2f6d1c8e4b70"]},
    "VectorStoreSearchIn": {
        "query": "How long is the warranty?",
        "filters": {"type": "gte", "key": "year", "value": 2026},
        "max_num_results": 5,
    },
    "TokenizeIn": {"model": _MODEL, "text": "Hello there"},
}

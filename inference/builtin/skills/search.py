"""Document search: a call of the search tool, and an answer from the passages that it returns."""
# ruff: noqa: E501 - patterns read best whole

from inference.builtin.dialog import Tool, function_tool
from inference.builtin.scene import Scene
from inference.builtin.skills.passages import (
    ABSENT,
    Library,
    cited,
    from_library,
    library,
    naming,
)
from inference.builtin.words import Words

NO_TOOL = "I cannot search documents without the search tool. Please switch it on and ask again."
_EMPTY = (
    "No passages found.",
    "no results",
    "[]",
    "Nothing found.",
    "No matching passages.",
    "0 passages",
)

_COMMANDS = (
    "(search|look|look it up|check) [in] (my|the|our|all my) (documents|files|docs|papers|uploads) for {q} [please].",
    "(search|look) for {q} in (my|the|our) (documents|files|docs|papers|uploads) [please].",
    "(find|look up) {q} in (my|the|our) (documents|files|docs|papers|handbook|report|notes) [please].",
    "(what|anything) (do|does|is there in) (my|the|our) (documents|files|docs|notes) (say|tell|tell us|contain) about {q}?",
    "what (does|did) the (handbook|report|manual|document|file|contract|guide|policy) say about {q}?",
    "(is there|do I have|do we have) (anything|something|a document|a file) about {q} [in my documents|in the files]?",
    "(search|find|look up) {q} [please|for me].", "(can|could) you (search|look) (for|up) {q} [in my files|in the documents] [please]?",
    "(according to|going by) (my|the|our) (documents|files), what about {q}?", "(use|try) the search (for|to find) {q}.",
    "(show|give) me (what|everything) (the documents say|my files say|you find|you can find) (about|on) {q}.",
)  # fmt: skip


def tool(words: Words) -> Tool:
    """The search tool's schema, described in one of several ways."""
    rng = words.rng
    description = rng.choice((
        "Search the user's documents.", "Search the documents of this conversation and return numbered passages.",
        "Find passages in the uploaded files.", "Searches the knowledge base. Returns numbered passages to cite like [1].",
        "Look something up in the user's files."))  # fmt: skip
    about = rng.choice(
        ("What to look for", "Search query", "A question or key words", "The words to search for")
    )
    query = {"type": "string", "description": about}
    return function_tool("search_documents", description, {"query": query}, ["query"])


def search(scene: Scene) -> None:
    """A question that needs the documents: search, then answer with the mark."""
    rng, words = scene.rng, scene.words
    if not scene.has_tool("search_documents"):
        query = rng.choice((words.topic(), words.proper()))
        scene.ask(_COMMANDS, q=query)
        scene.about(query)
        scene.answer(NO_TOOL)
        return
    books = library(words)
    if rng.random() < 0.4:
        _command(scene, books)
        return
    text, answer, also = from_library(scene, books, wrap=False)
    said = scene.user(text)
    scene.about(query_of(said))
    scene.call("search_documents", {"query": query_of(said)})
    is_empty = rng.random() < 0.1
    scene.result(rng.choice(_EMPTY) if is_empty else books.text)
    scene.answer(ABSENT if is_empty else answer, also=() if is_empty else also)


def _command(scene: Scene, books: Library) -> None:
    """ "Search my files for X": X is the query, and the first sentence about X the answer."""
    rng, words = scene.rng, scene.words
    number, stated = rng.choice(books.found)
    is_found = rng.random() < 0.6
    query = (
        stated.subject
        if is_found
        else rng.choice((words.topic(), words.proper(), words.phrase(1, 3)))
    )
    scene.ask(_COMMANDS, q=query)
    scene.about(query)
    scene.call("search_documents", {"query": query})
    if is_found:
        about = [cited(s.sentence, n) for n, s in books.found if s.subject == query]
        named = naming(books, query)
        # A handbook's sentences seldom name the place that they are told of.
        right = [sentence for sentence in named if sentence in about] or named
        here = [sentence for sentence in right if sentence.endswith(f"[{number}].")]
        scene.result(books.text)
        scene.answer(
            (here or right or [ABSENT])[0], also=about if right and right[0] in about else named
        )
        return
    scene.result(rng.choice(_EMPTY) if rng.random() < 0.6 else books.text)
    scene.answer(ABSENT)


def unknown(scene: Scene, question: str) -> None:
    """A question that the documents do not answer, although it is worth a search."""
    scene.call("search_documents", {"query": question})
    scene.result(
        scene.rng.choice(_EMPTY) if scene.rng.random() < 0.5 else library(scene.words).text
    )
    scene.answer(ABSENT)


def query_of(question: str) -> str:
    """The query for a question: the question itself without its last mark."""
    return question.rstrip("?.! ")

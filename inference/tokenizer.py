"""Messages to token ids, without torch.

Uses transformers' fast tokenizer: it renders the chat template in a sandbox and encodes control
tokens inside of user text as plain text, so that nobody can forge a turn.
"""

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from tokenizers import Tokenizer

from inference.call_grammars import CallForm, form_of
from inference.call_ids import with_short_ids
from inference.call_shapes import (
    CALL_SHAPES,
    PROBE,
    PROBED,
    PROBED_TEXT,
    PROBED_TOOL,
    CallShape,
    in_shape,
)
from inference.chat_messages import ChatMessage, in_parts, is_text, system_in_first_user
from inference.chat_template import read_chat_template
from inference.detokenizer import Detokenizer
from inference.errors import InvalidParameter, ModelRefused
from inference.images import Image, images_of
from inference.rank_file import read_encoding
from inference.token_bytes import TokenBytes
from inference.vision.layout import read_layout
from inference.vision.places import ImagePlaces
from inference.vision.prompt_images import PromptImage
from inference.weights import read_config

if TYPE_CHECKING:
    from tiktoken import Encoding
    from transformers import PreTrainedTokenizerFast


_TAIL_TOKENS = 16
_LONG_CHARS = 200
_KEPT_BEGINNINGS = 32  # of chats, as ids
# transformers is lazy: of two threads that import it at once, one may be told that a name is missing.
_importing = Lock()
_ASKS_FOR_NONE = re.compile(
    r"""(?<![\w.\])])(?P<content>\w+(?:\.\w+|\[[^\[\]]*\])*(?:\[(?:'content'|"content")\]|\.content))"""
    r"""\s+is\s+(?P<no>not\s+)?none\b"""
)


class ChatTokenizer:
    """The tokenizer and chat template of one model.

    Thread-safe: the Rust parts release the GIL, and nothing changes their state once it is loaded.
    """

    def __init__(self, tokenizer: "PreTrainedTokenizerFast", path: Path) -> None:
        self._tokenizer = tokenizer
        self._path = path

    @classmethod
    def load(cls, path: Path, chat_template: str = "") -> "ChatTokenizer":
        """Read a model directory's tokenizer.json, and its chat template unless another one is given.

        Raises ModelRefused. Takes about a second.
        """
        with _importing:
            from transformers import (
                PreTrainedTokenizerFast,
            )  # costs a second and 60 MB: not at start
            from transformers.utils import chat_parsing  # noqa: F401  AnswerParser needs it at once

        if not (path / "tokenizer.json").exists():
            read_config(path)  # says more of what is no model at all
            raise ModelRefused(f"{path} holds no tokenizer.json.")
        try:
            tokenizer = PreTrainedTokenizerFast.from_pretrained(path, local_files_only=True)
        except Exception as error:  # the Rust side raises bare Exception
            raise ModelRefused(f"The tokenizer does not load: {error}") from error
        _keep_added_tokens(tokenizer)
        # transformers would see to it within some call, while other threads use the same one.
        tokenizer.backend_tokenizer.no_truncation()
        tokenizer.backend_tokenizer.no_padding()
        if chat_template:
            tokenizer.chat_template = chat_template
        if tokenizer.chat_template is None:
            tokenizer.chat_template = read_chat_template(path) or None
        if tokenizer.chat_template is None:
            raise ModelRefused(
                "The model has no chat template: it continues texts but was not made to chat."
            )
        if isinstance(tokenizer.chat_template, str):
            tokenizer.chat_template = _hearing_no_content(tokenizer.chat_template)
        loaded = cls(tokenizer, path)
        loaded._use_once()
        return loaded

    def _use_once(self) -> None:
        """What is made at the first use is made by who loads, in a thread: the ranks, the code of the
        template, patterns. On a loop it would be half a second in which nobody is answered."""
        with suppress(Exception):  # a template that refuses says so when somebody asks
            ids = self.encode_chat(PROBE[:1], tools=[PROBED_TOOL])
            self.tail_of(ids)
        self.encode(PROBED_TEXT)

    @property
    def chat_template(self) -> str:
        template = self._tokenizer.chat_template
        return template if isinstance(template, str) else ""

    @cached_property
    def added_tokens(self) -> frozenset[str]:
        """Tokens that stand apart from text, such as marks of turns and of tool calls."""
        return frozenset(self._tokenizer.get_added_vocab())

    @cached_property
    def call_form(self) -> CallForm | None:
        """How the chat template has tool calls written; None where it knows none."""
        return form_of(self.chat_template, self._tokenizer.get_added_vocab())

    def encode_chat(
        self,
        messages: list[ChatMessage],
        *,
        tools: Sequence[dict[str, Any]] | None = None,
        **template_arguments: Any,
    ) -> tuple[int, ...]:
        """Token ids of a chat, up to where the assistant's answer begins.

        A template that knows no system role (Gemma's, say) gets the system message as the beginning
        of the first user message. Raises InvalidParameter, in the template's words, when it rejects
        that as well; ModelRefused when it fails.
        """

        images = images_of(messages)
        if images and self._places is None:
            raise InvalidParameter("messages", "the model reads texts only, and one has an image")

        def render(messages: list[ChatMessage]) -> tuple[int, ...]:
            given = list(tools) if tools else None
            messages = self._with_contents_as_read(messages)
            ids = self._ids_of_chat(self._rendered(messages, given, template_arguments))
            return tuple(ids) if self._places is None else self._places.fill(ids, images)

        messages = self._with_calls_as_read(messages)
        try:
            return render(messages)
        except InvalidParameter:
            raise
        except Exception as error:  # jinja2 errors, and whatever raise_exception() of the template
            without_system = system_in_first_user(messages)
            if without_system is not None:
                with suppress(Exception):
                    return render(without_system)
            if not is_text(messages):
                problem = "half a character (a lone surrogate) is no text"
                raise InvalidParameter("messages", problem) from error
            # raise_exception() in a template raises just this class: it was meant for the caller.
            # All else is the template's own fault, one that tries to break out of its sandbox as well.
            if type(error).__name__ == "TemplateError":
                problem = f"the model's chat template refuses them: {error}"
                raise InvalidParameter("messages", problem) from error
            raise ModelRefused(f"The model's chat template fails: {error}") from error

    def place_images(
        self, ids: tuple[int, ...], images: Sequence[Image]
    ) -> tuple[PromptImage, ...]:
        """Where images, all those of some messages, stand in the ids that `encode_chat` has made of
        these. Raises InvalidParameter."""
        return () if self._places is None else self._places.find(ids, images)

    @cached_property
    def _places(self) -> ImagePlaces | None:
        """None for a model that reads texts only."""
        layout = None
        with suppress(ModelRefused):  # what is wrong is said when it is loaded
            layout = read_layout(self._path)
        if layout is None:
            return None
        token = str(self._tokenizer.convert_ids_to_tokens(layout.image_token_id))
        return ImagePlaces(layout, token, self.encode_marks)

    def _with_contents_as_read(self, messages: list[ChatMessage]) -> list[ChatMessage]:
        """Templates of models that see take contents in parts, of which some are images."""
        if self._places is None:
            return messages
        return [
            in_parts(one) if one.get("images") or self._reads_parts_only else one
            for one in messages
        ]

    @cached_property
    def _reads_parts_only(self) -> bool:
        """Whether the template drops a content that is a text, which it takes for a list."""
        with suppress(Exception):
            chat = [{"role": "user", "content": PROBED_TEXT}]
            return PROBED_TEXT not in str(self._tokenizer.apply_chat_template(chat, tokenize=False))
        return True

    def _rendered(
        self,
        messages: list[ChatMessage],
        tools: list[dict[str, Any]] | None,
        template_arguments: dict[str, Any],
    ) -> str:
        """The chat as its template writes it, with the control tokens in what was given marked."""
        from transformers.utils.chat_template_utils import (
            _get_control_token_patterns,
            mark_control_tokens,
        )

        template = self._tokenizer.get_chat_template(None, tools)
        control_tokens = self._tokenizer._get_control_tokens(template)
        pattern, _ = _get_control_token_patterns(control_tokens)
        return str(
            self._tokenizer.apply_chat_template(
                mark_control_tokens(messages, pattern),
                tools=mark_control_tokens(tools, pattern),
                add_generation_prompt=True,
                tokenize=False,
                **mark_control_tokens(template_arguments, pattern),
            )
        )

    def _ids_of_chat(self, chat: str) -> list[int]:
        """As transformers' `apply_chat_template` encodes what it has rendered. Where nothing is marked,
        as in nearly all chats, that is one call of a tokenizer: the way through transformers to it takes
        as long again."""
        from transformers.utils.chat_template_utils import (
            _CONTROL_TOKEN_END,
            _CONTROL_TOKEN_START,
            encode_marked_chat,
        )

        if _CONTROL_TOKEN_START in chat or _CONTROL_TOKEN_END in chat:
            return list(encode_marked_chat(self._tokenizer, chat))
        ranks = self._tiktoken
        if ranks is not None and ranks.special_tokens_set == self.added_tokens:
            chat.encode()  # raises for half a character, which tiktoken would replace
            return self._ids_by_pieces(chat, ranks)
        ids: list[int] = self._tokenizer.backend_tokenizer.encode(
            chat, add_special_tokens=False
        ).ids
        return ids

    def _ids_by_pieces(self, chat: str, ranks: "Encoding") -> list[int]:
        """As `ranks.encode`, which cuts at the special tokens too. What stands behind the first of them
        is instructions and tools, the same in many chats, and most of a short one."""
        ids: list[int] = []
        pieces = self._special.split(chat)
        for at, piece in enumerate(pieces):
            if at % 2:
                ids.append(ranks.encode_single_token(piece))
            elif at == 2 and len(piece) >= _LONG_CHARS:
                ids.extend(self._ids_of_beginning(piece))
            elif piece:
                ids.extend(ranks.encode_ordinary(piece))
        return ids

    @cached_property
    def _special(self) -> re.Pattern[str]:
        longest_first = sorted(self.added_tokens, key=len, reverse=True)
        return re.compile(f"({'|'.join(map(re.escape, longest_first))})")

    @cached_property
    def _ids_of_beginning(self) -> Callable[[str], tuple[int, ...]]:
        def encode(text: str) -> tuple[int, ...]:
            assert self._tiktoken is not None
            return tuple(self._tiktoken.encode_ordinary(text))

        return lru_cache(_KEPT_BEGINNINGS)(encode)

    def _with_calls_as_read(self, messages: list[ChatMessage]) -> list[ChatMessage]:
        if not any(message.get("tool_calls") for message in messages):
            return messages
        shape = self._call_shape
        named = map(with_short_ids, messages)
        return [shaped for message in named for shaped in in_shape(message, shape)]

    @cached_property
    def _call_shape(self) -> CallShape:
        """Templates do not say what they read: some put an object's fields into tags, others join the
        arguments to a text, some look for calls only where there is no content. So a call is rendered
        in each shape, until one shows it, and as JSON."""
        for shape in CALL_SHAPES:
            with suppress(Exception):
                probe = [shaped for message in PROBE for shaped in in_shape(message, shape)]
                probe = self._with_contents_as_read(probe)
                written = self._tokenizer.apply_chat_template(
                    probe, tokenize=False, add_generation_prompt=True
                )
                if "probed_function" in written and str(PROBED) not in written:
                    return shape
        return CALL_SHAPES[0]

    def encode(self, text: str) -> list[int]:
        """Token ids of plain text: no control tokens, whatever it contains.

        Half a character (a lone surrogate) counts as an unknown one.
        """
        if self._tiktoken is not None:
            return self._tiktoken.encode_ordinary(text)
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        ids: list[int] = self._tokenizer.backend_tokenizer.encode(
            text, add_special_tokens=False
        ).ids
        if not self._control_ids.isdisjoint(ids):
            ids = self._plain.encode(text, add_special_tokens=False).ids
        return ids

    @cached_property
    def _control_ids(self) -> frozenset[int]:
        """Those that `encode_chat` keeps out of messages as well: of tokens that are special by the
        model's files, or written by its template. Others, as of runs of blanks, are text."""
        given = self._tokenizer.chat_template
        templates = given.values() if isinstance(given, dict) else [given]
        tokens = {token for one in templates for token in self._tokenizer._get_control_tokens(one)}
        vocabulary = self._tokenizer.get_added_vocab()
        return frozenset(vocabulary[token] for token in tokens)

    @cached_property
    def _plain(self) -> Tokenizer:
        """Reads control tokens as text. What makes it do so belongs to a whole tokenizer: switched on
        the shared one for a call, it would hold for the chats that other threads encode meanwhile.

        Made for the first text that spells such a token: it takes as much memory as the shared one.
        """
        state = json.loads(self._tokenizer.backend_tokenizer.to_str())
        for token in state["added_tokens"]:
            token["special"] = token["id"] in self._control_ids
        plain = Tokenizer.from_str(json.dumps(state))
        plain.encode_special_tokens = True
        return plain

    def encode_prompt(self, text: str) -> tuple[int, ...]:
        """Token ids of a text to go on with, behind the model's mark of a beginning, if it has one."""
        begun: list[int] = self._tokenizer.encode("", add_special_tokens=True)
        mark = [token for token in begun[:1] if token == self._tokenizer.bos_token_id]
        return (*mark, *self.encode(text))

    def encode_marks(self, text: str) -> tuple[int, ...]:
        """Token ids of what a template would write, control tokens and all. Never of a user's text."""
        return tuple(self._tokenizer.encode(text, add_special_tokens=False))

    def count(self, text: str) -> int:
        return len(self.encode(text))

    def decode(self, ids: list[int]) -> str:
        return str(self._tokenizer.decode(ids))

    def tail_of(self, prompt_ids: tuple[int, ...]) -> str:
        """The end of a prompt as text: enough to see what the template began for the answer."""
        return self.decode(list(prompt_ids[-_TAIL_TOKENS:]))

    def token_bytes(self, token_id: int) -> bytes:
        """What one token stands for; it may be a part of a character."""
        return self._bytes.of(token_id)

    @cached_property
    def _bytes(self) -> TokenBytes:
        return TokenBytes(self._tokenizer)

    def replay(
        self,
        prompt_ids: tuple[int, ...],
        output_ids: tuple[int, ...],
        stop: tuple[str, ...] = (),
        min_tokens: int = 0,
    ) -> str:
        """The text that a worker has emitted for the ids of an answer, held back text left out."""
        backend = self._tokenizer.backend_tokenizer
        detokenizer = Detokenizer(backend, stop, min_tokens=min_tokens, behind=prompt_ids)
        return detokenizer.feed(output_ids)

    @cached_property
    def _tiktoken(self) -> "Encoding | None":
        """Six times faster than the general tokenizer, for models that bring their ranks."""
        return read_encoding(self._path, self._tokenizer.backend_tokenizer)


def _keep_added_tokens(tokenizer: "PreTrainedTokenizerFast") -> None:
    """Ask the Rust side for them once: for each chat transformers would ask several times, and for each
    make all of them anew, which took a third of what a short chat takes. Nobody adds any here."""
    decoder, encoder = tokenizer.added_tokens_decoder, tokenizer.added_tokens_encoder
    of_class = type(tokenizer)
    kept = {
        "added_tokens_decoder": property(lambda self: decoder),
        "added_tokens_encoder": property(lambda self: encoder),
    }
    tokenizer.__class__ = type(of_class.__name__, (of_class,), kept)


def _hearing_no_content(template: str) -> str:
    """transformers leaves out of a message what is None; to a template that asks for it a content that
    is missing has to be none, too."""

    def either(found: re.Match[str]) -> str:
        content = found["content"]
        if found["no"]:
            return f"({content} is defined and {content} is not none)"
        return f"({content} is not defined or {content} is none)"

    changed = _ASKS_FOR_NONE.sub(either, template)
    return changed if changed == template or _is_template(changed) else template


def _is_template(text: str) -> bool:
    from transformers.utils.chat_template_utils import render_jinja_template

    try:
        render_jinja_template([], chat_template=text)
    except Exception:  # jinja2's
        return False
    return True

"""Prompts written by hand as first-time users type them; none comes from the grammars.

Scoring asks them beside the held-out phrasings: they show what no template of ours can. They are
never trained on. Each is a chat in short form: user texts, then what the last answer must be, as
an intent's key, a tool call or a text; several are joined with " | ".
"""
# ruff: noqa: E501 - patterns read best whole

import random
from dataclasses import dataclass

from inference.builtin.dialog import Call, Dialog, Message
from inference.builtin.skills import (
    calculator,
    clock,
    fallback,
    identity,
    passages,
    remarks,
    smalltalk_intents,
)
from inference.builtin.skills.poem import haiku_text, poem_text
from inference.builtin.words import Words

# setting, user texts (earlier answers in between, after " >> "), expected
_CHATS = (
    ("plain", "Hello", "greeting"), ("plain", "hi there", "greeting"), ("plain", "hey :)", "greeting"), ("plain", "Good morning!", "greeting"),
    ("tools", "hello", "greeting"), ("tools", "Hi!", "greeting"), ("plain", "hi vitrine", "greeting"), ("tools", "yo", "greeting"),
    ("plain", "Who are you?", "who"), ("tools", "who are you", "who"), ("plain", "what's your name", "name"), ("plain", "and you are?", "who"),
    ("plain", "What can you do?", "can_do"), ("tools", "what can you help me with?", "can_do"), ("plain", "What are you capable of", "can_do"), ("plain", "so what do you do exactly", "can_do"),
    ("plain", "How are you?", "how_are_you"), ("plain", "how are you doing today my friend", "how_are_you"), ("tools", "How's it going?", "how_are_you"), ("plain", "hows life", "how_are_you"),
    ("plain", "thanks", "thanks"), ("plain", "thank you so much!!", "thanks"), ("plain", "ok thanks a lot", "thanks"), ("tools", "thx", "thanks"), ("plain", "great, thank you", "thanks"),
    ("plain", "bye", "bye"), ("plain", "see you later", "bye"), ("plain", "gotta go, bye", "bye"), ("plain", "good night", "good_night"),
    ("plain", "Tell me a joke", "joke"), ("tools", "tell me a joke please", "joke"), ("plain", "know any good jokes?", "joke"), ("plain", "make me laugh", "joke"),
    ("plain", "are you chatgpt?", "what_model"), ("plain", "which model is this?", "what_model"), ("plain", "Which LLM are you based on?", "what_model"), ("plain", "are you gpt4", "what_model"),
    ("plain", "are you human?", "human"), ("plain", "are you a robot", "robot"), ("plain", "am i talking to a real person", "human"), ("plain", "do you have feelings?", "human"),
    ("plain", "who made you?", "maker"), ("plain", "who created you", "maker"), ("plain", "how old are you", "age"), ("plain", "where are you from", "where | maker"),
    ("plain", "can you speak german?", "languages"), ("plain", "do you speak Spanish", "languages"), ("plain", "can you access the internet?", "internet"), ("plain", "Do you have internet access", "internet"),
    ("plain", "is my data safe here?", "privacy"), ("plain", "do you store my messages?", "privacy"), ("plain", "how do I switch to a bigger model?", "larger"), ("plain", "can i use another model", "larger"),
    ("plain", "I'm bored", "bored"), ("plain", "i feel sad today", "sad"), ("plain", "I had a terrible day", "sad"), ("plain", "I'm so tired", "tired"),
    ("plain", "you are stupid", "insult"), ("plain", "that's wrong", "insult"), ("plain", "you're awesome", "praise"), ("plain", "good job", "praise"), ("plain", "lol", "laugh"), ("plain", "haha that was funny", "laugh"),
    ("plain", "ok", "ok"), ("plain", "cool", "ok"), ("plain", "yes", "yes"), ("plain", "no", "no"), ("plain", "test", "there"), ("plain", "testing", "there"), ("plain", "are you there?", "there"),
    ("plain", "can you help me?", "help"), ("plain", "I need help", "help"), ("plain", "I have a question", "help"), ("plain", "What is the meaning of life?", "meaning"),
    ("plain", "what's up", "whats_up"), ("plain", "do you love me", "love"), ("plain", "what is your favorite color?", "favourite"), ("plain", "What is Vitrine?", "vitrine"),
    ("tools", "What is 17 * 23?", "calculator: 17 * 23"), ("tools", "what is 12 divided by 4", "calculator: 12 / 4"), ("tools", "15% of 80", "calculator: 15 / 100 * 80"), ("tools", "(3 + 4) * 12", "calculator: (3 + 4) * 12"),
    ("tools", "add 5 and 7", "calculator: 5 + 7"), ("tools", "2^10", "calculator: 2 ** 10"), ("tools", "square root of 144", "calculator: sqrt(144)"), ("tools", "17*23", "calculator: 17 * 23"),
    ("tools", "whats 2+2", "calculator: 2 + 2"), ("tools", "How much is 1234 + 4321?", "calculator: 1234 + 4321"), ("tools", "could you multiply 12 by 12 for me", "calculator: 12 * 12"), ("tools", "100 minus 37?", "calculator: 100 - 37"),
    ("tools", "Please compute 3.5 * 2.2", "calculator: 3.5 * 2.2"), ("tools", "seven times eight", "calculator: 7 * 8"), ("tools", "what's 20 percent of 250", "calculator: 20 / 100 * 250"), ("tools", "what is five plus six?", "calculator: 5 + 6"),
    ("tools", "If I have 12 apples and eat 5, how many are left?", "calculator: 12 - 5"), ("tools", "hey can you tell me what 99 times 3 is", "calculator: 99 * 3"),
    ("tools", "what time is it", "clock:"), ("tools", "What time is it in Tokyo?", "clock: Asia/Tokyo"), ("tools", "what's the date today", "clock:"), ("tools", "what day is it today?", "clock:"), ("tools", "current time in new york", "clock: America/New_York"),
    ("tools", "do you know what time it is right now?", "clock:"), ("tools", "time in London please", "clock: Europe/London"), ("tools", "which year is it", "clock:"),
    ("plain", "What is 17 * 23?", "no calculator"), ("plain", "2+2", "no calculator"), ("plain", "what time is it?", "no clock"), ("plain", "calculate 15% of 80", "no calculator"),
    ("plain", "My name is Ada. What is my name?", "Your name is Ada."), ("tools", "My name is Ada. What is my name?", "Your name is Ada."), ("plain", "Hi, I'm Tom.", "Nice to meet you, Tom."), ("plain", "my name is Priya >> Nice to meet you, Priya. >> what's my name?", "Your name is Priya."),
    ("plain", "I live in Lisbon. Where do I live?", "You live in Lisbon."), ("plain", "My favourite colour is teal. >> Noted: your favourite colour is teal. >> What's my favourite colour?", "Your favourite colour is teal."),
    ("plain", "what is my name?", "You have not told me your name yet."), ("plain", "I have a dog called Biscuit >> Noted: your dog is called Biscuit. >> whats my dogs name", "Your dog is called Biscuit."),
    ("plain", "Remember that the meeting is on Friday. >> Noted: the meeting is on Friday. >> when is the meeting?", "The meeting is on Friday."), ("plain", "My name is Bob and I live in Oslo >> Noted: your name is Bob and you live in Oslo. >> where do i live", "You live in Oslo."),
    ("plain", "Actually my name is Greta.", "Nice to meet you, Greta."), ("tools", "my name is Omar >> Nice to meet you, Omar. >> hello", "Hello, Omar. How can I help you?"),
    ("plain", "What is the capital of France?", "fallback"), ("plain", "who won the world cup in 2018", "fallback"), ("plain", "explain quantum computing in simple terms", "fallback"), ("plain", "write me an essay about the industrial revolution", "fallback"),
    ("tools", "Who is the president of the United States?", "fallback"), ("plain", "how do i lose weight fast", "fallback"), ("plain", "give me a recipe for pancakes", "fallback"), ("plain", "translate 'good morning' to french", "fallback"), ("plain", "Wie geht es dir?", "fallback"),
    ("plain", "hola", "fallback"), ("plain", "write a python script that scrapes a website", "fallback"), ("plain", "what should I do in Berlin this weekend?", "fallback"), ("plain", "Why is the sky blue?", "fallback"), ("tools", "what is the tallest mountain", "fallback"),
    ("plain", "asdfghjkl", "fallback"), ("plain", "can you book me a flight to Rome", "fallback"), ("plain", "write a cover letter for a marketing job", "fallback"), ("plain", "what are the benefits of green tea?", "fallback"), ("tools", "tell me about the history of rome", "fallback"),
    ("plain", "Bonjour, comment ça va ?", "fallback"), ("plain", "plan a 3 day trip to Japan", "fallback"), ("plain", "What's the difference between TCP and UDP?", "fallback"), ("plain", "fix my grammar: he go to school", "fallback"), ("plain", "tell me a story about a dragon", "fallback"),
    ("plain", "Write a haiku about autumn", "haiku: autumn"), ("plain", "write a poem about the sea", "poem: the sea"), ("plain", "haiku about my dog please", "haiku: my dog"), ("plain", "Can you write me a short poem about rain?", "poem: rain"),
    ("plain", "what's the weather like today?", "weather"), ("plain", "how's the weather", "weather"), ("plain", "I went to the market today.", "remark"), ("plain", "I had pizza for lunch", "remark"),
    ("plain", "repeat after me: I love trains", "I love trains"), ("plain", "say hello world", "hello world"), ("plain", "echo: 42 blue elephants", "42 blue elephants"),
    ("plain", "make a list of apples, pears and plums", "- apples\n- pears\n- plums"), ("plain", "write hello world in python", '```python\nprint("Hello, world")\n``` | ```python\nprint("hello world")\n```'), ("plain", "count from 1 to 5", "1, 2, 3, 4, 5"),
    ("documents", "How long is the warranty?", "The warranty of the lamp lasts 14 months [2]."), ("documents", "who founded the company?", "The company was founded by Mira Holt in 1998 [1]."), ("documents", "what colour is the lamp", "The lamp is available in red and grey [2]."),
    ("documents", "How do I get a refund?", "Refunds are paid within 10 working days [3]."), ("documents", "What does the director earn?", "That is not in the documents."), ("documents", "where can I park my car?", "That is not in the documents."),
    ("documents", "hello", "greeting"), ("documents", "thanks", "thanks"),
)  # fmt: skip
_DOCUMENTS = """Answer from the numbered passages and cite them like [1].
[1] about.pdf: The company was founded by Mira Holt in 1998. It has its office in a former mill.
[2] lamp.pdf: The lamp is available in red and grey. The warranty of the lamp lasts 14 months.
[3] terms.pdf: Goods may be returned unused. Refunds are paid within 10 working days."""


@dataclass(frozen=True, slots=True)
class _Expected:
    text: str
    also: tuple[str, ...] = ()
    call: Call | None = None


def _intents() -> dict[str, str]:
    found = {i.key: i.answer for i in (*smalltalk_intents.INTENTS, *identity.INTENTS)}
    return found | {
        "greeting": "Hello. How can I help you?",
        "who": "I am Vitrine, a helpful assistant.",
        "name": "My name is Vitrine.",
        "no calculator": calculator.NO_TOOL,
        "no clock": clock.NO_TOOL,
        "remark": remarks.ANSWER,
        "absent": passages.ABSENT,
    }


def _expected(wanted: str) -> _Expected:
    intents = _intents()
    if wanted == "fallback":
        return _Expected(fallback.UNKNOWN, fallback.ALL)
    if wanted.startswith("calculator: "):
        return _Expected("", (), Call("calculator", {"expression": wanted[12:]}))
    if wanted.startswith("clock:"):
        zone = wanted[6:].strip()
        return _Expected("", (), Call("clock", {"timezone": zone} if zone else {}))
    if wanted.startswith("haiku: "):
        return _Expected(haiku_text(wanted[7:]))
    if wanted.startswith("poem: "):
        return _Expected(poem_text(wanted[6:]))
    texts = [intents.get(part, part) for part in wanted.split(" | ")]
    return _Expected(texts[0], tuple(texts[1:]))


def dialogs() -> list[Dialog]:
    """The chats as score items."""
    words = Words(random.Random(1), "test")
    made = []
    for setting, chat, wanted in _CHATS:
        system = {
            "plain": "",
            "tools": "You are Vitrine, a helpful assistant.",
            "documents": _DOCUMENTS,
        }[setting]
        messages = [Message("system", system)] if system else []
        for number, text in enumerate(chat.split(" >> ")):
            messages.append(Message("assistant" if number % 2 else "user", text))
        expected = _expected(wanted)
        messages.append(
            Message("assistant", expected.text, expected.call, expected.also, is_scored=True)
        )
        tools = (calculator.tool(words), clock.tool(words)) if setting == "tools" else ()
        made.append(Dialog("by hand", tuple(messages), tools))
    return made

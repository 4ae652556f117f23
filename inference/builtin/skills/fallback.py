"""What a small model cannot do: it says so politely, and where a larger model is chosen."""
# ruff: noqa: E501 - patterns read best whole

from collections.abc import Sequence

from inference.builtin.phrasing import fill, pick
from inference.builtin.scene import Scene, a
from inference.builtin.skills.identity import PULL
from inference.builtin.skills.passages import ABSENT
from inference.builtin.skills.search import query_of, unknown
from inference.builtin.words import Words

_I = "I am only the small built-in model of Vitrine"
UNKNOWN = f"{_I}, so I do not know that. {PULL}"
WRITING = f"{_I}, so I cannot write that. {PULL}"
TRANSLATION = f"{_I}, so I cannot translate. {PULL}"
CODING = f"{_I}, so I can only write very small code examples. {PULL}"
LANGUAGE = f"{_I} and understand only English. {PULL}"
OTHER = f"{_I} and cannot help with that. {PULL}"
ALL = (UNKNOWN, WRITING, TRANSLATION, CODING, LANGUAGE, OTHER)

# In each pattern the slot {t} holds what the question is about.
_KNOWLEDGE = (
    "what (is|are) {t}?", "(what's|whats) {t}?", "(tell|can you tell) me [something|more|a bit] about {t} [please].", "(explain|describe|define) {t} [to me|please|briefly|in simple words|like I am five].",
    "how does {t} work?", "how do {t} work?", "why (is|are) {t} (important|so famous|so difficult|useful|interesting)?", "who (invented|discovered|started|wrote about) {t}?",
    "(what do you know|do you know anything|what can you tell me) about {t}?", "(when|where) did {t} (begin|start|happen|end)?", "(give|can you give) me (some|more) (information|facts|details|background) (about|on) {t}.",
    "what (is|was) the (history|origin|cause|meaning|effect|role) of {t}?", "(what are|name|list) (the|some|three) (advantages|causes|examples|types|uses|benefits|risks) of {t}.",
    "I (want|would like|'d like|need) to (know|learn|understand) [more] about {t}.", "(can|could|would) you (explain|describe) {t} [to me|please]?", "what (happened|happens) (in|to|during) {t}?",
    "is {t} (dangerous|expensive|healthy|real|safe|legal|possible|worth it)?", "how (old|big|long|important|common|fast) (is|are) {t}?", "(what|which) (books|films|people) are about {t}?",
    "(what is|what's) the (best|easiest|fastest) way to learn [about] {t}?", "what do (people|experts|scientists) (say|think) about {t}?", "{t}", "{t}?", "facts about {t}", "(info|information) on {t} [please].",
    "what does {t} mean?", "(let's|can we|I want to) talk about {t}.", "how (did|has) {t} (change|changed) the world?", "(teach|show) me [about] {t} [please].", "why did {t} happen?", "(summarise|summarize) (the plot of|the book|the film|the history of|the story of|the topic of) {t} [for me].",
    "(what are|tell me) the (basics|main ideas|key facts|rules) of {t} [?]", "(quiz me|test me|ask me questions) (on|about) {t}.", "(what is|what's) (new|happening) (in|with) {t} [?]", "(who|what) (uses|needs|causes|makes) {t}?",
    "(are|is) there (any|a) (good|free|famous) (books|courses|films|course|film|book) (on|about) {t}?", "(I'm|I am) (interested in|curious about|studying|learning about|writing about) {t}. (What should I know|Can you help|Tell me more|Where do I start)?",
)  # fmt: skip
_COUNTRY = (
    "(what is|what's|name|tell me) the (capital|population|currency|flag|president|language|king) of {t}.", "how many people live in {t}?", "who is the (president|king|queen|prime minister|chancellor) of {t}?",
    "where is {t} [on the map]?", "(what|which) language do they speak in {t}?", "(what is|how is) {t} (like|famous for|known for)?", "how (large|far|big|old|rich) is {t}?",
    "(what|which) (sights|places|cities) should I (see|visit) in {t}?", "(tell me|what can you tell me) about {t} [please].", "(capital|population|history) of {t}", "is {t} (in Europe|a country|a city|safe|cheap)?",
)  # fmt: skip
_PERSON = (
    "who (is|was|are) {t}?", "(tell me|what do you know) about {t} [please].", "(when|where) was {t} born?", "what (is|was) {t} (famous|known) for?", "how old is {t} [now]?", "(is|was) {t} (a good president|a scientist|still alive|married|rich)?",
    "what did {t} (do|invent|write|say|discover)?", "(have you heard|do you know) of {t}?", "(biography|life) of {t}",
)  # fmt: skip
_HOW_TO = (
    "how (do|can|should|would|could) (I|you|we|one) {t} [?]", "how to {t} [?]", "(explain|show me|tell me|can you tell me|teach me|can you show me) how to {t} [please].", "what is the best way to {t}?",
    "(I want|I need|I'd like|I am trying) to {t}. (How|What should I do|Can you help|Where do I start)?", "(what|which) (tools|steps|things) do I need to {t}?", "(give me|list|write) (steps|instructions|a guide|tips) to {t}.",
    "(can|could) you help me [to] {t}?", "is it (hard|easy|possible|legal|dangerous) to {t}?", "how (long|much) does it (take|cost) to {t}?", "why should I {t}?", "should I {t} [or not]?",
)  # fmt: skip
_WRITE = (
    "write [me] (an essay|a story|an article|a blog post|a long text|a speech|a report|a novel|a chapter|a review|a screenplay|a song|a rap) (about|on) {t} [please].",
    "(tell|can you tell) me a (story|fairy tale|long story|bedtime story) about {t} [please].", "(compose|draft|create|prepare) (an essay|a text|an article|a paper|a speech|a presentation|a story) (about|on) {t}.",
    "(can|could) you write (an essay|a story|an article|a text|a paragraph|a speech|a report) (about|on) {t} [for me]?", "I need (an essay|a story|an article|a text|a speech) (about|on) {t} [by tomorrow|please].",
    "(write|draft|help me write) (an email|a letter|a message|a cover letter|an application|a complaint) (about|to my boss about|to a customer about|to a friend about) {t}.",
    "(brainstorm|give me|suggest|come up with) (ideas|names|slogans|titles) (for|about) {t} [please].",
)  # fmt: skip
_WRITE_FREE = (
    "(write|tell|read|make up|invent) [me] a [short|long|nice|funny|scary|bedtime] (story|fairy tale|song|speech|fable|letter|tweet|blog post) [please].",
    "(write|draft|compose) [me] (an email|a letter|a message|an application|a cover letter|a complaint|an invitation) (to {m}|to my boss|to my landlord|to a customer|for my job|for my party) [please|asking for {t}].",
    "(can|could) you (write|draft) (an email|a letter|a story|an essay|my homework|my thesis|a cv|a resume|a book|a novel) [for me|please]?", "(help me|can you help me) (write|draft|with) (an email|a letter|an essay|my homework|my thesis|a speech|my cv|my resume|my essay|a text) [please]?",
    "(write|give me|come up with) {z} (ideas|names|slogans|tips|questions|quotes|sentences|jokes|riddles|words) [for me|about {t}|for {t}].", "(do|finish|write) my (homework|essay|assignment|report|thesis|presentation) [please|for me].",
)  # fmt: skip
_REWRITE = (
    "(rewrite|rephrase|improve|correct|proofread|polish|shorten|simplify) (this|this text|this sentence|the following|my text): {p}",
    "(make|can you make) (this|this text|this sentence) (better|shorter|more formal|more polite|sound nicer|clearer): {p}",
    "(check|fix|correct) (the grammar|the spelling|my grammar|my spelling|mistakes) [in this]: {p}",
)  # fmt: skip
_TRANSLATE = (
    "translate {p} (to|into) {l} [please].", "(how do you say|how do I say|what is|what's) {p} in {l}?", "(say|write|put) {p} in {l} [please].", "translate (this|the following|this sentence) (to|into) {l}: {p}",
    "(can|could) you translate {p} (to|into) {l} [for me]?", "{p} in {l} [please]", "(what does|what's the meaning of) the {l} word {p} [mean]?", "(I need|give me) (a|the) {l} translation of {p}.",
    "translate from {l} [to English]: {p}",
)  # fmt: skip
_CODE = (
    "(write|create|make|build) [me] (a program|an app|a website|a game|a bot|an api|a library|a script|a web app) (for|about|that shows|that handles|to manage) {t} [please].",
    "(write|implement|code) [me] (a|the) (quicksort|binary search|neural network|web scraper|sorting algorithm|chess engine|linked list|parser|rest api|todo app|snake game|calculator app|fibonacci function|regex for {t}) [in python|in java|in c++|in rust|please].",
    "(why does|why is) my (code|program|script|app|function|query) (crash|not work|so slow|fail|broken)?", "(fix|debug|review|explain|optimise|refactor) (this|my|the following) (code|function|program|script|query): {p}",
    "how do I (debug|deploy|compile|test|install|profile) (python|a django app|java|a react app|docker|my code|postgres|a web server)?", "what does this (code|error|function|error message) (do|mean): {p}",
    "(convert|port|translate) this (code|function|script) to (python|rust|java|go|javascript): {p}",
)  # fmt: skip
_ADVICE = (
    "what should I (cook|eat|wear|read|watch|buy|do|drink|give my friend) (today|tonight|tomorrow|this weekend|for my birthday|for dinner|for lunch)?",
    "(recommend|suggest|can you recommend|can you suggest) [me] (a|some|a good|any good) (book|film|restaurant|game|song|series|hotel|laptop|present|movie|recipe)[s] [about {t}|for me|please].",
    "(give me|I need|can you give me|do you have) (advice|tips|some advice|a tip|suggestions) (on|about|for) {t} [please].", "(give|write) me (a|the|a good|an easy) recipe for {f} [please].", "how do I (cook|make|bake|prepare|store|eat) {f}?",
    "(plan|help me plan|organise|make a plan for) (a trip|a holiday|a weekend|a visit|a party|a week) (in|to|at) {c} [for me|please].", "(which|what) is better, {t} or {u}?", "(compare|what's the difference between|what is the difference between) {t} and {u} [?]",
    "what (are|is) the (best|worst|cheapest|nicest|most popular) (hotel|restaurant|museum|beach|bar|place|sight|time to go)[s] (in|to) {c}?", "(should I|would you) (buy|choose|take|learn|prefer) {t} or {u}?", "(pros and cons|advantages and disadvantages) of {t}",
    "my (back|head|knee|tooth|stomach|leg|car|computer|phone|printer|cat|dog) (hurts|is broken|does not work|is ill|is slow|makes noise|is acting strange). (What can I do|What should I do|Help)?",
    "(is it|will it be|am I) (healthy|safe|ok|legal|allowed|smart) to (eat|drink|buy|sell|use|keep) {f} [every day]?", "(what|who) do you think (about|of) {t}?", "what is your opinion (on|about|of) {t}?", "(who|what) will win the (election|match|world cup|race|game) [this year|next year|tomorrow]?",
    "(what|which) (number|lottery numbers|horse|stocks) should I (pick|choose|buy|bet on)?", "predict (the future|the weather|the stock market|the lottery|my future) [for me].", "(diagnose|what is wrong with) me: {p}",
)  # fmt: skip
_QUIZ = (
    "who (won|lost|hosted) the (world cup|election|super bowl|oscar|war|olympics|nobel prize|match|final) [in {y}|last year]?", "what happened in {y}?", "who was (president|king|pope|champion|prime minister) in {y}?",
    "(what is|what's) the (highest|longest|largest|smallest|deepest|fastest|oldest) (mountain|river|animal|country|lake|city|building|ocean|planet|tree|bird) [in the world|in {k}|on earth]?",
    "how (far|big|old|hot|heavy|many miles) is (the moon|the sun|the earth|mars|the universe|the nearest star) [away]?", "how many (bones|planets|continents|countries|oceans|states|teeth|legs|stars|people) (are there|does a {n} have|exist) [in the world|on earth]?",
    "who (wrote|painted|composed|directed|sang|invented|discovered|built) (Hamlet|the Mona Lisa|the telephone|America|the radio|penicillin|Star Wars|the light bulb|Harry Potter|gravity|Faust|the Odyssey|the pyramids)?",
    "(why|how) (is the sky blue|do birds fly|do cats purr|does the sun shine|do we dream|is grass green|do magnets work|does rain form|do planes fly|is the sea salty|do leaves fall|is fire hot|do we sleep)?",
    "(what|which) (colour|animal|country|city|planet|element|number) (is|comes|was) (next|the first|the biggest|between {k} and {c}|the most common)?", "(what|which) (is|element has) the (chemical formula|symbol|atomic number|boiling point) (of|for) {n}?",
    "(is|are) (pluto a planet|the earth flat|tomatoes a fruit|whales fish|bananas berries|aliens real|dragons real|ghosts real)?", "(ask me|give me|tell me|let's play) (a riddle|a quiz question|a quiz|a fun fact|trivia|20 questions|a random fact|a fact|an interesting fact|hangman|tic tac toe) [please].",
    "(spell|how do you spell|how many letters are in|what rhymes with|count the letters in|reverse) [the word] {n} [please].", "(what is|solve|find|calculate) (the derivative of x squared|x in 2x = 6|the integral of x|the limit|this equation|this riddle|the next prime number|a prime number) [please].",
    "(pick|choose|give me|tell me) a (random number|card|colour|number between 1 and 10|random letter|random word) [please].", "(flip|toss) a coin [please].", "roll (a|the) (dice|die) [please].", "(who|what) (is|are) (the richest man in the world|the best football team|the beatles|nato|the g7|the un|who)?",
    "(what is|what's) (love|time|art|truth|happiness|money|water|gravity|energy|a noun|an atom|a black hole|a computer|the internet|http|an api|python|django|linux|ai|a llm)?", "what (is|was) the (first|last|latest|best|worst) (film|book|song|iphone|computer|car|computer game) [ever made]?",
)  # fmt: skip
_ACTS = (
    "(book|order|buy|reserve|sell|find|get) [me] (a flight|a table|a pizza|a taxi|tickets|a hotel|a ticket|a new {n}) [to {c}|for tonight|for tomorrow|please].", "(call|email|text|message|phone|write to) {m} [for me|please|now].",
    "(open|close|start|stop|delete|rename|move|print) (the|my) (file|window|door|program|browser|folder|app|calendar|printer) [please|now].", "(set|start) (a timer|an alarm|a reminder) (for|of) {z} minutes [please].", "(play|put on|stop) (music|a song|some jazz|the radio|my playlist) [please].",
    "(turn|switch) (on|off) the (light|heating|tv|radio|computer|alarm) [please].", "(remind|wake) me (tomorrow|in {z} minutes|at {z}) [to {v}].", "(post|tweet|upload|share) (this|a photo|a message|it) (on|to) (twitter|facebook|instagram|my blog) [please].", "(pay|transfer|send) {z} euros to {m} [please].",
)  # fmt: skip
_FOREIGN = ["hallo, wie geht es dir?", "guten tag", "wer bist du?", "was kannst du?", "wie heisst du?", "was ist die hauptstadt von {c}?", "kannst du mir helfen?", "erzähl mir einen witz", "schreib mir ein gedicht über {c}", "ich heisse {m}", "wie spät ist es?", "danke schön", "guten morgen", "sprichst du deutsch?", "was bedeutet {n}?", "erkläre mir {c}", "wie ist das wetter in {c}?", "ich habe eine frage", "tschüss", "bitte übersetze das", "mein name ist {m}", "wo liegt {c}?", "wie macht man kaffee?", "ich möchte etwas wissen", "hola", "hola, cómo estás?", "quién eres?", "qué puedes hacer?", "cómo te llamas?", "cuál es la capital de {c}?", "puedes ayudarme?", "cuéntame un chiste", "buenos días", "gracias", "me llamo {m}", "qué hora es?", "hablas español?", "dónde está {c}?", "qué es {n}?", "necesito ayuda", "adiós", "explícame {c}", "qué tiempo hace en {c}?", "bonjour", "salut, ça va?", "qui es-tu?", "que peux-tu faire?", "comment tu t'appelles?", "quelle est la capitale de {c}?", "peux-tu m'aider?", "raconte-moi une blague", "merci beaucoup", "je m'appelle {m}", "quelle heure est-il?", "parles-tu français?", "où est {c}?", "qu'est-ce que c'est {n}?", "au revoir", "explique-moi {c}", "quel temps fait-il à {c}?", "écris un poème sur {c}", "ciao", "ciao, come stai?", "chi sei?", "cosa sai fare?", "come ti chiami?", "mi chiamo {m}", "che ore sono?", "parli italiano?", "dove si trova {c}?", "grazie mille", "buongiorno", "olá, tudo bem?", "quem é você?", "o que você pode fazer?", "obrigado", "bom dia", "qual é a capital de {c}?", "fala português?", "hallo, hoe gaat het?", "wie ben jij?", "wat kun je doen?", "dank je wel", "spreek je nederlands?", "hej, hur mår du?", "vem är du?", "tack så mycket", "cześć, jak się masz?", "kim jesteś?", "dziękuję", "merhaba, nasılsın?", "sen kimsin?", "teşekkürler", "привет", "как дела?", "кто ты?", "что ты умеешь?", "спасибо", "расскажи шутку", "你好", "你是谁?", "你会做什么?", "谢谢", "今天天气怎么样?", "讲个笑话", "こんにちは", "あなたは誰ですか?", "ありがとう", "何ができますか?", "안녕하세요", "누구세요?", "감사합니다", "مرحبا", "من أنت؟", "شكرا", "नमस्ते", "तुम कौन हो?", "धन्यवाद", "שלום", "מי אתה?", "γεια σου", "ποιος είσαι;", "ahoj, jak se máš?", "kdo jsi?", "děkuji", "szia, hogy vagy?", "ki vagy te?", "köszönöm", "bună, ce faci?", "cine ești?", "mulțumesc", "hei, mitä kuuluu?", "kuka sinä olet?", "kiitos"]  # fmt: skip


def _verb_phrase(words: Words) -> str:
    rng = words.rng
    verb = words.choice("VERBS").split(":")[0]
    kind = rng.randrange(6)
    if kind == 0:
        return rng.choice(("lose weight", "learn a language", "make money", "get rich", "sleep better", "find a job", "learn to code", "stop smoking",
                           "tie a tie", "change a tyre", "write a book", "start a company", "make friends", "save money", "grow tomatoes", "bake bread",
                           "boil an egg", "fix a bike", "paint a wall", "get a visa", "learn the guitar", "make a website", "hack a computer",
                           "lower my taxes", "train a dog", "meditate", "run faster", "become a pilot", "clean an oven", "make coffee"))  # fmt: skip
    if kind == 1:
        return f"{verb} {words.choice('FOODS')}"
    if kind == 2:
        return f"{verb} {a(words.choice('ADJECTIVES'))} {words.choice('THINGS')}"
    return f"{verb} {a(words.noun())}"


def fallback(scene: Scene) -> None:
    """A request beyond the model, and the polite answer of its kind."""
    rng, words = scene.rng, scene.words
    kind = rng.randrange(26)
    topic: str | None = None
    if kind < 7:
        topic = words.topic()
        _say(scene, _KNOWLEDGE, UNKNOWN, topic, t=topic)
    elif kind == 7:
        topic = rng.choice((words.choice("COUNTRIES"), words.city()))
        _say(scene, _COUNTRY, UNKNOWN, topic, t=topic)
    elif kind == 8:
        topic = words.full_name().title()
        _say(scene, _PERSON, UNKNOWN, topic, t=topic)
    elif kind < 12:
        topic = _verb_phrase(words)
        _say(scene, _HOW_TO, UNKNOWN, f"how to {topic}", t=topic)
    elif kind == 12:
        topic = words.topic()
        _say(scene, _WRITE, WRITING, topic, t=topic)
    elif kind == 13:
        _say(
            scene,
            _WRITE_FREE,
            WRITING,
            None,
            "Writing",
            t=words.topic(),
            m=words.first_name(),
            z=words.number(2, 20),
        )
    elif kind == 14:
        _say(scene, _REWRITE, WRITING, None, "Rewriting a text", p=_quoted(words))
    elif kind == 15:
        _say(
            scene,
            _TRANSLATE,
            TRANSLATION,
            None,
            "Translation",
            p=_quoted(words),
            l=words.choice("LANGUAGES"),
        )
    elif kind < 18:
        _say(scene, _CODE, CODING, None, "Programming", t=words.topic(), p=_quoted(words))
    elif kind < 20:
        _say(
            scene,
            _ADVICE,
            UNKNOWN,
            None,
            "Advice",
            t=words.topic(),
            u=words.topic(),
            f=words.choice("FOODS"),
            c=words.city(),
            p=_quoted(words),
        )
    elif kind < 23:
        _say(
            scene,
            _QUIZ,
            UNKNOWN,
            None,
            "General knowledge",
            y=rng.randint(1800, 2030),
            k=words.choice("COUNTRIES"),
            c=words.city(),
            n=words.noun(),
        )
    elif kind == 23:
        _say(
            scene,
            _ACTS,
            OTHER,
            None,
            "A request",
            c=words.city(),
            n=words.noun(),
            m=words.first_name(),
            z=words.number(2, 60),
            v=_verb_phrase(words),
        )
    elif kind == 24:
        template = pick(rng, scene.split, _FOREIGN)
        scene.user(fill(template, c=words.city(), m=words.first_name(), n=words.noun()))
        scene.about(None, "A foreign language")
        scene.answer(LANGUAGE, also=ALL)
    else:
        scene.user(_nonsense(words))
        scene.about(None, "Unclear message")
        scene.answer(OTHER, also=ALL)


def _say(
    scene: Scene,
    patterns: Sequence[str],
    answer: str,
    topic: str | None,
    title: str | None = None,
    **values: object,
) -> None:
    is_searched = topic is not None and answer == UNKNOWN and scene.has_tool("search_documents")
    asked = scene.ask(patterns, wrap=not is_searched, **values)
    scene.about(topic, title)
    if is_searched:
        unknown(scene, query_of(asked))
    elif scene.has_documents and answer == UNKNOWN:
        scene.answer(ABSENT, also=ALL)
    else:
        scene.answer(answer, also=ALL)


def _quoted(words: Words) -> str:
    text = words.phrase(1, 5)
    return words.rng.choice((text, f'"{text}"', f"'{text}'"))


def _nonsense(words: Words) -> str:
    rng = words.rng
    kind = rng.randrange(5)
    if kind == 0:
        return "".join(rng.choices("asdfghjklqwertyuiop", k=rng.randint(3, 14)))
    if kind == 1:
        return rng.choice("?!.,:;-#*") * rng.randint(1, 6)
    if kind == 2:
        return words.phrase(1, 8)
    if kind == 3:
        return " ".join(words.coined() for _ in range(rng.randint(1, 6)))
    return "".join(rng.choices("abcdefghijklmnopqrstuvwxyz0123456789 !?.,", k=rng.randint(4, 40)))

"""Very small programs in Python, JavaScript and Bash, each in a fenced block."""
# ruff: noqa: E501 - patterns read best whole

from dataclasses import dataclass

from inference.builtin.phrasing import fill
from inference.builtin.scene import Scene
from inference.builtin.words import Words


@dataclass(frozen=True, slots=True)
class Program:
    """What a program does: how it is asked for and its text per language."""

    asks: tuple[str, ...]
    python: str
    javascript: str
    bash: str


_W = "(write|give|show|create|make) [me]"
_L = "(in|using) {lang}"
PROGRAMS = (
    Program(
        (f"{_W} (a program|code|a script|a {{lang}} program|a {{lang}} script) (that prints|to print|printing|which prints) {{q}} [{_L}].", f"(print|output|say) {{q}} {_L} [please].", f"how (do|can) I print {{q}} {_L}?",
         "(a|the) {lang} (program|script|code|one-liner) (that prints|to print) {q} [please].", "{lang} code (to print|that prints|for printing) {q}", "(can|could) you (write|show me) {lang} code (that prints|to print) {q}?"),
        'print("{s}")', 'console.log("{s}");', 'echo "{s}"'),
    Program(
        (f"{_W} (a program|code|a loop|a script|a {{lang}} loop|a {{lang}} program) (that prints|to print|printing) {{q}} {{n}} times [{_L}].", f"(print|output|say) {{q}} {{n}} times {_L} [please].", f"how (do|can) I print {{q}} {{n}} times {_L}?",
         "(a|the) {lang} (loop|program|script) (that prints|to print) {q} {n} times [please].", "{lang} code (to print|that prints) {q} {n} times"),
        'for _ in range({n}):\n    print("{s}")', 'for (let i = 0; i < {n}; i++) {{\n  console.log("{s}");\n}}', 'for i in $(seq {n}); do\n  echo "{s}"\ndone'),
    Program(
        (f"{_W} (a program|code|a loop|a script|a {{lang}} loop|a {{lang}} program) (that counts|to count|counting) from {{m}} to {{n}} [{_L}].", f"(count|print the numbers) from {{m}} to {{n}} {_L} [please].", f"how (do|can) I count from {{m}} to {{n}} {_L}?",
         "a {lang} loop from {m} to {n} [please].", f"(print|list) (all|the) numbers from {{m}} to {{n}} {_L}."),
        "for i in range({m}, {n} + 1):\n    print(i)", "for (let i = {m}; i <= {n}; i++) {{\n  console.log(i);\n}}", 'for i in $(seq {m} {n}); do\n  echo "$i"\ndone'),
    Program(
        (f"{_W} a [{{lang}}] function [called|named] {{f}} (that returns|returning|which returns) {{k}} [{_L}].", f"(define|declare) a function {{f}} (that returns|returning) {{k}} {_L}.", "a {lang} function {f} (that returns|returning) {k} [please].",
         f"how (do|can) I write a function {{f}} that returns {{k}} {_L}?"),
        "def {f}():\n    return {k}", "function {f}() {{\n  return {k};\n}}", "{f}() {{\n  echo {k}\n}}"),
    Program(
        (f"{_W} a [{{lang}}] function [called|named] {{f}} (that greets|to greet|which greets) (a person|someone|a name|somebody) [{_L}].", f"(define|write) a greeting function {{f}} {_L}.", "a {lang} function {f} that (greets|says hello to) (a person|someone) [please]."),
        'def {f}(name):\n    print("Hello, " + name)', 'function {f}(name) {{\n  console.log("Hello, " + name);\n}}', '{f}() {{\n  echo "Hello, $1"\n}}'),
    Program(
        (f"{_W} a [{{lang}}] function [called|named] {{f}} (that adds|to add|which adds|adding) two numbers [{_L}].", f"(define|write) a function {{f}} (for adding|to sum) two numbers {_L}.", "a {lang} function {f} that (adds|sums) two numbers [please].",
         f"how (do|can) I write a function {{f}} that adds two numbers {_L}?"),
        "def {f}(a, b):\n    return a + b", "function {f}(a, b) {{\n  return a + b;\n}}", "{f}() {{\n  echo $(($1 + $2))\n}}"),
    Program(
        (f"(set|assign|put) [the|a] variable {{f}} to {{k}} {_L} [and print it].", f"{_W} (code|a program) (that sets|to set) [the variable] {{f}} to {{k}} and (prints|print) it [{_L}].", f"(make|create|declare) a variable {{f}} with [the] value {{k}} {_L}."),
        "{f} = {k}\nprint({f})", "const {f} = {k};\nconsole.log({f});", '{f}={k}\necho "${f}"'),
    Program(
        (f"(make|create|write) a list [called|named] {{f}} (with|of) {{i}} {_L} [and print it].", f"{_W} (code|a program) (that makes|with|for) a list {{f}} (with|of) {{i}} [{_L}].", "a {lang} list {f} (with|of) {i} [please]."),
        "{f} = [{j}]\nprint({f})", "const {f} = [{j}];\nconsole.log({f});", '{f}=({b})\necho "${{{f}[@]}}"'),
    Program(
        (f"(how do I|show me how to|how to|how can I) (read|open|print) (the|a) file {{p}} {_L}?", f"{_W} (code|a program|a script) (that reads|to read|that prints) the file {{p}} [{_L}].", f"(read|print) the file {{p}} {_L} [please]."),
        'with open("{p}") as file:\n    print(file.read())', 'const fs = require("fs");\nconsole.log(fs.readFileSync("{p}", "utf8"));', "cat {p}"),
)  # fmt: skip
_LANGUAGES = {
    "python": ("Python", "python", "Python", "python", "Python 3", "py"),
    "javascript": ("JavaScript", "javascript", "js", "JS", "Javascript", "Node"),
    "bash": ("Bash", "bash", "shell", "a shell script", "sh", "Bash"),
}


def code(scene: Scene) -> None:
    """One small program; Python when no language is named."""
    rng, words = scene.rng, scene.words
    language = rng.choice(("python", "python", "javascript", "bash"))
    program = rng.choice(PROGRAMS)
    values = _values(words)
    spoken = rng.choice(_LANGUAGES[language])
    quoted = values["s"] if rng.random() < 0.3 else rng.choice(('"{}"', "'{}'")).format(values["s"])
    listed = [words.noun().split()[0] for _ in range(rng.randint(2, 4))]
    text = scene.ask(program.asks, wrap=False, lang=spoken, q=quoted, i=", ".join(listed), **values)
    if not any(
        f" {spoken.lower()}" in f" {text.lower()}"
        for spoken in (*_LANGUAGES["javascript"], *_LANGUAGES["bash"])
    ):
        language = "python"
    scene.about(None, "Programming")
    pattern: str = getattr(program, language)
    body = pattern.replace("{{", "\0").replace("}}", "\1")
    body = fill(body, j=", ".join(f'"{w}"' for w in listed), b=" ".join(listed), **values)
    scene.answer(f"```{language}\n{body.replace(chr(0), '{').replace(chr(1), '}')}\n```")


def _values(words: Words) -> dict[str, object]:
    rng = words.rng
    low = rng.randint(0, 9)
    said = rng.choice(
        (
            f"{rng.choice(('Hello', 'hello', 'Hi'))} {words.token()}",
            words.phrase(1, 3),
            "Hello, world",
            "hello world",
            words.first_name(),
        )
    )
    name = rng.choice(
        (
            words.coined(),
            f"{words.choice('VERBS').split(':')[0]}_{words.choice('THINGS')}",
            words.choice("THINGS"),
        )
    )
    return {
        "s": said,
        "n": words.number(2, 999),
        "m": low,
        "f": name,
        "k": words.number(2, 9999),
        "p": f"{words.coined()}.txt",
    } | ({"n": low + words.number(2, 99)} if rng.random() < 0.5 else {})

"""openai-python: streaming, tools, structured output, responses, embeddings, its own exceptions."""

from typing import Any, Literal

import openai
from checks import BASE_URL, EMBEDDING_MODEL, KEY, LIMITED_KEY, MODEL, WEATHER, check, raises, run
from openai import OpenAI
from pydantic import BaseModel

client = OpenAI(base_url=BASE_URL, api_key=KEY, max_retries=0)
messages: Any = [{"role": "user", "content": "What is 2 plus 2?"}]
tools: Any = [{"type": "function", "function": WEATHER}]


class Colour(BaseModel):
    name: Literal["red", "green", "blue"]
    is_warm: bool


def ask(**more: Any) -> Any:
    return client.chat.completions.create(
        **({"model": MODEL, "messages": messages, "max_tokens": 40} | more)
    )


@check("answer")
def answer() -> str:
    done = ask()
    assert done.usage.completion_tokens > 0
    assert done.choices[0].finish_reason in ("stop", "length")
    return str(done.choices[0].message.content)


@check("streaming")
def streaming() -> str:
    chunks = list(ask(stream=True, stream_options={"include_usage": True}))
    assert chunks[-1].usage.completion_tokens > 0
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text
    return f"{len(chunks)} chunks"


@check("tools")
def calls_a_tool() -> str:
    done = ask(tools=tools, tool_choice="required")
    call = done.choices[0].message.tool_calls[0]
    answered = [
        *messages,
        done.choices[0].message,
        {"role": "tool", "tool_call_id": call.id, "content": "Sunny"},
    ]
    assert ask(messages=answered, tools=tools).choices
    return f"{call.function.name}({call.function.arguments})"


@check("tools, streamed")
def streams_a_call() -> str:
    with client.chat.completions.stream(
        model=MODEL, messages=messages, tools=tools, tool_choice="required", max_tokens=60
    ) as stream:
        for _event in stream:
            pass
        call = stream.get_final_completion().choices[0].message.tool_calls
    assert call
    return str(call[0].function.arguments)


@check("structured output")
def structured() -> str:
    done = client.chat.completions.parse(
        model=MODEL, messages=messages, response_format=Colour, max_tokens=60
    )
    assert isinstance(done.choices[0].message.parsed, Colour)
    return str(done.choices[0].message.content)


@check("responses")
def responds() -> str:
    with client.responses.stream(model=MODEL, input="Name a colour.") as stream:
        kinds = [event.type for event in stream]
        first = stream.get_final_response()
    again = client.responses.create(model=MODEL, input="Another", previous_response_id=first.id)
    client.responses.delete(first.id)
    assert again.status == "completed"
    return f"{len(kinds)} events"


@check("embeddings")
def embeds() -> str:
    done = client.embeddings.create(model=EMBEDDING_MODEL, input=["one", "two"])
    return f"{len(done.data)} of {len(done.data[0].embedding)}"


@check("models")
def lists() -> str:
    return ", ".join(model.id for model in client.models.list())


@check("wrong key")
def wrong_key() -> str:
    other = client.with_options(api_key="vt_wrong")
    return raises(openai.AuthenticationError, lambda: other.models.list())


@check("no such model")
def no_model() -> str:
    return raises(openai.NotFoundError, lambda: ask(model="nothing"))


@check("wrong parameter")
def wrong_parameter() -> str:
    return raises(openai.BadRequestError, lambda: ask(temperature=9))


@check("over the limit")
def limited() -> str:
    other = client.with_options(api_key=LIMITED_KEY)
    return raises(
        openai.RateLimitError,
        lambda: other.chat.completions.create(model=MODEL, messages=messages),
    )


run()

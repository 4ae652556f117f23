"""LiteLLM: `openai/…` models with a base URL, and `anthropic/…` ones for /v1/messages."""

from typing import Any

import litellm
from checks import BASE_URL, EMBEDDING_MODEL, KEY, LIMITED_KEY, MODEL, WEATHER, check, raises, run
from pydantic import BaseModel

messages = [{"role": "user", "content": "What is 2 plus 2?"}]


class Answer(BaseModel):
    number: int


def ask(**more: Any) -> Any:
    usual = {"model": f"openai/{MODEL}", "api_base": BASE_URL, "api_key": KEY, "num_retries": 0}
    return litellm.completion(**(usual | {"messages": messages, "max_tokens": 60} | more))


@check("answer")
def answer() -> str:
    return str(ask().choices[0].message.content)


@check("streaming")
def streaming() -> str:
    chunks = list(ask(stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    return f"{len(chunks)} chunks"


@check("tools")
def calls_a_tool() -> str:
    tools = [{"type": "function", "function": WEATHER}]
    call = ask(tools=tools, tool_choice="required").choices[0].message.tool_calls[0]
    return str(call.function.arguments)


@check("structured output")
def structured() -> str:
    done = ask(response_format=Answer)
    return repr(Answer.model_validate_json(done.choices[0].message.content))


@check("messages")
def messages_of_anthropic() -> str:
    done = ask(model=f"anthropic/{MODEL}", api_base=BASE_URL.removesuffix("/v1"))
    return str(done.choices[0].message.content)


@check("embeddings")
def embeds() -> str:
    done = litellm.embedding(
        model=f"openai/{EMBEDDING_MODEL}", api_base=BASE_URL, api_key=KEY, input=["one", "two"]
    )
    return f"{len(done.data)} of {len(done.data[0]['embedding'])}"


@check("wrong key")
def wrong_key() -> str:
    return raises(litellm.AuthenticationError, lambda: ask(api_key="vt_wrong"))


@check("no such model")
def no_model() -> str:
    return raises(litellm.NotFoundError, lambda: ask(model="openai/nothing"))


@check("wrong parameter")
def wrong_parameter() -> str:
    return raises(litellm.BadRequestError, lambda: ask(temperature=9))


@check("over the limit")
def limited() -> str:
    return raises(litellm.RateLimitError, lambda: ask(api_key=LIMITED_KEY))


run()

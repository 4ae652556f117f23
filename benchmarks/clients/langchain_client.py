"""langchain-openai: chat models and embeddings."""

from typing import Any

import openai
from checks import BASE_URL, EMBEDDING_MODEL, KEY, LIMITED_KEY, MODEL, check, raises, run
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel, Field


class Weather(BaseModel):
    """The weather of a city."""

    city: str = Field(max_length=20)


def model(**more: Any) -> ChatOpenAI:
    return ChatOpenAI(
        **({"model": MODEL, "base_url": BASE_URL, "api_key": KEY, "max_retries": 0} | more),
        max_tokens=60,
    )


@check("answer")
def answer() -> str:
    done = model().invoke("What is 2 plus 2?")
    assert done.usage_metadata
    assert done.usage_metadata["output_tokens"] > 0
    return str(done.content)


@check("streaming")
def streaming() -> str:
    chunks = list(model().stream("What is 2 plus 2?"))
    assert "".join(str(chunk.content) for chunk in chunks)
    return f"{len(chunks)} chunks"


@check("tools")
def calls_a_tool() -> str:
    bound = model().bind_tools([Weather], tool_choice="Weather")
    return str(bound.invoke("How is it in Paris?").tool_calls[0]["args"])


@check("structured output")
def structured() -> str:
    done = model().with_structured_output(Weather, method="json_schema").invoke("Of Paris")
    assert isinstance(done, Weather)
    return repr(done)


@check("responses")
def responds() -> str:
    return str(model(use_responses_api=True).invoke("Name a colour.").content)


@check("embeddings")
def embeds() -> str:
    embeddings = OpenAIEmbeddings(
        model=EMBEDDING_MODEL, base_url=BASE_URL, api_key=KEY, check_embedding_ctx_length=False
    )
    return f"{len(embeddings.embed_query('one'))} numbers"


@check("wrong key")
def wrong_key() -> str:
    return raises(openai.AuthenticationError, lambda: model(api_key="vt_wrong").invoke("Hello"))


@check("no such model")
def no_model() -> str:
    return raises(openai.NotFoundError, lambda: model(model="nothing").invoke("Hello"))


@check("over the limit")
def limited() -> str:
    return raises(openai.RateLimitError, lambda: model(api_key=LIMITED_KEY).invoke("Hello"))


run()

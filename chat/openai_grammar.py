"""What an answer over the API has to follow: a format, and calls of the caller's tools."""

from chat.openai_schemas import ChatCompletionIn, NamedTool
from inference import (
    ChatTokenizer,
    InvalidParameter,
    json_object_grammar,
    json_schema_grammar,
    tool_grammar,
)


def grammar_of(data: ChatCompletionIn, tokenizer: ChatTokenizer) -> str:
    """The grammar of the answer, empty where it is free. Raises InvalidParameter."""
    answer = _answer_grammar(data)
    tools = data.offered_tools
    if not tools:
        return answer
    forced = data.tool_choice if isinstance(data.tool_choice, NamedTool) else None
    is_forced = data.forces_a_call
    is_single = forced is not None or data.parallel_tool_calls is False
    is_strict = any(tool.function.strict for tool in tools)
    if not (is_forced or is_single or is_strict or answer):
        return ""  # the model may do as it likes, and a mask for each token costs time
    form = tokenizer.call_form
    if form is None:
        problem = f"the chat template of {data.model} has no form for tool calls"
        raise InvalidParameter("tool_choice" if is_forced else "tools", problem)
    functions = [
        tool.function.model_dump()
        for tool in tools
        if forced is None or tool.function.name == forced.function.name
    ]
    return tool_grammar(
        form,
        functions,
        is_forced=is_forced,
        is_single=is_single,
        answer=answer,
    )


def _answer_grammar(data: ChatCompletionIn) -> str:
    format_ = data.response_format
    if format_ is None or format_.type == "text":
        return ""
    schema = format_.wanted.schema_ if format_.wanted is not None else None
    return json_object_grammar() if schema is None else json_schema_grammar(schema)

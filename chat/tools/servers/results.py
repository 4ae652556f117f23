"""What a tool server answers, as text for a model."""

import json
from typing import TYPE_CHECKING

from chat.tools.base import MAX_RESULT_CHARS, ToolFailed

if TYPE_CHECKING:
    from mcp.types import CallToolResult, ContentBlock


def text_of(result: "CallToolResult") -> str:
    """Its parts, one under the other. Links are named and never followed; what is no text is said to be
    there. Raises ToolFailed where the tool says that it failed."""
    parts = [_part(block) for block in result.content]
    text = "\n\n".join(filter(None, parts))[:MAX_RESULT_CHARS]
    if not text and result.structured_content is not None:
        text = json.dumps(result.structured_content, ensure_ascii=False)
    if result.is_error:
        raise ToolFailed(text or "the tool failed and does not say why")
    return text or "(nothing)"


def _part(block: "ContentBlock") -> str:
    match block.type:
        case "text":
            return block.text
        case "resource_link":
            about = f": {block.description}" if block.description else ""
            return f"[{block.title or block.name}]({block.uri}){about}"
        case "resource":
            text = getattr(block.resource, "text", None)
            return text if text is not None else f"[a file: {block.resource.uri}]"
    return f"[{block.type}: {block.mime_type}, which is not shown]"

"""Python code of a model in a sandbox: Monty, an interpreter without files, network or processes.

It runs in processes of its own (a crash takes nothing along), with limits of time, memory and depth:
https://github.com/pydantic/monty. What it computes comes from the prompt alone, so it is trusted as much
as the model's own words.
"""

import asyncio
from typing import TYPE_CHECKING, Any

from chat.off_loop import off_loop
from chat.tools.base import MAX_RESULT_CHARS, Tool, ToolFailed

if TYPE_CHECKING:
    from pydantic_monty import AsyncMonty, ResourceLimits

MAX_CODE_CHARS = 50_000
MAX_SECONDS = 5.0
_MAX_PRINTED_BYTES = 4 * MAX_RESULT_CHARS
_LIMITS: "ResourceLimits" = {
    "max_feed_duration_secs": MAX_SECONDS,
    "max_total_sleep_secs": 0.0,
    "max_memory": 64 * 2**20,
    "max_recursion_depth": 500,
    "max_suspensions": 10,
}
_AT_ONCE = 2  # processes; whoever comes later waits
_WAIT_S = 30.0

_pools: dict[asyncio.AbstractEventLoop, "AsyncMonty"] = {}


async def run_code(code: str) -> str:
    """What it prints, and the value of its last expression as Python writes it. Raises ToolFailed with
    the traceback, behind what was printed before."""
    if len(code) > MAX_CODE_CHARS:
        raise ToolFailed(f"the code is longer than {MAX_CODE_CHARS:,} characters")
    from pydantic_monty import CollectString, MontyError

    printed = CollectString(_MAX_PRINTED_BYTES)
    try:
        pool = await _pool()
        async with pool.checkout(limits=_LIMITS) as session:
            value = await session.feed_run(code, print_callback=printed)
    except (MontyError, TimeoutError) as error:
        half = MAX_RESULT_CHARS // 2 - len("error: ")
        raise ToolFailed(f"{printed.output[-half:]}{_told(error)[-half:]}") from None
    shown = await off_loop(_written, value)
    return f"{printed.output}{shown}".rstrip("\n") or "(nothing was printed)"


async def close() -> None:
    """End the sandboxes of this event loop."""
    pool = _pools.pop(asyncio.get_running_loop(), None)
    if pool is not None:
        await pool.__aexit__(None, None, None)


async def _pool() -> "AsyncMonty":
    """Made at the first use; its processes are made when they are needed, and killed when they hang."""
    from pydantic_monty import AsyncMonty

    loop = asyncio.get_running_loop()
    if loop not in _pools:
        _pools[loop] = AsyncMonty(
            min_processes=0,
            max_processes=_AT_ONCE,
            checkout_timeout=_WAIT_S,
            request_timeout=2 * MAX_SECONDS,
            max_checkouts_per_worker=100,
        )
        await _pools[loop].__aenter__()
    return _pools[loop]


def _written(value: object) -> str:
    if value is None:
        return ""
    try:
        return repr(value)[:MAX_RESULT_CHARS]
    except ValueError as error:  # of an integer with too many digits
        return f"({type(value).__name__}: {error})"


def _told(error: Exception) -> str:
    display = getattr(error, "display", None)
    return str(display()) if display else str(error) or "the sandbox did not answer"


async def _run(arguments: dict[str, Any]) -> str:
    code = arguments.get("code") if isinstance(arguments, dict) else None
    if not isinstance(code, str) or not code.strip():
        raise ToolFailed("'code' is missing")
    return await run_code(code)


PYTHON = Tool(
    name="python",
    description=(
        "Run Python code in a sandbox, to calculate, sort, count or check. What it prints and the value"
        " of its last expression come back; nothing is kept for the next call. There are math, json, re,"
        " datetime, random and collections; no files, network, numpy, pandas or generators."
    ),
    parameters={
        "type": "object",
        "properties": {"code": {"type": "string", "description": "The program"}},
        "required": ["code"],
    },
    run=_run,
    has_side_effects=False,
    is_trusted=True,
    title="Python",
    server="python",
    timeout_s=_WAIT_S + 3 * MAX_SECONDS,
)

"""Python imports this at its start where PYTHONPATH names this folder: the zygote gets our loop."""

import sys

if "inference.zygote" in sys.orig_argv:
    import inference.assembly
    from benchmarks.chat.scripted import loop

    inference.assembly.assemble = loop.scripted(inference.assembly.assemble)

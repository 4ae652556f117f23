"""Models that other servers run: asked over HTTP, heard as the same kind of updates."""

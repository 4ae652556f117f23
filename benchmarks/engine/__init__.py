"""The engine against its peers and against the machine: run as `python -m benchmarks.engine`."""

"""The engine's kernels for GPUs, in Triton; see `attention` for how a step uses them.

Written for CUDA, tested in Triton's interpreter (TRITON_INTERPRET=1), which needs no GPU.
"""

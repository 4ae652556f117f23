"""Kernels in C for the processor at hand: compiled when first needed, and done without where that fails.

The machine's own C compiler builds them for the machine's own instructions (AVX-512 with VNNI, and AMX
where it is); without one, or on another processor, torch's operations do the same work more slowly.
"""

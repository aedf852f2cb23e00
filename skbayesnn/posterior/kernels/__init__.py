"""Kernels: compiled loops over arrays."""

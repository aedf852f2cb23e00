"""Memory of operations, compared with that of the machine."""

import os

import numpy as np


def machine_memory():
    """Physical memory of this machine in bytes; infinite if the system does not report it."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return np.inf


def readable(n_bytes):
    """Format a number of bytes with its unit."""
    for unit in ("KiB", "MiB", "GiB"):
        n_bytes /= 1024.0
        if n_bytes < 1000.0 or unit == "GiB":
            break
    digits = 1 if n_bytes < 10.0 else 0
    return f"{n_bytes:.{digits}f} {unit}"


def check_memory(n_bytes, what, advice):
    """Raise ``MemoryError`` if an operation needs more memory than the machine has.

    ``what`` is the subject of the sentence in the message, ``advice`` another sentence.
    """
    if n_bytes > machine_memory():
        raise MemoryError(
            f"{what} needs about {readable(n_bytes)} of memory, and the machine has "
            f"{readable(machine_memory())}. {advice}"
        )

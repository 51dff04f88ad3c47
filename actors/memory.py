"""Memory for frames: kept, where the C library would give it back after each.

Frames have a quarter of a megabyte, and a busy router makes thousands a second. By default glibc
returns blocks of that size to the system as soon as they are free, and every page of the next one
is a fault: a quarter of a saturated router's processor time.
"""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
#: Free memory at the end of a heap that is kept, and the size from which a block is mapped alone.
_KEPT_BYTES = 32 << 20
_MAPPED_BYTES = 16 << 20


def keep_memory() -> bool:
    """Tell the C library so, for this process; false where it is another one."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _MAPPED_BYTES) and mallopt(_TRIM_THRESHOLD, _KEPT_BYTES))

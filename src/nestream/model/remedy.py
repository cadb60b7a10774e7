"""What to do where something cannot be written."""

from __future__ import annotations

import errno

_FULL = (errno.ENOSPC, errno.EDQUOT)


def remedy(error: BaseException) -> str:
    """The advice for an error of a file system: only a full one needs room."""
    full = getattr(error, "errno", None) in _FULL
    return "make room or choose another place" if full else "choose another place"

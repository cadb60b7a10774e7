"""Parts of messages: what the system said, what to do about it, values of bounded length, and lists."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

_FULL = (errno.ENOSPC, errno.EDQUOT)


def reason(error: OSError) -> str:
    """What the operating system says about an error, to go on with a sentence."""
    if error.errno is not None and error.errno in errno.errorcode:
        why = os.strerror(error.errno)
    else:  # such as the look-up of a host, which has numbers of its own
        why = error.strerror or str(error)
    return f"{why[:1].lower()}{why[1:]}"


def remedy(error: BaseException) -> str:
    """The advice for an error of a file system: only a full one needs room."""
    full = getattr(error, "errno", None) in _FULL
    return "make room or choose another place" if full else "choose another place"


def cut(text: str, width: int = 60) -> str:
    """The text; cut in the middle if it is longer than `width`."""
    return text if len(text) <= width else f"{text[: width - 20]}…{text[-10:]}"


def shortened(text: str, width: int = 60) -> str:
    """The text on one line; cut in the middle if it is longer than `width`."""
    return cut(" ".join(text.split()), width)


def listed(parts: Sequence[str], joint: str = "and") -> str:
    """Parts of a sentence: `a, b and c`."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {joint} {parts[-1]}"

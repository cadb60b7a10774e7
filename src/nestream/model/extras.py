"""The packages that are not installed by default: which there are, and the command that installs them."""

from __future__ import annotations

import re
import shlex
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec

EXTRAS = {
    "spark": "queries on Spark",
    "console": "nestream console",
    "kafka": "kafka:// as source and sink",
    "avro": "events in Avro",
    "metrics": "nestream stream --metrics",
    "lsp": "nestream lsp",
}
"""What each extra is for."""

_MARKER = re.compile(r"""extra\s*==\s*['"]([\w-]+)['"]""")
_BOUND = re.compile(r"(>=|<)\s*([\d.]+)")


@cache
def requirements(extra: str = "") -> tuple[str, ...]:
    """The requirements of an extra as pip reads them, or those of nestream itself."""
    try:
        declared = requires("nestream") or []
    except PackageNotFoundError:  # sources that are not installed
        return ()
    found = []
    for line in declared:
        requirement, _, marker = line.partition(";")
        wanted = _MARKER.search(marker)
        if (wanted[1] if wanted else "") == extra:
            found.append(requirement.strip())
    return tuple(found)


def satisfies(version: str, requirement: str) -> bool:
    """Whether a version is in the range of a requirement such as `typer>=0.15,<0.29`."""
    known = _numbers(version)
    return all(
        known >= _numbers(bound) if sign == ">=" else known < _numbers(bound)
        for sign, bound in _BOUND.findall(requirement)
    )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def install(*wanted: str) -> str:
    """The command that installs packages into this Python."""
    arguments = " ".join(map(shlex.quote, wanted))
    python = shlex.quote(sys.executable)
    if find_spec("pip") is None:
        return f"uv pip install --python {python} {arguments}"
    return f"{python} -m pip install {arguments}"


def install_extra(extra: str) -> str:
    """The command that installs an extra: its packages, wherever nestream itself came from."""
    return install(*(requirements(extra) or (f"nestream[{extra}]",)))


def needs(what: str, package: str, extra: str) -> str:
    """What to say where a package of an extra is missing."""
    return f"{what} needs the package {package}, which is not installed\n  hint: {install_extra(extra)}"

"""Fetches jars and all that they need by Maven, from the repository that Maven is set up with."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path


class MavenError(Exception):
    """Jars that cannot be fetched: why, and what to do."""


def fetch_jars(pom: Path, place: Path) -> None:
    """Put the jars that a pom.xml names, and those that they need to run, into a folder."""
    if shutil.which("mvn") is None:
        raise MavenError("mvn is not on the path. Install Maven, such as the package maven")
    command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
    done = subprocess.run(
        [*command, f"-DoutputDirectory={place}", "-DincludeScope=runtime"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines() or ["no reason given"]
        raise MavenError(f"mvn failed for {pom.name}: {said[0][:300]}")

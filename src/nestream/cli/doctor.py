"""`nestream doctor`: what is installed, what is missing, and the command that installs it."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version

import typer

import nestream
from nestream.cli.arguments import AnswerFormat, AnswerOption
from nestream.cli.terminal import output
from nestream.model.extras import EXTRAS, install, install_extra, requirements, satisfies
from nestream.query import install_papers, papers_problem

_NEWEST = (3, 14)
"""The newest Python that the support matrix has run."""
_OLDEST_JAVA = 17
_NAME = re.compile(r"[A-Za-z0-9._-]+")


class State(StrEnum):
    """Whether something works."""

    OK = "ok"
    MISSING = "missing"
    """An optional part is not there."""
    BROKEN = "broken"
    """Something that nestream needs is not there, or does not work."""


@dataclass(frozen=True)
class Finding:
    """One thing that was checked: its version or what is wrong, and the command that fixes it."""

    name: str
    state: State
    found: str
    purpose: str = ""
    command: str | None = None


def doctor(format: AnswerOption = AnswerFormat.TEXT) -> None:
    """Report versions and what is missing, with the command that installs it.

    Exits with 0 if nestream works, even if extras are missing, and with 1 if it does not.
    """
    found = list(_findings())
    works = all(each.state is not State.BROKEN for each in found)
    if format is AnswerFormat.JSON:
        answer = {"ok": works, "version": nestream.__version__, "findings": [asdict(each) for each in found]}
        typer.echo(json.dumps(answer, indent=2))
    else:
        _show(found)
    if not works:
        raise typer.Exit(1)


def _findings() -> Iterator[Finding]:
    yield Finding("nestream", State.OK, nestream.__version__, os.path.dirname(nestream.__file__))
    yield _python()
    for requirement in requirements():
        yield _package(requirement)
    yield _engine()
    for extra, purpose in EXTRAS.items():
        yield _extra(extra, purpose)
        if extra == "spark":
            yield _java()
    yield _papers()


def _python() -> Finding:
    found = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    if sys.version_info[:2] > _NEWEST:
        newest = ".".join(map(str, _NEWEST))
        return Finding("Python", State.OK, f"{found}; tested up to {newest}", sys.executable)
    return Finding("Python", State.OK, found, sys.executable)


def _package(requirement: str) -> Finding:
    """A package that nestream always needs."""
    name = _name(requirement)
    try:
        found = version(name)
    except PackageNotFoundError:
        return Finding(name, State.BROKEN, "not installed", command=install(requirement))
    if not satisfies(found, requirement):
        said = f"{found}, but {requirement} is needed"
        return Finding(name, State.BROKEN, said, command=install(requirement))
    return Finding(name, State.OK, found)


def _engine() -> Finding:
    """Whether the engine runs: a query over two events."""
    query = "SEQ(A a, B b) WITHIN 10"
    try:
        count = nestream.query(query).count([{"ts": 1, "type": "A"}, {"ts": 3, "type": "B"}])
    except Exception as problem:
        said = " ".join(str(problem).split())
        return Finding("engine", State.BROKEN, f"fails: {type(problem).__name__}: {said}")
    if count != 1:
        return Finding("engine", State.BROKEN, f"{query} found {count} matches, not 1")
    return Finding("engine", State.OK, "works")


def _extra(extra: str, purpose: str) -> Finding:
    """Whether the packages of an extra are there."""
    found, missing = [], []
    for requirement in requirements(extra):
        name = _name(requirement)
        try:
            known = version(name)
        except PackageNotFoundError:
            missing.append(requirement)
            continue
        if not satisfies(known, requirement):
            missing.append(requirement)
        found.append(f"{name} {known}")
    if missing:
        said = f"needs {', '.join(missing)}" + (f"; there is {', '.join(found)}" if found else "")
        return Finding(extra, State.MISSING, said, purpose, install(*missing))
    if not found:  # sources that are not installed do not list their extras
        return Finding(extra, State.MISSING, "not installed", purpose, install_extra(extra))
    return Finding(extra, State.OK, ", ".join(found), purpose)


def _papers() -> Finding:
    """Whether the strategies of the papers are there, in the version of nestream."""
    problem, purpose = papers_problem(), "the strategies and switches of the papers"
    if problem is None:
        return Finding("papers", State.OK, f"nestream-papers {nestream.__version__}", purpose)
    said = f"nestream-papers is {problem}; a checkout of nestream has it"
    return Finding("papers", State.MISSING, said, purpose, install_papers())


def _java() -> Finding:
    """Java for Spark, which takes that of JAVA_HOME before that on PATH."""
    home = os.environ.get("JAVA_HOME")
    program = os.path.join(home, "bin", "java") if home else shutil.which("java")
    purpose = "Spark needs Java 17 or later"
    command = _java_command()
    if not program:
        return Finding("java", State.MISSING, "not found", purpose, command)
    try:
        ran = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as problem:
        said = f"{program} does not run: {problem}"
        return Finding("java", State.MISSING, said, purpose, "unset JAVA_HOME" if home else command)
    numbered = re.search(r'version "(?:1\.)?(\d+)([^"]*)"', ran.stderr + ran.stdout)
    if numbered is None:
        return Finding("java", State.MISSING, f"{program} reports no version", purpose, command)
    found = f"{numbered[1]}{numbered[2]}" + (f" of JAVA_HOME {home}" if home else "")
    if int(numbered[1]) < _OLDEST_JAVA:
        return Finding("java", State.MISSING, f"{found} is too old", purpose, command)
    return Finding("java", State.OK, found, purpose)


def _java_command() -> str:
    if shutil.which("apt-get"):
        return "sudo apt-get install openjdk-17-jre-headless"
    if shutil.which("brew"):
        return "brew install openjdk@17"
    if shutil.which("dnf"):
        return "sudo dnf install java-17-openjdk-headless"
    return "install Java 17 or later, and set JAVA_HOME to it"


def _name(requirement: str) -> str:
    named = _NAME.match(requirement)
    return named[0] if named else requirement


_MARKS = {State.OK: ("✓", "green"), State.MISSING: ("-", "yellow"), State.BROKEN: ("✗", "red")}


def _show(found: list[Finding]) -> None:
    from rich.text import Text

    console = output()
    wide = max(len(each.name) for each in found)
    for each in found:
        mark, colour = _MARKS[each.state]
        line = Text.assemble((mark, colour), f" {each.name:<{wide}}  {each.found}")
        if each.purpose:
            line.append(f"  ({each.purpose})", "dim")
        console.print(line, soft_wrap=True)
        if each.command:
            console.print(
                Text.assemble(" " * (wide + 4), ("install: ", "bold"), each.command), soft_wrap=True
            )
    missing = sum(each.state is State.MISSING for each in found)
    broken = sum(each.state is State.BROKEN for each in found)
    verdict = f"{broken} broken" if broken else "nestream works"
    if missing:
        verdict += f"; {missing} optional {'part is' if missing == 1 else 'parts are'} missing"
    console.print(Text(f"\n{verdict}", "bold red" if broken else "bold green"), soft_wrap=True)

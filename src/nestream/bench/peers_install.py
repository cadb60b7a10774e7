"""Where each peer is installed, how, and the command that runs it: jars and classes in the user's cache.

DuckDB, Polars and Spark are Python packages of this environment; Flink, Esper and Siddhi are put into folders
of their own, at the versions that `benchmarks/peers/pins` names.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from nestream.bench.run import BenchError

PACKAGES = {"DuckDB": "duckdb", "Polars": "polars", "Spark SQL": "pyspark"}
SCRIPTS = {"DuckDB": "duckdb_peer.py", "Polars": "polars_peer.py", "Spark SQL": "spark_peer.py"}
JARS = {"Esper": "esper", "Siddhi": "siddhi", "Flink CEP": "flink", "Flink SQL": "flink"}
CLASSES = {
    "esper": ("Event", "Driver", "EsperPeer"),
    "siddhi": ("Event", "Driver", "SiddhiPeer"),
    "flink": ("Event", "Driver", "FlinkPatterns", "FlinkJob", "FlinkCepPeer", "FlinkSqlPeer"),
}
MAINS = {
    "Esper": "EsperPeer",
    "Siddhi": "SiddhiPeer",
    "Flink CEP": "FlinkCepPeer",
    "Flink SQL": "FlinkSqlPeer",
}
TEXTS = {"Esper": ("esper", "epl"), "Siddhi": ("siddhi", "siddhi"), "Flink SQL": ("flinksql", "sql")}
"""The folder and the ending of the queries in a peer's own language."""
JAVA = (
    "-Xmx4g",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
)
INSTALL = "nestream bench peers --install"


def home() -> Path:
    """The folder of the peers that are no packages of this environment."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nestream" / "peers"


def version(peer: str, folder: Path) -> str:
    """The version of a peer, as it is installed here or as it is pinned."""
    if peer in PACKAGES:
        try:
            return importlib.metadata.version(PACKAGES[peer])
        except importlib.metadata.PackageNotFoundError:
            return ""
    return pinned(folder, JARS[peer])


def pinned(folder: Path, name: str) -> str:
    """The version in a file of `benchmarks/peers/pins`."""
    path = next(path for path in (folder / "pins").iterdir() if path.stem == name)
    text = path.read_text(encoding="utf-8")
    found = re.search(r"^[\w-]+==(\S+)", text, re.M) or re.search(
        r"-\w+</artifactId>\s*<version>([\d.]{3,})", text
    )
    if found is None:
        raise BenchError(f"{path} names no version. Write one in it.")
    return found[1]


def missing(peer: str, folder: Path) -> str:
    """Why a peer cannot run here and what to do; nothing where it can."""
    if peer in PACKAGES:
        there = version(peer, folder)
        return "" if there else f"not installed: pip install {PACKAGES[peer]}"
    if shutil.which("java") is None:
        return "not installed: it needs Java 17, then " + INSTALL
    return "" if _mark(folder, JARS[peer]).exists() else f"not installed: {INSTALL}"


def install(peer: str, folder: Path) -> None:
    """Fetch the jars of a peer and compile what drives it, unless that is done."""
    if peer in PACKAGES or not missing(peer, folder):
        return
    name, place = JARS[peer], home() / JARS[peer]
    for tool in ("java", "javac", *(() if name == "flink" else ("mvn",))):
        if shutil.which(tool) is None:
            raise BenchError(f"{peer} needs {tool}, which is not on the path. Install a JDK 17 and Maven.")
    pins = folder / "pins"
    if name == "flink":
        if not (place / "bin" / "pip").exists():
            venv.create(place, with_pip=True, symlinks=True)
        _call([str(place / "bin" / "pip"), "install", "--quiet", "--no-deps", "-r", str(pins / "flink.txt")])
    else:
        command = ["mvn", "-q", "-B", "-f", str(pins / f"{name}.xml"), "dependency:copy-dependencies"]
        _call([*command, f"-DoutputDirectory={place}", "-DincludeScope=runtime"])
    sources = [str(folder / "java" / f"{one}.java") for one in CLASSES[name]]
    _call(["javac", "-proc:none", "-d", str(_classes(folder, name)), "-cp", _jars(name), *sources])
    _mark(folder, name).touch()


def command(
    peer: str, query: str, how: str, events: tuple[Path, Path], window: int, folder: Path
) -> list[str]:
    """The command that runs a query once for each line of standard input; events as Parquet and columns."""
    if peer in SCRIPTS:
        found = [sys.executable, str(folder / SCRIPTS[peer]), query, how, str(events[0]), str(window)]
        return [*found, "--threads=2", "--turns"]
    name = JARS[peer]
    path = f"{_classes(folder, name)}{os.pathsep}{_jars(name)}"
    text = text_of(peer, query, how, folder) or Path("-")
    parallelism = how.removeprefix("parallelism ") if how.startswith("parallelism ") else "1"
    main = MAINS[peer]
    return ["java", *JAVA, "-cp", path, main, query, str(text), str(events[1]), str(window), parallelism]


def text_of(peer: str, query: str, how: str, folder: Path) -> Path | None:
    """The file with the query in the peer's own language; None where it is code."""
    if peer in TEXTS:
        place, ending = TEXTS[peer]
        return folder / place / f"{query}.{ending}"
    place = {"DuckDB": "duckdb", "Spark SQL": "spark"}.get(peer, "")
    return folder / place / f"{query}.{how}.sql" if place else None


def _jars(name: str) -> str:
    place = home() / name
    if name == "flink":
        place = next(iter(place.glob("lib/python*/site-packages/pyflink/lib")), place)
    return str(place / "*")


def _classes(folder: Path, name: str) -> Path:
    """Classes of other sources are other classes, so the sources are part of the name."""
    sources = b"".join((folder / "java" / f"{one}.java").read_bytes() for one in CLASSES[name])
    return home() / f"{name}-{hashlib.sha256(sources).hexdigest()[:8]}"


def _mark(folder: Path, name: str) -> Path:
    return _classes(folder, name) / f"complete-{pinned(folder, name)}"


def _call(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines() or ["no reason given"]
        raise BenchError(f"{' '.join(command[:3])} failed: {said[0][:300]}")

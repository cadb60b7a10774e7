"""Where each peer is installed, the command that runs it, and how many lines its query has.

DuckDB, Polars and Spark are Python packages of this environment; Flink, Esper and Siddhi are put into folders
of their own in the user's cache, at the versions that `benchmarks/peers/pins` names.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import nestream
from benchmarks.events import ROOT, cache_folder, columns_file
from benchmarks.maven import MavenError, fetch_jars
from benchmarks.spec import BenchError, Peer

FOLDER = ROOT / "benchmarks" / "peers"
PACKAGES = {"DuckDB": "duckdb", "Polars": "polars", "Spark SQL": "pyspark"}
SCRIPTS = {"DuckDB": "duckdb_peer", "Polars": "polars_peer", "Spark SQL": "spark_peer"}
JARS = {"Esper": "esper", "Siddhi": "siddhi", "Flink CEP": "flink", "Flink SQL": "flink"}
CLASSES = {
    "esper": ("Event", "Driver", "EsperPeer"),
    "siddhi": ("Event", "Driver", "SiddhiPeer"),
    "flink": ("Event", "Driver", "FlinkPatterns", "FlinkJob", "FlinkCepPeer", "FlinkSqlPeer"),
}
TEXTS = {
    "Esper": "esper/{query}.epl",
    "Siddhi": "siddhi/{query}.siddhi",
    "Flink SQL": "flinksql/{query}.sql",
    "DuckDB": "duckdb/{query}.{how}.sql",
    "Spark SQL": "spark/{query}.{how}.sql",
}
"""The files with the queries in a peer's own language."""
POLARS = {
    "bucket": ("bucketed", "named", "of_type"),
    "natural": ("natural", "named", "of_type"),
    "bound": ("bucketed", "marked", "named", "of_type"),
    "anti": ("anti", "bucketed", "named", "of_type"),
    "edge": ("bucketed", "edged", "named", "of_type"),
    "and": ("conjunction", "named", "of_type"),
}
"""The functions of `polars_peer.py` that a formulation needs."""
POLARS_GROUPS = {
    "group": ("group", "numbered", "pairs"),
    "aggregates": ("aggregates", "numbered", "pairs"),
    "tenth": ("tenth",),
    "first-per": ("first_per", "times"),
    "last-per": ("last_per", "times"),
}
"""The functions of `polars_groups.py` that a query needs."""
JAVA = (
    "-Xmx4g",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
)
INSTALL = "scripts/bench peers --install"


def version(peer: str) -> str:
    """The version of a peer, as it is installed here or as it is pinned; empty if not installed."""
    if peer not in PACKAGES:
        return pinned(JARS[peer])
    try:
        return importlib.metadata.version(PACKAGES[peer])
    except importlib.metadata.PackageNotFoundError:
        return ""


def pinned(name: str) -> str:
    """The version in a file of `benchmarks/peers/pins`."""
    path = next((FOLDER / "pins").glob(f"{name}.*"))
    text = path.read_text(encoding="utf-8")
    found = re.search(r"^[\w-]+==(\S+)", text, re.M) or re.search(
        r"-\w+</artifactId>\s*<version>([\d.]{3,})", text
    )
    if found is None:
        raise BenchError(f"{path} names no version. Write one in it.")
    return found[1]


def missing(peer: str) -> str:
    """Why a peer cannot run here and what to do; empty if it can."""
    if peer in PACKAGES:
        return "" if version(peer) else f"not installed: pip install {PACKAGES[peer]}"
    if shutil.which("java") is None:
        return "not installed: it needs Java 17, then " + INSTALL
    return "" if _mark(JARS[peer]).exists() else f"not installed: {INSTALL}"


def install(peer: str) -> None:
    """Fetch the jars of a peer and compile what drives it, unless that is done."""
    if peer in PACKAGES or not missing(peer):
        return
    name, place = JARS[peer], cache_folder("peers") / JARS[peer]
    for tool in ("java", "javac"):
        if shutil.which(tool) is None:
            raise BenchError(f"{peer} needs {tool}, which is not on the path. Install a JDK 17.")
    pins = FOLDER / "pins"
    if name == "flink":
        if not (place / "bin" / "pip").exists():
            venv.create(place, with_pip=True, symlinks=True)
        _call([str(place / "bin" / "pip"), "install", "--quiet", "--no-deps", "-r", str(pins / "flink.txt")])
    else:
        try:
            fetch_jars(pins / f"{name}.xml", place)
        except MavenError as problem:
            raise BenchError(f"{peer} cannot be installed: {problem}.") from None
    sources = [str(FOLDER / "java" / f"{one}.java") for one in CLASSES[name]]
    _call(["javac", "-proc:none", "-d", str(_classes(name)), "-cp", _jars(name), *sources])
    _mark(name).touch()


def command(peer: Peer, query: str, events: Path, window: int) -> list[str]:
    """The command that runs a query once for each line of input."""
    if peer.name in SCRIPTS:
        module = f"benchmarks.peers.{SCRIPTS[peer.name]}"
        given = [query, peer.formulation, str(events), str(window), str(peer.threads)]
        return [sys.executable, "-m", module, *given]
    name = JARS[peer.name]
    path = f"{_classes(name)}{os.pathsep}{_jars(name)}"
    given = [
        query,
        str(text_of(peer, query) or "-"),
        str(columns_file(events)),
        str(window),
        str(peer.threads),
    ]
    return ["java", *JAVA, "-cp", path, f"{peer.name.title().replace(' ', '')}Peer", *given]


def text_of(peer: Peer, query: str) -> Path | None:
    """The file with the query in the peer's own language; None if it is code."""
    if peer.name not in TEXTS:
        return None
    return FOLDER / TEXTS[peer.name].format(query=query.removesuffix("-never"), how=peer.formulation)


def our_lines(query: str) -> int:
    """The lines of a query as `nestream fmt` lays it out."""
    return len(nestream.query(query).formatted.splitlines())


def lines(peer: Peer, query: str) -> int:
    """The lines of a peer's query without comments."""
    text = text_of(peer, query)
    if text is not None:
        written = [line.strip() for line in text.read_text(encoding="utf-8").splitlines()]
        return sum(bool(line) and not line.startswith("--") for line in written)
    if peer.name == "Polars":
        kind = "and" if query == "and" else "edge" if query in ("leading", "trailing") else peer.formulation
        file, names = ("polars_peer.py", POLARS.get(kind, ()))
        if query in POLARS_GROUPS:
            file, names = ("polars_groups.py", POLARS_GROUPS[query])
        body = ast.parse((FOLDER / file).read_text(encoding="utf-8")).body
        found = [node for node in body if isinstance(node, ast.FunctionDef) and node.name in names]
        return sum((f.end_lineno or 0) - f.lineno + 1 - bool(ast.get_docstring(f)) for f in found)
    cases = (FOLDER / "java" / "FlinkPatterns.java").read_text(encoding="utf-8")
    own = re.search(rf'case [^\n]*"{query}"[^\n]*\n(.*?)\n\s*(?:case |default)', cases, re.S)
    return len(own[1].splitlines()) if own else 0


def _jars(name: str) -> str:
    place = cache_folder("peers") / name
    if name == "flink":
        place = next(iter(place.glob("lib/python*/site-packages/pyflink/lib")), place)
    return str(place / "*")


def _classes(name: str) -> Path:
    """Classes of other sources are other classes, so the sources are part of the name."""
    sources = b"".join((FOLDER / "java" / f"{one}.java").read_bytes() for one in CLASSES[name])
    return cache_folder("peers") / f"{name}-{hashlib.sha256(sources).hexdigest()[:8]}"


def _mark(name: str) -> Path:
    return _classes(name) / f"complete-{pinned(name)}"


def _call(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines() or ["no reason given"]
        raise BenchError(f"{' '.join(command[:3])} failed: {said[0][:300]}")

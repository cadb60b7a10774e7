"""`./scripts/matrix`: builds the wheels, installs them for each Python and PySpark, and runs checks there.

Environments and wheels are under .cache/matrix. A Python is looked for by `uv python find`, then installed
by uv where it can reach its downloads. Name another with MATRIX_PYTHON_3_14=/path/to/python.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / ".cache" / "matrix"
PAGE = ROOT / "docs" / "reference" / "support.md"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
SPARKS = ("4.1", "4.2", "4.3")
CHECKS = {"in_process": "in process", "on_spark": "Spark batch", "streamed": "Spark stream"}


def main() -> int:
    """Run the matrix; the number of combinations that failed or could not be run."""
    parser = argparse.ArgumentParser(prog="scripts/matrix", description="Run the support matrix.")
    parser.add_argument(
        "--python", action="append", choices=PYTHONS, help="Only this Python; repeat for more."
    )
    parser.add_argument(
        "--spark", action="append", choices=SPARKS, help="Only this PySpark; repeat for more."
    )
    parser.add_argument("--write", action="store_true", help="Also write the table of the documentation.")
    asked = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    wheels = [_wheel(folder) for folder in (ROOT, ROOT / "src" / "nestream_papers")]
    results: dict[tuple[str, str], dict[str, Any]] = {}
    for python in asked.python or PYTHONS:
        found = _environment(python)
        for spark in asked.spark or SPARKS:
            result = _run(found, wheels, spark) if isinstance(found, Path) else {"error": found}
            results[python, spark] = result
            print(f"Python {python}, PySpark {spark}: {_said(result)}", flush=True)
            (WORK / f"{python}-{spark}.json").write_text(json.dumps(result, indent=2))
    for python in PYTHONS:  # with what earlier runs have found
        for spark in SPARKS:
            kept = WORK / f"{python}-{spark}.json"
            if (python, spark) not in results and kept.exists():
                results[python, spark] = json.loads(kept.read_text())
    table = _table(results)
    print(f"\n{table}")
    if asked.write:
        text = PAGE.read_text(encoding="utf-8")
        marked = re.compile(r"(<!-- matrix: .*?-->\n).*?(<!-- end -->)", re.DOTALL)
        PAGE.write_text(marked.sub(lambda found: f"{found[1]}{table}\n{found[2]}", text), encoding="utf-8")
    return sum(_said(result) != "ok" for result in results.values())


def _uv(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    beside = Path(sys.executable).with_name("uv")
    program = str(beside) if beside.exists() else shutil.which("uv") or "uv"
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, **options)


def _wheel(folder: Path) -> Path:
    """The wheel of a project of this checkout, built anew."""
    into = WORK / "dist" / folder.name
    shutil.rmtree(into, ignore_errors=True)
    built = _uv("build", "-q", "--wheel", "--out-dir", into, folder)
    if built.returncode:
        sys.exit(f"the wheel of {folder} cannot be built:\n{built.stderr}")
    return next(into.glob("*.whl"))


def _environment(python: str) -> Path | str:
    """An empty environment of a Python; a sentence where there is no such Python."""
    named = os.environ.get(f"MATRIX_PYTHON_{python.replace('.', '_')}") or _of_pyenv(python)
    folder = WORK / f"python-{python}"
    shutil.rmtree(folder, ignore_errors=True)
    if named:
        made = subprocess.run(
            [named, "-m", "venv", "--without-pip", str(folder)], capture_output=True, text=True
        )
        return folder if made.returncode == 0 else f"{named} makes no environment"
    if (
        _uv("python", "find", "--no-project", python).returncode
        and _uv("python", "install", python).returncode
    ):
        return "no such Python"
    made = _uv("venv", "-q", "--no-project", "--python", python, folder)
    return folder if made.returncode == 0 else "no such Python"


def _of_pyenv(python: str) -> str | None:
    """A Python that pyenv has installed, which uv does not find unless pyenv has it as its default."""
    root = Path(os.environ.get("PYENV_ROOT") or Path("~/.pyenv").expanduser())
    found = sorted(root.glob(f"versions/{python}.*/bin/python"))
    return str(found[-1]) if found else None


def _run(folder: Path, wheels: list[Path], spark: str) -> dict[str, Any]:
    """Install the wheels with a PySpark and run the checks; the versions, the checks, or an error."""
    python = folder / "bin" / "python"
    nestream, papers = wheels
    wanted = [f"{nestream}[spark]", str(papers), f"pyspark=={spark}.*"]
    anew = [f"--reinstall-package={name}" for name in ("nestream", "nestream-papers")]
    installed = _uv("pip", "install", "-q", "--python", python, *wanted, *anew)
    if installed.returncode:
        return {"error": installed.stderr.strip()[-1500:]}
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SPARK_HOME")}
    environment = {
        **kept,
        "PYSPARK_PYTHON": str(python),
        "PATH": f"{python.parent}{os.pathsep}{kept['PATH']}",
    }
    check = Path(__file__).with_name("check.py")
    ran = subprocess.run(
        [python, check, ROOT / "examples" / "hospital"],
        capture_output=True,
        text=True,
        env=environment,
        cwd=folder,
    )
    try:
        answer: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return {"error": ran.stderr[-1500:]}
    return answer


def _said(result: dict[str, Any]) -> str:
    if "error" in result:
        return str(result["error"]).strip().splitlines()[-1] if result["error"] else "failed"
    failed = [CHECKS[name] for name, said in result["checks"].items() if said != "ok"]
    return f"fails: {', '.join(failed)}" if failed else "ok"


def _table(results: dict[tuple[str, str], dict[str, Any]]) -> str:
    """A row for each Python, a column for each PySpark, and the versions that were installed."""
    pythons = [python for python in PYTHONS if any(python == each for each, _ in results)]
    sparks = [spark for spark in SPARKS if any(spark == each for _, each in results)]
    exact = {spark: spark for spark in sparks}
    lines = []
    for python in pythons:
        cells, name, packages = [], python, ""
        for spark in sparks:
            result = results.get((python, spark), {"error": "not run"})
            if "versions" in result:
                known = result["versions"]
                name, exact[spark] = known["python"], known["pyspark"]
                packages = ", ".join(
                    f"{each} {known[each]}" for each in ("pyarrow", "numba", "numpy", "pandas")
                )
            cells.append("✓" if _said(result) == "ok" else _said(result))
        lines.append(f"| {name} | {' | '.join(cells)} | {packages} |")
    head = " | ".join(f"PySpark {exact[spark]}" for spark in sparks)
    return "\n".join([f"| Python | {head} | with |", "| --- |" + " --- |" * (len(sparks) + 1), *lines])


if __name__ == "__main__":
    sys.exit(min(main(), 1))

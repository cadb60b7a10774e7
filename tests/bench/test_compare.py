"""`scripts/bench compare` and `profile`: a slower revision is told, noise is not, and nothing is left."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("psutil", reason="the benchmarks have packages of their own")

from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.compare import Compared, compare, small_set, table_of, worse
from benchmarks.spec import BenchError
from tests.cli.commands import ROOT, call

STAND_IN = """
import time
import pyarrow as pa

class Query:
    def match(self, table):
        until = time.process_time() + {seconds}
        while time.process_time() < until:
            pass
        return pa.table({{"a": [{{"ts": {found}}}]}})

def query(text):
    return Query()
"""


def git(root: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True)


def revision(root: Path, name: str, seconds: float, found: int = 1) -> None:
    """A commit with a package that takes so long and finds this; tagged."""
    package = root / "src" / "nestream"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text(STAND_IN.format(seconds=seconds, found=found))
    git(root, "add", ".")
    git(root, "-c", "user.name=n", "-c", "user.email=e", "commit", "--quiet", "-m", name)
    git(root, "tag", name)


@pytest.fixture(scope="module")
def revisions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("revisions")
    git(root, "init", "--quiet")
    revision(root, "quick", 0.01)
    revision(root, "other", 0.01, found=2)
    revision(root, "slow", 0.02)
    return root


def of(root: Path, base: str, *head: str, only: str = "views/accounts", turns: int = 7) -> list[Compared]:
    return compare(base, *head, root=root, turns=turns, only=(only,), events=50, folder=root / "data")


@pytest.mark.slow
def test_a_slower_revision_is_told_and_a_faster_one(revisions: Path) -> None:
    (found,) = of(revisions, "quick", "slow")
    assert found.verdict(0.2) == "slower"
    assert worse([found], 0.2)
    assert "| views/accounts/50 |" in table_of([found], "quick", "slow", 0.2)
    assert "**slower**" in table_of([found], "quick", "slow", 0.2)
    (back,) = of(revisions, "slow", "quick")
    assert back.verdict(0.2) == "faster"
    assert not worse([back], 0.2)
    listed = subprocess.run(["git", "-C", str(revisions), "worktree", "list"], capture_output=True, text=True)
    assert len(listed.stdout.splitlines()) == 1  # the folders that were checked out are gone


@pytest.mark.slow
def test_the_files_as_they_are_are_compared_unless_another_revision_is_named(revisions: Path) -> None:
    package = revisions / "src" / "nestream" / "__init__.py"
    before = package.read_text()
    try:
        package.write_text(STAND_IN.format(seconds=0.04, found=1))
        (found,) = of(revisions, "slow")
        assert found.verdict(0.2) == "slower"
    finally:
        package.write_text(before)


def test_other_matches_and_failures_are_told(revisions: Path) -> None:
    (found,) = of(revisions, "quick", "other", turns=1)
    assert found.problem.startswith("different matches")
    (failed,) = of(revisions, "quick", "slow", only="engine/stream", turns=1)
    assert failed.problem == "the first failed: AttributeError: 'Query' object has no attribute 'stream'"
    assert worse([failed], 1.0)


def test_an_unknown_revision_or_query_is_named(revisions: Path) -> None:
    with pytest.raises(BenchError, match="no revision 'nowhere'"):
        of(revisions, "nowhere")
    with pytest.raises(BenchError, match="It has engine/flat"):
        of(revisions, "quick", only="nothing")


def test_noise_is_no_difference() -> None:
    noisy = Compared("x", (1.0,) * 9, (0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 0.95))
    assert noisy.span == (0.9, 1.4)
    assert noisy.verdict(0.05) == "no difference beyond noise"
    steady = Compared("x", (1.0,) * 9, (1.02,) * 9)
    assert steady.verdict(0.05) == "no difference beyond noise"
    assert steady.verdict(0.01) == "slower"


def test_few_turns_span_all_that_they_found() -> None:
    assert Compared("x", (1.0,) * 5, (1.0, 2.0, 3.0, 4.0, 5.0)).span == (1.0, 5.0)


def test_the_small_set_shows_each_part_of_the_engine() -> None:
    names = [one.name for one, _ in small_set()]
    assert {name.partition("/")[0] for name in names} == {
        "engine",
        "rewriting",
        "views",
        "predicates",
        "sase",
    }
    assert len(names) == len(set(names)) == 17


def test_a_profile_shows_the_engine(tmp_path: Path) -> None:
    pytest.importorskip("pyinstrument")
    page = tmp_path / "profile.html"
    query = "SEQ(Recycle r, Operating o, r.id = o.id) WITHIN 1 hours"
    events = tmp_path / "events.parquet"
    assert call("data", "hospital", "--events", "2000", "--out", str(events)).exit_code == 0
    result = CliRunner().invoke(app, ["profile", query, str(events), "--seconds", "0.2", "--html", str(page)])
    assert result.exit_code == 0, result.stderr
    assert "Query.match" in result.stdout
    assert "2,000 events" in result.stderr
    assert "<html" in page.read_text().lower()


def test_a_benchmark_that_is_none_is_named() -> None:
    with pytest.raises(BenchError, match="no benchmark 'engine/nothing'"):
        CliRunner().invoke(app, ["profile", "engine/nothing"], catch_exceptions=False)
    with pytest.raises(BenchError, match="name a file of events"):
        CliRunner().invoke(app, ["profile", "SEQ(A a, B b) WITHIN 5"], catch_exceptions=False)


def test_a_command_that_fails_says_so_in_a_sentence() -> None:
    command = [sys.executable, "-m", "benchmarks", "engine", "--only", "flatt"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: engine has no benchmark 'flatt'. It has read, flat, ")


def test_the_benchmarks_are_listed_and_no_longer_a_command_of_nestream() -> None:
    assert "growth/flat/0.2" in CliRunner().invoke(app, ["list"]).stdout
    assert call("bench").exit_code == 2
    assert not (ROOT / "src" / "nestream" / "bench").exists()


def test_the_repository_has_the_packages_that_are_profiled_with() -> None:
    assert "pyinstrument" in (ROOT / "requirements" / "bench.txt").read_text()

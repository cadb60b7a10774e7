"""Runs every suite one after the other and writes the page; results are kept as they come, to go on from."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nestream.bench.page import RESULTS, Written, kept, written
from nestream.bench.run import BenchError, Run
from nestream.bench.spec import Suite

Runner = Callable[..., dict[str, Any]]
UNKNOWN = 180.0
"""The seconds that a suite is thought to take where no earlier run says more."""
STATE = "unfinished"
"""The file that tells which suites an unfinished report has done."""
LONGEST = 300
"""Letters of a reason that are told."""


@dataclass(frozen=True)
class Size:
    """How a suite is run: events of a quick run, repeats, and the seconds that one program may take."""

    quick: int
    repeats: int
    limit: float

    def run(self, suite: Suite, quick: bool, folder: Path | None, threads: int) -> Run:
        """What to tell its runner."""
        return Run(
            events=self.quick if quick else suite.events,
            repeats=1 if quick else self.repeats,
            folder=folder,
            threads=threads,
            limit=min(self.limit, 10.0) if quick and suite.name == "engine" else self.limit,
        )


@dataclass
class Report:
    """One run of the suites, its results below a folder."""

    suites: Mapping[str, Suite]
    runners: Mapping[str, Runner]
    sizes: Mapping[str, Size]
    root: Path
    minutes: float = 60.0
    quick: bool = False
    threads: int = 2
    data: Path | None = None
    tell: Callable[[str], None] = lambda text: None

    @property
    def results(self) -> Path:
        """Where results are kept."""
        return self.root / RESULTS

    def run(self, only: Iterable[str] = (), *, resume: bool = False, progress: Any = None) -> list[str]:
        """Run the suites, and write the page; those that could not be measured are told."""
        names = self._wanted(only)
        done = self._done() if resume else []
        begin, failed = time.monotonic(), []
        earlier = kept(self.results) if self.results.exists() else {}
        estimates = {name: float(earlier.get(name, {}).get("seconds", UNKNOWN)) for name in names}
        self._remember(done)
        for place, name in enumerate(names):
            if name in done:
                self.tell(f"{name}: kept from the run that is gone on with")
                continue
            left = self.minutes * 60 - (time.monotonic() - begin)
            ahead = sum(estimates[later] for later in names[place:] if later not in done)
            self.tell(f"{name}: about {ahead / 60:.0f} min to go, {left / 60:.0f} min allowed")
            if left < (0 if self.quick else estimates[name]):
                found = self._failed(name, f"there was no time left of {self.minutes:g} minutes")
            else:
                found = self.measured(name, progress)
            if "failed" in found:
                failed.append(f"{name}: {found['failed']}")
            self.keep(found)
            done.append(name)
            self._remember(done)
        (self.results / STATE).unlink(missing_ok=True)
        self.write()
        return failed

    def measured(self, name: str, progress: Any = None) -> dict[str, Any]:
        """The results of a suite with the seconds it took; why there are none, where it failed."""
        how = self.sizes[name].run(self.suites[name], self.quick, self.data, self.threads)
        begin = time.monotonic()
        try:
            found = self.runners[name](how, progress or (lambda what, done, total: None))
        except ModuleNotFoundError as missing:
            return self._failed(name, f"the package {missing.name} is not installed")
        except BenchError as error:
            return self._failed(name, str(error))
        except Exception as error:  # one suite less is better than an hour for nothing; the page says so
            said = str(error).strip().splitlines() or [""]
            return self._failed(name, f"{type(error).__name__}: {said[0][:200]}")
        return {**found, "seconds": round(time.monotonic() - begin, 1)}

    def keep(self, found: dict[str, Any]) -> Path:
        """Keep the results of a suite."""
        self.results.mkdir(parents=True, exist_ok=True)
        path = self.results / f"{found['suite']}.json"
        text = json.dumps(found, indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")
        return path

    def page(self) -> Written:
        """The page of the results that are kept."""
        return written(self.suites, kept(self.results))

    def write(self) -> Path:
        """Write the page of the results that are kept."""
        return self.page().write(self.root)

    def _wanted(self, only: Iterable[str]) -> list[str]:
        wanted = list(only)
        for name in wanted:
            if name not in self.suites:
                raise BenchError(f"there is no suite {name!r}. There are {', '.join(self.suites)}.")
        return [name for name in self.suites if not wanted or name in wanted]

    def _failed(self, name: str, why: str) -> dict[str, Any]:
        date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        said = " ".join(why.split())[:LONGEST].rstrip(".")
        return {"suite": name, "date": date, "failed": said}

    def _remember(self, done: list[str]) -> None:
        self.results.mkdir(parents=True, exist_ok=True)
        (self.results / STATE).write_text(json.dumps(done) + "\n", encoding="utf-8")

    def _done(self) -> list[str]:
        """The suites that the unfinished run has done."""
        state = self.results / STATE
        if not state.exists():
            return []
        found = kept(self.results)
        return [n for n in json.loads(state.read_text(encoding="utf-8")) if "failed" not in found.get(n, {})]

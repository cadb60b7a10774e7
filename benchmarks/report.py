"""Runs every suite one after the other and writes the page; results are kept as they come, to resume from."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.page import Page, page
from benchmarks.run import run
from benchmarks.spec import BenchError, Progress, Run, Suite

RESULTS = Path("benchmarks", "results")
UNKNOWN = 180.0
"""The seconds that a suite is expected to take if no earlier run says more."""
STATE = "unfinished"
"""The file that lists the suites that an unfinished report has done."""
LONGEST = 300
"""Letters of a reason that are shown."""


@dataclass
class Report:
    """One run of the suites, with its results below a folder."""

    suites: Mapping[str, Suite]
    root: Path
    minutes: float = 60.0
    quick: bool = False
    data: Path | None = None
    tell: Callable[[str], None] = lambda text: None
    runner: Callable[[Suite, Run, Progress], dict[str, Any]] = run

    @property
    def results(self) -> Path:
        """Where results are kept."""
        return self.root / RESULTS

    def kept(self) -> dict[str, dict[str, Any]]:
        """The results that are kept, by suite."""
        read = [json.loads(path.read_text("utf-8")) for path in sorted(self.results.glob("*.json"))]
        return {one["suite"]: one for one in read}

    def page(self) -> Page:
        """The page of the results that are kept."""
        return page(self.suites, self.kept())

    def run(
        self,
        only: Iterable[str] = (),
        *,
        resume: bool = False,
        progress: Progress = lambda what, done, total: None,
    ) -> list[str]:
        """Run the suites and write the page; the reasons of those that could not be measured."""
        wanted = list(only)
        for name in wanted:
            if name not in self.suites:
                raise BenchError(f"there is no suite {name!r}. There are {', '.join(self.suites)}.")
        names = [name for name in self.suites if not wanted or name in wanted]
        kept = self.kept()
        done = [name for name in self._done() if "failed" not in kept.get(name, {})] if resume else []
        expected = {name: float(kept.get(name, {}).get("seconds", UNKNOWN)) for name in names}
        begin, failed = time.monotonic(), []
        for place, name in enumerate(names):
            if name in done:
                self.tell(f"{name}: kept from the run that is resumed")
                continue
            left = self.minutes * 60 - (time.monotonic() - begin)
            ahead = sum(expected[later] for later in names[place:] if later not in done)
            self.tell(f"{name}: about {ahead / 60:.0f} min to go, {left / 60:.0f} min allowed")
            if left < (0 if self.quick else expected[name]):
                found = _failed(name, f"there was no time left of {self.minutes:g} minutes")
            else:
                found = self._measured(self.suites[name], progress)
            if "failed" in found:
                failed.append(f"{name}: {found['failed']}")
            self.keep(found)
            done.append(name)
            (self.results / STATE).write_text(json.dumps(done) + "\n", encoding="utf-8")
        (self.results / STATE).unlink(missing_ok=True)
        self.page().write(self.root)
        return failed

    def _measured(self, suite: Suite, progress: Progress) -> dict[str, Any]:
        """The results of a suite, or why there are none: the others still run."""
        try:
            return self.runner(suite, suite.run(self.quick, folder=self.data), progress)
        except BenchError as error:
            return _failed(suite.name, str(error))
        except ModuleNotFoundError as missing:
            return _failed(suite.name, f"the package {missing.name} is not installed")
        except Exception as error:
            return _failed(suite.name, f"{type(error).__name__}: {error}")

    def keep(self, found: dict[str, Any]) -> Path:
        """Keep the results of a suite."""
        self.results.mkdir(parents=True, exist_ok=True)
        path = self.results / f"{found['suite']}.json"
        path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return path

    def _done(self) -> list[str]:
        """The suites that the unfinished run has done."""
        state = self.results / STATE
        return list(json.loads(state.read_text("utf-8"))) if state.exists() else []


def _failed(name: str, why: str) -> dict[str, Any]:
    date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return {"suite": name, "date": date, "failed": " ".join(why.split())[:LONGEST].rstrip(".")}

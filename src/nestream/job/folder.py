"""The folder of a job, for whoever runs it: writes job.json and progress.json, which the console reads."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from nestream.job.checkpoint import replace_file
from nestream.job.description import PLACES, PROGRESS, JobError, placed, update_description
from nestream.job.progress import Progress, State
from nestream.job.rule_folder import SUFFIX
from nestream.model.wording import reason

RULES = "rules"
ENDED = (State.FAILED, State.STOPPED, State.FINISHED)


class JobFolder:
    """A folder that describes one job."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.path = Path(folder)
        self._last: State | None = None

    def describe(self, **decided: Any) -> None:
        """Write the keys that the run decides to job.json; other keys stay. None removes a key."""
        places = {name: placed(str(decided[name]), self.path) for name in PLACES if decided.get(name)}
        update_description(self.path, {**decided, **places, "progress": PROGRESS})

    def tell(self, progress: Progress) -> None:
        """Write the progress of the job."""
        self._last = progress.state
        with suppress(OSError):  # the disk may be full, and the job continues
            progress.write(self.path / PROGRESS)

    def keep_rules(self, texts: Mapping[str, str]) -> Path:
        """Write queries that are in no file, so that the console can show them; return the folder."""
        folder = self.path / RULES
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, text in texts.items():
                path = folder / f"{name}{SUFFIX}"
                if not path.exists() or path.read_text(encoding="utf-8") != text:
                    replace_file(path, text.encode(), durable=False)
        except OSError as error:
            raise JobError(f"cannot write {folder}: {reason(error)}\n  hint: name another folder") from None
        return folder

    @contextmanager
    def running(self, **decided: Any) -> Iterator[None]:
        """Describe a starting job; if it fails before it can report that, report it."""
        self.describe(**decided)
        self.tell(Progress())
        try:
            yield
        except BaseException as problem:
            if self._last not in ENDED:
                interrupted = isinstance(problem, KeyboardInterrupt)
                state = State.STOPPED if interrupted else State.FAILED
                self.tell(Progress(state=state, error=None if interrupted else _said(problem)))
            raise


def _said(problem: BaseException) -> str:
    return str(problem) or type(problem).__name__

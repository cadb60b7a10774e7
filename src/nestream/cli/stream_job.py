"""`nestream stream --job DIR`: writes the folder that describes the stream for the console."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nestream.job import Progress
from nestream.job.folder import JobFolder


@dataclass(frozen=True)
class StreamJob:
    """The folder of a stream; without one, nothing is described."""

    folder: JobFolder | None = None
    query: str = ""
    decided: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: str | None, query: str, **decided: Any) -> StreamJob:
        """The requested folder."""
        if folder is None:
            return cls()
        return cls(JobFolder(folder), query, {name: _read(value) for name, value in decided.items()})

    def place(self, given: str | None, name: str) -> str | None:
        """A place that the stream writes to: the given one, or one in the folder."""
        return str(self.folder.path / name) if given is None and self.folder is not None else given

    def running(self, **more: Any) -> AbstractContextManager[None]:
        """Describe the running stream: its rules by their place, or as a file if they are text."""
        if self.folder is None:
            return nullcontext()
        rules: Any = self.query
        if "://" not in self.query and not _is_there(Path(self.query)):
            rules = self.folder.keep_rules({"query": self.query})
        places = {name: _read(value) for name, value in more.items()}
        return self.folder.running(rules=rules, **self.decided, **places)

    def describe(self, **more: Any) -> None:
        """Describe what is known only now."""
        if self.folder is not None:
            self.folder.describe(**more)

    def tell(self, progress: Progress) -> None:
        """Write the progress of the stream."""
        if self.folder is not None:
            self.folder.tell(progress)


def _is_there(place: Path) -> bool:
    try:
        return place.exists()
    except OSError:  # too long for a name
        return False


def _read(place: Any) -> Any:
    """A place that the console can read; None for a pipe or a socket."""
    if not isinstance(place, str):
        return place
    return None if place == "-" or place.startswith(("tcp://", "unix://")) else place

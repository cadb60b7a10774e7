"""Drafts of rules: queries of the editor, kept beside the job until they are deployed or discarded.

Each draft is a JSON file in the folder `drafts` of the job, named after the rule that it would replace or
add. It has a revision, which grows with each save, so that two tabs cannot overwrite each other unnoticed;
and the text of the deployed rule that it began from, so that a later change of that rule is noticed.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

from nestream.job.checkpoint import replace_file

FOLDER = "drafts"
MOST_DRAFTS = 200
LARGEST = 1 << 20
_TITLE = re.compile(r"^\s*(?://|#|/\*)\s*title\s*:\s*(.*?)\s*(?:\*/)?\s*$", re.IGNORECASE | re.MULTILINE)


class DraftError(Exception):
    """A draft that cannot be saved, and why; with the existing draft, if that is the reason."""

    def __init__(self, said: str, there: Draft | None = None) -> None:
        super().__init__(said)
        self.there = there


@dataclass(frozen=True)
class Draft:
    """A query that may become a rule."""

    name: str
    text: str
    title: str
    revision: int = 1
    saved: str = ""
    base: str | None = None
    """The text of the deployed rule that it began from; None for a new rule."""

    def json(self) -> dict[str, Any]:
        """The draft for the browser, and for its file."""
        return asdict(self)


class Drafts:
    """The drafts of a job, as its folder has them."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = None if folder is None else folder / FOLDER
        self._lock = Lock()
        self._looked: Any = None
        self.held: dict[str, Draft] = {}
        self._discarded: dict[str, int] = {}
        """The last revisions of discarded drafts: a page that knows one must not take a new draft for it."""
        self.problem: str | None = None
        """Which file cannot be used, if any."""

    def look(self) -> bool:
        """Read the drafts if a file has changed; return whether one has."""
        if self.folder is None:
            return False
        with self._lock:
            paths = sorted(self.folder.glob("*.json"))[:MOST_DRAFTS]
            looks = [(path.name, stat.st_mtime_ns, stat.st_size) for path in paths if (stat := _stat(path))]
            if looks == self._looked:
                return False
            self._looked, self.problem = looks, None
            found = [self._read(path) for path in paths]
            self.held = {draft.name: draft for draft in found if draft is not None}
            return True

    def _read(self, path: Path) -> Draft | None:
        try:
            with path.open("rb") as file:
                given = json.loads(file.read(LARGEST))
            text, base = str(given["text"]), given.get("base")
            return Draft(
                path.stem,
                text,
                str(given.get("title") or path.stem)[:200],
                int(given.get("revision", 1)),
                str(given.get("saved", "")),
                None if base is None else str(base),
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            self.problem = f"{FOLDER}/{path.name} is not a draft"
            return None

    def save(self, name: str, text: str, title: str, revision: int, base: str | None) -> Draft:
        """Save a draft; `revision` is that of the draft it replaces, 0 for a first one."""
        if self.folder is None:
            raise DraftError("There is no job to keep the draft beside.")
        self.look()
        with self._lock:
            there = self.held.get(name)
            if (there.revision if there else 0) != revision:
                raise DraftError("The draft was changed elsewhere since this page read it.", there)
            if there is None and len(self.held) >= MOST_DRAFTS:
                raise DraftError(f"There are {MOST_DRAFTS} drafts; discard one first.")
            title = title_of(text) or title or name
            saved = datetime.now(UTC).isoformat(timespec="seconds")
            last = revision if there else self._discarded.get(name, 0)
            draft = Draft(name, text, title[:200], last + 1, saved, base)
            kept = {key: value for key, value in draft.json().items() if key != "name"}
            try:
                self.folder.mkdir(exist_ok=True)
                written = json.dumps(kept, indent=1, ensure_ascii=False).encode(errors="replace")
                replace_file(self.folder / f"{name}.json", written + b"\n")
            except OSError as error:
                raise DraftError(f"The draft cannot be written: {error.strerror}.") from None
            self.held = {**self.held, name: draft}
            return draft

    def discard(self, name: str, revision: int | None = None) -> None:
        """Remove a draft; with a revision, only that one."""
        if self.folder is None:
            return
        self.look()
        with self._lock:
            there = self.held.get(name)
            if there is None:
                return
            if revision is not None and there.revision != revision:
                raise DraftError("The draft was changed elsewhere since this page read it.", there)
            try:
                (self.folder / f"{name}.json").unlink(missing_ok=True)
            except OSError as error:
                raise DraftError(f"The draft cannot be removed: {error.strerror}.") from None
            self._discarded[name] = there.revision
            self.held = {other: draft for other, draft in self.held.items() if other != name}

    def json(self) -> list[dict[str, Any]]:
        """The drafts for the browser."""
        return [draft.json() for draft in self.held.values()]


def title_of(text: str) -> str | None:
    """The title in the first lines of a query."""
    found = _TITLE.search("\n".join(text.splitlines()[:10]))
    return found[1] if found and found[1] else None


def _stat(path: Path) -> Any:
    try:
        return path.stat()
    except OSError:
        return None

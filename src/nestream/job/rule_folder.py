"""A folder of rules and its history: `.neel` files, and their earlier versions in `.nestream`.

The history is a file of JSON lines: a version, its time, what was done, and the text of each rule that it
changed (null for a removed rule). A change of several files is one change for readers: it is made under a
lock, and if the process dies on the way, the next one to take the lock completes it.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nestream.job.checkpoint import replace_file
from nestream.job.rules import Changes, RulesError, RuleSet, Version, folded, rules_of
from nestream.model.wording import reason

SUFFIX = ".neel"
BY_HAND = "edited by hand"
FOUND = "found"


class RuleFolder:
    """The rules of a folder: for a job that reads them, and for a command that changes them.

    With `noted`, the rules that a job begins with are recorded in the history, for a later restart.
    """

    forgets = False

    def __init__(self, folder: str | os.PathLike[str], *, noted: bool = False) -> None:
        self._notes = noted
        self.folder = Path(folder)
        self.where = str(folder)
        self._kept = self.folder / ".nestream"
        self._history = self._kept / "history.jsonl"
        self._begun = self._kept / "change.json"
        self._last: tuple[Any, RuleSet] | None = None
        """How the files looked when they were last read, and their contents."""
        self._seen: Any = None
        with suppress(OSError):
            self._seen = self._looks()

    # -- reading -------------------------------------------------------------------------------------------

    def read(self, known: RuleSet | None) -> RuleSet:
        """The current rules. Manual edits are taken once the files have settled."""
        try:
            return self._read(known)
        except BlockingIOError:  # they are being changed, and a job does not wait
            assert known is not None
            return known
        except OSError as error:
            raise RulesError(f"cannot read the rules in {self.folder}: {reason(error)}") from None

    def _read(self, known: RuleSet | None) -> RuleSet:
        looks = self._looks()
        if self._last is not None and self._last[0] == looks and self._last[1] == known:
            return self._last[1]
        with self._locked(write=False, wait=known is None):
            texts, latest = self._texts(), self._latest()
        rests, self._seen = self._seen == looks, looks
        if (
            latest is not None
            and latest.texts == texts
            and (known is None or latest.version >= known.version)
        ):
            found = latest
        elif known is None:
            found = self._found(latest or RuleSet(), texts)
        elif known.texts == texts:
            found = known
        elif rests:
            found = self._edited(known, texts)
        else:
            return known
        self._last = looks, found  # a file that changed since then is seen the next time
        return found

    def _found(self, before: RuleSet, texts: Mapping[str, str]) -> RuleSet:
        """The rules that a job begins with."""
        with suppress(OSError):
            if self._notes:
                with self._locked():
                    return self._noted()
        return before.changed(before.differences(texts))

    def _edited(self, known: RuleSet, texts: Mapping[str, str]) -> RuleSet:
        """The next version after a manual edit; in the history if that can be written."""
        try:
            with self._locked(wait=False):
                before = self._latest()
                if before is None:
                    before = known
                    self._note(known.version, FOUND, dict(known.texts))
                if before.version >= known.version:
                    changes = before.differences(texts)
                    self._note(before.version + 1, BY_HAND, changes)
                    return before.changed(changes)
        except BlockingIOError:
            raise
        except OSError:  # the folder is read-only: the job numbers versions by itself
            pass
        return known.changed(known.differences(texts))

    def _texts(self) -> dict[str, str]:
        begun = self._unfinished()
        texts = {}
        for file in sorted(self.folder.glob(f"*{SUFFIX}")):
            try:
                texts[file.stem] = file.read_text(encoding="utf-8-sig")
            except UnicodeDecodeError:
                raise RulesError(f"the file {file} is not UTF-8 text") from None
        for name, text in begun.items():  # only if it cannot be completed
            texts.pop(name, None)
            if text is not None:
                texts[name] = text
        if not texts:
            raise RulesError(f"there is no {SUFFIX} file in {self.folder}")
        return dict(sorted(texts.items()))

    def _looks(self) -> Any:
        """A value that changes whenever a file does."""
        with os.scandir(self.folder) as entries:
            files = [(one.name, one.stat()) for one in entries if one.name.endswith(SUFFIX)]
        found = [(name, stat.st_mtime_ns, stat.st_size, stat.st_ino) for name, stat in files]
        kept = [
            (path.name, stat.st_mtime_ns, stat.st_size)
            for path in (self._history, self._begun)
            if path.exists() and (stat := path.stat())
        ]
        return sorted(found), kept

    # -- history -------------------------------------------------------------------------------------------

    def history(self) -> list[Version]:
        """All versions, oldest first; none if nothing was changed yet."""
        try:
            lines = self._history.read_text(encoding="utf-8").splitlines()
        except (FileNotFoundError, NotADirectoryError):
            return []
        found = []
        for number, line in enumerate(lines, 1):
            try:
                found.append(Version(**json.loads(line)))
            except (ValueError, TypeError):
                if number == len(lines):  # cut off: it was never complete
                    break
                raise RulesError(f"{self._history}, line {number} is damaged") from None
        return found

    def at(self, version: int) -> RuleSet:
        """The rules of a version."""
        return rules_of(self.history(), version, self.where)

    def _latest(self) -> RuleSet | None:
        versions = self.history()
        return folded(versions) if versions else None

    def _note(self, version: int, what: str, rules: Mapping[str, str | None]) -> None:
        """Append a version, after a truncated line if there is one."""
        time = datetime.now(UTC).isoformat(timespec="seconds")
        line = json.dumps({"version": version, "time": time, "what": what, "rules": rules})
        kept = self._history.read_bytes() if self._history.exists() else b""
        replace_file(self._history, kept[: kept.rfind(b"\n") + 1] + line.encode() + b"\n")

    # -- changing ------------------------------------------------------------------------------------------

    def change(
        self,
        what: str,
        changes: Callable[[RuleSet], Changes],
        check: Callable[[Mapping[str, str], Changes], None],
    ) -> RuleSet:
        """Change the rules atomically; their current state decides what has to change.

        `check` is called with the future texts and the changes, and raises to prevent them.
        """
        with self._locked():
            known = self._noted()
            wanted = {name: text for name, text in changes(known).items() if known.texts.get(name) != text}
            if not wanted:
                return known
            new = known.changed(wanted)
            if not new.rules:
                raise RulesError("a job needs at least one rule, and this is the last")
            check(new.texts, wanted)
            replace_file(self._begun, json.dumps({"version": new.version, "rules": wanted}).encode())
            self._note(new.version, what, wanted)
            self._complete(wanted)
            return new

    def _noted(self) -> RuleSet:
        """The current rules: as in the history, or edited by hand since."""
        latest = self._latest()
        if latest is None and not any(self.folder.glob(f"*{SUFFIX}")):
            return RuleSet()
        texts = self._texts()
        if latest is None:
            self._note(1, FOUND, texts)
            return RuleSet().changed(texts)
        changes = latest.differences(texts)
        if changes:
            self._note(latest.version + 1, BY_HAND, changes)
        return latest.changed(changes) if changes else latest

    def _complete(self, changes: Mapping[str, str | None]) -> None:
        for name, text in changes.items():
            path = self.folder / f"{name}{SUFFIX}"
            if text is None:
                path.unlink(missing_ok=True)
            else:
                replace_file(path, text.encode())
        self._begun.unlink()

    def _unfinished(self) -> dict[str, str | None]:
        """Complete a change that is in the history but not in the files; return what cannot be completed."""
        try:
            begun = json.loads(self._begun.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return {}
        versions = self.history()
        changes: dict[str, str | None] = {}
        if versions and versions[-1].version == begun["version"]:
            changes = begun["rules"]
        try:
            self._complete(changes)
        except OSError:  # readers see the change nevertheless
            return changes
        return {}

    @contextmanager
    def _locked(self, *, write: bool = True, wait: bool = True) -> Iterator[None]:
        """Hold the lock of the folder; readers do without if there is none.

        Raises a `BlockingIOError` if another process holds it and this one does not wait.
        """
        if write:
            self._kept.mkdir(parents=True, exist_ok=True)
        try:
            lock = open(self._kept / "lock", "ab")
        except OSError:
            if write:
                raise
            yield
            return
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield

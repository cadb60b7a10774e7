"""Recognises the files of a folder or pattern that were renamed, as when a log is rotated."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import NamedTuple

from nestream.source.input import cannot_read
from nestream.source.parts import Part

MOST_AWAY = 100
"""For how many replaced files of one name the position is kept."""


class State(NamedTuple):
    """The size and the modification time of a file, and what stays the same when it is renamed."""

    size: int
    changed: int
    device: int
    inode: int
    """0 if the file system has none."""

    @property
    def seen(self) -> tuple[int, int]:
        """What tells whether the file has changed."""
        return self.size, self.changed


class Known:
    """What is known of a file: its part, unless it was skipped, and its state when it had nothing more.

    The inode is 0 if it is unknown, as in checkpoints of earlier versions.
    """

    __slots__ = ("inode", "part", "seen")  # a folder may have many thousands of files

    def __init__(self, part: Part | None = None, seen: tuple[int, int] | None = None, inode: int = 0) -> None:
        self.part, self.seen, self.inode = part, seen, inode


class Away(NamedTuple):
    """A file that lost its name to another one, and may come back under any name."""

    path: str
    """Its last name."""
    since: float
    known: Known


class Names(NamedTuple):
    """The files by their present names."""

    present: dict[str, State]
    """Those that are there, each under one name."""
    known: dict[str, Known]
    """What is known of them, and of those that are gone under their last names."""
    away: list[Away]
    replaced: list[str]
    """The names of new files whose predecessors were read and are nowhere."""


Moved = Callable[[str, State, str, Known], Known | None]
"""What is known of a file under another name, if a file has what was read of it: takes the file's name and
state, the name before, and what was known there. An OSError leaves it open."""


def follow_names(
    listed: Mapping[str, State], known: Mapping[str, Known], away: list[Away], moved: Moved, now: float
) -> Names:
    """Give what is known of each file to its present name.

    A file is recognised by its inode and by the bytes that were read of it, because the inode of a file that
    was removed may be used again. The device does not count: its number may change with a restart.
    """
    stays = {path for path in listed if path in known and known[path].inode in (0, listed[path].inode)}
    present = _each_once(listed, stays)
    found: dict[str, Known] = {}
    for path in stays:
        found[path] = one = known[path]
        if not one.inode and one.seen == listed[path].seen:
            one.inode = listed[path].inode
    loose: defaultdict[int, list[tuple[str, Known]]] = defaultdict(list)
    for path, one in known.items():
        if path not in stays and one.inode:
            loose[one.inode].append((path, one))
    for gone in away:
        loose[gone.known.inode].append((gone.path, gone.known))
    taken: set[int] = set()
    unsure: set[str] = set()

    def is_same(path: str, before: str, one: Known) -> bool:
        try:
            same = moved(path, present[path], before, one)
        except OSError:  # it may pass: the file is left out until the next look
            unsure.add(path)
            return False
        if same is not None:
            found[path] = same
            unsure.discard(path)
        return same is not None

    for path, state in present.items():
        if path in stays or state.inode not in loose:
            continue
        for before, one in loose[state.inode]:
            if id(one) not in taken and is_same(path, before, one):
                taken.add(id(one))
                break
    away = [gone for gone in away if id(gone.known) not in taken]
    replaced: list[str] = []
    for path, one in known.items():
        if path in stays or id(one) in taken:
            continue
        if path in present and path not in found and path not in unsure and is_same(path, path, one):
            continue
        if path not in present or path in unsure:
            found[path] = one
        elif one.part is not None and one.part.is_begun:
            away.append(Away(path, now, one))
            if path not in found:
                replaced.append(path)
    present = {path: state for path, state in present.items() if path not in unsure}
    return Names(present, found, away, replaced)


def newest(away: list[Away]) -> list[Away]:
    """The files of each name that were replaced last; whether the others still exist is unknown."""
    number: Counter[str] = Counter()
    kept = []
    for gone in reversed(away):
        number[gone.path] += 1
        if number[gone.path] <= MOST_AWAY:
            kept.append(gone)
    return kept[::-1]


def _each_once(listed: Mapping[str, State], stays: set[str]) -> dict[str, State]:
    """The files, each under one name, and rather under one that it had before.

    A file has two names if it is linked, and also if it was renamed while the names were listed.
    """
    held = {(listed[path].device, listed[path].inode) for path in stays}
    present = {}
    for path, state in listed.items():
        identity = state.device, state.inode
        if path in stays or not state.inode or identity not in held:
            present[path] = state
            held.add(identity)
    return present


def state_of(path: str) -> State | None:
    """The state of a file; None if it is gone."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise cannot_read(path, error) from error
    return State(found.st_size, found.st_mtime_ns, found.st_dev, found.st_ino)

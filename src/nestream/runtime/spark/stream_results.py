"""The results of a micro-batch: rows for the driver to write, and the new state of each bucket."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from nestream.runtime.spark.stream_batch import ASIDE, STATE
from nestream.runtime.spark.stream_pack import MATCHES, unpacked
from nestream.runtime.spark.stream_sink import Names
from nestream.runtime.spark.stream_state import Version


@dataclass(frozen=True)
class Results:
    """What the workers returned: rows for the driver to write, and the new state of each bucket."""

    tables: dict[str, list[pa.Table]]
    told: list[dict[str, Any]]

    @classmethod
    def of(cls, rows: pa.Table) -> Results:
        """The results of a job."""
        tables: dict[str, list[pa.Table]] = {MATCHES: [], ASIDE: []}
        told = []
        for row in rows.to_pylist():
            if row["kind"] == STATE:
                told.append(json.loads(row["reason"]))
            else:
                tables[row["kind"]].append(unpacked(row["data"]))
        return cls(tables, told)

    def count(self, name: str) -> int:
        """The sum of a count over all buckets."""
        return sum(one.get(name, 0) for one in self.told)

    @property
    def by_rule(self) -> Counter[str]:
        """The matches of each query of a set."""
        return sum((Counter(one["by_rule"]) for one in self.told), Counter[str]())

    @property
    def seconds(self) -> Counter[str]:
        """The seconds spent on finding the matches of each query of a set, by all workers together."""
        return sum((Counter(one["seconds"]) for one in self.told), Counter[str]())

    def greatest(self, before: int | None) -> int | None:
        """The greatest time of all events so far."""
        moments = (before, *(one["greatest"] for one in self.told))
        return max((moment for moment in moments if moment is not None), default=None)

    def states(self, before: dict[int, Version]) -> dict[int, Version]:
        """The state of all buckets, including those that had nothing to do."""
        states = dict(before)
        for one in self.told:
            if "state" in one:
                states.pop(one["bucket"], None)
                if one["state"] is not None:
                    states[one["bucket"]] = Version.of(one["state"])
        return states

    def files(self, kind: str) -> Names:
        """The files that workers wrote."""
        return [names for one in self.told for names in one.get(f"{kind} files", ())]

"""On a standalone cluster: skewed keys, a key with half of the events, many rules, and keys that die."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.engine import KEYED_WINDOW
from benchmarks.parts import Columns, Part, below, megabytes, table
from benchmarks.plots import Panel, Plot
from benchmarks.scale_worker import TASKS_A_STAGE, WARM, WORKERS
from benchmarks.spec import Benchmark, Data, Result, Results, Suite, Target

EVENTS = 21_000_000
"""The events of ten million keys."""
STEP, LIFE = 10, 500_000
"""Milliseconds from one new key to the next, and at most from one event of a key to its next."""
IDS = 10_000
DATA = {"attributes": 0, "id_domain": IDS}
KEYS: dict[str, dict[str, Any]] = {
    "uniform": {},
    "zipf": {"skew": 1.0},
    "half": {"hot": 0.5},
}
TITLES = {
    "uniform": "10,000 keys, equally frequent",
    "zipf": "10,000 keys by Zipf's law, exponent 1",
    "half": "half of all events have one key",
}
FLAT = "SEQ(A a, B b, C c) WHERE [id]"
SHORT = 800
"""A window of 80 events, so that the key with half of all events has a few matches an event."""
SHOWN = "RETURN a.id AS id, c.ts AS at"
FILES = 5
SIZES = (50_000, 500_000)
"""Events of a micro-batch: their difference tells what an event takes, the rest is what each batch takes."""
FORMATS = {"parquet": "Parquet", "jsonl": "JSON lines"}
RULES = (1, 1_000)
MILLION = 1_000_000


def _share(events: int) -> float:
    return events / EVENTS


def _benchmarks() -> Iterator[Benchmark]:
    def cluster(
        name: str, data: Data, task: dict[str, Any], window: int = SHORT, /, **told: Any
    ) -> Benchmark:
        return Benchmark(
            name, "cluster", data, FLAT, window, "ms", SHOWN, together="cluster", task=task, told=told
        )

    brief = Data("brief", 1.0, {"step": STEP, "life": LIFE})
    yield cluster("keys/embedded", brief, {"do": "keys", "where": "embedded"}, 2 * LIFE, where="in a process")
    yield cluster("keys/cluster", brief, {"do": "keys", "where": "cluster"}, 2 * LIFE, where="on the cluster")
    for name, more in KEYS.items():
        data = Data("sase", _share(1_500_000), {**DATA, **more})
        yield Benchmark(
            f"batch/{name}",
            "cluster",
            data,
            FLAT,
            SHORT,
            shown=SHOWN,
            together="cluster",
            task={"do": "batch", "threshold": "100k"},
            told={"data": name},
        )
    for name, more in KEYS.items():
        data = Data("sase", _share(200_000 * FILES), {**DATA, **more})
        yield cluster(f"stream/{name}", data, {"do": "stream", "files": FILES}, data=name)
    for format in FORMATS:
        for size in SIZES:
            data = Data("sase", _share(size * FILES), DATA)
            task = {"do": "stream", "files": FILES, "format": format}
            yield cluster(f"cost/{format}/{size}", data, task, KEYED_WINDOW, format=format, size=size)
    for rules in RULES:
        data = Data("sase", _share(100_000 * FILES), {"attributes": 5})
        task = {"do": "stream", "files": FILES, "rules": rules}
        yield cluster(f"rules/{rules}", data, task, rules=rules)


def cost(results: Results, format: str) -> tuple[float, float]:
    """The processor seconds that an event takes, and those that a micro-batch takes whatever it has."""
    small, large = (results[f"cost/{format}/{size}"] for size in SIZES)
    events = large["batch events"] - small["batch events"]
    each = (large["processor"] - small["processor"]) / events
    return each, small["processor"] - each * small["batch events"]


def _cores(format: str) -> Callable[[Results], float | None]:
    return lambda results: cost(results, format)[0] * MILLION


def _uneven(name: str) -> Callable[[Results], float | None]:
    return lambda results: float(results[f"batch/{name}"]["splits"]["auto"]["rows"])


def at(result: Result, quarters: int) -> Result:
    """What was held after that many quarters of the events."""
    points = result["points"]
    return dict(points[max(len(points) * quarters // 4 - 1, 0)])


def growth(result: Result, what: str) -> float:
    """How much more there is after three quarters than after one; at the end keys only die."""
    return float(at(result, 3)[what]) / float(at(result, 1)[what])


def _growth(where: str, what: str) -> Callable[[Results], float | None]:
    return lambda results: growth(results[f"keys/{where}"], what)


def _rules(results: Results) -> float | None:
    one, many = (results[f"rules/{rules}"]["processor"] for rules in RULES)
    return float(many / one)


def _targets() -> Iterator[Target]:
    for name in ("zipf", "half"):
        title = f"{TITLES[name]}: rows of the largest task of a batch"
        yield Target(title, 2, "times the mean", _uneven(name))
    for where, title in (("embedded", "in a process"), ("cluster", "on the cluster")):
        for what, words in (("rows", "events held"), ("disk", "bytes of saved state"), ("memory", "memory")):
            most = 1.1 if what == "rows" else 1.25
            title_ = f"10 million keys {title}: {words} after three quarters"
            yield Target(title_, most, "times those after one", _growth(where, what))
    yield Target("1,000 rules on the cluster to one: processor time", 20, "times", _rules)
    for format, most in (("parquet", 4), ("jsonl", 8)):
        title = f"a million events a second, {FORMATS[format]}: busy cores"
        yield Target(title, most, "cores", _cores(format))


# -- tables ------------------------------------------------------------------------------------------------


def _parts(results: Results) -> list[Part]:
    return [*_keys(results), *_skew(results), *_cost(results)]


def _keys(results: Results) -> list[Part]:
    found = below(results, "keys")

    def over(what: str, unit: Callable[[float], str]) -> Callable[[Result], str]:
        def cell(one: Result) -> str:
            most = max(point[what] for point in one["points"])
            return f"{unit(at(one, 1)[what])}, {unit(at(one, 3)[what])} ({unit(most)})"

        return cell

    columns: Columns = {
        "": "{where}",
        "keys": "{keys:,}",
        "events": "{events:,}",
        "matches": "{matches:,}",
        "events held": over("rows", lambda value: f"{value:,.0f}"),
        "saved state": over("disk", lambda value: f"{value / 1e6:.1f} MB"),
        "memory": over("memory", megabytes),
    }
    lines = {
        one["where"]: [(float(n), point["rows"] / 1e3) for n, point in enumerate(one["points"], 1)]
        for one in found
    }
    plot = Plot(
        "scale-keys", "Keys that die", "parts of the events", "thousand events held", (Panel("", lines),)
    )
    foot = (
        f"Each key has two or three events and is dead after {2 * LIFE / 1000:,.0f} s; one in a hundred is "
        "alive at a time. Each cell has the value after one quarter of the events, after three quarters, and "
        "the highest in parentheses. Memory is that of all Python workers, or what the process gained."
    )
    return table("Ten million keys, most of them dead", columns, found, foot, plot)


def _skew(results: Results) -> list[Part]:
    batches: Columns = {
        "events": lambda one: TITLES[one["data"]],
        "matches": "{matches:,}",
        "split by": lambda one: "key and time" if one["splits"]["auto"]["by time"] else "key",
        "largest task": lambda one: f"{one['splits']['auto']['rows']:.2f} × the mean",
        "time": lambda one: f"{one['splits']['auto']['seconds']:.2f} s",
        "by key alone: largest task": lambda one: f"{one['splits']['key']['rows']:.2f} × the mean",
        "time ": lambda one: f"{one['splits']['key']['seconds']:.2f} s",
    }
    streams: Columns = {
        "events": lambda one: TITLES[one["data"]],
        "events a micro-batch": "{batch events:,}",
        "micro-batch": "{seconds:.2f} s",
        "processor time": "{processor:.2f} s",
        "largest bucket": "{uneven:.2f} × the mean",
        "buckets that stay": "{stays:.0%}",
    }
    foot = (
        f"{TASKS_A_STAGE} tasks. The size of a task is the number of rows that it reads. Here a key with "
        "more than 100 kB of events is too large (256 MB by default)."
    )
    stream_foot = (
        f"{WORKERS} buckets, one for each executor. In a stream, all events of a key are in one bucket. "
        "The last column is the share of buckets that run on the same executor as before, which has "
        "their state in memory; others read it from the checkpoint."
    )
    return [
        *table("Skewed keys in a batch", batches, below(results, "batch"), foot),
        *table("Skewed keys in a stream", streams, below(results, "stream"), stream_foot),
    ]


def _cost(results: Results) -> list[Part]:
    columns: Columns = {
        "files": lambda one: FORMATS[one["format"]],
        "events a micro-batch": "{batch events:,}",
        "micro-batch": "{seconds:.2f} s",
        "processor time": "{processor:.2f} s",
        "an event": lambda one: f"{cost(results, one['format'])[0] * 1e6:.2f} µs",
        "a micro-batch without events": lambda one: f"{cost(results, one['format'])[1]:.2f} s",
    }
    rules: Columns = {
        "rules": "{rules:,}",
        "events a micro-batch": "{batch events:,}",
        "matches": "{matches:,}",
        "micro-batch": "{seconds:.2f} s",
        "processor time": "{processor:.2f} s",
    }
    foot = (
        "The processor time of a micro-batch in all processes: driver, executors and Python workers. What an "
        "event takes is the difference of the two sizes. [Scale](guides/scale.md) computes with these."
    )
    return [
        *table("What events and micro-batches take", columns, below(results, "cost"), foot),
        *table("Rules on the cluster", rules, below(results, "rules")),
    ]


SCALE = Suite(
    "scale",
    "Scale",
    "Skewed keys, 1,000 rules and 10 million keys on a standalone cluster with several workers.",
    EVENTS,
    420_000,
    tuple(_benchmarks()),
    tuple(_targets()),
    _parts,
    text=f"""
A standalone cluster on this machine: a master and {WORKERS} workers, each with one executor of one core, so
the executors share the two processors. Rows of tasks and processor time do not depend on that; seconds do.
[Scale](guides/scale.md) says what a job of a million events a second needs.""",
    conditions=f"The first {WARM} micro-batches of a stream do not count. A run must find every match that "
    "`query.match` finds in a table of the same events.",
    repeats=1,
    limit=600,
)

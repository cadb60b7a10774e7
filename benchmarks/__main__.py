"""`scripts/bench`: run a suite, write the page, compare revisions, profile a query."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import pyarrow.parquet as pq
import typer
from rich.console import Console
from rich.markdown import Markdown

import nestream
from benchmarks import compare as revisions
from benchmarks import peers_programs as programs
from benchmarks.events import ROOT, events_file
from benchmarks.page import section
from benchmarks.report import Report
from benchmarks.run import progress_bar, run
from benchmarks.spec import BenchError, Suite
from benchmarks.suites import SUITES

app = typer.Typer(
    pretty_exceptions_enable=False,
    help="Measure how fast nestream is, beside other programs.",
    no_args_is_help=True,
    add_completion=False,
)
INTERVAL = 0.0005
"""Seconds between two looks at a query that is profiled."""
Quick = Annotated[
    bool, typer.Option("--quick", help="Few events, one repeat; writes nothing to the repository.")
]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="NAME", help="This one, or those below it.", show_default=False),
]
Events = Annotated[int | None, typer.Option("--events", min=1, help="How many events.", show_default=False)]
Repeats = Annotated[int | None, typer.Option("--repeats", min=1, help="How many turns.", show_default=False)]
Limit = Annotated[
    float | None,
    typer.Option("--limit", help="Seconds that a program may take for a turn.", show_default=False),
]
DataFolder = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="Where events are kept between runs.", show_default=False),
]


def note(text: str) -> None:
    """A message beside the results."""
    typer.echo(text, err=True)


def show(text: str) -> None:
    """Results: laid out on a terminal, else as Markdown."""
    console = Console()
    if console.is_terminal:
        console.print(Markdown(text))
    else:
        typer.echo(text)


@app.command("list")
def list_() -> None:
    """List the suites and their benchmarks."""
    for suite in SUITES.values():
        typer.echo(f"{suite.name}: {suite.about}")
        for one in suite.benchmarks:
            typer.echo(f"  {one.name:<24}{one.measure:<10}{one.text}")


def _register(suite: Suite) -> None:
    """The command of a suite; only the peers can be installed."""
    other = suite.name != "peers"
    missing = typer.Option(False, "--install", help="First install the missing peers.", hidden=other)

    def command(
        quick: Quick = False,
        only: Only = None,
        events: Events = None,
        repeats: Repeats = None,
        limit: Limit = None,
        data: DataFolder = None,
        as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
        install: bool = missing,
    ) -> None:
        if install:
            for peer in programs.JARS:
                note(f"installing {peer}")
                programs.install(peer)
        how = suite.run(
            quick, events=events, repeats=repeats, limit=limit, folder=data, only=tuple(only or ())
        )
        with progress_bar() as progress:
            found = run(suite, how, progress)
        if as_json:
            typer.echo(json.dumps(found, ensure_ascii=False))
        else:
            show(section(suite, found))
        if not (quick or only or events):
            report = Report(SUITES, ROOT)
            note(f"wrote {report.keep(found)} and {report.page().write(ROOT)}")

    whole = "A run without --quick, --only or --events updates docs/performance.md and benchmarks/results."
    app.command(suite.name, help=f"{suite.about}\n\n{whole}")(command)


for _suite in SUITES.values():
    _register(_suite)


@app.command()
def report(
    quick: Quick = False,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="SUITE", help="This suite.", show_default=False)
    ] = None,
    minutes: Annotated[
        float, typer.Option("--minutes", help="Leave out suites that would take longer.")
    ] = 60,
    resume: Annotated[bool, typer.Option("--resume", help="Resume a report that was interrupted.")] = False,
    from_results: Annotated[
        bool, typer.Option("--from-results", help="Measure nothing: write the page of the kept results.")
    ] = False,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="DIR", help="Where to write, if not here.", show_default=False),
    ] = None,
    data: DataFolder = None,
) -> None:
    """Measure everything and write docs/performance.md with its tables and plots.

    Results are kept in benchmarks/results as they come. The page names the suites that could not be measured.
    """
    root = to or (Path(tempfile.mkdtemp(prefix="nestream-report-")) if quick else ROOT)
    running = Report(SUITES, root, minutes, quick, data, tell=note)
    if from_results:
        note(f"wrote {running.page().write(root)}")
        return
    with progress_bar() as progress:
        failed = running.run(only or (), resume=resume, progress=progress)
    note(f"wrote {root / 'docs' / 'performance.md'}")
    if failed:
        raise BenchError("\n".join(failed))


@app.command()
def compare(
    base: Annotated[str, typer.Argument(metavar="BASE", help="A revision, such as HEAD or main.")],
    head: Annotated[
        str,
        typer.Argument(
            metavar="[HEAD]", help="Another; by default the files as they are.", show_default=False
        ),
    ] = revisions.WORKING,
    turns: Annotated[int, typer.Option("--turns", min=6, help="How often each query runs on both.")] = 9,
    threshold: Annotated[
        float, typer.Option("--threshold", min=0.0, help="The share that counts as slower.")
    ] = 0.05,
    only: Only = None,
    events: Events = None,
    data: DataFolder = None,
) -> None:
    """Run a small set of queries on two revisions in turns, and show which are slower beyond noise.

    The exit code is 1 if one is slower by more than the threshold, fails, or finds different matches.
    """
    with progress_bar() as progress:
        found = revisions.compare(
            base, head, turns=turns, only=only or (), events=events, folder=data, progress=progress
        )
    show(revisions.table_of(found, base, head, threshold))
    if revisions.worse(found, threshold):
        raise typer.Exit(1)


@app.command()
def profile(
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="A benchmark, such as engine/not-seq, or a query.")
    ],
    events: Annotated[
        Path | None,
        typer.Argument(metavar="[EVENTS]", help="A Parquet file of events, for a query.", show_default=False),
    ] = None,
    strategy: Annotated[str, typer.Option("--strategy", help="How to run it.")] = "auto",
    size: Events = None,
    seconds: Annotated[float, typer.Option("--seconds", help="How long it runs at least.")] = 2.0,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Also write it as a page.", show_default=False),
    ] = None,
) -> None:
    """Show where the time of a query goes."""
    text, path = (query, events) if events is not None else _benchmark(query, size)
    from pyinstrument import Profiler  # only this command needs it

    chosen, table = nestream.query(text), pq.read_table(path)
    how: dict[str, Any] = {"strategy": strategy}
    chosen.match(table, **how)  # what is done once is left out
    profiler = Profiler(interval=INTERVAL)
    runs, begin = 0, time.perf_counter()
    with profiler:
        while not runs or time.perf_counter() - begin < seconds:
            chosen.match(table, **how)
            runs += 1
    spent = (time.perf_counter() - begin) / runs
    typer.echo(profiler.output_text(unicode=True, show_all=False))
    note(f"{table.num_rows:,} events, {runs} runs of {spent * 1e3:,.1f} ms")
    if html is not None:
        html.write_text(profiler.output_html(), encoding="utf-8")
        note(f"wrote {html}")


def _benchmark(name: str, size: int | None) -> tuple[str, Path]:
    """The query of a benchmark, and the file of its events."""
    suite = SUITES.get(name.partition("/")[0])
    if suite is None:
        raise BenchError(f"{name!r} is no benchmark; for a query, name a file of events too")
    known = {f"{suite.name}/{one.name}": one for one in suite.benchmarks if one.query}
    if name not in known:
        raise BenchError(f"there is no benchmark {name!r} with one query. There are {', '.join(known)}.")
    data = known[name].data
    return known[name].text, events_file(data, data.events(size or suite.events))


def main() -> None:
    """Run a command; what goes wrong is said in a sentence."""
    try:
        app()
    except BenchError as error:
        note(f"error: {error}")
        raise SystemExit(1) from None
    except ModuleNotFoundError as missing:
        note(f"error: the package {missing.name} is missing. Run scripts/setup --with bench.")
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()

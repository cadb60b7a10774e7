"""`nestream bench compare` and `nestream bench profile`: is a change slower, and where does the time go."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markdown import Markdown

from nestream.cli.arguments import QueryArgument, StrategyOption, queries_of
from nestream.cli.bench_common import DataOption, progress_bar, suites
from nestream.cli.console import is_terminal, note, output, show_error
from nestream.cli.events import load_events


def compare(
    base: Annotated[str, typer.Argument(metavar="BASE", help="A revision, such as HEAD or main.")],
    head: Annotated[
        str | None,
        typer.Argument(
            metavar="[HEAD]", help="Another; by default the files as they are.", show_default=False
        ),
    ] = None,
    turns: Annotated[int, typer.Option("--turns", min=6, help="How often each query is run on both.")] = 9,
    threshold: Annotated[
        float, typer.Option("--threshold", min=0.0, help="How much slower counts, as a part.")
    ] = 0.05,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="QUERY", help="This one, or those below it.", show_default=False),
    ] = None,
    events: Annotated[
        int | None, typer.Option("--events", min=1, help="How many, for all of them.", show_default=False)
    ] = None,
    data: DataOption = None,
) -> None:
    """Run a small set of queries on two revisions in turns, and tell which are slower beyond noise.

    Ends with 1 if one is slower by more than the threshold, fails, or finds other matches.
    """
    suites()
    from nestream.bench import BenchError, repository
    from nestream.bench.compare import WORKING, table_of, worse
    from nestream.bench.compare import compare as compared

    root = repository()
    if root is None:
        show_error("there is no repository here: run it inside the one that has the revisions")
        raise typer.Exit(1)
    second = head or WORKING
    try:
        with progress_bar() as progress:
            found = compared(
                root, base, second, turns=turns, only=only or (), events=events, folder=data, tell=progress
            )
    except BenchError as error:
        show_error(str(error))
        raise typer.Exit(1) from None
    text = table_of(found, base, second, threshold)
    if is_terminal():
        output().print(Markdown(text))
    else:
        typer.echo(text)
    if worse(found, threshold):
        raise typer.Exit(1)


def profile(
    query: QueryArgument,
    events: Annotated[
        str | None,
        typer.Argument(metavar="[EVENTS]", help="A file of events, for a query.", show_default=False),
    ] = None,
    strategy: StrategyOption = "auto",
    size: Annotated[
        int | None, typer.Option("--events", min=1, help="How many, for a benchmark.", show_default=False)
    ] = None,
    seconds: Annotated[float, typer.Option("--seconds", help="How long it is run at least.")] = 2.0,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write it as a page too.", show_default=False),
    ] = None,
) -> None:
    """Tell where the time of a query goes.

    QUERY is the name of a benchmark, such as engine/not-seq, or a query, with a file of events.
    """
    known = suites()
    import nestream
    from nestream.bench import BenchError
    from nestream.bench.profiling import benchmark_of, events_of, profiled

    how: dict[str, Any] = {"strategy": strategy}
    try:
        benchmark = benchmark_of(known, query) if events is None else None
        if benchmark is not None:
            parsed: Any = nestream.query(benchmark.text)
            table = events_of(benchmark, known[query.partition("/")[0]], size)
        elif events is None:
            raise BenchError(f"{query!r} is no benchmark; for a query, name a file of events too")
        else:
            parsed = queries_of(query, None)
            _, table = load_events(events, "ts", "type", None, None)
        found = profiled(parsed, table, how, seconds=seconds)
    except BenchError as error:
        show_error(str(error))
        raise typer.Exit(1) from None
    except ModuleNotFoundError as missing:
        show_error(f"profile needs the package {missing.name}: pip install pyinstrument")
        raise typer.Exit(1) from None
    typer.echo(found.text)
    note(f"{table.num_rows:,} events, {found.runs} runs of {found.seconds / found.runs * 1e3:,.1f} ms")
    if html is not None:
        html.write_text(found.html, encoding="utf-8")
        note(f"written: {html}")

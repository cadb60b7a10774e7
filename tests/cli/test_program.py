"""The program as users meet it: help, exit codes, pipes, terminals and interruptions."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import nestream
from nestream.data import sample_path
from tests.cli.commands import EXAMPLE, ROOT, call, on_terminal, program, shell, without_colours

HOSPITAL = sample_path("hospital")
MANY = "SEQ(Recycle r, Washing w) WITHIN UNBOUNDED"


def test_the_version_is_that_of_the_package() -> None:
    assert call("--version").stdout == f"nestream {nestream.__version__}\n"


def test_without_arguments_the_help_names_every_command() -> None:
    result = call()
    for command in ("check", "fmt", "explain", "run", "data"):
        assert f"\n│ {command} " in result.output


@pytest.mark.parametrize("command", ["check", "fmt", "explain", "run", "data"])
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_the_help_of_each_command_has_an_example(command: str, option: str) -> None:
    result = call(command, option)
    assert result.exit_code == 0
    assert f"nestream {command} " in result.stdout.partition("Examples")[2]


@pytest.mark.parametrize("command", ["fmt", "check"])
def test_commands_about_the_text_alone_start_without_the_libraries_for_events(command: str) -> None:
    result = shell(f'PYTHONPROFILEIMPORTTIME=1 nestream {command} "SEQ(A a, B b) WITHIN 10"')
    assert result.returncode == 0
    loaded = {line.split("|")[-1].strip() for line in result.stderr.splitlines()}
    assert "nestream.cli.arguments" in loaded
    assert not loaded & {"numpy", "pyarrow"}


def test_an_unknown_command_is_wrong_usage() -> None:
    assert program("chekc", "SEQ(A a)").returncode == 2


def test_in_a_pipe_stdout_has_the_matches_alone_and_stderr_nothing() -> None:
    result = program("run", EXAMPLE, HOSPITAL)
    assert (result.returncode, result.stderr) == (0, "")
    assert {"r", "w", "o", "match_start", "match_end"} == set(json.loads(result.stdout.splitlines()[0]))


def test_colours_that_are_forced_bring_no_progress_into_a_pipe() -> None:
    result = shell(f"FORCE_COLOR=1 nestream run {EXAMPLE} {HOSPITAL}")
    assert (result.returncode, result.stderr) == (0, "")
    assert "\x1b" not in result.stdout


def test_on_a_terminal_there_are_progress_a_table_and_a_summary() -> None:
    code, _, screen = on_terminal(["run", EXAMPLE, HOSPITAL])
    shown = without_colours(screen)
    assert code == 0
    assert "matching" in shown
    assert "╭" in shown
    assert "id=40" in shown
    assert shown.splitlines()[-1].startswith("300 events, 5 matches, 0 dead letters, ")


def test_a_table_is_never_wider_than_the_terminal() -> None:
    _, _, screen = on_terminal(["run", EXAMPLE, HOSPITAL])
    assert max(len(line) for line in without_colours(screen).split("\n") if line[:1] in "╭│├╰") <= 100


def test_with_stdout_in_a_pipe_the_terminal_still_sees_progress_and_summary() -> None:
    code, piped, screen = on_terminal(["run", EXAMPLE, HOSPITAL], pipe_stdout=True)
    assert code == 0
    assert [json.loads(line)["r"]["type"] for line in piped.splitlines()] == ["Recycle"] * 5
    assert "5 matches" in screen
    assert "╭" not in screen


def test_output_to_a_hyphen_is_json_on_a_terminal_too() -> None:
    _, _, screen = on_terminal(["run", EXAMPLE, HOSPITAL, "--output", "-"])
    assert '{"r":{"ts":' in screen


def test_parquet_is_not_thrown_at_a_terminal() -> None:
    code, _, screen = on_terminal(["run", EXAMPLE, HOSPITAL, "--format", "parquet"])
    assert code == 2
    assert "--output FILE" in without_colours(screen)


@pytest.mark.parametrize(
    "command",
    [
        f"nestream run '{MANY}' {HOSPITAL}",
        "nestream data stock --events 200000 --out -",
        *(
            pytest.param(command, marks=pytest.mark.slow)
            for command in (
                f"nestream run '{MANY}' {HOSPITAL} --format csv",
                f"nestream run '{MANY}' {HOSPITAL} --format table --limit 900",
                "nestream data stock --events 200000 --out - --format csv",
                "nestream data stock --events 300000 --out - --format parquet",
            )
        ),
    ],
)
def test_a_reader_that_has_seen_enough_ends_the_program_quietly(command: str) -> None:
    result = shell(f"{command} | head -c 100")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout


def test_an_interrupted_program_exits_with_130_and_says_nothing() -> None:
    interrupted: list[str] = []

    def interrupt(process: subprocess.Popen[bytes], screen: str) -> None:
        if "reading" in screen and not interrupted:
            interrupted.append(screen)
            process.send_signal(signal.SIGINT)

    arguments = ["run", str(EXAMPLE), "-", "--input-format", "csv"]
    code, _, screen = on_terminal(arguments, meanwhile=interrupt)  # waits for someone to type events
    assert interrupted
    assert code == 130
    assert "Traceback" not in screen
    assert "Abort" not in screen


def test_events_can_come_through_a_pipe() -> None:
    direct = program("run", EXAMPLE, HOSPITAL)
    piped = shell(f"cat {HOSPITAL} | nestream run {EXAMPLE} - --input-format csv")
    assert (piped.returncode, piped.stderr) == (0, "")
    assert piped.stdout == direct.stdout


def test_a_path_that_the_terminal_cannot_show_is_still_named(tmp_path: Path) -> None:
    result = program("run", EXAMPLE, f"{tmp_path}/caf\udce9.csv")
    assert result.returncode == 1
    assert "no such file" in result.stderr
    assert "Traceback" not in result.stderr


def test_the_demo_shows_the_matches_and_explains_one_and_a_near_miss() -> None:
    result = shell("scripts/demo", cwd=ROOT)
    assert result.returncode == 0
    matches, match, near_miss = result.stdout.split("$ nestream ")[1:]
    assert matches.startswith("run examples/contaminated-instruments.neel")
    assert matches.count("id=40 ins-type=surgery") == 3
    assert "5 matches" in result.stderr
    assert "\na match\n" in match
    assert "no match: 1 obstacle" in near_miss
    commands = near_miss[near_miss.index("Try next:") :].splitlines()[1::2]
    assert [command.split()[0] for command in commands] == [
        ".venv/bin/nestream",
        ".venv/bin/nestream",
        "./scripts/demo",
    ]


@pytest.mark.slow
def test_the_demo_passes_its_arguments_to_run() -> None:
    result = shell("scripts/demo --format json --limit 1", cwd=ROOT)
    assert result.returncode == 0
    (line,) = result.stdout.splitlines()
    assert json.loads(line)["r"]["id"] == 23


@pytest.mark.parametrize("command", ["explain", "run"])
def test_a_command_over_few_events_loads_neither_pandas_nor_numba(command: str) -> None:
    code = """import atexit, sys
from nestream.cli.main import main
atexit.register(lambda: print(*({"pandas", "numba"} & {*sys.modules}), file=sys.stderr))
sys.argv = ["nestream", *sys.argv[1:]]
main()
"""
    events = [str(sample_path("hospital"))] if command == "run" else []
    result = subprocess.run(
        [sys.executable, "-c", code, command, str(EXAMPLE), *events],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout
    assert result.stderr.splitlines()[-1] == ""


@pytest.mark.parametrize("run", ["match", "count"])
@pytest.mark.parametrize("text", ["SEQ(A a, B b, C c)", "SEQ(A a, AND(B b, C c), D d, a.x < d.x)"])
def test_a_query_over_few_events_does_not_load_numba(text: str, run: str) -> None:
    code = f"""
import sys, nestream
events = [{{"ts": i, "type": "ABCD"[i % 4], "x": i % 7}} for i in range(60)]
nestream.query("{text} WITHIN 20").{run}(events)
assert "numba" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_command_that_is_called_from_python_leaves_pandas_to_arrow() -> None:
    code = """
from typer.testing import CliRunner
from nestream.cli.main import app
import sys
ran = CliRunner().invoke(app, ["run", "SEQ(Recycle r, Washing w) WITHIN 10 s", sys.argv[1]])
assert ran.exit_code == 0
import pyarrow as pa
print(pa.table({"a": [1]}).to_pandas().shape)
"""
    command = [sys.executable, "-c", code, str(sample_path("hospital"))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "(1, 1)\n"

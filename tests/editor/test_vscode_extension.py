"""The VS Code extension: its files fit together, and its settings are those that the server reads."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import nestream

FOLDER = Path(__file__).resolve().parents[2] / "editors" / "vscode"


def test_the_package_names_files_that_exist_and_the_version_of_nestream() -> None:
    package = json.loads((FOLDER / "package.json").read_text())
    assert package["version"] == nestream.__version__
    contributed = package["contributes"]
    [language], [grammar] = contributed["languages"], contributed["grammars"]
    named = [package["main"], language["configuration"], grammar["path"]]
    assert [name for name in named if not (FOLDER / name).is_file()] == []
    assert grammar["scopeName"] == json.loads((FOLDER / grammar["path"]).read_text())["scopeName"]
    assert language["extensions"] == [".neel"]
    json.loads((FOLDER / language["configuration"]).read_text())


def test_every_setting_is_declared_and_read() -> None:
    package = json.loads((FOLDER / "package.json").read_text())
    declared = {
        name.removeprefix("nestream.") for name in package["contributes"]["configuration"]["properties"]
    }
    read = set(re.findall(r'settings\.get\("(\w+)"\)', (FOLDER / "extension.js").read_text()))
    assert declared == read
    passed = declared - {"command"}
    server = (Path(nestream.__file__).parent / "editor" / "server.py").read_text()
    assert passed == set(re.findall(r'asked(?:\.get\(|\[)"(\w+)"', server))


def test_the_extension_is_valid_javascript() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no Node.js was found, so extension.js is not parsed: install the package nodejs")
    subprocess.run([node, "--check", str(FOLDER / "extension.js")], check=True)

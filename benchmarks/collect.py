"""Run benchmarks and keep what they print, with the machine and the date.

``python benchmarks/collect.py bench_accuracy`` runs ``benchmarks/bench_accuracy.py``
and writes its output to ``docs/benchmarks/bench_accuracy.txt``, which the documentation
shows as it stands. Arguments after ``--`` go to the script. Run it on an idle machine:
times are only worth what the machine was.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import os
import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "docs" / "benchmarks"
LIBRARIES = ("numpy", "scipy", "scikit-learn", "joblib", "gmpy2", "phe", "cryptography")


def names() -> list[str]:
    """Return the names of all benchmarks."""
    return sorted(file.stem for file in (ROOT / "benchmarks").glob("bench_*.py"))


def processor() -> str:
    """Return the model of the processor and the number of cores to be used."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        found = re.search(r"^model name\s*:\s*(.+)$", info.read_text(), re.MULTILINE)
        model = found.group(1) if found else model
    elif sys.platform == "darwin":
        asked = ["sysctl", "-n", "machdep.cpu.brand_string"]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        model = done.stdout.strip() or model
    cores = (
        len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count()
    )
    return f"{' '.join(model.split())}, {cores} cores"


def commit() -> str:
    """Return the project's commit, and whether files differ from it."""

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False
        )
        return done.stdout.strip() if done.returncode == 0 else ""

    number = git("rev-parse", "--short=10", "HEAD")
    changed = git("status", "--porcelain", "--untracked-files=no", "--", "skppdnmf")
    if not number:
        return "not under version control"
    return f"commit {number}" + (" with changes" if changed else "")


def machine() -> list[tuple[str, str]]:
    """Return what a reader has to know of the machine; never its name."""
    versions = [f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES]
    return [
        ("date", datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")),
        ("processor", processor()),
        ("system", f"{platform.system()} {platform.machine()}"),
        ("python", f"{platform.python_version()}, {', '.join(versions)}"),
        ("skppdnmf", f"{importlib.metadata.version('skppdnmf')}, {commit()}"),
    ]


def collect(name: str, arguments: Sequence[str] = (), target: Path = TARGET) -> Path:
    """Run a benchmark and write what it prints.

    Parameters
    ----------
    name : str
        Of a script in this folder, without its ending.
    arguments : sequence of str, default=()
        For the script.
    target : Path
        Folder to write to.

    Returns
    -------
    Path
        The file. It is written only if the script succeeds.

    Raises
    ------
    ValueError
        If there is no such script.
    subprocess.CalledProcessError
        If it fails.
    """
    script = ROOT / "benchmarks" / f"{name}.py"
    if name not in names():
        raise ValueError(f"no benchmark {name!r}; there are {', '.join(names())}")
    command = [sys.executable, "-W", "ignore", str(script), *arguments]
    heading = machine()
    printed = []
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            printed.append(line.rstrip().replace(f"{ROOT}{os.sep}", ""))
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    shown = " ".join(["$ python", f"benchmarks/{name}.py", *arguments])
    lines = [shown, *(f"{key:10} {value}" for key, value in heading), "", *printed]
    target.mkdir(parents=True, exist_ok=True)
    file = target / f"{name}.txt"
    file.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    return file


def main() -> int:
    """Run the benchmarks that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names()))
    parser.add_argument("--all", action="store_true", help="run all benchmarks")
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)
    given = parser.parse_args(words[:split])
    chosen = names() if given.all else given.names
    if not chosen:
        parser.error("name a benchmark, or use --all")
    unknown = [name for name in chosen if name not in names()]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}; there are {', '.join(names())}")
    for name in chosen:
        print(f"== {name}", flush=True)
        try:
            file = collect(name, words[split + 1 :])
        except subprocess.CalledProcessError as error:
            print(f"{name} failed with exit code {error.returncode}", file=sys.stderr)
            return 1
        print(f"== written to {file.relative_to(ROOT)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Runs the command line within the process, for several test files."""

import inspect

from click.testing import CliRunner

from skppdnmf._cli import cli


def run(*args, **kwargs):
    """Result of a command; its stdout and stderr are apart."""
    # Click 8.2 keeps them apart without being asked.
    apart = "mix_stderr" in inspect.signature(CliRunner).parameters
    runner = CliRunner(**({"mix_stderr": False} if apart else {}))
    return runner.invoke(cli, [str(arg) for arg in args], **kwargs)


def refused(*args, code=2):
    """Message of a command that must fail in one line and print nothing else."""
    result = run(*args)
    assert result.exit_code == code, (result.exit_code, result.stderr, result.exception)
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("Error: ")
    return lines[0].removeprefix("Error: ")


def succeeded(*args):
    """Result of a command that must not fail."""
    result = run(*args)
    assert result.exit_code == 0, (result.stderr, result.exception)
    return result

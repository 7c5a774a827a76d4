"""A computation in a process of its own: its end by a signal gets a name."""

import os
import subprocess
import sys
import time

import pytest

from skppdnmf._cli.mpc import supervised

SLEEPS = """
import os, sys, threading, time
from skppdnmf._cli.mpc import _PARENT, _end_with
watched = int(os.environ[_PARENT])
threading.Thread(target=_end_with, args=(watched,), daemon=True).start()
print(os.getpid(), flush=True)
time.sleep(120)
"""
SUPERVISES = """
import sys
from skppdnmf._cli.mpc import supervised
supervised([sys.executable, "-c", sys.argv[1]], "a")
"""


@pytest.mark.parametrize("code", [0, 1, 2])
def test_exit_codes_are_passed_on(code, capfd):
    command = [sys.executable, "-c", f"import sys; sys.exit({code})"]
    assert supervised(command, "a") == code
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), 11)", "os._exit(255)"])
def test_an_end_without_a_word_is_named(end, capfd):
    command = [sys.executable, "-c", f"import os; {end}"]
    assert supervised(command, "a") == 1
    assert "Error: DropoutError: a: SPU ended by exit code" in capfd.readouterr().err


@pytest.mark.journey
def test_what_is_supervised_ends_with_its_parent():
    parent = subprocess.Popen(
        [sys.executable, "-c", SUPERVISES, SLEEPS], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    for _ in range(600):
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            break
        time.sleep(0.1)
    else:
        pytest.fail("the child outlives its parent")
    parent.stdout.close()

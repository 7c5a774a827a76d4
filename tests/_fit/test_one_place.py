"""The string `protocol` is looked at in one place."""

import ast
from pathlib import Path

import pytest

import skppdnmf
from skppdnmf import PrivateDistributedNMF
from skppdnmf._fit.protocols import PROTOCOLS, protocol_of

PACKAGE = Path(skppdnmf.__file__).parent
NAMES = set(PROTOCOLS)


def comparisons(tree):
    """Every comparison with, or look-up by, the name of a protocol."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            constants = [side for side in sides if isinstance(side, ast.Constant)]
            if any(constant.value in NAMES for constant in constants):
                yield node.lineno
            # An envelope's `protocol` is a number.
            if any(
                isinstance(side, ast.Attribute)
                and side.attr == "protocol"
                and isinstance(side.value, ast.Name)
                and side.value.id in ("estimator", "model")
                for side in sides
            ):
                yield node.lineno


def test_no_other_file_compares_it():
    found = {
        file.relative_to(PACKAGE).as_posix(): list(
            comparisons(ast.parse(file.read_text(encoding="utf-8")))
        )
        for file in PACKAGE.rglob("*.py")
    }
    assert {file: lines for file, lines in found.items() if lines} == {}


@pytest.mark.parametrize("code", ['a == "secure-sum"', "estimator.protocol != name"])
def test_a_comparison_would_be_found(code):
    assert list(comparisons(ast.parse(code))) == [1]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_names_lead_to_their_protocols(name):
    protocol = protocol_of(PrivateDistributedNMF(protocol=name))
    assert protocol.name == name
    options = PrivateDistributedNMF._parameter_constraints["protocol"][0].options
    assert options == NAMES
    codes = [one.code for one in PROTOCOLS.values()]
    assert len(set(codes)) == len(codes)

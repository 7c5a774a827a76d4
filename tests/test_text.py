"""Numbers in text."""

import pytest

from skppdnmf._text import format_bytes


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (3_210_000, "3.2 MB"),
        (2.5e9, "2.5 GB"),
        (5e13, "50.0 TB"),
        (5e16, "50000.0 TB"),
    ],
)
def test_bytes_are_counted_in_a_unit_that_reads_well(count, text):
    assert format_bytes(count) == text

"""Entry point of `python -m skppdnmf` and of the script `skppdnmf`."""

from __future__ import annotations

from skppdnmf._cli import cli


def main() -> None:
    """Run the command line and exit with its code.

    Raises
    ------
    SystemExit
        Always: with 0 after success, 1 after a failed computation, 2 after wrong
        usage, parameters or data, 3 after a fit that did not converge under
        ``--strict``, 130 after an interrupt.
    """
    cli()


if __name__ == "__main__":
    main()

"""The group of commands: what goes wrong becomes a line and an exit code."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import Any

import click

from .._files.errors import FAILED, CommandError, describe, one_line
from .._version import __version__
from .audit import audit
from .bench import bench
from .component_curve import component_curve_command
from .demo import demo
from .errors import INTERRUPTED, WarningLines
from .federate import federate
from .fit import fit
from .mpc import mpc
from .partial_fit import partial_fit_command
from .site import site

HELP = """Nonnegative matrix factorisation of data that several agents hold.

Neighbours exchange ciphertexts under --protocol consensus, the default, if
--encryption is paillier or bfv. Under --protocol secure-sum nothing is encrypted this
way: agents send masked sums, and each learns the totals. What that protects and what it
does not is said in the security page of the documentation, and `skppdnmf audit`
measures it on your data. `fit` and `audit` run all agents in one process, on data
that are all here; `site` and `federate` are for data that stay where they are.

Exit codes: 0 success, 1 a failed computation, 2 wrong usage, parameters or data,
3 a fit that did not converge under --strict, 130 an interrupt.
"""


class CommandLine(click.Group):
    """A group whose errors and warnings are single lines on stderr."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command; in standalone mode, exit with its code.

        Parameters
        ----------
        args, prog_name, complete_var, standalone_mode, **extra
            As for `click.Command.main`.

        Returns
        -------
        object
            What the command returns, unless in standalone mode.

        Raises
        ------
        SystemExit
            In standalone mode, with the exit code.
        click.ClickException
            Otherwise, if the command fails.
        """
        try:
            result = super().main(
                args, prog_name, complete_var, standalone_mode=False, **extra
            )
        except click.ClickException as error:
            if not standalone_mode:
                raise
            click.echo(f"Error: {one_line(error.format_message())}", err=True)
            sys.exit(error.exit_code)
        if standalone_mode:
            # Click's way to hand over the code of an early exit, such as of --help.
            sys.exit(result if isinstance(result, int) else 0)
        return result

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command named in a context.

        Parameters
        ----------
        ctx : click.Context
            The group's.

        Returns
        -------
        object
            What the command returns.

        Raises
        ------
        click.ClickException
            If it fails in whatever way.
        """
        try:
            with WarningLines() as ctx.obj:
                return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, BrokenPipeError):
            raise
        except (KeyboardInterrupt, click.Abort):
            raise CommandError("interrupted", INTERRUPTED) from None
        except Exception as error:
            if ctx.params.get("show_traceback"):
                click.echo(traceback.format_exc(), err=True, nl=False)
            kind = type(error).__name__
            raise CommandError(f"{kind}: {describe(error)}", FAILED) from error


@click.group(
    cls=CommandLine,
    help=HELP,
    invoke_without_command=True,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        # Options may be written as the estimator's parameters are: --alpha_W.
        "token_normalize_func": lambda token: token.replace("_", "-").lower(),
    },
)
@click.option(
    "--traceback",
    "show_traceback",
    is_flag=True,
    help="Show where an unexpected error came from.",
)
@click.version_option(__version__, message="skppdnmf %(version)s")
@click.pass_context
def cli(ctx: click.Context, show_traceback: bool) -> None:
    """Show the help if no command is given."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


for _command in (
    *(fit, component_curve_command, partial_fit_command, audit),
    *(bench, demo, mpc, site, federate),
):
    cli.add_command(_command)

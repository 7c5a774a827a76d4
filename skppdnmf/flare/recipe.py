"""A FLARE recipe that carries a fit's parameters, and no code."""

from __future__ import annotations

import secrets
from numbers import Integral
from pathlib import Path
from typing import Any

from nvflare.collab import CollabRecipe
from nvflare.recipe import PocEnv, SimEnv

from .._estimator import PrivateDistributedNMF
from .job import JobSpec, parameters_of
from .local import LocalEnv, allow_classes
from .relay import Relay
from .site import Site


class NMFRecipe(CollabRecipe):
    """A federated fit, to be executed as FLARE's recipes are.

    Parameters
    ----------
    estimator : PrivateDistributedNMF
        Its parameters are what is sent; `n_jobs`, `partition` and `verbose` are not.
        Without an integer `random_state` one is drawn, which is public. `adjacency` is
        the graph of the sites in the order of their names.
    dataset : str, default="cohort"
        Name of the data set; each site's `skppdnmf.toml` says what that is.
    min_sites : int, default=3
        Fewest sites with which the run begins, and goes on after a departure.
    name : str, default="skppdnmf"
        Of the job.
    timeout : float, default=60.0
        Seconds that a site may take for one answer before it is taken for lost.
    return_components : bool, default=False
        Whether the submitter is to have the components. A site whose policy forbids it
        refuses the job.
    resume : str or None, default=None
        A run that has died: each site starts from the last left factor that it has of
        it, with fresh keys and a new run. It is then no parameter of the job.
    weighted : bool, default=False
        Whether samples have weights. A site's `skppdnmf.toml` says where they are; the
        samples of one that has none count as one each. All learn the sum of weights.
    missing : bool, default=False
        Whether entries may be missing, at sites whose `skppdnmf.toml` says so.
    seeded_masks : bool, default=False
        Whether masks follow from `random_state`, so that all know them: under the
        consensus the result is then that of a fit in one process, bit for bit, and
        nothing is protected. For rehearsals; a site's policy must allow them.

    Raises
    ------
    ValueError
        If a parameter of the estimator is invalid, or has no meaning among sites.

    Examples
    --------
    >>> from skppdnmf import PrivateDistributedNMF
    >>> from skppdnmf.flare import NMFRecipe
    >>> model = PrivateDistributedNMF(10, protocol="secure-sum", random_state=0)
    >>> recipe = NMFRecipe(model, dataset="cohort", min_sites=3)
    >>> recipe.spec.parameters["n_components"]
    10
    """

    def __init__(
        self,
        estimator: PrivateDistributedNMF,
        dataset: str = "cohort",
        *,
        min_sites: int = 3,
        name: str = "skppdnmf",
        timeout: float = 60.0,
        return_components: bool = False,
        resume: str | None = None,
        weighted: bool = False,
        missing: bool = False,
        seeded_masks: bool = False,
    ) -> None:
        if min_sites < 2:
            raise ValueError(f"min_sites={min_sites} should be >= 2")
        if not timeout > 0:
            raise ValueError(f"timeout={timeout} should be > 0")
        random_state = estimator.random_state
        if not isinstance(random_state, Integral):
            random_state = secrets.randbelow(2**31)
        drawn = PrivateDistributedNMF(**estimator.get_params(deep=False))
        drawn.set_params(random_state=int(random_state))
        self.spec = JobSpec(
            parameters_of(drawn),
            dataset,
            int(min_sites),
            float(timeout),
            bool(return_components),
            bool(seeded_masks),
            resume,
            bool(weighted),
            bool(missing),
        )
        self.spec.estimator()
        text = self.spec.to_text()
        super().__init__(
            job_name=name,
            server=Relay(text),
            client=Site(text),
            min_clients=int(min_sites),
        )
        # FLARE would send the source of classes that are not its own.
        self._job.set_app_packages([__name__.split(".", 1)[0]])

    @staticmethod
    def _user_source_entries(objs: Any) -> list[tuple[str, str | None]]:
        """Ship no source: sites run what they have installed."""
        return []

    def run(self, env: Any, *given: Any, **options: Any) -> Any:
        """Run the job in an environment, as FLARE's recipes do.

        Parameters
        ----------
        env : SimEnv, PocEnv or ProdEnv
            Where. In the first two, which make the sites on this machine, the sites'
            folders are those in the folder that the environment variable
            ``SKPPDNMF_SITES`` names.
        *given, **options
            As for `nvflare.recipe.spec.Recipe.run`.

        Returns
        -------
        nvflare.recipe.run.Run
        """
        if isinstance(env, SimEnv):
            allow_classes(Path(env.workspace_root) / self.job_name / "local")
        elif isinstance(env, PocEnv):
            env = LocalEnv.of(env)
        return super().run(env, *given, **options)

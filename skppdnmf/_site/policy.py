"""What a site allows to be done with its data."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..exceptions import PolicyError


@dataclass(frozen=True)
class Job:
    """What a policy looks at of a job, before any data are read.

    Parameters
    ----------
    protocol : str
        Name of the protocol.
    n_sites : int
        Sites that take part.
    n_components, n_init, max_iter : int
        Parameters of the estimator; `n_init` as many starts as are followed.
    protected : bool, default=True
        Whether what is sent is protected as the protocol can: with real encryption,
        keys of full length, and masks that nobody can know.
    """

    protocol: str
    n_sites: int
    n_components: int
    n_init: int
    max_iter: int
    protected: bool = True


@dataclass(frozen=True)
class Policy:
    """What a site allows.

    Parameters
    ----------
    protocols : tuple of str, default=("secure-sum",)
        Protocols that may be run.
    min_sites : int, default=3
        Least number of sites, this one among them.
    max_components, max_n_init, max_iterations : int
        Most components, random starts and iterations of a job.
    min_other_samples_per_component : float, default=50.0
        Least number of the other sites' samples for each component. It is known where
        the protocol tells the number of all samples, as the secure sum does in its
        first sum, and is checked before any sum over the data's products.
    components_to_submitter : bool, default=False
        Whether whoever submits a job may have the components.
    share_feature_names : bool, default=True
        Whether an error may name this site's feature where those of the sites differ.
    unprotected : bool, default=False
        Whether jobs are taken that protect nothing, as rehearsals with made-up data.

    Examples
    --------
    >>> from skppdnmf._site.policy import Job, Policy
    >>> Policy(max_components=20).refusals(Job("secure-sum", 2, 25, 1, 60))
    ['min_sites=3: the job has 2', 'max_components=20: the job has n_components=25']
    """

    protocols: tuple[str, ...] = ("secure-sum",)
    min_sites: int = 3
    max_components: int = 100
    max_n_init: int = 8
    max_iterations: int = 200
    min_other_samples_per_component: float = 50.0
    components_to_submitter: bool = False
    share_feature_names: bool = True
    unprotected: bool = False

    def refusals(self, job: Job) -> list[str]:
        """Return what the policy has against a job; nothing if it is allowed.

        Parameters
        ----------
        job : Job
            What is asked for.

        Returns
        -------
        list of str
            Each names a rule, its value, and the job's.
        """
        refused = []
        if job.protocol not in self.protocols:
            refused.append(
                f"protocols={list(self.protocols)}: the job has {job.protocol!r}"
            )
        if job.n_sites < self.min_sites:
            refused.append(f"min_sites={self.min_sites}: the job has {job.n_sites}")
        for rule, name, value in (
            ("max_components", "n_components", job.n_components),
            ("max_n_init", "n_init", job.n_init),
            ("max_iterations", "max_iter", job.max_iter),
        ):
            if value > getattr(self, rule):
                refused.append(
                    f"{rule}={getattr(self, rule)}: the job has {name}={value}"
                )
        if not job.protected and not self.unprotected:
            refused.append(
                "unprotected=false: the job has simulated or no encryption, short "
                "keys, or masks from its seed"
            )
        return refused

    def check(self, job: Job) -> None:
        """Refuse a job that breaks a rule.

        Raises
        ------
        PolicyError
            That names all rules that it breaks.
        """
        refused = self.refusals(job)
        if refused:
            raise PolicyError("; ".join(refused))

    def check_samples(self, others: float, n_components: int) -> None:
        """Refuse to go on if the other sites have too few samples.

        Parameters
        ----------
        others : float
            Samples of all other sites.
        n_components : int
            Components of the job.

        Raises
        ------
        PolicyError
            If they are too few.
        """
        least = self.min_other_samples_per_component * n_components
        if others < least:
            raise PolicyError(
                "min_other_samples_per_component="
                f"{self.min_other_samples_per_component:g}: the other sites have too "
                f"few samples for n_components={n_components}"
            )


@dataclass(frozen=True)
class DataSet:
    """Where a data set is and what of it is used.

    Parameters
    ----------
    file : str
        Relative to the site's folder; any format that the command line reads.
    columns, drop : tuple of str
        Columns that are used, all if none is named, and columns that are left out.
    header : bool or None, default=None
        Whether the first line of a text holds names; None decides by what it holds.
    rows : str or None, default=None
        A range such as "0:500", counted from 0, its end not among them.
    where : mapping from str to str or int
        A column that is no feature, and the value that it has in the rows used.
    sample_weight : str or None, default=None
        A column that is no feature, or another file, with the weight of each sample;
        for jobs that ask for weights.
    missing : bool, default=False
        Whether entries may be missing; for jobs that take it.
    """

    file: str
    columns: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    header: bool | None = None
    rows: str | None = None
    where: dict[str, str | int] = field(default_factory=dict)
    sample_weight: str | None = None
    missing: bool = False

"""`PrivateDistributedNMF`: parameters, validation and attributes; no algorithm."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils._set_output import _wrap_data_with_container
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from ._data.checks import (
    check_federation,
    check_fixed,
    check_start,
    largest_entry,
    validate_samples,
)
from ._data.partition import (
    Partition,
    is_parts,
    split_labels,
    stack_numbered,
    stack_parts,
)
from ._data.shapes import align, warn_of_labels_as_target
from ._data.weights import check_weights, scale_rows
from ._federation.helpers import Helpers
from ._fit.advice import advice, unfinished
from ._fit.budget import PrivacyBudget
from ._fit.callbacks import CallbackSupportMixin, FitCallbacks
from ._fit.history import fitted_attributes
from ._fit.keeping import keeps_what_was_fitted
from ._fit.noise import check_privacy
from ._fit.protocols import PROTOCOLS, protocol_of
from ._fit.run import run_fit, warn_of_leaks
from ._fit.seeds import common_start, draw_seeds
from ._fit.uses import check_positive, check_uses, missing_entries, takes_batches
from ._nmf.admm import squared_norm, squared_residual
from ._nmf.beta import BetaSamples, beta_of, solve_beta
from ._nmf.blocks import one_by_one
from ._nmf.nnls import solve_nnls
from ._nmf.observed import observed_errors, solve_observed
from ._nmf.penalties import right_penalty
from ._nmf.threads import single_threaded
from ._numbers import with_python_numbers
from ._paillier.keys import SCHEMES
from ._paillier.primes import MIN_KEY_SIZE
from ._protocol import Setting
from ._warn import warn_user


class PrivateDistributedNMF(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    CallbackSupportMixin,
    BaseEstimator,
):
    r"""Nonnegative matrix factorisation of data split among agents on a graph.

    Finds W, H >= 0 that minimise ``||X - W H||`` where the rows of X are held by
    several agents, who keep their rows and their part of W. There are three protocols.

    Under "consensus", the default, each agent has a copy of H and makes it agree
    with its neighbours' by consensus ADMM, exchanging ciphertexts only
    (arXiv 2403.18326, with the update equations corrected). That protects against
    eavesdroppers. Against a curious neighbour it hides what is sent, not all that
    can be inferred from it: an agent with few samples or a single neighbour should
    not rely on it.

    Under "secure-sum" each agent learns the network-wide totals
    ``A = sum_i W_i^T W_i`` and ``B = sum_i W_i^T X_i`` of every iteration and
    nothing else of the others, and the fit follows the pooled problem. That hides
    who holds what; it does not hide who is in the pool, which the totals tell to
    whoever has a candidate's data, nor the samples of a small pool. It needs three
    agents or more that have samples, many of them.

    Under "mpc" three of the agents run the whole factorisation on secret shares, by
    secure multi-party computation, and nothing but the components is opened, to all.
    That hides all that the totals tell, as long as no two of the three collude; what
    the components tell by themselves it does not hide. It is for pools of some
    hundreds of samples and takes seconds to minutes; it needs the extra
    ``skppdnmf[mpc]``.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Number of components K. "auto" takes it from `init` if that is an array and
        is the number of features otherwise.
    partition : None, int, sequence of int or sequence of float, default=None
        Which agent holds which samples, unless `fit` is told so by `agents`. None
        makes four agents (or one for each sample, if fewer), an int that many, of
        near-equal contiguous blocks; integers are block sizes, floats that sum to 1
        are fractions.
    adjacency : str, array-like, sparse matrix or networkx.Graph, default="random"
        The graph of the agents: "random" (connected, of average degree 3), "ring",
        "complete", "star", "path", or an adjacency matrix, a square frame, a graph.
    mu, eta : float, default=1.0
        ADMM penalties of the left and of the right factor. Like `g_max`,
        `penalty_scaling`, `masking`, `encryption`, `key_size`, `key_scheme`, `update`
        and `max_admm_iter` only "consensus" reads them.
    g_max : float, default=1.0
        Largest secret factor of an agent for an edge. The consensus penalty of an
        edge is the product of both ends' factors.
    penalty_scaling : {"data", "absolute"}, default="data"
        Whether mu, eta and g_max are relative to the scale of the data, on which
        the agents agree by a private average, or the paper's absolute numbers.
    masking : {"entrywise", "scalar"}, default="entrywise"
        Whether each entry of an answer has its own secret factor, or all share one.
    n_max : float, default=10**6
        Fixed-point scale: U is sent as ``round(n_max * U)``. Under "secure-sum" the
        right factors are rounded, to multiples of ``16 / n_max`` times what would
        be their root mean square, and the samples to 2**-20 times theirs.
    protocol : {"consensus", "secure-sum", "mpc"}, default="consensus"
        The paper's encrypted consensus, totals under pairwise masks, or secure
        multi-party computation by the first three agents. Of the parameters "mpc"
        reads `init`, `n_init`, `alpha_W`, `alpha_H`, `l1_ratio` and `max_iter`, how
        many iterations are run: `tol` is not looked at, as that would tell something.
    encryption : {"paillier", "bfv", "simulated"} or None, default="paillier"
        "bfv" is a lattice cipher, by Microsoft SEAL (``pip install
        skppdnmf[lattice]``): a hundred times as fast for large left factors, and
        believed to withstand quantum computers. "simulated" computes the same
        integers without ciphertexts. All three have the same result, bit for bit;
        "simulated" protects nothing. None does not round either.
    key_size : int, default=2048
        Bits of the Paillier keys; those of "bfv" have one size.
    key_scheme : {"djn", "subgroup"}, default="djn"
        How keys are made; the result does not depend on it. "subgroup" encrypts and
        decrypts faster, with exponents of 256 bits, on the further assumption that
        nobody finds the subgroups of hidden orders, divisors of p - 1 and q - 1, in
        which the noise then lies (Paillier 1999, scheme 3); `key_size` is then at
        least 576.
    update : {"proximal", "published"}, default="proximal"
        "published" is the paper's printed form of (9) and (11), with which the
        agents do not agree; for comparison.
    init : {"random", "ones"} or array-like, default="random"
        Common start of the left factor; an array has shape (K, n_features).
        "random" comes from `random_state` alone; "ones" is the printed start, which
        keeps all components alike under "consensus".
    n_init : int or "auto", default="auto"
        Random starts that "secure-sum" follows side by side until a quarter of the
        iterations (16 at most) are done, then the better half of them until half
        (30 at most), then the best. "auto" makes it 8 for small problems, 1 for
        large ones: as many as keep an exchange, estimated from the numbers of agents,
        samples, features and components, to 40 milliseconds of all agents together
        and to 4 MB of a link; with an int the result does not depend on the number of
        agents. The agents learn the totals of every start. "mpc" follows all until a
        quarter of the iterations are done, and opens which is the best; "auto" makes
        it 4 there for small problems.
    key_degree : int or None, default=None
        With how many others an agent shares a key under "secure-sum". None means
        with all up to 50 agents; above, so many that a third of all agents may
        collude and still cut nobody off but with a probability below 2**-40, if
        they were settled before it is known who shares keys. All with whom an agent
        shares a key can isolate it: with 2, any two can that stand around it.
    on_dropout : {"raise", "continue"}, default="raise"
        Whether a fit under "secure-sum" in which an agent is lost ends by a
        `DropoutError`, or warns and goes on without it, with fresh masks. It goes on
        from another point than that of the sum that was given up, and only with
        three agents or more that have samples. Totals over fewer agents, compared
        with those before, still tell what the lost agent's share was, nearly.
        ``||X||^2`` and the number of samples, which scale the rounding and `tol`,
        stay those of all agents.
    fixed_components : array-like of shape (K0, n_features) or None, default=None
        Known components, such as reference signatures or spectra, under "secure-sum"
        or "mpc": the first K0 rows of `components_` stay exactly so (up to
        `normalize`), while the others are learned. K0 is less than `n_components`; of
        an `init` the first K0 rows are not read. Under "mpc" not with penalties.
    beta_loss : float or {"frobenius", "kullback-leibler", "itakura-saito"}, \
            default="frobenius"
        Divergence of X from WH that is minimised under "secure-sum", as in
        `sklearn.decomposition.NMF`: by name, or beta from 0 to 2. Other than Frobenius
        multiplicative updates are made, from expected counts that are summed, with
        extrapolation; and ``n_init="auto"`` is four starts. "itakura-saito" takes no
        zeros.
    forget_factor : float, default=0.8
        What is left of the totals of earlier batches at each `partial_fit`.
    sparse_missing : bool, default=False
        Whether, under "secure-sum", entries that a sparse X does not hold are missing,
        and not zero. In an array nan is missing. See the user guide on missing entries.
    normalize : {"components", "max", "none"} or None, default=None
        Whether, under "secure-sum", the rows of `components_` are scaled after the fit
        to sum to one (topics, signatures) or to a largest entry of one; `transform`
        scales the right factor the other way, so that the product is the same.
    alpha_W : float, default=0.0
        Weight of the penalty on the right factor, as in `sklearn.decomposition.NMF`.
        The agents minimise

        .. math::

            \frac{1}{2} \|X - WH\|_F^2
            + \alpha_W n_{features} \left(\rho \|W\|_1
            + \frac{1 - \rho}{2} \|W\|_F^2\right)
            + \alpha_H n_{samples} \left(\rho \|H\|_1
            + \frac{1 - \rho}{2} \|H\|_F^2\right),

        where rho is `l1_ratio`. `transform` includes the penalty on W.
    alpha_H : float or "same", default="same"
        Weight of the penalty on the left factor; "same" takes `alpha_W`. Each agent
        bears the share of its own samples.
    l1_ratio : float, default=0.0
        0 penalises squares, 1 absolute values, numbers between them both.
    max_iter : int, default=60
        Most iterations of block coordinate descent; under "secure-sum" each is one
        exchange.
    max_admm_iter : int, default=5
        Most ADMM iterations on the left factor, hence exchanges, in each.
    tol : float, default=1e-4
        An agent stops when, relative to the norm of its left factor, neither its
        change nor its distance to the neighbours exceeds this. Under "secure-sum"
        all stop when twice in a row the objective falls by at most this fraction.
        0 turns that off. A fit that goes on to `max_iter` warns if it is not settled:
        if the squared error has just fallen by more than `tol` of ``||X||^2``, or the
        squared distance of the copies is more than `tol` of ``||H||^2``.
    epsilon : float or None, default=None
        With it a fit under "secure-sum" is (epsilon, `delta`)-differentially private
        with regard to one sample more or less, for all that see its totals, all of
        them together: every agent adds noise, so much that all but `max_colluding`
        have enough. A second fit of the same data costs again (`privacy_budget`).
        Of the parameters `tol`, `n_init` and `n_max` are not read then, penalties and
        ``on_dropout="continue"`` are refused, and no more than 60 totals are taken;
        neither their number nor anything else follows from the data but through noise.
        The components have unit norm. See the user guide for what it costs.
    delta : float or None, default=None
        Probability with which the guarantee may fail; needed with `epsilon`, far below
        one over the number of samples.
    clip : float or None, default=None
        Largest Euclidean norm of a sample, known beforehand and not from the data;
        needed with `epsilon`. Longer samples are shortened to it.
    privacy_unit : {"sample", "agent"}, default="sample"
        What `epsilon` is about: one sample more or less, or all samples of an agent. An
        agent then sends the mean over its samples, so that all agents count alike, and
        what matters for the error is their number: some hundreds are needed, some
        thousands for many components.
    max_colluding : int or None, default=None
        How many agents, at most, are taken to tell each other what noise they have
        added. None makes it a third of them, but one at least.
    privacy_budget : PrivacyBudget or None, default=None
        From which fits with `epsilon` are paid, clones' fits too; what would exceed it
        is refused.
    n_jobs : int or None, default=None
        Agents that run side by side: in threads, or, in long fits with entrywise
        masks, whose ciphertext operations are too short for threads to share a
        second core, in processes; `joblib.parallel_config` chooses another backend.
        The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seeds the random graph, the common start and, since all agents run in one
        process, their masks; never keys or encryption noise. With None graph and start
        come from numpy's global generator and masks from the operating system: after
        ``numpy.random.seed`` fits under "secure-sum" repeat themselves, those under
        "consensus" only up to their masks.
    verbose : int, default=0
        1 shows a progress bar with error and traffic, 2 also a line for each
        iteration.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features_in_)
        The left factor H: the mean of the agents' copies.
    component_scales_ : ndarray of shape (n_components_,)
        By what `normalize` has divided the rows of `components_`; ones without it.
    n_components_ : int
        Number of components.
    reconstruction_err_ : float
        ``||X - W H||`` (Frobenius) of the training data, or the root of twice the
        divergence under another `beta_loss`; nan with `epsilon`, as it
        would tell something of them beside the noise.
    n_iter_ : int
        Iterations of block coordinate descent.
    n_exchanges_ : int
        Exchanges of the left factor between neighbours, or sums; under "mpc" rounds
        of messages between the three that compute.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X has names that are all strings.
    agent_labels_ : list
        Labels of the agents.
    sample_agents_ : ndarray of shape (n_samples,)
        Index of the agent that holds each training sample.
    adjacency_ : ndarray of shape (n_agents, n_agents)
        The graph.
    agent_components_ : ndarray of shape (n_agents, n_components_, n_features_in_)
        Each agent's copy of the left factor; nan for those that dropped out.
    dropped_agents_ : list
        Labels of the agents that dropped out.
    consensus_error_ : float
        Root mean square distance of the copies from their mean, over its norm.
        0 under "secure-sum".
    history_ : dict of ndarrays
        One entry for each iteration: ``exchanges``, ``local_error`` (with each
        agent's own copy; the paper's NMSE), ``shared_error`` (with the mean of the
        copies), ``consensus_error``, ``seconds``, ``bytes``; errors are relative to
        the norm of X, and below about 3e-4 under float32 they are rounding; nan
        with `epsilon`. Under "mpc", where nobody knows of an error before the end,
        ``local_error`` and ``shared_error`` are nan and ``observed_error`` is what an
        observer of all data computes by the same iterations in floating point; the
        last is that of the components.
    privacy_ : dict or None
        With `epsilon` what was spent and how: ``epsilon``, ``delta``, ``mu`` (of the
        fit as one Gaussian mechanism), ``unit``, ``neighbours``, ``clip``,
        ``sensitivity``, ``noise`` (standard deviations in a total), ``share`` of
        ``W^T W`` and ``W^T X``, ``n_totals``, ``n_samples`` (with its noise; under
        ``privacy_unit="agent"`` ``n_agents``, those that have samples), ``n_honest``
        (agents whose noise counts), ``max_colluding`` and ``membership_auc`` (the
        largest that a test of membership of a unit can have). Under "mpc"
        ``opened``: how many numbers were opened, by what they are.
    memory_ : object or None
        After `partial_fit` the totals that the next batch goes on from.
    traffic_ : dict
        ``messages``, ``ciphertexts`` and ``bytes`` in all, and under ``edges`` for
        each directed edge ``(label, label)``.

    See Also
    --------
    sklearn.decomposition.NMF : The same factorisation of pooled data.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skppdnmf import PrivateDistributedNMF
    >>> X = load_digits().data
    >>> model = PrivateDistributedNMF(
    ...     n_components=8, partition=3, encryption="simulated", tol=0, random_state=0
    ... )
    >>> W = model.fit_transform(X)
    >>> W.shape, model.components_.shape
    ((1797, 8), (8, 64))
    >>> bool(model.consensus_error_ < 0.05)
    True
    >>> model.set_params(protocol="secure-sum").fit(X).consensus_error_
    0.0
    """

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's convention
        "n_components": [
            Interval(Integral, 1, None, closed="left"),
            StrOptions({"auto"}),
        ],
        "partition": "no_validation",
        "adjacency": "no_validation",
        "mu": [Interval(Real, 0, 1e100, closed="right")],
        "eta": [Interval(Real, 0, 1e100, closed="right")],
        "g_max": [Interval(Real, 0, 1e100, closed="right")],
        "penalty_scaling": [StrOptions({"data", "absolute"})],
        "masking": [StrOptions({"entrywise", "scalar"})],
        "n_max": [Interval(Real, 1, 1e300, closed="both")],
        "protocol": [StrOptions(set(PROTOCOLS))],
        "encryption": [StrOptions({"paillier", "bfv", "simulated"}), None],
        "key_size": [Interval(Integral, MIN_KEY_SIZE, None, closed="left")],
        "key_scheme": [StrOptions(set(SCHEMES))],
        "update": [StrOptions({"proximal", "published"})],
        "init": [StrOptions({"random", "ones"}), "array-like"],
        "n_init": [
            Interval(Integral, 1, None, closed="left"),
            StrOptions({"auto"}),
        ],
        "key_degree": [Interval(Integral, 1, None, closed="left"), None],
        "on_dropout": [StrOptions({"raise", "continue"})],
        "fixed_components": ["array-like", None],
        "beta_loss": [
            StrOptions({"frobenius", "kullback-leibler", "itakura-saito"}),
            Interval(Real, 0, 2, closed="both"),
        ],
        "forget_factor": [Interval(Real, 0, 1, closed="both")],
        "sparse_missing": ["boolean"],
        "normalize": [StrOptions({"none", "components", "max"}), None],
        "alpha_W": [Interval(Real, 0, None, closed="left")],
        "alpha_H": [Interval(Real, 0, None, closed="left"), StrOptions({"same"})],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "max_admm_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "epsilon": [Interval(Real, 0, 100, closed="right"), None],
        "delta": [Interval(Real, 0, 1, closed="neither"), None],
        "clip": [Interval(Real, 0, 1e100, closed="right"), None],
        "privacy_unit": [StrOptions({"sample", "agent"})],
        "max_colluding": [Interval(Integral, 1, None, closed="left"), None],
        "privacy_budget": "no_validation",
        "n_jobs": [None, Integral],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    # By this and not by the signature of `fit`: what has it there is expected to take
    # weights whatever its parameters, and only sums do.
    __metadata_request__fit = {"sample_weight": None}  # noqa: RUF012
    __metadata_request__fit_transform = {"sample_weight": None}  # noqa: RUF012

    # Where the HTML representation links to; the names are scikit-learn's.
    _doc_link_module = "skppdnmf"
    _doc_link_template = (
        "https://skppdnmf.readthedocs.io/en/stable/generated/"
        "{estimator_module}.{estimator_name}.html"
    )

    def __init__(
        self,
        n_components: int | str = "auto",
        *,
        partition: Any = None,
        adjacency: Any = "random",
        mu: float = 1.0,
        eta: float = 1.0,
        g_max: float = 1.0,
        penalty_scaling: str = "data",
        masking: str = "entrywise",
        n_max: float = 10**6,
        protocol: str = "consensus",
        encryption: str | None = "paillier",
        key_size: int = 2048,
        key_scheme: str = "djn",
        update: str = "proximal",
        init: Any = "random",
        n_init: int | str = "auto",
        key_degree: int | None = None,
        on_dropout: str = "raise",
        fixed_components: Any = None,
        beta_loss: str | float = "frobenius",
        forget_factor: float = 0.8,
        sparse_missing: bool = False,
        normalize: str | None = None,
        alpha_W: float = 0.0,
        alpha_H: float | str = "same",
        l1_ratio: float = 0.0,
        max_iter: int = 60,
        max_admm_iter: int = 5,
        tol: float = 1e-4,
        epsilon: float | None = None,
        delta: float | None = None,
        clip: float | None = None,
        privacy_unit: str = "sample",
        max_colluding: int | None = None,
        privacy_budget: PrivacyBudget | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.partition = partition
        self.adjacency = adjacency
        self.mu = mu
        self.eta = eta
        self.g_max = g_max
        self.penalty_scaling = penalty_scaling
        self.masking = masking
        self.n_max = n_max
        self.protocol = protocol
        self.encryption = encryption
        self.key_size = key_size
        self.key_scheme = key_scheme
        self.update = update
        self.init = init
        self.n_init = n_init
        self.key_degree = key_degree
        self.on_dropout = on_dropout
        self.fixed_components = fixed_components
        self.beta_loss = beta_loss
        self.forget_factor = forget_factor
        self.sparse_missing = sparse_missing
        self.normalize = normalize
        self.alpha_W = alpha_W
        self.alpha_H = alpha_H
        self.l1_ratio = l1_ratio
        self.max_iter = max_iter
        self.max_admm_iter = max_admm_iter
        self.tol = tol
        self.epsilon = epsilon
        self.delta = delta
        self.clip = clip
        self.privacy_unit = privacy_unit
        self.max_colluding = max_colluding
        self.privacy_budget = privacy_budget
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _validate_params(self):
        """Check parameters as scikit-learn does, numbers as Python's own."""
        BaseEstimator._validate_params(with_python_numbers(self))

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: Any = None, *, agents: Any = None, **fit_params: Any
    ) -> PrivateDistributedNMF:
        """Factorise X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), list or dict
            Nonnegative data. A list or tuple of 2-D parts (arrays, sparse matrices,
            frames) gives each agent its part; a dict, or pairs of a label and a part
            as in ``list(frame.groupby("site"))``, names the agents, too.
        y : ignored
            Present for API consistency by convention.
        agents : array-like of shape (n_samples,) or None, default=None
            Label of the agent that holds each sample, any hashable; overrides
            `partition`. With an explicit `adjacency` its row numbers or node names.
            A pandas series is aligned with a frame by its index.
        **fit_params : dict
            ``sample_weight``, an array-like of shape (n_samples,) or None: weights of
            the samples' squared errors, and of their penalties, under "secure-sum". A
            sample of weight 2 counts as two, one of weight 0 is as good as absent. An
            agent shows its weights to nobody; all learn their sum.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            If X, a parameter, the partition or the graph is invalid.
        TypeError
            If X is a lazy frame or a masked array.
        OverflowError
            If the fixed-point numbers do not fit the key's plaintext, a total
            does not fit 64 bits, or, under "mpc", a number may not fit 128.
        ImportError
            If `protocol` is "mpc" and SPU is not installed.
        DropoutError
            If an agent is lost and `on_dropout` is "raise", or the others cannot go
            on: they are fewer than three with samples, cannot reach each other, or
            share too few keys.
        ExcessiveNoiseError
            If the noise of `epsilon` exceeds what so many samples say.
        PrivacyBudgetError
            If the fit would exceed `privacy_budget`.

        Examples
        --------
        >>> from skppdnmf import PrivateDistributedNMF
        >>> model = PrivateDistributedNMF(1, protocol="secure-sum", random_state=0)
        >>> X = [[1, 2], [2, 4], [3, 6], [2, 1]]
        >>> model.fit(X, agents=["a", "b", "c", "c"]).agent_labels_
        ['a', 'b', 'c']
        """
        self._fit(X, y, agents, **fit_params)
        return self

    @available_if(takes_batches)
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self, X: Any, y: Any = None, *, agents: Any = None, **fit_params: Any
    ) -> PrivateDistributedNMF:
        """Go on with further samples, at any agents, under "secure-sum".

        The left factor starts where the last batch has left it, and the totals of
        earlier batches count as well, `forget_factor` of them with each call: they are
        known to all. A batch takes up to `max_iter` sums, and its totals tell of its
        samples alone: a small batch is a small pool.

        Parameters
        ----------
        X, y, agents, **fit_params
            As in `fit`; the agents need not be those of other batches.

        Returns
        -------
        self : object
            The estimator; its attributes on samples, history and traffic are those of
            the batch.

        Raises
        ------
        AttributeError
            Under another protocol, with `epsilon`, penalties or another `beta_loss`,
            where there is no such method; its cause says why.
        ValueError
            As in `fit`, or if the number of features is another.

        Examples
        --------
        >>> import numpy as np
        >>> from skppdnmf import PrivateDistributedNMF
        >>> X = np.outer(np.arange(1.0, 41.0), [1.0, 2.0, 3.0])
        >>> model = PrivateDistributedNMF(1, protocol="secure-sum", random_state=0)
        >>> for batch in (X[:20], X[20:]):
        ...     model = model.partial_fit(batch)
        >>> bool(model.score(X) > -1e-3)
        True
        """
        self._fit(X, y, agents, partial=True, **fit_params)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_transform(
        self, X: Any, y: Any = None, *, agents: Any = None, **fit_params: Any
    ) -> Any:
        """Factorise X and return the right factor; equals ``fit(X).transform(X)``.

        Parameters
        ----------
        X, y, agents, **fit_params
            As in `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_components_)
            The right factor W.

        Raises
        ------
        ValueError, OverflowError
            As in `fit`.

        Examples
        --------
        >>> from skppdnmf import PrivateDistributedNMF
        >>> model = PrivateDistributedNMF(1, protocol="secure-sum", random_state=0)
        >>> model.fit_transform([[1, 2], [2, 4], [3, 6], [2, 1]]).shape
        (4, 1)
        """
        W, stacked = self._fit(X, y, agents, **fit_params)
        return self._with_labels(W, stacked) if is_parts(X) else W

    def _with_labels(self, W, stacked):
        """Return W as `set_output` asks for, with the row labels of stacked frames."""
        # Scikit-learn does so itself, but looks for labels on X: a list has none.
        return _wrap_data_with_container("transform", W, stacked, self)

    @keeps_what_was_fitted
    @single_threaded()
    def _fit(self, X, y, agents, recorder=None, sample_weight=None, partial=False):
        """Factorise X; return the right factor, and X with its parts stacked.

        An audit hands in a recorder.
        """
        n_parts = labels = None
        if is_parts(X):
            if agents is not None:
                raise ValueError(
                    f"agents is given although X is a {type(X).__name__} of "
                    f"{len(X)} parts, one for each agent"
                )
            n_parts = len(X)
            labels, X = split_labels(X)
            X, agents = stack_numbered(X)
        given = X
        warn_of_labels_as_target(y, agents, X, type(self).__name__)
        agents = align(agents, X, "agents")
        memory = getattr(self, "memory_", None) if partial else None
        X = validate_samples(self, X, reset=memory is None)
        plain = with_python_numbers(self)
        n_components, init = check_start(
            plain.n_components, self.init, X.shape[1], type(self).__name__
        )
        if self.n_jobs == 0:
            raise ValueError("n_jobs=0 has no meaning; use None, 1 or more, or -1")
        check_privacy(plain)
        check_uses(plain, sample_weight=sample_weight)
        missing = missing_entries(self, X)
        check_positive(self, X)
        fixed = check_fixed(
            self.fixed_components, n_components, X.shape[1], type(self).__name__
        )
        seeds = draw_seeds(plain.random_state)
        partition, network = check_federation(
            X.shape[0],
            self.partition,
            self.adjacency,
            agents,
            n_parts,
            seeds.graph,
            labels,
        )
        protocol = protocol_of(plain)
        start = common_start(
            init, n_components, X.shape[1], seeds.start, protocol.start_scaling(plain)
        )
        if memory is not None:
            start, memory = memory.H, memory.faded(self.forget_factor)
        if fixed is not None:
            start = np.concatenate([fixed, start[len(fixed) :]])
        used, holders, weights = X, partition, None
        if sample_weight is not None:
            sample_weight = align(sample_weight, given, "sample_weight")
            weights = check_weights(sample_weight, X)
            used, holders, weights = _without_weightless(X, partition, weights)
        callbacks = FitCallbacks(self, given, y, plain.max_iter)
        setting = Setting(
            plain, network, start, seeds, weights is not None, missing, partial, memory
        )
        warn_of_leaks(protocol, setting, holders)
        plan = protocol.plan(setting)
        protocol.check_data(setting, used)
        protocol.warn_of_cost(setting, plan)
        if self.privacy_budget is not None:
            self.privacy_budget.spend(plain.epsilon, plain.delta, self.privacy_unit)
        outcome, rows = run_fit(
            setting, plan, used, holders, callbacks, recorder, weights
        )
        attributes = fitted_attributes(outcome.reports, rows, X.dtype, self.normalize)
        for name, value in attributes.items():
            setattr(self, name, value)
        self.agent_labels_ = list(partition.labels)
        self.sample_agents_ = partition.sample_agents
        self.adjacency_ = network.adjacency.copy()
        self.traffic_ = outcome.traffic.summary(partition.labels)
        self.dropped_agents_ = [partition.labels[k] for k in outcome.membership.gone]
        plain = with_python_numbers(self)
        reports = [report for report in outcome.reports if report is not None]
        self.privacy_ = reports[0].privacy
        self.memory_ = reports[0].totals
        if memory is not None:
            self.memory_ = memory.joined(self.memory_)
        if (
            self.epsilon is None
            and not partial
            and not outcome.converged
            and self.tol > 0
            and self.n_iter_ == self.max_iter
            and (unfinished(self) or protocol.advice(plain))
        ):
            warn_user(
                f"{type(self).__name__} did not reach tol={self.tol:g} within "
                f"max_iter={self.max_iter} iterations (consensus_error_="
                f"{self.consensus_error_:.2g}). {advice(plain, protocol)} With tol=0 "
                "all iterations are run and nothing is checked.",
                ConvergenceWarning,
            )
        for message in protocol.remarks(plain, outcome.reports):
            warn_user(message, ConvergenceWarning)
        self.reconstruction_err_ = np.nan
        with Helpers.of(self.n_jobs, 1) as helpers:
            W = self._solve(X, helpers.share)
            if self.epsilon is None:
                _, error = self._squared_errors(X, W, sample_weight, helpers.share)
                self.reconstruction_err_ = float(np.sqrt(error))
        callbacks.end()
        return W.astype(X.dtype, copy=False), given

    def _solve(self, X, share=one_by_one):
        """Solve the right factor of validated data, in double precision."""
        plain = with_python_numbers(self)
        penalty = right_penalty(plain.alpha_W, plain.l1_ratio, X.shape[1])
        missing = missing_entries(self, X)
        solve = solve_observed if missing else partial(solve_nnls, share=share)
        beta = beta_of(plain.beta_loss)
        if beta != 2:
            check_positive(self, X)
            solve = partial(_solve_divergence, beta=beta, missing=missing)
        if self.normalize in (None, "none") or not any(penalty):
            return solve(X, self.components_, *penalty)
        # The penalty is on the right factor as it was before rows were scaled.
        scales = self.component_scales_
        H = self.components_.astype(np.float64) * scales[:, None]
        return solve(X, H, *penalty) * scales

    def _squared_errors(self, X, W, sample_weight=None, share=one_by_one):
        """Return ``||X||^2`` and ``||X - W H||^2``, weighted; or twice divergences."""
        W = W.astype(np.float64)
        H = self.components_.astype(np.float64)
        if beta_of(self.beta_loss) != 2:
            missing = missing_entries(self, X)
            samples = BetaSamples.of(X, beta_of(self.beta_loss), missing)
            weight = np.ones(samples.n_samples)
            if sample_weight is not None:
                weight = _check_sample_weight(
                    sample_weight, X, dtype=np.float64, ensure_non_negative=True
                )
            null = samples.null_divergences() @ weight
            return 2.0 * float(null), 2.0 * float(samples.divergences(W, H) @ weight)
        if missing_entries(self, X):
            norms, errors = observed_errors(X, W, H)
            weight = np.ones(len(norms))
            if sample_weight is not None:
                weight = _check_sample_weight(
                    sample_weight, X, dtype=np.float64, ensure_non_negative=True
                )
            return float(norms @ weight), float(errors @ weight)
        if sample_weight is not None:
            weight = _check_sample_weight(
                sample_weight, X, dtype=np.float64, ensure_non_negative=True
            )
            root = np.sqrt(weight)
            X, W = scale_rows(X.astype(np.float64), root), W * root[:, None]
        return squared_norm(X, share), squared_residual(X, W, H, share)

    @single_threaded()
    def transform(self, X: Any) -> Any:
        """Solve each sample's nonnegative least squares problem exactly.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or list
            Nonnegative data; parts are stacked, pandas frames with their row labels.

        Returns
        -------
        ndarray of shape (n_samples, n_components_)
            The right factor W >= 0 that minimises ``||X - W components_||``, or the
            objective with the penalty on W, row by row: a sample's result does not
            depend on the others.

        Raises
        ------
        ValueError
            If X is invalid.
        OverflowError
            If an entry of W is more than the precision of X holds.

        Examples
        --------
        >>> import numpy as np
        >>> from skppdnmf import PrivateDistributedNMF
        >>> X = np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])
        >>> model = PrivateDistributedNMF(1, protocol="secure-sum", random_state=0)
        >>> W = model.fit(X).transform(2 * X)
        >>> bool(np.allclose(W @ model.components_, 2 * X))
        True
        """
        check_is_fitted(self)
        stacked = stack_parts(X)[0] if is_parts(X) else X
        data = validate_samples(self, stacked, reset=False)
        with Helpers.of(self.n_jobs, 1) as helpers:
            W = self._solve(data, helpers.share)
        if largest_entry(W) > float(np.finfo(data.dtype).max):
            raise OverflowError(
                f"an entry of W is {largest_entry(W):.3g}, more than {data.dtype} "
                "holds; pass X as float64"
            )
        W = W.astype(data.dtype, copy=False)
        return self._with_labels(W, stacked) if is_parts(X) else W

    @single_threaded()
    def inverse_transform(self, X: Any) -> Any:
        """Return data from a right factor.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_components_)
            The right factor W.

        Returns
        -------
        ndarray of shape (n_samples, n_features_in_)
            ``W components_``.

        Raises
        ------
        ValueError
            If X does not have `n_components_` columns.

        Examples
        --------
        >>> from skppdnmf import PrivateDistributedNMF
        >>> model = PrivateDistributedNMF(1, protocol="secure-sum", random_state=0)
        >>> W = model.fit_transform([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])
        >>> model.inverse_transform(W).round(3)
        array([[1., 2.],
               [2., 4.],
               [3., 6.]])
        """
        check_is_fitted(self)
        X = check_array(X, accept_sparse=True, dtype=[np.float64, np.float32])
        if X.shape[1] != self.n_components_:
            raise ValueError(
                f"X has {X.shape[1]} columns, expected n_components_="
                f"{self.n_components_}"
            )
        return X @ self.components_

    @single_threaded()
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the relative reconstruction error; greater is better.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or list
            Nonnegative data.
        y : ignored
            Present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the squared errors and norms of the samples.

        Returns
        -------
        float
            ``-||X - W H|| / ||X||`` with the W of `transform`; 0 if X is zero. Under
            another `beta_loss` minus the root of the divergence over that of X from
            the mean of each sample.

        Raises
        ------
        ValueError
            If X or the weights are invalid.

        Examples
        --------
        >>> from skppdnmf import PrivateDistributedNMF
        >>> X = [[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]
        >>> model = PrivateDistributedNMF(1, protocol="secure-sum", random_state=0)
        >>> bool(model.fit(X).score(X) > -1e-3)
        True
        """
        check_is_fitted(self)
        if is_parts(X):
            X, _ = stack_parts(X)
        sample_weight = align(sample_weight, X, "sample_weight")
        X = validate_samples(self, X, reset=False)
        W = self._solve(X)
        # By a power of two, which changes no bit: squares stay far from the ends of the
        # number range.
        scale = np.ldexp(1.0, -int(np.frexp(largest_entry(X))[1]))
        X, W = X.astype(np.float64) * scale, W * scale
        norm, error = self._squared_errors(X, W, sample_weight)
        return -float(np.sqrt(error / norm)) if norm else 0.0

    @property
    def _n_features_out(self):
        """Number of transformed output features."""
        return self.components_.shape[0]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        protocol = PROTOCOLS.get(self.protocol)
        allowed = protocol is not None and protocol.sums and self.epsilon is None
        tags.input_tags.allow_nan = allowed
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _solve_divergence(X, H, l1, l2, *, beta, missing):
    """Solve the right factor under another divergence."""
    return solve_beta(X, H, beta, l1, l2, missing)


def _without_weightless(X, partition, weights):
    """Leave out the samples of no weight: nobody is told of them."""
    kept = np.flatnonzero(weights)
    if len(kept) == len(weights):
        return X, partition, weights
    holders = Partition(partition.sample_agents[kept], partition.labels)
    return X[kept], holders, weights[kept]

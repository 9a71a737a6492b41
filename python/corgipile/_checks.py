"""Checks of arguments. A failed check names the argument and says what it must be.

This prevents errors from lower layers, which would not say which argument is wrong and what to do.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Mapping
from typing import Any

from corgipile._text import is_unicode

#: Whole numbers of the database and of the native part lie within these.
LEAST, MOST = -(2**63), 2**63 - 1


def called(value: Any) -> str:
    """A value that is of the wrong type, as an error calls it: a large one by its type."""
    if value is None or isinstance(value, bool | int | float):
        return str(value)
    text = repr(value) if isinstance(value, str | bytes) else ""
    return text if 0 < len(text) <= 60 else type(value).__name__


def check_number(name: str, number: Any, least: int, most: int = 2**31 - 1, hint: str = "") -> int:
    """The number. Raises TypeError or ValueError unless it is an integer within these bounds."""
    try:
        if isinstance(number, bool):
            raise TypeError
        whole = operator.index(number)
    except TypeError:
        raise TypeError(f"{name}: {called(number)} is not an integer{hint}") from None
    if not least <= whole <= most:
        raise ValueError(f"{name}: {whole} is not between {least} and {most}{hint}")
    return whole


def check_seed(seed: Any) -> int:
    """The seed. Raises TypeError or ValueError unless it is valid."""
    return check_number("seed", seed, LEAST, MOST)


def check_text(name: str, text: Any, example: str) -> str:
    """The text. Raises TypeError or ValueError unless it is a string that a database and a file can store."""
    if not isinstance(text, str):
        raise TypeError(f"{name}: must be a string, such as {example!r}, not {called(text)}")
    if "\0" in text or not is_unicode(text):
        raise ValueError(f"{name}: {text!r} has a character that no text may have: a zero byte, or half of a pair")
    return text


def check_path(name: str, path: Any) -> str:
    """The path as text. Raises TypeError or ValueError unless it is a path."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"{name}: must be a path, not {called(path)}")
    text = os.fspath(path)
    if not isinstance(text, str):
        raise TypeError(f"{name}: must be a string, not bytes: os.fsdecode(...) makes one")
    if not text:
        raise ValueError(f"{name}: the path is empty")
    return check_text(name, text, "train.csv")


def check_paths(name: str, paths: Any) -> list[str]:
    """Paths as texts: one, or several. Raises TypeError or ValueError unless they are paths."""
    if isinstance(paths, str | os.PathLike):
        return [check_path(name, paths)]
    if isinstance(paths, bytes | Mapping) or not isinstance(paths, Iterable):
        raise TypeError(f"{name}: must be a path, or a list of paths, not {called(paths)}")
    found = [check_path(name, path) for path in paths]
    if not found:
        raise ValueError(f"{name}: no path was given: name at least one file")
    return found


def check_names(name: str, names: Any) -> list[str] | None:
    """Names of columns, or None. Raises TypeError unless it is a list of strings."""
    if names is None:
        return None
    return check_texts(name, names, "names")


def check_texts(name: str, texts: Any, what: str) -> list[str]:
    """The list. Raises TypeError unless it is a list of strings."""
    if isinstance(texts, str):
        raise TypeError(f"{name}: must be a list of {what}, such as [{texts!r}]")
    if isinstance(texts, bytes | Mapping) or not isinstance(texts, Iterable):
        raise TypeError(f"{name}: must be a list of {what}, not {called(texts)}")
    found = list(texts)
    for text in found:
        if not isinstance(text, str):
            raise TypeError(f"{name}: must be a list of {what}, but {called(text)} is not a string")
    return found


def check_texts_by_name(name: str, texts: Any) -> dict[str, str]:
    """The dictionary. Raises TypeError unless it maps strings to strings."""
    if not isinstance(texts, Mapping):
        raise TypeError(f"{name}: must be a dictionary, such as {{'x': 'float32'}}, not {called(texts)}")
    for key, text in texts.items():
        if not isinstance(key, str) or not isinstance(text, str):
            raise TypeError(f"{name}: names and types are texts, and {called(key)}: {called(text)} are not")
    return dict(texts)


def check_flag(name: str, flag: Any) -> bool:
    """The flag. Raises TypeError unless it is True or False."""
    if not isinstance(flag, bool):
        raise TypeError(f"{name}: must be True or False, not {called(flag)}")
    return flag


def check_character(name: str, character: Any) -> int:
    """The character's number. Raises TypeError or ValueError unless it is an ASCII character."""
    if not isinstance(character, str):
        raise TypeError(f"{name}: must be a character, not {called(character)}")
    if len(character) != 1 or ord(character) > 127:
        raise ValueError(f"{name}: {character!r} is not one ASCII character")
    return ord(character)


def check_function(name: str, function: Any) -> None:
    """Raises TypeError unless it is a function, or None."""
    if function is not None and not callable(function):
        raise TypeError(f"{name}: must be a function, not {called(function)}")

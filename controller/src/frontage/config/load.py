"""Loading a configuration file: parsing, validation, absolute paths, secret files and checks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from frontage.config import records
from frontage.config.checks import check
from frontage.config.document import Document, DocumentError, Problem, parse
from frontage.config.document import Path as FieldPath
from frontage.config.errors import ConfigError
from frontage.config.explain import explain
from frontage.config.schema import Config, Key
from frontage.cookie import SECRET_BYTES_MAX, SECRET_BYTES_MIN
from frontage.fields import parse_secret
from frontage.mapping.settings import in_folder


def load(file: Path | str) -> Config:
    """Read and check a configuration file. Raises ConfigError, which names every problem that was found."""
    file = Path(file)
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(file, [Problem((), "no such file", "give the path of a configuration file")]) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(file, [Problem((), f"cannot be read: {error}", "make it a readable UTF-8 text file")]) from None
    return loads(text, file)


def loads(text: str, file: Path) -> Config:
    """Check the text of a configuration file; ``file`` names it in errors, and paths in it are relative to its folder."""
    try:
        document = parse(text)
    except DocumentError as error:
        raise ConfigError(file, error.problems) from None
    if not isinstance(document.data, dict):
        what = "is empty" if document.data is None else "is not a mapping of fields"
        raise ConfigError(file, [Problem((), what, "begin with `device:`, `ports:`, `vips:`", document.position(()))])
    try:
        config = Config.model_validate(document.data)
    except ValidationError as error:
        raise ConfigError(file, explain(error, document, Config)) from None
    config, problems = _resolve(config, file.parent, document)
    for found in check(config):
        locate = document.key_position if found.at_key else document.position
        problems.append(Problem(found.path, found.what, found.fix, locate(found.path)))
    if problems:
        raise ConfigError(file, problems)
    return config


def _resolve(config: Config, folder: Path, document: Document) -> tuple[Config, list[Problem]]:
    """Make paths absolute and read the secret files."""
    problems: list[Problem] = []
    keys: list[Key] = []
    for i, key in enumerate(config.keys):
        if key.secret_file is not None:
            file = folder / key.secret_file
            path: FieldPath = ("keys", i, "secret_file")
            try:
                secret = parse_secret(file.read_text(encoding="ascii").strip())
            except (OSError, UnicodeDecodeError) as error:
                problems.append(Problem(path, f"cannot be read: {error}", "write the secret there", document.position(path)))
                continue
            except ValueError as error:
                what = f"what {file} holds is {error}"
                fix = f"write {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes in hexadecimal there"
                problems.append(Problem(path, what, fix, document.position(path)))
                continue
            key = key.model_copy(update={"secret": secret, "secret_file": file})
        keys.append(key)
    pipeline = config.device.pipeline
    pipeline = pipeline.model_copy(
        update={"p4info": (folder / pipeline.p4info).absolute(), "json_file": (folder / pipeline.json_file).absolute()}
    )
    update: dict[str, Any] = {
        "keys": tuple(keys),
        "device": config.device.model_copy(update={"pipeline": pipeline}),
    }
    if config.mapping is not None:
        update["mapping"] = (folder / config.mapping).absolute()
    if config.end_users is not None:
        update["end_users"] = in_folder(config.end_users, folder)
    if config.records is not None:
        update["records"] = records.in_folder(config.records, folder)
    if config.control_socket is not None:
        update["control_socket"] = (folder / config.control_socket).absolute()
    return config.model_copy(update=update), problems

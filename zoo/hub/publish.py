"""Upload of a model to the Hub: weights, config.json, model card and diagram in one commit."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, errors
from torch import nn

from zoo import artifact
from zoo.about import DISTRIBUTION, version
from zoo.artifact.mapped_file import INDEX, SINGLE_FILE as WEIGHTS
from zoo.artifact.versions import available_spec
from zoo.errors import ArtifactError, HubError, RegistryError, SpecError
from zoo.files import atomic_write, os_error_message, staging_dir
from zoo.hub import card, names
from zoo.hub.adapters import load_shareable
from zoo.hub.catalogue import CatalogueEntry, load_catalogue
from zoo.hub.checkout import CONFIG, Checkout, Options
from zoo.hub.client import NETWORK_ERRORS, redact_url
from zoo.hub.credentials import Credentials, hub_endpoint, is_offline
from zoo.hub.models import Source, find
from zoo.hub.reference import Reference, parse_reference
from zoo.interfaces import Model
from zoo.registry.component_registry import default_registry
from zoo.spec.composition import build_on_meta
from zoo.spec.providers import missing_component, reference
from zoo.spec.report import build_report
from zoo.spec.spec import load_spec

CARD = "README.md"
# huggingface_hub raises any of these for a malformed response, NameError while it handles another.
_PUSH_ERRORS: tuple[type[Exception], ...] = (
    *NETWORK_ERRORS,
    *(ValueError, RuntimeError, LookupError, TypeError, AttributeError, NameError),
)
SHARD_BYTES = "5GB"
_GENERATED_MARKS = (card.GENERATED_MARK, card.OLD_GENERATED_MARK)
_SHARD = re.compile(r"model-([0-9a-f]{8}-)?\d{5}-of-\d{5}\.safetensors")


@dataclass(frozen=True)
class PushResult:
    """The commit of a pushed model."""

    repo: str
    commit: str
    url: str
    files: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "repository": self.repo,
            "commit": self.commit,
            "url": self.url,
            "files": list(self.files),
        }


def save_folder(
    model: Model,
    folder: str | os.PathLike[str],
    *,
    repo: str | None = None,
    licence: str | None = None,
    provenance: Mapping[str, Any] | None = None,
    shard_bytes: int | str = SHARD_BYTES,
) -> Path:
    """Save a model with config.json, model card and diagram, as on the Hub."""
    target = Path(folder)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArtifactError(f"{target} cannot be created: {os_error_message(error)}") from None
    artifact.save(model, target, provenance=provenance, shard_bytes=shard_bytes)
    if artifact.is_main_process():
        write_model_card(target, repo or target.name, licence)
    return target


def push(
    model: Model | Source,
    repo: str,
    *,
    private: bool | None = None,
    revision: str | None = None,
    message: str | None = None,
    licence: str | None = None,
    provenance: Mapping[str, Any] | None = None,
    shard_bytes: int | str | None = None,
    token: str | bool | None = None,
) -> PushResult:
    """Upload a model or a saved model in one commit. The repository is created if necessary.

    A model card that was not generated is kept.

    Args:
        repo: `org/name` or `org/name@branch`.
        private: visibility of a new repository; default: the Hub's.
        provenance: how the model was made: data, seed, metrics. A saved model has its own.
        shard_bytes: the maximum size of one file; default: a saved model is uploaded as it is.
    """
    target = parse_reference(repo, revision)
    repo, branch = target.repo, target.revision
    if not target.is_mutable:
        raise HubError(f"{branch} is a commit; pushing to {repo} needs a branch such as main")
    address, access = hub_endpoint(), Credentials.resolve(token)
    if is_offline():
        raise HubError(f"{repo} cannot be pushed to: HF_HUB_OFFLINE is set")
    if not artifact.is_main_process():
        raise HubError("only rank 0 of a process group can push")
    # The next push removes the directory of a killed process.
    with staging_dir(Path(tempfile.gettempdir()) / "zoo-push") as staging:
        folder = staging / "files"
        folder.mkdir()
        max_bytes = shard_bytes or SHARD_BYTES
        if isinstance(model, nn.Module):
            artifact.save(model, folder, provenance=provenance, shard_bytes=max_bytes)
        else:
            saved = load_shareable(path := find(model))
            if shard_bytes is None:
                _link_weights(path, folder)
            else:
                stored = artifact.read_header(path).provenance
                artifact.save(saved, folder, provenance=stored, shard_bytes=max_bytes)
        write_model_card(folder, repo, licence)
        api = HfApi(
            endpoint=address,
            token=access.token or False,
            library_name=DISTRIBUTION,
            library_version=version(),
        )
        try:
            return _create_commit(api, staging, repo, branch, private, message)
        except (errors.HfHubHTTPError, errors.HFValidationError) as error:
            raise _push_error(error, repo, access, redact_url(address)) from None
        except _PUSH_ERRORS as error:
            cause = error.__cause__ if isinstance(error, RuntimeError) else None
            cause = error.__context__ if isinstance(error, NameError) else cause
            detail = access.describe(cause or error)
            raise HubError(f"{repo} was not pushed to {redact_url(address)}: {detail}") from None


def write_model_card(folder: Path, repo: str, licence: str | None = None) -> None:
    """Write config.json, model card, diagram and results next to the weights of a directory."""
    header = artifact.read_header(folder)
    spec = load_spec(available_spec(header, default_registry()))
    tree = build_on_meta(spec)
    known, report = _find_in_catalogue(spec.name), build_report(spec, tree)
    stored = header.provenance.get("licence")
    stored = stored if isinstance(stored, str) else None
    card_data = card.CardData(
        repo,
        report,
        header.spec,
        header.providers,
        header.provenance,
        licence or stored or (known.licence if known else None),
        tree.part.generation_input,
        bool(header.tokenizer),
        known,
        _list_papers(header.providers),
    )
    texts = {
        CONFIG: card.config_json(card_data),
        card.PICTURE: card.tree_svg(report),
        card.RESULTS: card.eval_results(card_data),
        CARD: card.model_card(card_data),
    }
    for name, text in texts.items():
        try:
            if text is not None:
                (folder / name).parent.mkdir(exist_ok=True)
                with atomic_write(folder / name) as temp_path:
                    temp_path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise ArtifactError(
                f"{folder / name} cannot be written: {os_error_message(error)}"
            ) from None


def _list_papers(providers: Sequence[Mapping[str, Any]]) -> list[str]:
    registry = default_registry()
    installed = (row for row in providers if missing_component(row, registry) is None)
    parts = (registry.get(row["kind"], reference(row)) for row in installed)
    return sorted({entry.cls.paper for entry in parts} - {""})


def _find_in_catalogue(name: str) -> CatalogueEntry | None:
    try:
        return load_catalogue().get(name)
    except (RegistryError, SpecError):
        return None


def _link_weights(path: Path, folder: Path) -> None:
    """Link the weights of a saved model, under their names on the Hub, or copy them."""
    header = artifact.read_header(path)
    files = {name: header.path.parent / name for name, _ in header.files}
    files = {**files, INDEX: header.path} if len(files) > 1 else {WEIGHTS: header.path}
    for name, file in files.items():
        try:
            (folder / name).symlink_to(file.resolve(strict=True))
        except OSError:
            try:
                shutil.copyfile(file, folder / name)
            except OSError as error:
                raise ArtifactError(f"{path} cannot be read: {os_error_message(error)}") from None


def _create_commit(
    api: HfApi, staging: Path, repo: str, branch: str, private: bool | None, message: str | None
) -> PushResult:
    folder = staging / "files"
    api.create_repo(repo, private=private, exist_ok=True)
    if branch != "main":
        api.create_branch(repo, branch=branch, exist_ok=True)
    remote = _RemoteState.fetch(api, repo, branch, staging / "cache")
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    added = {p.relative_to(folder).as_posix(): p.resolve() for p in files}
    if remote.card and not any(mark in remote.card for mark in _GENERATED_MARKS):
        del added[CARD]
    additions = [CommitOperationAdd(name, str(path)) for name, path in added.items()]
    operations: Sequence[Any] = [
        *additions,
        *(CommitOperationDelete(name) for name in remote.weights if name not in added),
    ]
    _upload(api, repo, branch, additions)
    done = api.create_commit(
        repo,
        operations,
        commit_message=message or "Upload model",
        revision=branch,
        parent_commit=remote.commit,
    )
    commit = names.validate_digest(done.oid, "commit", f"{repo} after the push")
    return PushResult(repo, commit, f"{redact_url(api.endpoint)}/{repo}", tuple(added))


def _upload(api: HfApi, repo: str, branch: str, additions: list[CommitOperationAdd]) -> None:
    """Upload large files before the commit.

    huggingface_hub waits for its upload threads, so Ctrl-C would wait too. A thread in between is
    abandoned on Ctrl-C; without a commit its upload has no effect.
    """
    outcome: Future[None] = Future()

    def send() -> None:
        try:
            api.preupload_lfs_files(repo, additions, revision=branch)
            outcome.set_result(None)
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=send, daemon=True).start()
    outcome.result()


@dataclass(frozen=True)
class _RemoteState:
    """The current commit of the branch, its weight files and its model card."""

    commit: str | None = None
    weights: tuple[str, ...] = ()
    card: str = ""

    @classmethod
    def fetch(cls, api: HfApi, repo: str, branch: str, cache: Path) -> _RemoteState:
        checkout = Checkout(Reference(repo, branch), Options(api.token, cache))
        text = ""
        if CARD in checkout.tree:
            checkout.fetch([CARD])
            text = (checkout.folder / CARD).read_text(encoding="utf-8", errors="replace")
        weights = (n for n in checkout.tree if n in (WEIGHTS, INDEX) or _SHARD.fullmatch(n))
        return cls(checkout.commit, tuple(weights), text)


def _push_error(error: Exception, repo: str, access: Credentials, host: str) -> HubError:
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status in (401, 403, 404):
        return HubError(
            f"{host} denies writing to {repo} (status {status}); use a token with write access to "
            f"'{repo.partition('/')[0]}'; {access}"
        )
    if status == 412:
        return HubError(f"{repo} was changed by another commit during the push; push again")
    detail = access.describe(error) if status is None else f"status {status}"
    return HubError(f"{repo} was not pushed to {host}: {detail}")

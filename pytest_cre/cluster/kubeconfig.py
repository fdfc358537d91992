"""The few settings of a kubeconfig that the official client does not hand out."""

import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from pytest_cre.errors import UsageProblem

_OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def context_namespace(kubeconfig: str | None, context: str | None) -> str:
    """Return the namespace of the context in use, `default` where it names none."""
    return str(_context(kubeconfig, context).get("namespace") or "default")


def proxy_url(kubeconfig: str | None, context: str | None) -> str | None:
    """Return the proxy that the kubeconfig sets for the context's cluster, or None."""
    name = _context(kubeconfig, context).get("cluster")
    cluster = _named(kubeconfig, "clusters", name).get("cluster")
    return str(cluster.get("proxy-url") or "") or None if isinstance(cluster, Mapping) else None


def check_context(kubeconfig: str | None, context: str) -> None:
    """Raise `UsageProblem` for a context that the kubeconfig does not have."""
    import yaml

    try:
        names = [
            str(entry["name"])
            for document in _documents(kubeconfig)
            for entry in document.get("contexts") or ()
            if isinstance(entry, Mapping) and "name" in entry
        ]
    except (OSError, ValueError, TypeError, yaml.YAMLError):
        return  # connecting tells what is wrong with it
    if names and context not in names:
        raise UsageProblem(
            f"context {context!r} is not in kubeconfig {kubeconfig or 'of the environment'}; "
            f"choices: {', '.join(sorted(set(names)))}"
        )


def kubeconfig_files(kubeconfig: str | None) -> list[Path]:
    """Return the files that are there: of the kubeconfig given, or of the environment's."""
    paths = kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
    files = (Path(path).expanduser() for path in paths.split(os.pathsep) if path)
    return [file for file in files if file.is_file()]


def own_namespace() -> str:
    """Return the namespace of the pod that this process runs in."""
    try:
        return _OWN_NAMESPACE.read_text(encoding="utf-8").strip() or "default"
    except OSError:
        return "default"


def _context(kubeconfig: str | None, context: str | None) -> Mapping[str, Any]:
    names = (document.get("current-context") for document in _documents(kubeconfig))
    chosen = context or next(filter(None, names), None)
    found = _named(kubeconfig, "contexts", chosen).get("context")
    return found if isinstance(found, Mapping) else {}


def _named(kubeconfig: str | None, section: str, name: object) -> Mapping[str, Any]:
    """Return the section's entry of this name; of several files the first that has one counts."""
    for document in _documents(kubeconfig):
        for entry in document.get(section) or ():
            if isinstance(entry, Mapping) and entry.get("name") == name:
                return entry
    return {}


def _documents(kubeconfig: str | None) -> Iterator[Mapping[str, Any]]:
    for file in kubeconfig_files(kubeconfig):
        document = _parsed(file.read_text(encoding="utf-8"))
        if isinstance(document, Mapping):
            yield document


@lru_cache(maxsize=4)  # each setting that is asked for looks through the same few texts
def _parsed(text: str) -> object:
    import yaml

    return yaml.safe_load(text)

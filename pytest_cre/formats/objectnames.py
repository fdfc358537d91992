"""Names and values as Kubernetes takes them: told here, before an API server or kubelet refuses.

Each function returns the text that it was given, and raises `ValueError` with the end of a message.
"""

import re

_PREFIX = r"[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?"
_WORD = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
LABEL_NAME = re.compile(rf"(?:{_PREFIX}/)?{_WORD}")
LABEL_VALUE = re.compile(rf"(?:{_WORD})?")
EXTENDED_RESOURCE = re.compile(rf"{_PREFIX}/{_WORD}")
RESOURCE = re.compile(
    rf"cpu|memory|ephemeral-storage|hugepages-[1-9][0-9]*[KMGT]i|{_PREFIX}/{_WORD}"
)
OBJECT_NAME = re.compile(
    r"(?=.{1,253}$)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*"
)
# host:port/path:tag@digest, as every registry's client reads it.
_HOST = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9.]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?"
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_TAG = r":[A-Za-z0-9_][-A-Za-z0-9_.]{0,127}"
_DIGEST = r"@[a-z][a-z0-9]*(?:[-+._][a-z0-9]+)*:[0-9a-fA-F]{32,128}"
IMAGE = re.compile(rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*(?:{_TAG})?(?:{_DIGEST})?")
IMAGE_START = re.compile(r"[A-Za-z0-9\[](?:[-A-Za-z0-9._:@\]]|/(?!/))*")
_SHOWN = 80


def label_name(text: str) -> str:
    """Take the name of a label or an annotation, with or without a domain before a slash."""
    return _taken(text, LABEL_NAME, "must be a label's name such as team or example.org/team")


def label_value(text: str) -> str:
    """Take the value of a label, which may be empty."""
    words = "must be a label's value, at most 63 of A-Z a-z 0-9 and inner '-' '_' '.'"
    return _taken(text, LABEL_VALUE, words)


def extended_resource(text: str) -> str:
    """Take the name of devices that nodes allocate."""
    return _taken(text, EXTENDED_RESOURCE, "must be a resource's name such as rdma/ib")


def resource_name(text: str) -> str:
    """Take the name of anything that a container may ask for."""
    words = "must be cpu, memory, ephemeral-storage, hugepages-2Mi or devices such as rdma/ib"
    return _taken(text, RESOURCE, words)


def object_name(text: str) -> str:
    """Take the name of an object such as a Secret."""
    return _taken(text, OBJECT_NAME, "must be an object's name of a-z, 0-9 and inner '-' '.'")


def image_name(text: str) -> str:
    """Take the name of a container image."""
    words = "must be an image's name such as nvcr.io/nvidia/pytorch:26.01-py3"
    return _taken(text, IMAGE, words)


def image_start(text: str) -> str:
    """Take the beginning of the name of an image, such as its registry."""
    words = "must be the beginning of an image's name such as registry.example.org/gpu/"
    return _taken(text, IMAGE_START, words)


def _taken(text: str, pattern: re.Pattern[str], words: str) -> str:
    if pattern.fullmatch(text) is None:
        raise ValueError(f"{words}, got {text[:_SHOWN]!r}")
    return text

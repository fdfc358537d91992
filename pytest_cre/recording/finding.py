"""Names and addresses in the text of logs: where they stand, and of which kind they are."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Literal

import re2

Kind = Literal[
    "node", "pod", "job", "namespace", "host", "user", "image", "folder",
    "ipv4", "ipv6", "mac", "guid", "uuid", "serial",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Found:
    """A name or an address at a place of the text."""

    start: int
    end: int
    kind: Kind
    name: bytes


# Hosts of everybody: they tell nothing of a site, and log lines are read more easily with them.
PUBLIC_HOSTS = frozenset(
    {
        *(b"localhost", b"nvcr.io", b"nvidia.com", b"pytorch.org", b"github.com", b"python.org"),
        *(b"huggingface.co", b"docker.io", b"kubernetes.io", b"k8s.io", b"open-mpi.org"),
        *(b"pypi.org", b"ghcr.io", b"quay.io", b"kubeflow.org"),
    }
)
COMMON_USERS = frozenset(
    {
        *(b"root", b"user", b"ubuntu", b"nobody", b"app", b"nvidia", b"mpiuser", b"jovyan"),
        *(b"git", b"admin", b"nonroot", b"shared", b"runner"),
    }
)
_LABEL = rb"[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})"
_ENDINGS = (
    rb"local|localdomain|internal|intranet|lan|corp|home|svc|cluster|com|net|org|io|ai|cloud|dev|edu|gov"
    rb"|mil|info|tech|eu|de|uk|fr|ch|at|nl|se|no|fi|dk|pl|cz|es|it|pt|be|us|ca|jp|cn|kr|tw|sg|au|in|br|il"
)
_FULL_NAME = re.compile(
    rb"(?<![\w./-])((?:" + _LABEL + rb"\.){1,8}(?:" + _ENDINGS + rb"))(?![\w(-]|\.\w)"
)
_AUTHORITY = re.compile(
    rb"://(?:[^\s/@\"']{0,200}@)?([A-Za-z][A-Za-z0-9.-]{0,252}[A-Za-z0-9])(?![\w.-])"
)
# What programs say of the host that they run on.
_HOST_PLACES = (
    re.compile(rb"(?<![\w.-])([A-Za-z][\w.-]{0,252}):\d{1,9}:\d{1,9} \[\d"),  # NCCL
    re.compile(rb"Pid\s{1,9}\d{1,9} on\s{1,9}([A-Za-z][\w.-]{0,252}) device"),  # nccl-tests
    re.compile(rb"on (?:node|host) ([A-Za-z][\w.-]{0,252})(?![\w.-])"),  # mpirun
    re.compile(rb"(?i)\bhost_?(?:name)?[\"']?[=:]\s?[\"']?([a-z][\w.-]{2,252})(?![\w.-])"),
    re.compile(rb"(?<![\w.-])(ip-\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3})(?![\w-])"),
)
_USER_PLACES = (
    re.compile(rb"(?i)\b(?:user|username|logname)[\"']?=[\"']?([a-z_][\w.-]{1,31})(?![\w.-])"),
    re.compile(rb"(?<![\w.+-])([A-Za-z_][\w.+-]{0,63})@(?=[A-Za-z][\w-]*[.\w])"),
)
_HOME = re.compile(rb"(?<![\w.-])/(?:home|[Uu]sers)/([\w.-]{1,64})((?:/[\w.+@%=-]{1,255}){0,64})")
_PART = re.compile(rb"[^/]+")
# A part of a path that counts something stays: its number may be a step's.
_COUNTING = re.compile(rb"[A-Za-z]{0,24}[_-]?\d{1,12}(?:\.[a-z]{1,6})?")
_IPV4 = re.compile(rb"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?!\w|\.\d)")
_BEFORE_VERSION = re.compile(rb"(?i)(?:version|release|ver|\bv)[\"']?[ :=.]{0,4}$")
_MAC = re.compile(rb"(?<![\w:])[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5,19}(?![\w:])")
_IPV6 = re.compile(
    rb"(?<![\w:.])(?=[0-9A-Fa-f]{0,4}:)[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![\w:])"
)
_GUID = re.compile(
    rb"(?<![\w:])(?:0x)?(?=[0-9:]*[a-fA-F])[0-9A-Fa-f]{4}(?::[0-9A-Fa-f]{4}){3}(?![\w:])"
)
_UUID = re.compile(rb"(?<![0-9A-Fa-f])[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}(?!\w)")
# Whatever the patterns above find stands on a line that this one finds, at a hundred times the speed.
_SUSPICIOUS = (
    rb"::|(?:[0-9A-Fa-f]{0,4}:){3}|[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-|\"\d{10}|(?:\d{1,3}\.){3}\d|://"
    rb"|\.(?:" + _ENDINGS + rb")|:\d{1,9}:\d{1,9} \[\d|Pid\s{1,9}\d|on (?:node|host) |ip-\d"
    rb"|(?i:host_?(?:name)?[\"']?[=:]|(?:user|username|logname)[\"']?=)|@[A-Za-z]"
    rb"|/(?:home|[Uu]sers)/"
)
_SERIAL = re.compile(rb"\"(\d{10,20})\"")  # JSON reports give them as text


class Lines:
    """Finds the lines that can matter to slower patterns."""

    def __init__(self, source: bytes) -> None:
        options = re2.Options()
        options.log_errors = False
        options.never_capture = True
        self._pattern = re2.compile(source, options)

    def of(self, text: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield place and text of each line in which the pattern occurs."""
        at = 0
        while at < len(text) and (found := self._pattern.search(text, at)) is not None:
            start = text.rfind(b"\n", 0, found.start()) + 1
            at = text.find(b"\n", found.end())
            at = len(text) if at < 0 else at
            yield start, text[start:at]


_LINES = Lines(_SUSPICIOUS)


def addresses(text: bytes) -> Iterator[Found]:
    """Yield what has the form of an address or of a name; places may overlap."""
    for start, line in _LINES.of(text):
        for found in _addresses(line):
            yield replace(found, start=start + found.start, end=start + found.end)


def told_names(text: bytes) -> Iterator[tuple[Kind, bytes]]:
    """Yield the names of hosts and users that stand where programs tell them."""
    for _, line in _LINES.of(text):
        yield from _told_names(line)


def _addresses(text: bytes) -> Iterator[Found]:
    for found in _MAC.finditer(text):
        yield _found(found, "mac")
    for found in _GUID.finditer(text):
        yield _found(found, "guid")
    for found in _UUID.finditer(text):
        yield _found(found, "uuid")
    for found in _SERIAL.finditer(text):
        yield _found(found, "serial", 1)
    for found in _IPV4.finditer(text):
        before = text[max(0, found.start() - 16) : found.start()]
        if _is_own_ipv4(found[0]) and not _BEFORE_VERSION.search(before):
            yield _found(found, "ipv4")
    for found in _IPV6.finditer(text):
        if _is_own_ipv6(found[0]):
            yield _found(found, "ipv6")
    for pattern in (_FULL_NAME, _AUTHORITY):
        for found in pattern.finditer(text):
            if not is_public(found[1]):
                yield _found(found, "host", 1)
    yield from _in_homes(text)


def _told_names(text: bytes) -> Iterator[tuple[Kind, bytes]]:
    for pattern in _HOST_PLACES:
        for name in pattern.findall(text):
            if not is_public(name) and not _is_address(name):
                yield "host", name
    for pattern in _USER_PLACES:
        for name in pattern.findall(text):
            if name not in COMMON_USERS:
                yield "user", name
    for found in _HOME.finditer(text):
        if found[1] not in COMMON_USERS:
            yield "user", found[1]


def is_public(host: bytes) -> bool:
    """Return whether everybody knows the host."""
    lower = host.lower()
    return any(lower == known or lower.endswith(b"." + known) for known in PUBLIC_HOSTS)


def _in_homes(text: bytes) -> Iterator[Found]:
    """Yield user and folders of each path into somebody's home."""
    for found in _HOME.finditer(text):
        if found[1] not in COMMON_USERS:
            yield _found(found, "user", 1)
        for part in _PART.finditer(found[2]):
            if not _COUNTING.fullmatch(part[0]):
                start = found.start(2) + part.start()
                yield Found(start, start + len(part[0]), "folder", part[0])


def _found(found: "re.Match[bytes]", kind: Kind, group: int = 0) -> Found:
    return Found(found.start(group), found.end(group), kind, found[group])


def _is_own_ipv4(text: bytes) -> bool:
    try:
        address = IPv4Address(text.decode())
    except AddressValueError:
        return False
    return not (address.is_loopback or address.is_unspecified or text == b"255.255.255.255")


def _is_own_ipv6(text: bytes) -> bool:
    try:
        address = IPv6Address(text.decode())
    except AddressValueError:
        return False
    return not (address.is_loopback or address.is_unspecified)


def _is_address(name: bytes) -> bool:
    return _is_own_ipv6(name) or _IPV4.fullmatch(name) is not None

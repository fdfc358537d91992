"""Which network NCCL used, read from its own lines, and whether it fell back to sockets."""

import re

from pytest_cre.measure.logtext import Line

# Printed for every channel, so that a log may be full of them: each is looked for until first seen.
PATHS: dict[bytes, str] = {
    b"via P2P": "P2P",
    b"via SHM": "SHM",
    b"via NVLS": "NVLS",
    b"Connected NVLS tree": "NVLS",
    b"NVLS comm 0x": "NVLS",
    b"/MNNVL": "MNNVL",
    b"/GDRDMA": "GDRDMA",
    b"via COLLNET": "COLLNET",
}
# The same, for the networks that a channel names.
CHANNEL_NETWORKS: dict[bytes, str] = {
    b"via NET/IB": "IB",
    b"via NET/Socket": "Socket",
    b"via NET/AWS Libfabric": "AWS Libfabric",
    b"via NET/Libfabric": "Libfabric",
    b"via NET/OFI": "OFI",
    b"via NET/FasTrak": "FasTrak",
    b"via NET/gIB": "gIB",
    b"via NET/GPUDirectTCPX": "GPUDirectTCPX",
    b"via NET/UCX": "UCX",
}
NEEDLES = (
    *(b"Using ", b"NET plugin ", b"No device found", b"rovider is", b"_IB_DISABLE"),
    b"_NET set",
)

_NETWORK = re.compile(rb"Using network[ ]+(\S[^\n]*?)[ \t]*$")
_PLUGIN = re.compile(rb"(?:Initialized|Assigned) NET plugin (\S+)")
_LINK = re.compile(rb"NET/IB[ ]*:[ ]+Using .*\[\d+\]\S*:\d+/(IB|RoCE)\b")
_PROVIDER = re.compile(rb"[Ss]elected [Pp]rovider is ([\w-]+)")
_NO_DEVICE = re.compile(rb"NET/(\w+)[ ]*:[ ]+No device found")
_CHOSEN = re.compile(
    rb"NCCL_IB_DISABLE set by environment to [1-9]|NCCL_NET set (?:by environment )?to Socket"
)
_PROVIDER_NAMES = {"efa": "EFA", "efa-direct": "EFA", "cxi": "Slingshot"}
_LIBFABRIC = frozenset(("AWS Libfabric", "Libfabric", "OFI"))


class TransportReader:
    """Collects what one Job's streams say of the network."""

    def __init__(self) -> None:
        self._networks: set[str] = set()
        self._links: set[str] = set()
        self._providers: set[str] = set()
        self._paths: set[str] = set()
        # What would still tell something new, by a needle that says more than "via" does.
        self.unseen = {
            text.removeprefix(b"via NET").removeprefix(b"vi"): text
            for text in (*PATHS, *CHANNEL_NETWORKS)
        }
        self._without_device: set[str] = set()
        self._is_socket_chosen = False

    def line(self, line: Line) -> bool:
        """Take a line; return whether it told something new."""
        before = self._size()
        text = line.text
        for needle in [needle for needle, told in self.unseen.items() if told in text]:
            told = self.unseen.pop(needle)
            if told in PATHS:
                self._paths.add(PATHS[told])
            else:
                self._networks.add(CHANNEL_NETWORKS[told])
        if found := _NETWORK.search(text):
            self.add(found[1])
            # A benchmark that runs over sockets by design says so in a comment.
            self._is_socket_chosen |= text.lstrip().startswith(b"#")
        if found := _PLUGIN.search(text):
            self.add(found[1])
        if found := _LINK.search(text):
            self._links.add(found[1].decode())
        if found := _PROVIDER.search(text):
            self._providers.add(found[1].decode())
        if found := _NO_DEVICE.search(text):
            self._without_device.add(found[1].decode())
        self._is_socket_chosen |= _CHOSEN.search(text) is not None
        return self._size() > before

    def add(self, name: bytes) -> None:
        """Take the name of a network as NCCL prints it; a blank one is none."""
        printed = name.decode(errors="replace").strip()[:80]
        if printed:
            self._networks.add(printed)

    @property
    def networks(self) -> tuple[str, ...]:
        """Return the networks used, sorted; IB on an Ethernet link is RoCE, libfabric its provider."""
        return tuple(sorted({self._named(name) for name in self._networks}))

    @property
    def paths(self) -> tuple[str, ...]:
        """Return the paths that channels took, sorted: P2P, SHM, NVLS, MNNVL, GDRDMA, COLLNET."""
        return tuple(sorted(self._paths))

    def fell_back_to_socket(self, *, hosts: int | None) -> bool:
        """Return whether sockets carried traffic between hosts without being asked for.

        On one host NCCL names a network, too, but nothing need go over it. `hosts` None: not known.
        """
        if "Socket" not in self._networks or self._is_socket_chosen:
            return False
        return hosts != 1 or b"via NET/Socket" not in self.unseen.values()

    def _named(self, name: str) -> str:
        if name == "IB" and self._links == {"RoCE"}:
            return "RoCE"
        if name in _LIBFABRIC and len(self._providers) == 1:
            return _PROVIDER_NAMES.get(next(iter(self._providers)), name)
        if name == "FasTrak" or name.startswith("GPUDirectTCPX_FasTrak"):
            return "TCPXO"
        return "TCPX" if name.startswith("GPUDirectTCPX") else name

    def _size(self) -> int:
        return (
            len(self._networks)
            + len(self._links)
            + len(self._providers)
            + len(self._paths)
            - len(self.unseen)
            + len(self._without_device)
            + self._is_socket_chosen
        )

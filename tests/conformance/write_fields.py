"""Read the fields of kinds off the Go types: `python -m tests.conformance.write_fields [VERSION]`.

The Go modules of the version (default: that of the file) must be there, as they are after the
genuine control plane was built. Writes `pytest_cre/embedded/fields.txt`.
"""

import re
import subprocess
import sys
from pathlib import Path

FIELDS = Path(__file__).parents[2] / "pytest_cre" / "embedded" / "fields.txt"
_API_FILES = (
    "core/v1",
    "batch/v1",
    "coordination/v1",
    "authorization/v1",
    "authentication/v1",
    "policy/v1",
    "scheduling/v1alpha3",
)
_ROOTS = (
    "Pod",
    "Node",
    "Namespace",
    "Service",
    "ConfigMap",
    "PersistentVolumeClaim",
    "Secret",
    "ServiceAccount",
    "Event",
    "Endpoints",
    "Binding",
    "Job",
    "Lease",
    "Eviction",
    "DeleteOptions",
    "SelfSubjectAccessReview",
    "SelfSubjectRulesReview",
    "SelfSubjectReview",
)
_SCALARS = {
    "string": "string",
    "int32": "int32",
    "int64": "int64",
    "bool": "bool",
    "[]byte": "bytes",
    "resource.Quantity": "Quantity",
    "metav1.Time": "Time",
    "Time": "Time",
    "metav1.MicroTime": "MicroTime",
    "MicroTime": "MicroTime",
    "intstr.IntOrString": "IntOrString",
    "types.UID": "string",
    "FieldsV1": "Any",
    "runtime.RawExtension": "Any",
}
_HEAD = """\
# Fields of the kinds that the embedded server knows, read off the Go types of Kubernetes {version}.
# A struct and its fields: JSON name, protobuf number, type, and how the field is written and merged.
"""


class GoTypes:
    """The structs and named types in some Go files."""

    def __init__(self, paths):
        self.structs = {}
        self._named = {}
        for path in paths:
            self._read(path.read_text())

    def _read(self, text):
        name = None
        for line in text.splitlines():
            if found := re.match(r"type (\w+) struct \{", line):
                name = found[1]
                self.structs.setdefault(name, [])
            elif found := re.match(r"type (\w+) ([\w\[\].]+)$", line):
                self._named[found[1]] = found[2]
            elif line == "}":
                name = None
            elif name and (found := re.match(r"\s+(?:(\w+) )?\s*([*\[\]\w.]+)\s+`(.*)`", line)):
                self.structs[name].append(found.groups())

    def fields(self, name):
        """Give JSON name, number, type and flags of each field of a struct."""
        for _go_name, go_type, tags in self.structs[name]:
            json_tag = re.search(r'json:"([^"]*)"', tags)
            if json_tag is None or json_tag[1] == "-":
                continue
            json_name, *options = json_tag[1].split(",")
            number = re.search(r'protobuf:"\w+,(\d+)', tags)
            number = int(number[1]) if number else 0
            base = go_type.lstrip("*").rpartition(".")[2]
            if json_name:
                yield json_name, number, self._type(go_type), _flags(options, tags)
            elif base not in ("TypeMeta", "ListMeta"):
                yield f"@{base}", number, base, []

    def _type(self, go_type):
        if go_type.startswith("*"):
            return f"*{self._type(go_type[1:])}"
        if go_type in _SCALARS:
            return _SCALARS[go_type]
        if go_type.startswith("[]"):
            return f"[]{self._type(go_type[2:])}"
        if found := re.match(r"map\[.*?\](.*)", go_type):
            return f"{{}}{self._type(found[1])}"
        base = go_type.rpartition(".")[2]
        if base in self.structs:
            return base
        inner = self._type(self._named[base])
        is_shown = inner in ("string", "int32", "int64", "bool") or inner.startswith("{}")
        return f"{inner}:{base}" if is_shown else inner


def _flags(options, tags):
    flags = []
    if "omitzero" in options:
        flags.append("zero")
    elif "omitempty" not in options:
        flags.append("always")
    strategy = re.search(r'patchStrategy:"([\w,]+)"', tags)
    strategies = strategy[1].split(",") if strategy else []
    if found := re.search(r'patchMergeKey:"(\w+)"', tags):
        flags.append(f"key={found[1]}")
    elif "merge" in strategies:
        flags.append("set")
    if "retainKeys" in strategies:
        flags.append("retain")
    return flags


def fields_text(go_modules, version):
    """Give the text of the file for a version of Kubernetes such as `v1.37.2`."""
    release = version.replace("v1", "v0", 1)
    api = go_modules / "k8s.io" / f"api@{release}"
    meta = go_modules / "k8s.io" / f"apimachinery@{release}" / "pkg" / "apis" / "meta" / "v1"
    types = GoTypes([*(api / place / "types.go" for place in _API_FILES), meta / "types.go"])
    found = {}
    waiting = list(_ROOTS)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = list(types.fields(name))
            inner = [re.sub(r"[*\[\]{}]|:.*", "", field[2]) for field in found[name]]
            waiting += [each for each in inner if each in types.structs]
    lines = []
    for name in sorted(found):
        lines.append(name)
        for json_name, number, field_type, flags in found[name]:
            lines.append(f"  {' '.join([json_name, str(number), field_type, *flags])}")
    return _HEAD.format(version=version) + "\n".join(lines) + "\n"


def main(arguments):
    """Write the file anew."""
    known = re.search(r"v\d+\.\d+\.\d+", FIELDS.read_text())
    version = arguments[0] if arguments else known[0]
    cache = subprocess.run(
        ["go", "env", "GOMODCACHE"], capture_output=True, text=True, check=True
    ).stdout.strip()
    FIELDS.write_text(fields_text(Path(cache), version))


if __name__ == "__main__":
    main(sys.argv[1:])

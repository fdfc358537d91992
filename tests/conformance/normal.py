"""Answers made comparable: what differs from run to run gets a name that tells only who is who.

The rules, all of them:

- uids become `uid-1`, `uid-2` ... by first appearance, so that it stays visible which are equal;
- versions of objects become `version-1` ... in the same way; those of lists, bookmarks and tables
  are of the whole server's making and become `<version>`, as do those that events name;
- times become `<time>`, with a fraction `<microtime>`; ages of tables `<age>`;
- generated names keep their prefix: `job-0-?1`; events keep the name of what they are about;
- the exchange's namespace, the server's address, the machine's name, kubelets' ports, cluster
  addresses and continue tokens become `<namespace>`, `<server>`, `<host>`, `<port>`, `<cluster-ip>`,
  `<continue>`;
- `metadata.managedFields` is left out; one exchange of its own looks for it;
- the volume with a pod's own token and its mounts are left out as well; another exchange looks for it;
- what kubectl notes in a log of its own, such as that it gave up a watch, is left out;
- where a refusal quotes the whole object that it refuses, the object becomes `<object>`.
"""

import re

UID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(?:Z|[+-]\d\d:\d\d)")
_LONG_TIME = re.compile(r"\b\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}")
_EVENT_NAME = re.compile(r"\.[0-9a-f]{16}\b")
_CLUSTER_ADDRESS = re.compile(r"\b10\.96\.\d+\.\d+\b")
_LOCAL_ADDRESS = re.compile(r"127\.0\.0\.1:\d+")
_VERSIONS = (
    re.compile(r"(too old resource version: \d+ \()\d+"),
    re.compile(r"(, current: )\d+"),
    re.compile(r"(the ResourceVersion in (?:the precondition|record) \()\d+"),
    re.compile(r"(resourceVersion=)\d{2,8}\b"),
    re.compile(r'(resourceVersion: ")\d+'),
)
_TOKEN = re.compile(r"(continue=)(?!nonsense)[\w%-]+")
_QUOTED = re.compile(r'(patch: Invalid value: |^Invalid value: )"\{.*\}"', re.DOTALL)
_SCRATCH_FILE = re.compile(r"/[\w/.-]{0,99}(LIVE|MERGED)-\d+\S*")
_PRINTED_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [+-]\d{4}")
_SUFFIX_LENGTH = 5
_LONGEST_TEXT = 20_000


class Names:
    """The stand-ins of one exchange."""

    def __init__(self, fixed):
        # What is known beforehand, as text -> stand-in; the longest is tried first.
        self._fixed = dict(sorted(fixed.items(), key=lambda pair: -len(pair[0])))
        self._uids = {}
        self._versions = {}
        self._generated = {}

    def learn(self, value):
        """Take in the generated names that an answer tells of."""
        if isinstance(value, dict):
            metadata = value.get("metadata")
            if isinstance(metadata, dict) and metadata.get("generateName"):
                name = str(metadata.get("name", ""))
                # A prefix that is too long is cut before the suffix is appended.
                prefix = name[:-_SUFFIX_LENGTH]
                if prefix and str(metadata["generateName"]).startswith(prefix):
                    self._generated.setdefault(name, f"{prefix}?{len(self._generated) + 1}")
            for inner in value.values():
                self.learn(inner)
        elif isinstance(value, list):
            for inner in value:
                self.learn(inner)

    def normal(self, value, key=""):
        """Give a value with all its parts made comparable."""
        if isinstance(value, dict):
            is_list = "items" in value or "columnDefinitions" in value
            value = _without_tokens(value)
            return {
                self.text(name): self._member(name, inner, key, is_list=is_list)
                for name, inner in sorted(value.items())
                if not (key == "metadata" and name == "managedFields")
            }
        if isinstance(value, list):
            return [self.normal(inner, key) for inner in value]
        return self.text(value) if isinstance(value, str) else value

    def _member(self, name, value, parent, *, is_list):
        if name == "metadata" and is_list and isinstance(value, dict):
            stand_ins = {"resourceVersion": "<version>", "continue": "<continue>"}
            return {key: stand_ins.get(key, inner) for key, inner in value.items()}
        if name == "resourceVersion" and parent == "involvedObject":
            return "<version>"
        if name == "resourceVersion" and isinstance(value, str) and value.isdecimal():
            return self._versions.setdefault(value, f"version-{len(self._versions) + 1}")
        return self.normal(value, name)

    def text(self, text):
        """Give a text with everything in it made comparable."""
        if len(text) > _LONGEST_TEXT:
            text = f"{text[:20]}... ({len(text)} characters)"
        for old, new in self._fixed.items():
            text = text.replace(old, new)
        for old, new in self._generated.items():
            text = text.replace(old, new)
        text = UID.sub(self._uid, text)
        text = TIME.sub(lambda found: "<microtime>" if found[1] else "<time>", text)
        text = _LONG_TIME.sub("<time>", text)
        text = _EVENT_NAME.sub(".<hash>", text)
        text = _CLUSTER_ADDRESS.sub("<cluster-ip>", text)
        text = _LOCAL_ADDRESS.sub("127.0.0.1:<port>", text)
        text = _QUOTED.sub(r"\1<object>", text)
        text = _SCRATCH_FILE.sub(r"<\1>", text)
        text = _PRINTED_TIME.sub("<time>", text)
        text = _TOKEN.sub(r"\1<continue>", text)
        for pattern in _VERSIONS:
            text = pattern.sub(r"\1<version>", text)
        return text

    def _uid(self, found):
        return self._uids.setdefault(found[0], f"uid-{len(self._uids) + 1}")


def _without_tokens(value):
    """Give a pod's spec or a container without the token that only genuine servers hand out."""
    for field, key, pattern in (
        ("volumes", "name", r"kube-api-access-\w+"),
        ("volumeMounts", "mountPath", r"/var/run/secrets/kubernetes\.io/serviceaccount"),
    ):
        items = value.get(field)
        if isinstance(items, list):
            kept = [item for item in items if not re.fullmatch(pattern, str(item.get(key)))]
            value = {**value, field: kept}
            if not kept:
                del value[field]
    return value


def project(value, paths):
    """Give only what dotted paths name; lists are walked into."""
    if isinstance(value, list):
        return [project(inner, paths) for inner in value]
    if not isinstance(value, dict):
        return value
    wanted = {}
    for path in paths:
        first, _dot, rest = path.partition(".")
        wanted.setdefault(first, [])
        wanted[first] += [rest] if rest else []
    return {
        name: project(value[name], rests) if rests else value[name]
        for name, rests in wanted.items()
        if name in value
    }

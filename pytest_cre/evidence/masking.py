"""What may not be kept or shown: values of environment variables, of Secrets, and credentials."""

import re
from collections.abc import Mapping, Sequence
from typing import cast

MASK = "(not kept)"
_KEPT_NAMES = frozenset({"PYTHONUNBUFFERED"})
_KEPT_PREFIXES = (
    "CRE_", "CUDA_", "FI_", "GLOO_", "NCCL_", "OMPI_", "SHARP_", "TORCH_", "UCX_",
)  # fmt: skip
_SECRET_FIELDS = ("data", "stringData")

_NAME = (
    r"[\w.-]{0,60}(?:token|secret|passwd|password|passphrase|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|credentials?)(?:[_-][\w-]{1,20})?"
)
_NUMBER = r"[-+]?[0-9][0-9.,:eE+-]*(?![\w/+=])"
_Rules = tuple[tuple[re.Pattern[str], str], ...]
# What every name holds, in any case that the patterns take for it.
_STEMS = ("token", "secret", "pass", "key", "credent")
_NAMED: _Rules = tuple(
    (re.compile(pattern), rf"\1{MASK}")
    for pattern in (
        # NAME=value and --name value; a number is a count of tokens
        rf"(?i)(?<![\w.-])({_NAME}[\"']?=[\"']?)(?!{_NUMBER})[^\s\"',;&]+",
        rf"(?i)(--{_NAME}[ =][\"']?)(?!{_NUMBER}|-)[^\s\"']+",
        # name: value, where the value is no word
        rf"(?i)(?<![\w.-])({_NAME}[\"']?: ?[\"']?)(?=[\w+/.=-]*[0-9])(?!{_NUMBER})[\w+/.=-]{{8,}}",
    )
)
_CREDENTIALS: _Rules = tuple(
    (re.compile(pattern), kept)
    for pattern, kept in (
        (
            r"(?i)(authorization[\"']?[:=]\s{0,4}[\"']?(?:(?:basic|bearer|token)\s{1,4})?)(?!\()[^\s\"',]+",
            rf"\1{MASK}",
        ),
        (r"(?i)\b(bearer\s{1,4})[\w.~+/=-]{8,}", rf"\1{MASK}"),
        (r"(://)[^/\s:@]{0,100}:[^/\s@]{1,200}@", rf"\1{MASK}@"),
        # what well-known issuers give out, and JSON Web Tokens
        (
            r"\b(?:(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[\w-]{35}|gh[pousr]_\w{20,}|github_pat_\w{20,}"
            r"|glpat-[\w-]{16,}|hf_\w{20,}|nvapi-[\w-]{20,}|sk-[\w-]{20,}|xox[abprs]-[\w-]{10,}"
            r"|eyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]*)?)",
            MASK,
        ),
    )
)
_KEY_BEGIN = re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----")
_KEY_END = re.compile(r"-----END [A-Z ]{0,30}PRIVATE KEY-----")
_BASE64_END = re.compile(r"[A-Za-z0-9+/]{8,}={0,2}\s*$")  # after a timestamp and the like


def mask_manifest(manifest: Mapping[str, object]) -> Mapping[str, object]:
    """Return the manifest without values that may be secret; tuning variables stay readable."""
    masked = cast("dict[str, object]", _mask(manifest))
    if masked.get("kind") == "Secret":
        for field in _SECRET_FIELDS:
            values = masked.get(field)
            if isinstance(values, dict):
                masked[field] = dict.fromkeys(values, MASK)
    return masked


def _mask(value: object) -> object:
    if isinstance(value, Mapping):
        return {
            str(key): [_mask_variable(each) for each in inner]
            if key == "env" and isinstance(inner, list | tuple)
            else _mask(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_mask(each) for each in value]
    return value


def _mask_variable(variable: object) -> object:
    if not isinstance(variable, Mapping) or "value" not in variable:
        return _mask(variable)
    name = str(variable.get("name", ""))
    if name in _KEPT_NAMES or name.startswith(_KEPT_PREFIXES):
        return dict(variable)
    return {**variable, "value": MASK}


def mask_text(text: str) -> str:
    """Return text that a program wrote, without what looks like a credential; lines stay lines."""
    # Names are looked for only in lines that can hold one: it takes most of the time.
    text = "\n".join(
        _masked(line, _NAMED) if _may_name(line.casefold()) else line for line in text.split("\n")
    )
    text = _masked(text, _CREDENTIALS)
    return _without_keys(text) if "PRIVATE KEY" in text else text


def _may_name(line: str) -> bool:
    return any(stem in line for stem in _STEMS)


def _masked(text: str, rules: _Rules) -> str:
    for pattern, kept in rules:
        text = pattern.sub(kept, text)
    return text


def _without_keys(text: str) -> str:
    """Mask the lines of private keys, also of one whose beginning is cut off."""
    lines = text.split("\n")
    has_begun = _starts_inside(lines)
    for index, line in enumerate(lines):
        if _KEY_BEGIN.search(line):
            has_begun = True
        elif _KEY_END.search(line):
            has_begun = False
        elif has_begun and (found := _BASE64_END.search(line)):
            lines[index] = line[: found.start()] + MASK
    return "\n".join(lines)


def _starts_inside(lines: Sequence[str]) -> bool:
    for line in lines:
        if _KEY_BEGIN.search(line):
            return False
        if _KEY_END.search(line):
            return True
    return False

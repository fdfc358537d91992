"""Credentials in what programs write."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_cre.evidence.masking import MASK, mask_text

KEY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("HF_TOKEN=abcdefgh1", f"HF_TOKEN={MASK}"),
        (
            "a line\nPa\u017fsword=hunter22\nAPI_\u212aEY=hunter22",
            f"a line\nPa\u017fsword={MASK}\nAPI_\u212aEY={MASK}",
        ),
        ("export WANDB_API_KEY='0123abcd'", f"export WANDB_API_KEY='{MASK}'"),
        ('"password": "hunter22"', f'"password": "{MASK}"'),
        ("--auth-token s3cr3t run", f"--auth-token {MASK} run"),
        ("Authorization: Bearer abc.def-ghi", f"Authorization: Bearer {MASK}"),
        ("authorization: Basic dXNlcjpwYXNz", f"authorization: Basic {MASK}"),
        ("GET https://alice:pa55@example.org/x", f"GET https://{MASK}@example.org/x"),
        ("key AKIAIOSFODNN7EXAMPLE in use", f"key {MASK} in use"),
        ("pull with ghp_" + "a1" * 18, f"pull with {MASK}"),
        ("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIi.c2ln.", f"jwt {MASK}."),
    ],
)
def test_credential_is_masked(text, masked):
    assert mask_text(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "tokens per second: 12345.6",
        "num_tokens=4096 tokenizer=GPT2BPETokenizer",
        "max_token: 8192",
        "token=17",
        "tokenizer: GPT2BPETokenizer2",
        "iteration 10/ 100 | elapsed time per iteration (ms): 1234.5 |",
        "12:00:00.123 busbw 345.6 # wrong 0",
        "invalid token: unexpected",
        "bearer of news",
        "http://example.org:8080/path",
    ],
)
def test_counts_and_plain_words_stay(text):
    assert mask_text(text) == text


def test_private_key_is_masked_line_by_line_behind_timestamps():
    stamp = "2026-01-01T00:00:00Z "
    lines = ["-----BEGIN RSA PRIVATE KEY-----", KEY, "Zm9vYmFy=", "-----END RSA PRIVATE KEY-----"]
    text = "\n".join(stamp + line for line in ["before", *lines, "after"])
    shown = mask_text(text).split("\n")
    assert shown[2:4] == [stamp + MASK, stamp + MASK]
    assert (shown[0], shown[5]) == (stamp + "before", stamp + "after")


def test_private_key_whose_beginning_is_cut_off_is_masked():
    shown = mask_text(f"{KEY}\n-----END PRIVATE KEY-----\nafter").split("\n")
    assert shown == [MASK, "-----END PRIVATE KEY-----", "after"]


@given(st.text())
def test_any_text_keeps_its_lines_and_masking_again_changes_nothing(text):
    masked = mask_text(text)
    assert masked.count("\n") == text.count("\n")
    assert mask_text(masked) == masked

"""Training: goodput, step time and throughput of a short run against their limits."""

import pytest


@pytest.mark.certification("training/*")
def test_goodput(cre_goodput, cre_check):
    cre_check(cre_goodput)

"""The kinds of trouble the harness tells apart.

Each message is one line: subject, problem, place, choices.
"""


class CreError(Exception):
    """Any problem that is told to the user in one line."""


class UsageProblem(CreError):
    """A user's mistake in options, settings or input files named on the command line."""


class CatalogProblem(UsageProblem):
    """A mistake in a suite or profile file; the message starts with `file:line:column`."""


class ClusterProblem(CreError):
    """The cluster's API failed, refused or did not answer; never blamed on the hardware."""


class UnmetNeed(CreError):
    """The cluster lacks what an entry needs, so it was not run; neither a failure nor an error."""


class NotApplicable(CreError):
    """The entry is for other hardware, so it was not run; nothing is missing."""


class EvidenceProblem(CreError):
    """Saved evidence is missing, damaged or not readable."""

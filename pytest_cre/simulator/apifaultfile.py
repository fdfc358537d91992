"""The YAML form of an API server's faults."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from pytest_cre.simulator.apifaults import (
    API_ACTIONS,
    API_NEEDED,
    ON_WATCHES,
    ApiAction,
    ApiFault,
    ApiMatch,
)
from pytest_cre.simulator.forms import (
    Count,
    Document,
    Seconds,
    Text,
    check_parameters,
    given_keys,
)

Verb = Literal[
    "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "*"
]
_PARAMETERS = (
    *("code", "retry_after", "message", "seconds", "lines", "bytes_per_second"),
    "object",
)


class ApiMatchDocument(Document):
    """Which requests; shell patterns, the verb apart. All of those given must hold."""

    verb: Verb | None = None
    resource: Text | None = None
    namespace: Text | None = None
    name: Text | None = None
    client: Text | None = None


class ApiAfterDocument(Document):
    """When a fault begins."""

    requests: Annotated[int, Field(ge=0)] | None = None
    seconds: Seconds | None = None

    @model_validator(mode="after")
    def _one(self) -> "ApiAfterDocument":
        if (self.requests is None) == (self.seconds is None):
            raise ValueError("exactly one of requests, seconds must be given")
        return self


class ApiFaultDocument(Document):
    """One fault; which of the last seven keys it takes depends on its action."""

    match: ApiMatchDocument = ApiMatchDocument()
    after: ApiAfterDocument | None = None
    action: ApiAction
    times: Count | None = None
    every: Count | None = None
    lasting: Seconds | None = None
    code: Annotated[int, Field(ge=400, le=599)] | None = None
    retry_after: Annotated[int, Field(ge=0, le=3600)] | None = None
    message: Text | None = None
    seconds: Seconds | None = None
    lines: Annotated[int, Field(ge=0, le=100_000)] | None = None
    bytes_per_second: Annotated[int, Field(ge=1)] | None = None
    object: Text | None = None

    @model_validator(mode="after")
    def _fitting(self) -> "ApiFaultDocument":
        check_parameters(
            self.action,
            given_keys(self, _PARAMETERS),
            taken=API_ACTIONS[self.action],
            needed=API_NEEDED.get(self.action, frozenset()),
        )
        if self.action in ON_WATCHES and self.match.verb not in ("watch", None):
            raise ValueError(f"{self.action} happens to watches only, not to {self.match.verb}")
        return self

    def fault(self) -> ApiFault:
        """Return the stanza as the server takes it."""
        given = self.model_dump(
            exclude_none=True, exclude={"match", "after", "lasting"}, by_alias=False
        )
        match = self.match.model_dump()
        if self.action in ON_WATCHES:
            match["verb"] = "watch"
        return ApiFault(
            match=ApiMatch(**match),
            after_requests=(self.after.requests or 0) if self.after else 0,
            after_s=(self.after.seconds or 0.0) if self.after else 0.0,
            lasting_s=self.lasting,
            **given,
        )

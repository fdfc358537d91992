"""The form of a site file."""

from typing import Annotated

from pydantic import Field, field_validator

from pytest_cre.catalog.documents import Document, EnvName, Filled, Text
from pytest_cre.catalog.override_document import TolerationDocument, toleration_from

_OURS = ("cre.pytest.org/", "app.kubernetes.io/managed-by")


class ProxyDocument(Document):
    """A site's proxy; each becomes a variable in capitals and in small letters."""

    http: Filled | None = None
    https: Filled | None = None
    no: list[Filled] = Field(default_factory=list)

    def variables(self) -> dict[str, str]:
        """Return the variables, both spellings of each."""
        given = {"http_proxy": self.http, "https_proxy": self.https, "no_proxy": ",".join(self.no)}
        small = {name: value for name, value in given.items() if value}
        return small | {name.upper(): value for name, value in small.items()}


class SiteDocument(Document):
    """What a site asks of every pod."""

    images: dict[Filled, Filled] = Field(default_factory=dict)
    image_pull_secrets: list[Filled] = Field(default_factory=list)
    tolerations: list[TolerationDocument] = Field(default_factory=list)
    service_account_name: Filled | None = None
    priority_class_name: Filled | None = None
    scheduler_name: Filled | None = None
    queue: Filled | None = None
    labels: dict[Filled, Text] = Field(default_factory=dict)
    annotations: dict[Filled, Text] = Field(default_factory=dict)
    proxy: ProxyDocument = ProxyDocument()
    env: dict[EnvName, Text] = Field(default_factory=dict)
    nic_resource: Annotated[str | None, Field(pattern="^[^/]+/[^/]+$")] = None

    @field_validator("labels")
    @classmethod
    def _none_of_ours(cls, labels: dict[str, str]) -> dict[str, str]:
        for name in labels:
            if name.startswith(_OURS):
                raise ValueError(f"holds {name!r}, which every object carries already")
        return labels

    @field_validator("images")
    @classmethod
    def _mirrors_end_alike(cls, images: dict[str, str]) -> dict[str, str]:
        for start, mirror in images.items():
            if start.endswith("/") != mirror.endswith("/"):
                raise ValueError(f"maps {start!r} to {mirror!r}; both or neither end in '/'")
        return images

    def plain_tolerations(self) -> tuple[dict[str, str], ...]:
        """Return the tolerations without what is empty."""
        return tuple(toleration_from(each) for each in self.tolerations)

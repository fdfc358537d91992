"""The form of a site file."""

from pydantic import Field, field_validator

from pytest_cre.catalog.documents import (
    Devices,
    Document,
    EnvName,
    Filled,
    ImageStart,
    LabelName,
    LabelValue,
    ObjectName,
    RdmaAccess,
    Text,
)
from pytest_cre.catalog.limit import Fabric
from pytest_cre.catalog.override_document import (
    TolerationDocument,
    none_of_ours,
    toleration_from,
)


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

    images: dict[ImageStart, ImageStart] = Field(default_factory=dict)
    image_pull_secrets: list[ObjectName] = Field(default_factory=list)
    tolerations: list[TolerationDocument] = Field(default_factory=list)
    service_account_name: ObjectName | None = None
    priority_class_name: ObjectName | None = None
    scheduler_name: Filled | None = None
    queue: ObjectName | None = None
    labels: dict[LabelName, LabelValue] = Field(default_factory=dict)
    annotations: dict[LabelName, Text] = Field(default_factory=dict)
    proxy: ProxyDocument = ProxyDocument()
    env: dict[EnvName, Text] = Field(default_factory=dict)
    nic_resource: Devices | None = None
    rdma_device_access: RdmaAccess | None = None
    host_network: bool = False
    fabric: Fabric | None = None

    @field_validator("labels")
    @classmethod
    def _none_of_ours(cls, labels: dict[str, str]) -> dict[str, str]:
        return none_of_ours(labels)

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

"""A site's settings from its file, and what a certification asks of its pods besides."""

from dataclasses import replace
from pathlib import Path

from pytest_cre.catalog.certification import Certification
from pytest_cre.catalog.files import read_document
from pytest_cre.catalog.site_document import SiteDocument
from pytest_cre.errors import CatalogProblem, UsageProblem
from pytest_cre.formats.yaml import YamlProblem, validate
from pytest_cre.plan.site import NO_SITE, Site


def site_of(path: Path | None) -> Site:
    """Return the settings of a site file, and empty ones without a file."""
    return NO_SITE if path is None else read_site(path)


def read_site(path: Path) -> Site:
    """Return the settings of a site file; raises `CatalogProblem` with file, line and column."""
    document = read_document(path)
    try:
        form = validate(document, SiteDocument)
    except YamlProblem as problem:
        raise CatalogProblem(str(problem)) from None
    return Site(
        images=dict(sorted(form.images.items())),
        image_pull_secrets=tuple(form.image_pull_secrets),
        tolerations=form.plain_tolerations(),
        service_account=form.service_account_name,
        priority_class=form.priority_class_name,
        scheduler=form.scheduler_name,
        queue=form.queue,
        labels=dict(sorted(form.labels.items())),
        annotations=dict(sorted(form.annotations.items())),
        env=dict(sorted({**form.proxy.variables(), **form.env}.items())),
        nic_resource=form.nic_resource,
        rdma_device_access=form.rdma_device_access,
        has_host_network=form.host_network,
        fabric=form.fabric,
        place=document.place(),
    )


def site_for(site: Site, certification: Certification | None) -> Site:
    """Return the site with the scheduler, queue and secrets that a certification names.

    Raises `UsageProblem` where site and certification say different things.
    """
    if certification is None:
        return site
    source = certification.source
    secrets = [*site.image_pull_secrets, *certification.image_pull_secrets]
    return replace(
        site,
        scheduler=_one("scheduler", site.scheduler, certification.scheduler, source),
        queue=_one("queue", site.queue, certification.queue, source),
        nic_resource=_one("NIC resource", site.nic_resource, certification.nic_resource, source),
        rdma_device_access=_one(
            "RDMA device access",
            site.rdma_device_access,
            certification.rdma_device_access,
            source,
        ),
        pod_labels={**site.pod_labels, **certification.pod_labels},
        image_pull_secrets=tuple(dict.fromkeys(secrets)),
    )


def _one(subject: str, first: str | None, second: str | None, source: str) -> str | None:
    if first is not None and second is not None and first != second:
        raise UsageProblem(
            f"{source}: the {subject} {second!r} differs from {first!r} of --cre-site; choose one"
        )
    return second if second is not None else first

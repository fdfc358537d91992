"""The images that manifests name."""

from collections.abc import Iterator, Mapping


def images_in(value: object) -> Iterator[str]:
    """Yield every image that stands in a manifest, or in a part of one, in its order."""
    if isinstance(value, Mapping):
        if isinstance(image := value.get("image"), str):
            yield image
        for each in value.values():
            yield from images_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from images_in(each)

"""The files of a sink that count now, for engines that read files by name."""

from __future__ import annotations

from seamline.lake.store.locations import parse_location
from seamline.model.errors import NotFound
from seamline.model.protocol.sinks.file_manifests import FileManifest, list_counting_files
from seamline.sinks.files.manifest_log import ManifestLog


def list_current_files(path: str) -> list[str]:
    """List the files that a sink's newest manifest counts, whole paths in the order of their names.

    They may be read for an hour at least; NotFound where there is no manifest.
    """
    manifests = ManifestLog(parse_location(path), "")
    numbers = manifests.list_numbers()
    if not numbers:
        raise NotFound(
            f"{path} has no manifest of a sink.", hint="name the path= of a FileSink that has run."
        )
    newest = FileManifest.from_bytes(manifests.fetch(numbers[-1]), numbers[-1])
    return [str(manifests.root / each) for each in sorted(list_counting_files(manifests.read_chain(newest)))]

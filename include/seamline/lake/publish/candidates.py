"""What a run offers for publication: its generations beside their certificates, without those published before."""

from __future__ import annotations

from collections.abc import Iterable

from seamline.lake.publish.unapproved_changes import find_unapproved
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.builds_table import BuildRow
from seamline.lake.tables.certificates_table import Certificates
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.manifest import Generation, Manifest
from seamline.plan.publish.publication import Candidate


def list_candidates(pipeline: CompiledPipeline, layout: Layout, builds: list[BuildRow]) -> list[Candidate]:
    """Put each generation beside its newest certificate and what the run expects to replace."""
    certificates = Certificates.ensure(layout).of(run=builds[0].run)
    judged = {(f"{c.view}/{c.fingerprint}", c.interval.id, c.generation): c for c in certificates}
    waits = find_unapproved(pipeline, layout, builds)
    found = [(row, judged.get((row.view, row.interval, row.generation))) for row in builds]
    return [
        Candidate(
            Generation(
                row.generation,
                row.view,
                pipeline.grid.named(row.interval),
                row.cut,
                row.rows,
                row.run,
                row.reason,
                row.restated,
            ),
            bool(certificate and certificate.passed),
            row.expected,
            row.planned,
            bool(certificate and certificate.provisional),
            waits.get((row.view, row.interval), ""),
        )
        for row, certificate in found
    ]


def filter_unpublished(manifest: Manifest, offered: Iterable[Candidate]) -> list[Candidate]:
    """Leave out what was published before, even if something newer has replaced it since; not what was withdrawn."""
    return [candidate for candidate in offered if not has_been_published(manifest, candidate.generation)]


def has_been_published(manifest: Manifest, generation: Generation) -> bool:
    """Return whether a generation answers, or did until another came in its place."""
    place = (generation.view, generation.interval.id)
    withdrawn = manifest.withdrawn.get(place)
    if withdrawn and withdrawn.generation == generation.id:
        return False
    return generation.id in {each.generation for each in manifest.history.get(place, ())}

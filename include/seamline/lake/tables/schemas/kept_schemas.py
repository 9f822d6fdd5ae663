"""Writers' schemas by their numbers, each a file that is written once and read once in each process."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from seamline.lake.storage.durability import sync_file, sync_folders
from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import Location, list_names, replace_file
from seamline.model.errors import NotFound
from seamline.model.schemas.wire_format import LARGEST_ID
from seamline.model.schemas.writer_schema import WriterSchema, describe_wanted_schemas

MOST_WANTED = 1000
"""How many schemas a task says at once that it lacks."""
REGISTRY = "registry.json"
"""The file that says that all is kept of a registry that the log's records name; without it nobody may refuse one."""

NUMBERED = re.compile(r"\d+\.json")


class SchemasWanted(Exception):
    """Records name schemas that are not kept yet; whoever may ask the registry asks it, and reads them again."""

    def __init__(self, registry: str, ids: Iterable[int]) -> None:
        self.registry, self.ids = registry, sorted(ids)[:MOST_WANTED]
        self.message = describe_wanted_schemas(registry, self.ids)
        super().__init__(self.message)


@dataclass(frozen=True)
class KeptSchemas:
    """The schemas that are kept of a pipeline's registries, as a task reads them."""

    folder: Location
    """Where they are."""
    unknown: frozenset[tuple[str, int]] = frozenset()
    """What a registry has just said that it does not have: its name, and the number."""
    final: bool = True
    """Whether what is not kept was unknown when its record was read, for nobody asks now."""

    def find(self, registry: str, ids: Iterable[int]) -> dict[int, WriterSchema | None]:
        """Find schemas by their numbers, None for those that the registry does not have.

        Raises SchemasWanted for some that it was not asked for, and NotFound where it never was asked for any.
        """
        found: dict[int, WriterSchema | None] = {}
        wanted = []
        for id in ids:
            if id > LARGEST_ID or (registry, id) in self.unknown:
                found[id] = None
                continue
            try:
                found[id] = read_schema(self.folder, registry, id)
            except FileNotFoundError:
                if self.final:
                    require_registry(self.folder, registry)
                    found[id] = None
                else:
                    wanted.append(id)
        if wanted:
            raise SchemasWanted(registry, wanted)
        return found


def open_kept_schemas(layout: Layout) -> KeptSchemas:
    """Return what is kept of a pipeline, for one who asks no registry."""
    return KeptSchemas(layout.schemas)


@lru_cache(maxsize=2000)
def read_schema(folder: Location, registry: str, id: int) -> WriterSchema:
    """Read a schema that is kept; FileNotFoundError. Its number never means another one, so it is read once."""
    return WriterSchema.read(locate_schema(folder, registry, id).read_bytes())


def locate_schema(folder: Location, registry: str, id: int) -> Location:
    """Return the file of a schema."""
    return folder / registry / f"{id}.json"


def require_registry(folder: Location, registry: str) -> None:
    """Require that a registry was asked, and that what is kept of it is here; NotFound."""
    if not is_registry_begun(folder, registry):
        raise NotFound(
            f"Nothing is kept in {folder} of the schemas of the registry {registry!r}.",
            hint="start the stream: it keeps those that the records of its log name, and no build asks for any.",
        )


def is_registry_begun(folder: Location, registry: str) -> bool:
    """Return whether what the log's records of some topics name is kept of a registry."""
    return (folder / registry / REGISTRY).exists()


def list_begun_topics(folder: Location, registry: str) -> frozenset[str]:
    """List the topics of which what the log's records name is kept of a registry."""
    try:
        told = json.loads((folder / registry / REGISTRY).read_bytes())
    except FileNotFoundError:
        return frozenset()
    return frozenset(told.get("topics", ()))


def begin_registry(folder: Location, registry: str, topics: Iterable[str]) -> None:
    """Note that what the log's records of topics name is kept of a registry, as far as the registry has it."""
    begun = list_begun_topics(folder, registry)
    if (wanted := begun | {*topics}) != begun or not is_registry_begun(folder, registry):
        told = {"connection": registry, "topics": sorted(wanted)}
        write_for_good(folder / registry / REGISTRY, json.dumps(told))


def is_schema_kept(folder: Location, registry: str, id: int) -> bool:
    """Return whether a schema is kept."""
    return locate_schema(folder, registry, id).exists()


def find_newest_schemas(folder: Location, registry: str, most: int) -> list[WriterSchema]:
    """Find the kept schemas of the highest numbers."""
    try:
        names = list_names(folder / registry)
    except FileNotFoundError:
        return []
    ids = sorted(
        (int(name.removesuffix(".json")) for name in names if NUMBERED.fullmatch(name)), reverse=True
    )
    return [read_schema(folder, registry, id) for id in ids[:most]]


def keep_schema(folder: Location, registry: str, schema: WriterSchema) -> None:
    """Keep a schema: its file is on disk before an epoch is committed that has read by it."""
    place = locate_schema(folder, registry, schema.id)
    if not place.exists():
        write_for_good(place, schema.to_json())


def write_for_good(place: Location, text: str) -> None:
    """Write a file whole or not at all."""
    replace_file(place, text.encode(), before=sync_file)
    sync_folders([place.parent], above=place.parents[2])

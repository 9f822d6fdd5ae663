"""Fetches the pinned Java parts with the Ivy that pyspark ships, and believes nothing but their checksums."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

from seamline.model.errors import SetupError
from seamline.runtime.java import Part

# Without a root Ivy asks Maven Central. The checksums that count are ours, and nothing is resolved: no pom is read.
SETTINGS = """\
<ivysettings>
  <property name="ivy.checksums" value=""/>
  <settings defaultResolver="maven"/>
  <caches defaultCacheDir={cache}/>
  <resolvers><ibiblio name="maven" m2compatible="true" usepoms="false" useMavenMetadata="false"{root}/></resolvers>
</ivysettings>
"""
MODULE = """\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="seamline" module="parts"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""
DEPENDENCY = '    <dependency org={org} name={name} rev={rev} conf="default->default" transitive="false"'
ARTIFACT = "<artifact name={name} type={ext} ext={ext} m:classifier={classifier}/>"

Run = Callable[[list[str]], None]


def list_missing_parts(parts: Iterable[Part], folder: Path) -> list[Part]:
    """List the parts that ``folder`` lacks or has with other bytes than the pinned ones."""
    return [part for part in parts if hash_file(folder / part.jar) != part.sha256]


def download_parts(parts: Iterable[Part], folder: Path, *, java: Sequence[str], ivy: Path, run: Run) -> None:
    """Bring ``parts`` into ``folder``, each whole or not at all; SetupError if one has other bytes.

    ``java`` is the command that starts Java, with its options.
    """
    wanted = list(parts)
    scratch = folder.with_suffix(".new")
    shutil.rmtree(scratch, ignore_errors=True)  # A half-filled cache makes Ivy fail.
    scratch.mkdir(parents=True)
    settings, module = scratch / "settings.xml", scratch / "module.xml"
    settings.write_text(settings_xml(scratch / "cache", maven_mirror(os.environ, Path.home())))
    module.write_text(module_xml(wanted))
    jars = scratch / "jars"
    retrieve = str(jars / "[artifact]-[revision](-[classifier]).[ext]")
    files = ["-settings", str(settings), "-ivy", str(module)]
    run([*java, "-jar", str(ivy), *files, "-confs", "default", "-retrieve", retrieve])
    move_verified_parts(wanted, jars, folder)
    shutil.rmtree(scratch)


def move_verified_parts(parts: Iterable[Part], fetched: Path, folder: Path) -> None:
    """Move the parts from ``fetched`` to ``folder``; a file that is not the pinned one is removed and named."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in parts:
        file = fetched / part.jar
        if (found := hash_file(file)) != part.sha256:
            file.unlink(missing_ok=True)
            raise SetupError(
                f"{part.jar} has checksum {found or '(no file)'}, not the pinned {part.sha256}; it was removed.",
                hint="try again; if the error persists, the Maven repository or a proxy in between changes files.",
            )
        file.replace(folder / part.jar)


def hash_file(file: Path) -> str:
    """Return the hex digest of a file's bytes, or an empty string if there is no file."""
    if not file.exists():
        return ""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def maven_mirror(environ: Mapping[str, str], user: Path) -> str:
    """Return the Maven repository to ask: SEAMLINE_MAVEN_MIRROR, Maven's own setting, or "" for its default."""
    if named := environ.get("SEAMLINE_MAVEN_MIRROR"):
        return named
    settings = user / ".m2" / "settings.xml"
    if not settings.exists():
        return ""
    for mirror in ElementTree.parse(settings).getroot().iterfind(".//{*}mirror"):
        serves = {name.strip() for name in mirror.findtext("{*}mirrorOf", "").split(",")}
        if serves & {"*", "central", "external:*"} and "!central" not in serves:
            return mirror.findtext("{*}url", "").strip()
    return ""


def settings_xml(cache: Path, mirror: str) -> str:
    """Return Ivy's settings."""
    return SETTINGS.format(cache=quoteattr(str(cache)), root=f" root={quoteattr(mirror)}" if mirror else "")


def module_xml(parts: Iterable[Part]) -> str:
    """Return an Ivy module that depends on exactly ``parts``."""
    return MODULE.format(dependencies="\n".join(map(dependency_xml, parts)))


def dependency_xml(part: Part) -> str:
    """Return a dependency on one file."""
    name = quoteattr(part.name)
    begun = DEPENDENCY.format(org=quoteattr(part.organisation), name=name, rev=quoteattr(part.revision))
    if not part.classifier:
        return f"{begun}/>"
    artifact = ARTIFACT.format(
        name=name, ext=quoteattr(part.extension), classifier=quoteattr(part.classifier)
    )
    return f"{begun}>{artifact}</dependency>"

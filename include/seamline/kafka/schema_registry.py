"""Asking a schema registry, by the API that Confluent's has and Apicurio's, Karapace and Redpanda's have too."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import quote

from seamline.kafka.registry_connection import RegistryConnection, read_registry_connection
from seamline.model.errors import RegistryRefused, RegistryUnavailable
from seamline.model.schemas.writer_schema import AVRO, Reference, WriterSchema

PATIENCE = 10.0
"""Seconds until a registry counts as away that says nothing."""
LARGEST = 16 * 1024 * 1024
"""Bytes of an answer that is read."""
MOST_REFERENCES = 200
"""How many others a schema may build upon."""
NOT_THERE = range(40400, 40500)
"""What a registry says beside 404 where it is not the path that is wrong."""
FORBIDDEN = (401, 403)


class Unredirected(urllib.request.HTTPRedirectHandler):
    """Follows nobody elsewhere: the login would go there too."""

    def redirect_request(self, *_: Any) -> None:
        """Follow nowhere."""


class SchemaRegistry:
    """One registry, by its connection's name."""

    def __init__(self, name: str, connection: RegistryConnection | None = None) -> None:
        self.name, self.connection = name, connection or read_registry_connection(name)
        handlers: list[urllib.request.BaseHandler] = [Unredirected()]
        try:
            if context := self.connection.open_context():
                handlers.append(urllib.request.HTTPSHandler(context=context))
        except OSError as error:
            raise RegistryRefused(
                f"The certificates of the connection {name!r} cannot be read: {error}.",
                hint="correct ssl.ca.location, ssl.certificate.location and ssl.key.location in its extra.",
            ) from None
        self.opener = urllib.request.build_opener(*handlers)

    def find_schema(self, id: int) -> WriterSchema | None:
        """Find a schema with all that it builds upon; None where the registry does not have it.

        Raises RegistryUnavailable, also where what answers is no registry, and RegistryRefused.
        """
        found = self.ask(f"/schemas/ids/{id}")
        if found is None:
            return None
        references: dict[tuple[str, str], Reference] = {}
        try:
            if not self.add_references(found, references):
                return None
        except (KeyError, TypeError):
            raise self.unavailable("its answer names references without name, subject and version") from None
        kind = str(found.get("schemaType") or AVRO)
        return WriterSchema(id, kind, self.read_text(found), tuple(references.values()))

    def add_references(self, found: dict[str, Any], known: dict[tuple[str, str], Reference]) -> bool:
        """Add what a schema builds upon, the innermost first; return whether the registry has all of it."""
        for each in found.get("references") or ():
            subject, version = str(each["subject"]), str(each["version"])
            if (subject, version) in known:
                continue
            if len(known) >= MOST_REFERENCES:
                raise self.unavailable(f"a schema builds upon more than {MOST_REFERENCES} others")
            other = self.ask(f"/subjects/{quote(subject, safe='')}/versions/{quote(version)}?deleted=true")
            if other is None or not self.add_references(other, known):
                return False
            known[subject, version] = Reference(str(each["name"]), self.read_text(other))
        return True

    def read_text(self, found: dict[str, Any]) -> str:
        """Return the text of a schema that was answered."""
        if not isinstance(found.get("schema"), str):
            raise self.unavailable("its answer has no schema")
        return str(found["schema"])

    def ask(self, path: str) -> dict[str, Any] | None:
        """Ask for what is at a path; None where the registry says that it is not there."""
        headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        request = urllib.request.Request(
            self.connection.url + path, headers={**headers, **self.connection.headers}
        )
        try:
            with self.opener.open(request, timeout=PATIENCE) as answer:
                said = answer.read(LARGEST + 1)
        except urllib.error.HTTPError as error:
            self.require_absent(error, path)
            return None
        except (OSError, http.client.HTTPException) as error:
            raise self.unavailable(str(getattr(error, "reason", "") or error)) from None
        except ValueError as error:
            # Its text may repeat a header, and with it the login.
            raise self.unavailable(f"the request cannot be sent ({type(error).__name__})") from None
        found = read_object(said)
        if found is None or len(said) > LARGEST:
            raise self.unavailable(f"it answers {path} with what is no JSON object")
        return found

    def require_absent(self, error: urllib.error.HTTPError, path: str) -> None:
        """Require that a registry says no more than that it does not have something; raise what else was said."""
        with error:
            said = read_object(error.read(LARGEST)) or {}
        if error.code == 404 and said.get("error_code") in NOT_THERE:
            return
        if error.code in FORBIDDEN:
            raise RegistryRefused(
                f"The schema registry {self.name!r} answers {path} with {error.code}: this user may not read schemas.",
                hint="correct login and password, or token, of the connection.",
            )
        raise self.unavailable(f"it answers {path} with {error.code}")

    def unavailable(self, why: str) -> RegistryUnavailable:
        """Say that no schema is to be had."""
        return RegistryUnavailable(
            f"The schema registry {self.name!r} cannot be asked: {why}.",
            hint="records wait until it can be: nothing is refused, and nothing is lost. Its connection names the "
            "place where /schemas is, as https://host:8081, or https://host/apis/ccompat/v7.",
        )


def read_object(said: bytes) -> dict[str, Any] | None:
    """Read a JSON object; None where it is none."""
    try:
        found = json.loads(said)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None

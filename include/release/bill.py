"""The bill of materials, CycloneDX 1.6 in JSON: the same bytes each time it is made of the same things."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from release.components import Component
from seamline.model.errors import SetupError


def write_bill(release: str, at: int, components: Iterable[Component], asked: Sequence[str]) -> str:
    """Write the bill of a release: ``at`` is its time in seconds since 1970, ``asked`` what it asks for itself."""
    found = sorted(components)
    ours = f"pkg:pypi/seamline@{release.replace('+', '%2B')}"
    bill: dict[str, Any] = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(at, UTC).isoformat(),
            "component": {
                "type": "application",
                "bom-ref": ours,
                "name": "seamline",
                "version": release,
                "purl": ours,
                "licenses": [{"expression": "Apache-2.0"}],
            },
        },
        "components": list(map(describe_component, found)),
        "dependencies": [
            {"ref": ours, "dependsOn": sorted({*asked, *(each.purl for each in found if each.sha256)})},
            *({"ref": each.purl, "dependsOn": list(each.needs)} for each in found),
        ],
    }
    # A serial number is to be unique to what it numbers: it is made of that.
    bill["serialNumber"] = f"urn:uuid:{uuid5(NAMESPACE_URL, json.dumps(bill, sort_keys=True))}"
    return json.dumps(bill, indent=1, sort_keys=True) + "\n"


def describe_component(component: Component) -> dict[str, Any]:
    """Describe a component as CycloneDX does."""
    told: dict[str, Any] = {
        "type": "library",
        "bom-ref": component.purl,
        "name": component.name,
        "version": component.version,
        "purl": component.purl,
        "licenses": [{"expression": component.licence}],
    }
    if component.sha256:
        told["hashes"] = [{"alg": "SHA-256", "content": component.sha256}]
        told["group"], _, told["name"] = component.name.partition(":")
    return told


def require_valid(bill: str) -> None:
    """Raise SetupError unless a bill is one by the schema of CycloneDX."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    if problem := JsonStrictValidator(SchemaVersion.V1_6).validate_str(bill):
        raise SetupError(
            f"The bill of materials is not valid CycloneDX 1.6: {problem}.",
            hint="see include/release/bill.py.",
        )

"""Intervals of a run in whose place another run has published, or built, something: they are held back alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from seamline.model.protocol.manifest import Manifest
from seamline.plan.publish.awaited_approvals import AwaitedApproval
from seamline.plan.publish.publication import Candidate, Offer


def list_overtaken(manifest: Manifest, candidates: Iterable[Candidate]) -> Mapping[str, str]:
    """Say, by interval id, why the manifest accepts what a run built no more.

    It is forgotten, or something else is published than the run saw.
    """
    found: dict[str, str] = {}
    for each in candidates:
        interval = each.generation.interval.id
        place = (each.generation.view, interval)
        if (*place, each.generation.id) in manifest.forgotten:
            found[interval] = (
                f"{each.generation.id} is forgotten, its files are being deleted: build it again"
            )
            continue
        current = manifest.published.get(place)
        if (current.generation if current else "") == each.expected:
            continue
        found[interval] = (
            f"run {current.run or 'unknown'} has published {current.generation} since it was planned"
            if current
            else f"{each.expected} is not published any more"
        ) + ": build it again"
    return found


def list_superseded(newer: Mapping[str, AwaitedApproval]) -> Mapping[str, str]:
    """Say, by interval id, which run has built it since and waits too: an approval is of what was built last."""
    return {
        interval: f"run {each.run} has built it since, and waits for approval: approve that run, or build it again"
        for interval, each in newer.items()
    }


def set_aside(offer: Offer, whys: Mapping[str, str]) -> Offer:
    """Hold back more of what may be published or waits, by interval id with the reason."""
    mine = offer.waiting | {each.generation.interval.id for each in offer.green}
    held = {**offer.held_back, **{id: why for id, why in whys.items() if id in mine}}
    green = tuple(each for each in offer.green if each.generation.interval.id not in held)
    return replace(
        offer, green=green, held_back=dict(sorted(held.items())), waiting=offer.waiting - whys.keys()
    )

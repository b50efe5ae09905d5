"""The platforms whose webhooks are understood, by the kind of their connections."""

from __future__ import annotations

from collections.abc import Mapping

from annotruth.serve.hooks import argilla, cvat, generic, label_studio, potato
from annotruth.serve.hooks.message import Platform

PLATFORMS: Mapping[str, Platform] = {
    "label-studio": label_studio.PLATFORM,
    "argilla": argilla.PLATFORM,
    "potato": potato.PLATFORM,
    "cvat": cvat.PLATFORM,
    "generic": generic.PLATFORM,
}

"""The only file that knows llvmlite."""

from __future__ import annotations

import llvmlite

LLVMLITE_VERSION: str = llvmlite.__version__

"""Saved fits: a folder with ``fit.json`` and a folder of Arrow files.

Both are open formats that hold data only, so loading a fit never runs code from it. The names of
the files, columns and entries are part of the format (`FORMAT`) and do not change with the code.
"""

from annotruth.models.storage.folder import load, load_fit, locked, save

__all__ = ["load", "load_fit", "locked", "save"]

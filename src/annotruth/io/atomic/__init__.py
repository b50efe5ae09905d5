"""Atomic writes: a result is complete or not there at all, also when the process is killed.

Files are written to a *workspace*, a hidden folder on the disk of their destination, and take their
place by one rename after their content has reached the disk. A workspace is locked by its process,
and the system releases the lock when the process ends, however it ends. So the next write to the
same place recognises the workspaces of killed processes and removes them.

The files of an existing folder are replaced all at once. A temporary folder with the new files and
links to all others is exchanged for the folder in one step; the folder itself, which nobody sees
now, gets the new files; and both are exchanged again. So the folder keeps its owner, its subfolders
and the processes that work in it. Where folders cannot be exchanged (a mount point, Windows, some
network disks), files are renamed one by one, and the next write completes what a killed one began.
"""

from annotruth.io.atomic.write import atomic_write, atomic_write_folder, path_behind_links

__all__ = ["atomic_write", "atomic_write_folder", "path_behind_links"]

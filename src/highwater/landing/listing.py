"""What lies in a folder: the files to be read, and by name what cannot be."""

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import PurePosixPath

from pyarrow import ArrowInvalid, fs

from highwater.formats.records import BLOCK_BYTES
from highwater.runtime.errors import UsageError
from highwater.runtime.faults import masked
from highwater.runtime.printable import printable

NO_TIME = datetime.fromtimestamp(0, timezone.utc)
KINDS = {
    stat.S_IFIFO: "is a pipe and no file",
    stat.S_IFSOCK: "is a socket and no file",
    stat.S_IFBLK: "is a device and no file",
    stat.S_IFCHR: "is a device and no file",
}


@dataclass(frozen=True, slots=True)
class Found:
    """A file, or something that should be one.

    Attributes:
        path: where to open it. below: its path below the folder that was asked for.
        size: bytes. modified_at: last change. problem: why it cannot be read, behind its name; None: it can.
        left: why it is not looked into, as its name tells, in words; None: it is.
    """

    path: str
    below: PurePosixPath
    size: int = 0
    modified_at: datetime = NO_TIME
    problem: str | None = None
    left: str | None = None


@dataclass(frozen=True, slots=True)
class DeliveredFile:
    """A file in a landing folder.

    Attributes:
        path: where to open it. source_file: its path below the landing folder.
        table: what its folder or its name tells; None where records do.
        size: bytes. modified_at: last change. position, taken_at: of the source, for exports, as declared by `entry`.
        undeclared: of an export, why `_exports.yml` does not let it land; None: it does.
        problem: why it cannot be read, behind its name, which is then written as it can be shown; None: it can.
    """

    path: str
    source_file: str
    table: str | None
    size: int
    modified_at: datetime
    position: str | None = None
    taken_at: str | None = None
    problem: str | None = None
    entry: str | None = None
    undeclared: str | None = None


# a file, and whether it is not called as files of its feed are
Listed = tuple[DeliveredFile, bool]


def sum_of(files: Iterable[Listed]) -> int:
    """Return what tells files from any others, whatever their order; sums of parts add up to that of all of them."""
    digests = (hashlib.sha256(repr(listed).encode(errors="surrogateescape")).digest() for listed in files)
    return sum(int.from_bytes(digest, "big") for digest in digests)


def filesystem(root: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a folder or URI, and the path in it.

    Raises: UsageError when nothing can be opened by that URI.
    """
    if "://" not in root:
        return fs.LocalFileSystem(), os.path.abspath(root)
    try:
        # s3a is what Spark calls it
        return fs.FileSystem.from_uri(re.sub("^s3a://", "s3://", root))
    except (ArrowInvalid, OSError) as error:
        why = masked(str(error)).partition("\n")[0].rstrip(".")
        raise UsageError(
            f"{printable(masked(root))} cannot be opened: {why}. A folder of an object store is written as "
            "s3://BUCKET/FOLDER (or s3a://), gs:// or abfss://; keys and endpoint come from the environment, for "
            "example AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_ENDPOINT_URL."
        ) from error


def digest_of(root: str, path: str, size: int | None = None) -> str:
    """Return the SHA-256 of a file as it is now, or of its first bytes.

    Arguments:
        root: the folder or URI that it is in. path: where to open it. size: how many bytes; None: all.
    """
    (system, _), digest, left = filesystem(root), hashlib.sha256(), size
    with system.open_input_stream(path, compression=None) as opened:
        while left != 0 and (block := opened.read(BLOCK_BYTES if left is None else min(left, BLOCK_BYTES))):
            digest.update(block)
            left = None if left is None else left - len(block)
    return digest.hexdigest()


def digest_if_readable(root: str, path: str, size: int | None = None) -> str | None:
    """Return what `digest_of` does; None where the file cannot be read, which is told where it is landed."""
    try:
        return digest_of(root, path, size)
    except OSError:
        return None


def is_missing(root: str) -> bool:
    """Return whether a folder is not there, or of a URI its bucket; folders there are beginnings of names."""
    if "://" not in root:
        return not os.path.isdir(root)
    system, path = filesystem(root)
    has_buckets = system.type_name in ("s3", "gcs")
    return has_buckets and system.get_file_info(path.partition("/")[0]).type == fs.FileType.NotFound


class LinkFound(Exception):
    """A link is in the folders: what it leads to may be known by a name in a folder that is passed over."""


def files_below(
    root: str, *folders: str, leaves_alone, passes_over: Callable[[tuple[str, ...]], bool] | None = None
) -> list[Found]:
    """List the files in a folder and all below it, in the order of their names; none when it is not there.

    Arguments:
        root: a folder or URI, out of which no link may lead. folders: the way from there to the one that is asked for.
        leaves_alone: told a name, and whether it is a folder's, returns None where that is looked into; "": it is
            passed over; otherwise why it is left, in words.
        passes_over: told the way to a folder below, returns whether it is passed over; None: none is.
    Raises: LinkFound, where folders may be passed over.
    """
    if "://" in root:
        found = _objects_below(root, folders, leaves_alone, passes_over)
    else:
        found = _Walk(os.path.realpath(root), leaves_alone, passes_over).files(os.path.abspath(root), folders)
    return sorted(found, key=lambda file: file.below)


def folders_in(root: str, folder: str) -> list[str]:
    """Return the names of the folders in a folder, also of those that links lead to; none when it is not there."""
    if "://" in root:
        system, path = filesystem(root)
        beside = system.get_file_info(fs.FileSelector(f"{path}/{folder}", allow_not_found=True))
        return [info.base_name for info in beside if info.type == fs.FileType.Directory]
    try:
        with os.scandir(os.path.join(root, folder)) as entries:
            return [entry.name for entry in entries if entry.is_dir()]
    except OSError:  # told where its files are listed
        return []


def _infos_below(system: fs.FileSystem, folder: str, way: tuple[str, ...], passes_over) -> Iterator[fs.FileInfo]:
    """Yield what is in a folder and in those below it; where some may be passed over, folder by folder."""
    below = "/".join((folder, *way))
    for info in system.get_file_info(fs.FileSelector(below, recursive=not passes_over, allow_not_found=True)):
        if not passes_over or info.type != fs.FileType.Directory:
            yield info
        elif not passes_over((*way, info.base_name)):
            yield from _infos_below(system, folder, (*way, info.base_name), passes_over)


def _objects_below(root: str, folders, leaves_alone, passes_over=None) -> Iterator[Found]:
    system, path = filesystem(root)
    folder, seen = "/".join((path, *folders)), set()
    for info in _infos_below(system, folder, (), passes_over):
        below = PurePosixPath(info.path).relative_to(folder)
        if info.type == fs.FileType.File:
            why = [leaves_alone(name, place < len(below.parts)) for place, name in enumerate(below.parts, 1)]
            place = next((place for place, words in enumerate(why) if words is not None), None)
            if place is None:
                yield Found(info.path, below, info.size, info.mtime or NO_TIME)
            elif why[place] and (left := PurePosixPath(*below.parts[: place + 1])) not in seen:
                seen.add(left)
                yield Found(f"{folder}/{left}", left, left=why[place])


class _Walk:
    """One way through a folder: what has a name of its own first, then where links lead, each place once."""

    def __init__(self, root: str, leaves_alone, passes_over=None):
        self.root, self.leaves_alone, self.passes_over = root, leaves_alone, passes_over
        self.seen: set[str] = set()
        self.links: list[tuple[str, PurePosixPath]] = []
        self.above: set[str] = set()

    def files(self, root: str, folders) -> Iterator[Found]:
        """Yield the files below a folder; where it cannot be one, what stands in its place, as what is above it."""
        path = root
        for place, name in enumerate(folders, 1):
            path = os.path.join(path, name)
            problem = self._problem_of_folder(path)
            if problem == "":
                return
            if problem:
                yield self._problem(path, PurePosixPath(*[".."] * (len(folders) - place)), problem)
                return
        real = os.path.realpath(path)
        self.above = {real, *map(str, PurePosixPath(real).parents)}
        yield from self._folder(path, PurePosixPath())
        while self.links:
            yield from self._link(*self.links.pop(0))

    def _problem_of_folder(self, path: str) -> str | None:
        """Return why nothing can be listed there; empty: nothing is there; None: it can."""
        try:
            kind = os.lstat(path).st_mode
            if stat.S_ISLNK(kind) and not self._is_inside(os.path.realpath(path)):
                return self._leaves(path)
            if stat.S_ISDIR(os.stat(path).st_mode):
                return None
            return KINDS.get(stat.S_IFMT(kind), "is a file where a folder should be")
        except FileNotFoundError:
            return "is a link to nothing" if os.path.lexists(path) else ""
        except OSError as error:
            return f"cannot be looked at ({error.strerror})"

    def _folder(self, path: str, below: PurePosixPath) -> Iterator[Found]:
        real = os.path.realpath(path)
        if real in self.seen:
            return
        self.seen.add(real)
        try:
            with os.scandir(path) as entries:
                names = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
        except OSError as error:
            yield self._problem(path, below, f"cannot be listed ({error.strerror})")
            return
        for name, is_folder in names:
            left = self.leaves_alone(name, is_folder)
            if is_folder and self.passes_over and self.passes_over((below / name).parts):
                continue
            if left is None:
                yield from self._entry(f"{path}/{name}", f"{real}/{name}", below / name)
            elif left:
                yield Found(f"{path}/{name}", below / name, left=left)

    def _entry(self, path: str, real: str, below: PurePosixPath) -> Iterator[Found]:
        """Yield what stands in a folder under a name; `real` is its path where it is no link."""
        try:
            entry = os.lstat(path)
        except FileNotFoundError:  # it was taken away meanwhile
            return
        except OSError as error:
            yield self._problem(path, below, f"cannot be looked at ({error.strerror})")
            return
        kind = stat.S_IFMT(entry.st_mode)
        if _is_no_text(below.name):
            yield self._problem(path, below, "has a name that is no UTF-8; rename it")
        elif kind == stat.S_IFLNK and self.passes_over:
            raise LinkFound
        elif kind == stat.S_IFLNK:
            self.links.append((path, below))
        elif kind == stat.S_IFDIR:
            yield from self._folder(path, below)
        elif kind != stat.S_IFREG:
            yield self._problem(path, below, KINDS.get(kind, "is no file"))
        else:
            self.seen.add(real)
            yield Found(path, below, entry.st_size, _time(entry))

    def _link(self, path: str, below: PurePosixPath) -> Iterator[Found]:
        """Yield what a link leads to: nothing where that has been seen, or is above."""
        real = os.path.realpath(path)
        try:
            entry = os.stat(path) if self._is_inside(real) else None
        except OSError as error:
            is_gone = isinstance(error, FileNotFoundError)
            yield self._problem(
                path, below, "is a link to nothing" if is_gone else f"is a link that leads nowhere ({error.strerror})"
            )
            return
        if entry is None:
            yield self._problem(path, below, self._leaves(path))
        elif stat.S_ISDIR(entry.st_mode):
            yield from self._folder(path, below) if real not in self.above else ()
        elif real not in self.seen:
            self.seen.add(real)
            if stat.S_ISREG(entry.st_mode):
                yield Found(path, below, entry.st_size, _time(entry))
            else:
                yield self._problem(path, below, KINDS.get(stat.S_IFMT(entry.st_mode), "is no file"))

    def _is_inside(self, real: str) -> bool:
        return real == self.root or real.startswith(f"{self.root.rstrip('/')}/")

    def _leaves(self, path: str) -> str:
        return f"is a link that leaves the landing folder, to {os.path.realpath(path)}"

    def _problem(self, path: str, below: PurePosixPath, problem: str) -> Found:
        try:
            entry = os.lstat(path)
        except OSError:
            return Found(path, below, problem=problem)
        return Found(path, below, entry.st_size, _time(entry), problem)


def _is_no_text(name: str) -> bool:
    """Return whether a name has bytes that are no UTF-8, which Python keeps as halves of pairs."""
    return any("\ud800" <= character <= "\udfff" for character in name)


def _time(entry: os.stat_result) -> datetime:
    return NO_TIME + timedelta(microseconds=entry.st_mtime_ns // 1000)

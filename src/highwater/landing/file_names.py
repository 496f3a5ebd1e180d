"""What a delivered file is called, and what other names in a landing folder tell: nothing lands by chance.

A file lands under a name that its producer gives. What a tool writes meanwhile has another one, and marks that stand
beside data have theirs.
"""

import re
from collections.abc import Collection
from functools import lru_cache

from highwater.formats.formats import DECLARED, ENDINGS, PACKED

# what stands beside data and holds none: marks of Spark, Hadoop and Databricks, checksums, what desktops leave, keys
# and headers of Kafka Connect's sinks, manifests, our own files beside exports
KNOWN = re.compile(
    r"_SUCCESS|_(committed|started)_.*|_(common_)?metadata|.*\.crc|.*_\$folder\$|\.DS_Store|\._.*|Thumbs\.db|desktop\.ini"
    r"|\.(git)?keep|\.gitignore|.*\d\.(keys|headers)\.\w+(\.\w+)?|[^.]*manifest|.*\.manifest"
    r"|\.\.data|_exports\.ya?ml|_.*\.csv(\.parts)?\.json",
    re.IGNORECASE,
)
# logs of tables, snapshots of file systems, what Kubernetes mounts through
KNOWN_FOLDER = re.compile(r"_delta_log|_symlink_format_manifest|\.snapshot|lost\+found|\.\.data|\.\.\d{4}_.*")
# whose names are tools', and of what; the part behind a known ending is what they add
TOOLS = {
    r"_temporary|\.spark-staging.*|\.hive-staging.*|_magic.*|__magic.*": "a job of Spark or Hadoop",
    r".*\.(pending|pendingset)|[._].*\.in-?progress.*|.*\.in-?progress(\..*)?": "a job of Flink or Spark",
    r".*\._COPYING_": "hdfs dfs -put",
    r"\.distcp\.tmp\..*": "distcp",
    r".*_\.g[sz]tmp.*": "gcloud storage or gsutil",
    r"\.azDownload-.*": "azcopy",
    r".*\.part\.minio": "mc",
    r".*\.partial": "rclone",
    r"\..+\.[A-Za-z0-9]{6}|\.~tmp~|\.rsync-partial": "rsync",
    r".*\.(crdownload|opdownload|download|part)": "a browser",
    r".*\.filepart": "WinSCP",
    r".*\.aria2": "aria2",
    r"\.in\..*": "lftp",
    r"\.s3cmd\..*": "s3cmd",
    r"\.syncthing\..*|~syncthing~.*": "Syncthing",
    r"\.~lock\..*|~\$.*|.*~|\.?#.*|.*\.sw[op]": "an editor",
}
OF_TOOLS = {re.compile(pattern, re.IGNORECASE | re.DOTALL): tool for pattern, tool in TOOLS.items()}
OF_AWS = re.compile(r".*\.[0-9a-fA-F]{8}", re.DOTALL)
OF_S5CMD = re.compile(
    r".*\.({})\d{{5,10}}".format("|".join([*PACKED, *sorted({*sum(ENDINGS.values(), ())})])), re.DOTALL
)
UNFINISHED = re.compile(
    r".*\.(tmp|temp|unfinished|incomplete|uploading|writing|lock)([-._].*)?", re.IGNORECASE | re.DOTALL
)
# the name of a file, and what a tool adds while it writes it
WRITTEN_AS = re.compile(r"[._~]*(.*?)_?\.[^.]*", re.DOTALL)
# of folders, which may be called as one likes
UNFINISHED_FOLDER = re.compile(r"[_.].*|.*\.(tmp|inprogress|unfinished|download)", re.DOTALL)
# what ends a name without an ending: the number of a part, an offset, a date, the end of a UUID
NUMBERED = re.compile(r".*[-_+ (](\d+|[0-9a-fA-F]{12})\)?|(19|20)\d\d(0[1-9]|1[0-2])([0-2]\d|3[01])\d*", re.DOTALL)
MANIFEST = re.compile(r"(.*[-_.])?manifest\.json", re.IGNORECASE | re.DOTALL)
STILL_WRITTEN = "a name for what is still written"
ARCHIVES = {
    "zip", "xz", "7z", "rar", "tar", "tgz", "z", "br", "lzo", "deflate", "gpg", "pgp", "enc", "xls", "xlsx", "pdf",
}  # fmt: skip


def left_alone(name: str, is_folder: bool, format: str, endings: tuple[str, ...] = ()) -> str | None:
    """Return what a name in a landing folder tells of something that is not read.

    Arguments:
        name: of a file or folder. format: of the feed. endings: that the feed declares beside those of its format.
    Returns: None: it is looked into; "": it is known to hold no data; otherwise what it is, in words.
    """
    if (KNOWN_FOLDER if is_folder else KNOWN).fullmatch(name):
        return ""
    if is_folder:
        return _what_writes(name) or STILL_WRITTEN if UNFINISHED_FOLDER.fullmatch(name) else None
    if name[0] in "_.":
        return _what_writes(name) or STILL_WRITTEN
    if MANIFEST.fullmatch(name):
        return "a manifest"
    return None if _has_ending(name, format, endings) else _what_writes(name)


def is_called_so(name: str, format: str, endings: tuple[str, ...] = ()) -> bool:
    """Return whether the files of a feed may be called so.

    They have an ending of their format, or none at all: exports of BigQuery by a pattern, objects of Firehose and
    Athena, parts of UNLOAD and Flink. Behind either may stand the ending of a compression.

    Arguments:
        name: of a file that is not left alone. format: of the feed. endings: that the feed declares.
    """
    if _has_ending(name, format, endings):
        return True
    stem = _without_packing(name)
    return "." not in stem or bool(NUMBERED.fullmatch(stem.rpartition(".")[2]))


def is_whole_beside(name: str, names: Collection[str]) -> bool:
    """Return whether the file that was still being written under a name is there under its own.

    Arguments:
        name: of a file that is left alone, below the landing folder. names: of those that are not.
    Example: `is_whole_beside("dms_a/t/1.csv.6E5fAbCd", {"dms_a/t/1.csv"})` is true.
    """
    folder, slash, last = name.rpartition("/")
    added = WRITTEN_AS.fullmatch(last)
    return bool(added) and folder + slash + added[1] in names


def is_archive(name: str) -> bool:
    """Return whether a name tells of something that is to be unpacked, or made text, before it is delivered."""
    return name.rpartition(".")[2].lower() in ARCHIVES


def usual_endings(format: str) -> list[str]:
    """Return the first endings of the files of a format."""
    return [f".{ending}" for ending in ENDINGS[_kind(format)][:3]]


def _kind(format: str) -> str:
    return "json" if format in DECLARED or format == "table" else format.rpartition("-")[2]


def _without_packing(name: str) -> str:
    while name.rpartition(".")[2].lower() in PACKED and "." in name[1:]:
        name = name.rpartition(".")[0]
    return name


def _has_ending(name: str, format: str, endings: tuple[str, ...]) -> bool:
    known = _endings(format, endings)
    return name.lower().endswith(known) or _without_packing(name).lower().endswith(known)


@lru_cache(maxsize=100)
def _endings(format: str, endings: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f".{ending.lower()}" for ending in (*ENDINGS[_kind(format)], *endings))


def _what_writes(name: str) -> str | None:
    """Return what writes a file of such a name before it is whole, in words; None: the name does not tell."""
    for pattern, tool in OF_TOOLS.items():
        if pattern.fullmatch(name):
            return f"{tool} writes it"
    if OF_AWS.fullmatch(name) and not NUMBERED.fullmatch(name[-8:]):
        return "aws s3 writes it"
    if OF_S5CMD.fullmatch(name):
        return "s5cmd writes it"
    return STILL_WRITTEN if UNFINISHED.fullmatch(name) else None

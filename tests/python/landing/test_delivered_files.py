"""What lies in a landing folder is read, left alone or named: nothing is passed over in silence or followed outside."""

import os
import re
import shlex
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from highwater.catalog.feeds import Feed
from highwater.formats.formats import ReadOptions
from highwater.landing import feed_folders, listing, new_files
from highwater.landing.deliveries import skipping
from highwater.runtime.errors import UsageError
from highwater.runtime.printable import UNPRINTABLE, printable
from pyarrow import fs

LAYOUTS = {"folders": "datastream_shop/orders", "records": "datastream_shop"}


@pytest.fixture(params=LAYOUTS)
def feed(request, tmp_path, monkeypatch):
    """A feed of each layout, with one sound file, and the folder in which its files lie."""
    monkeypatch.setenv("HIGHWATER_LANDING", str(tmp_path / "landing"))
    options = ReadOptions(format="debezium-json", table_in_records=request.param == "records")
    feed = Feed("datastream_shop", "changes", ("orders",), request.param, options)
    folder = tmp_path / "landing" / LAYOUTS[request.param]
    folder.mkdir(parents=True)
    (folder / "sound.json").write_text("{}\n")
    return feed, folder


def listed(feed) -> tuple[list[str], dict[str, str]]:
    """The names of the files of a feed below its folder, and the problems by name."""
    files, root = feed_folders.delivered_files(feed), LAYOUTS[feed.layout]
    below = {file: os.path.relpath(file.source_file, root) for file in files}
    return [name for file, name in below.items() if not file.problem], {
        name: file.problem for file, name in below.items() if file.problem
    }


def test_files_are_listed_in_the_order_of_their_names(feed):
    feed, folder = feed
    for name in ("b/2.json", "b/10.json", "a.json", "_temporary/x.json", ".hidden", "b/y.tmp", "w.inprogress/x.json"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("{}\n")
    assert listed(feed) == (["a.json", "b/10.json", "b/2.json", "sound.json"], {})


def test_what_is_no_file_is_named(feed):
    feed, folder = feed
    os.mkfifo(folder / "pipe.json")
    os.mkdir(folder / "a.json")
    listening = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    os.chdir(folder)
    listening.bind("socket.json")
    os.chdir(here)
    (folder / "null.json").symlink_to("/dev/null")
    (folder / "pipe link.json").symlink_to("pipe.json")
    files, problems = listed(feed)
    listening.close()
    assert files == ["sound.json"]
    assert problems == {
        "null.json": "is a link that leaves the landing folder, to /dev/null",
        "pipe link.json": "is a pipe and no file",
        "pipe.json": "is a pipe and no file",
        "socket.json": "is a socket and no file",
    }


def test_a_device_is_named(feed):
    feed, folder = feed
    try:
        os.mknod(folder / "zero.json", 0o600 | 0o020000, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("only root makes devices")
    assert listed(feed) == (["sound.json"], {"zero.json": "is a device and no file"})


@pytest.mark.parametrize("name", [b"bad\xff.json", b"\xff\xfe", b"sub\xe9/x.json"])
def test_a_name_that_is_no_utf8_is_named_as_it_can_be_shown(feed, name):
    feed, folder = feed
    path = os.path.join(os.fsencode(folder), name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, "w").close()
    shown = printable(os.fsdecode(name.split(b"/")[0]))
    assert listed(feed) == (["sound.json"], {shown: "has a name that is no UTF-8; rename it"})
    assert "\\xff" in shown or "\\xe9" in shown


def test_links_that_leave_the_landing_folder_are_refused(feed, tmp_path):
    feed, folder = feed
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.json").write_text("{}\n")
    (tmp_path / "landing-too").mkdir()
    (tmp_path / "landing-too/secret.json").write_text("{}\n")
    (folder / "pw.json").symlink_to("/etc/passwd")
    (folder / "out").symlink_to(tmp_path / "outside")
    (folder / "up").symlink_to(tmp_path)
    (folder / "beside.json").symlink_to(tmp_path / "landing-too/secret.json")
    (folder / "twice.json").symlink_to("pw.json")
    files, problems = listed(feed)
    assert files == ["sound.json"]
    assert set(problems) == {"pw.json", "out", "up", "beside.json", "twice.json"}
    assert all("leaves the landing folder" in problem for problem in problems.values())


def test_links_inside_the_landing_folder_are_followed_once(feed, tmp_path):
    feed, folder = feed
    other = tmp_path / "landing/other/part"
    other.mkdir(parents=True)
    (other / "1.json").write_text("{}\n")
    (other / "back").symlink_to(folder)
    (other / "round").symlink_to(".")
    (folder / "part").symlink_to(other)
    (folder / "part again").symlink_to(other)
    (folder / "up").symlink_to("..")
    (folder / "self").symlink_to(".")
    (folder / "latest.json").symlink_to("sound.json")
    (folder / "..2024").mkdir()
    (folder / "..2024/config.json").write_text("{}\n")
    (folder / "..data").symlink_to("..2024")
    (folder / "config.json").symlink_to("..data/config.json")
    assert listed(feed) == (["config.json", "part/1.json", "sound.json"], {})


def test_links_that_lead_nowhere_are_named(feed):
    feed, folder = feed
    (folder / "gone.json").symlink_to("never.json")
    (folder / "one.json").symlink_to("two.json")
    (folder / "two.json").symlink_to("one.json")
    files, problems = listed(feed)
    assert files == ["sound.json"]
    assert problems["gone.json"] == "is a link to nothing"
    assert "leads nowhere (Too many levels of symbolic links)" in problems["one.json"]
    assert set(problems) == {"gone.json", "one.json", "two.json"}


def test_a_folder_that_may_not_be_read_is_named(feed):
    feed, folder = feed
    (folder / "closed").mkdir()
    (folder / "closed/x.json").write_text("{}\n")
    (folder / "closed").chmod(0)
    for above in (folder, *folder.parents[:8]):
        if above.stat().st_uid == os.getuid() and str(above).startswith("/tmp/"):
            above.chmod(0o755)
    is_root = os.getuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        files, problems = listed(feed)
    finally:
        if is_root:
            os.seteuid(0)
        (folder / "closed").chmod(0o755)
    assert files == ["sound.json"] and problems == {"closed": "cannot be listed (Permission denied)"}


@pytest.mark.parametrize("kind", ["file", "pipe", "dangling link", "link that leaves"])
@pytest.mark.parametrize("level", [0, 1])
def test_what_stands_where_a_folder_should_be_is_named(feed, tmp_path, kind, level):
    feed, _ = feed
    parts = LAYOUTS[feed.layout].split("/")
    if level == 1 and len(parts) == 1:
        pytest.skip("there is no folder of a table")
    for path in sorted((tmp_path / "landing").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    path = tmp_path / "landing" / "/".join(parts[: level + 1])
    path.parent.mkdir(exist_ok=True)
    if kind == "file":
        path.write_text("{}\n")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/etc" if kind == "link that leaves" else "nothing")
    (file,) = feed_folders.delivered_files(feed)
    assert file.source_file == "/".join(parts[: level + 1])
    words = {"file": "is a file where a folder should be", "pipe": "is a pipe", "dangling link": "is a link to nothing"}
    assert words.get(kind, "leaves the landing folder, to /etc") in file.problem


def test_a_landing_folder_that_is_not_there(feed, tmp_path, monkeypatch):
    feed, _ = feed
    feed_folders.require_landing_folder([feed])
    for wrong in ("landnig", "landing/datastream_shop/sound.json", "landing/sound.json"):
        monkeypatch.setenv("HIGHWATER_LANDING", str(tmp_path / wrong))
        with pytest.raises(UsageError, match=r"is not there, so nothing can land\. Is its disk mounted\?") as caught:
            feed_folders.require_landing_folder([feed])
        assert caught.value.exit_code == 2 and wrong in str(caught.value)
    monkeypatch.setenv("HIGHWATER_LANDING", "mock://anything")
    feed_folders.require_landing_folder([feed])


def test_a_bucket_that_is_not_there_is_no_empty_folder(feed, monkeypatch):
    """Listing one says that there are no files; a store's own error, before anything is listed, is a sentence too."""
    feed, _ = feed
    buckets = fs._MockFileSystem()
    buckets.create_dir("there")

    class Store:
        type_name, get_file_info = "s3", buckets.get_file_info

    at = lambda uri: f"{urlsplit(uri).hostname}{urlsplit(uri).path}"  # noqa: E731
    monkeypatch.setattr(listing, "filesystem", lambda uri: (Store, at(uri)))
    monkeypatch.setenv("HIGHWATER_LANDING", "s3a://there/landing")
    feed_folders.require_landing_folder([feed])
    assert not feed_folders.is_gone(feed)
    monkeypatch.setenv("HIGHWATER_LANDING", "s3://me:secret@typo/landing")
    with pytest.raises(
        UsageError, match=r"s3://\*\*\*:\*\*\*@typo/landing is not there, so .* Does its bucket exist\?"
    ):
        feed_folders.require_landing_folder([feed])
    monkeypatch.undo()
    system, path = listing.filesystem("s3a://there/landing?endpoint_override=127.0.0.1:1&scheme=http&region=here")
    assert (system.type_name, path) == ("s3", "there/landing")
    for wrong in ("s4://there/x", "memory://there"):
        with pytest.raises(UsageError, match=f"^{wrong} cannot be opened: .* is written as s3://BUCKET/FOLDER"):
            listing.filesystem(wrong)


def test_the_folder_of_a_feed_may_come_later(feed, tmp_path, monkeypatch):
    feed, _ = feed
    assert not feed_folders.is_gone(feed)
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("HIGHWATER_LANDING", str(tmp_path / "empty"))
    assert feed_folders.delivered_files(feed) == [] and feed_folders.is_gone(feed)


HOSTILE = [
    "$(touch x).json",
    "`touch x`.json",
    "a b's.json",
    "-rf",
    "esc\x1b[31m.json",
    "two\nlines.json",
    "tab\t.json",
    "right\u202eleft.json",
    "c1\x9b.json",
    "; touch x #.json",
    "{{ env_var('HOME') }}.json",
    "<script>.json",
    "*?[a].json",
    "ü名.json",
    "n" * 250 + ".json",
]


def test_hostile_names_are_listed_as_they_are_and_told_as_they_can_be_typed(feed):
    feed, folder = feed
    for name in HOSTILE:
        (folder / name).write_text("{}\n")
    files, problems = listed(feed)
    assert set(files) == {*HOSTILE, "sound.json"} and not problems
    for name in HOSTILE:
        command = skipping(f"datastream_shop/{name}")
        assert not UNPRINTABLE.search(command)
        words = shlex.split(command)
        assert words[:3] == ["highwater", "land", "--skip"] and words[3] == printable(f"datastream_shop/{name}")
        if not UNPRINTABLE.search(name):
            assert words[3] == f"datastream_shop/{name}"
        told = new_files.changed_file(feed, f"{LAYOUTS['folders']}/{name}")
        assert not UNPRINTABLE.search(told) and shlex.quote(printable(f"{LAYOUTS['folders']}/{name}")) in told


def test_what_is_escaped():
    assert printable("a\x1b\x00\n\x85\u2028\udcff\ufeffü") == "a\\x1b\\x00\\n\\x85\\u2028\\xff\\ufeffü"
    assert re.fullmatch(UNPRINTABLE, "\x7f") and not UNPRINTABLE.search("ü名 \\ ' \"")

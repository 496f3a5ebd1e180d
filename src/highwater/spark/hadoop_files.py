"""Files of a lake at a URI, by the file system that Spark has for it: s3a, abfss, gs, hdfs."""

import uuid

from py4j.protocol import Py4JJavaError


class HadoopFiles:
    """Files below a URI; see runtime.state.Files. A store writes a file as a whole, or not at all."""

    def __init__(self, spark, root: str):
        """Arguments: spark: the session, whose settings say how the store is reached. root: the URI."""
        self._jvm, self._root = spark._jvm, root.rstrip("/")
        configuration = spark._jsparkSession.sessionState().newHadoopConf()
        self._system = self._path("").getFileSystem(configuration)
        self._renames = not self._root.startswith(("s3a:", "gs:"))
        if self._renames:
            self._gateway = spark.sparkContext._gateway
            self._context = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(
                self._path("").toUri(), configuration
            )

    def _path(self, below: str):
        return self._jvm.org.apache.hadoop.fs.Path(f"{self._root}/{below}" if below else self._root)

    def read(self, path: str) -> bytes | None:
        """Return what a file holds; None: it is not there."""
        try:
            stream = self._system.open(self._path(path))
        except Py4JJavaError as error:
            return _none_where_it_is_not_there(error)
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        except Py4JJavaError as error:  # a store opens a file when it is read
            return _none_where_it_is_not_there(error)
        finally:
            stream.close()

    def write(self, path: str, content: bytes) -> None:
        """Write a file, so that nobody ever finds half of it."""
        target = self._path(path)
        beside = self._path(f"{path}.{uuid.uuid4().hex}.tmp") if self._renames else target
        stream = self._system.create(beside, True)
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()
        if self._renames:
            options = getattr(self._jvm.org.apache.hadoop.fs, "Options$Rename")
            replacing = self._gateway.new_array(options, 1)
            replacing[0] = options.OVERWRITE
            self._context.rename(beside, target, replacing)

    def remove(self, path: str) -> None:
        """Remove a file, or a folder and all that is in it; what is not there is no error."""
        self._system.delete(self._path(path), True)

    def names(self, path: str) -> list[str]:
        """Return the names of what is in a folder; none where it is not there."""
        try:
            found = self._system.listStatus(self._path(path))
        except Py4JJavaError as error:
            return _none_where_it_is_not_there(error) or []
        return [each.getPath().getName() for each in found]

    def state_of(self, path: str) -> tuple[int, int]:
        """Return size, in bytes, and time of the last change of a file."""
        found = self._system.getFileStatus(self._path(path))
        return found.getLen(), found.getModificationTime() * 1_000_000


def _none_where_it_is_not_there(error: Py4JJavaError) -> None:
    if error.java_exception.getClass().getName() != "java.io.FileNotFoundException":
        raise error

package highwater.storage;

import io.delta.storage.S3SingleDriverLogStore;
import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Arrays;
import java.util.Iterator;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Delta's log on S3, for any number of writers: a commit is one PUT with {@code If-None-Match: *}, so S3 itself decides
 * who has a version.
 *
 * <p>S3 answers 412 also where a PUT is repeated because the answer to the first was lost. Each write therefore gives
 * its object an id of its own, in its metadata, and after an error looks whose object is there. The content does not
 * tell: two writers may commit the same.
 *
 * <p>Reading and listing are those of Delta's own store.
 */
public class S3ConditionalLogStore extends S3SingleDriverLogStore {
  private static final String ID = "highwater-write";
  private static final int ATTEMPTS = 5;
  private static final long MILLISECONDS_BETWEEN = 100;

  public S3ConditionalLogStore(Configuration configuration) {
    super(configuration);
  }

  /**
   * Write a file of the log, whole or not at all.
   *
   * @throws FileAlreadyExistsException when it is there, and not to be overwritten
   * @throws IOException when nothing was written, or S3 cannot be asked whether it was
   */
  @Override
  public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration configuration)
      throws IOException {
    byte[] content = contentOf(actions);
    FileSystem fileSystem = path.getFileSystem(configuration);
    if (overwrite) {
      put(fileSystem.create(path, true), content);
    } else {
      create(fileSystem, path, content);
    }
  }

  private static byte[] contentOf(Iterator<String> actions) {
    ByteArrayOutputStream content = new ByteArrayOutputStream();
    while (actions.hasNext()) {
      content.writeBytes((actions.next() + "\n").getBytes(StandardCharsets.UTF_8));
    }
    return content.toByteArray();
  }

  private static void create(FileSystem fileSystem, Path path, byte[] content) throws IOException {
    String id = UUID.randomUUID().toString();
    for (int attempt = 1; ; attempt++) {
      try {
        put(conditional(fileSystem, path, id), content);
        return;
      } catch (IOException error) {
        if (isWritten(fileSystem, path, id, error)) {
          return;
        }
        if (!isConflict(error) || attempt == ATTEMPTS) {
          throw error;
        }
        pause(attempt * MILLISECONDS_BETWEEN);
      }
    }
  }

  /** Return a stream whose close is the PUT; a file system that knows no such PUT refuses. */
  private static FSDataOutputStream conditional(FileSystem fileSystem, Path path, String id) throws IOException {
    FSDataOutputStreamBuilder<?, ?> builder = fileSystem.createFile(path);
    return builder
        .recursive()
        .overwrite(true) // S3A itself does not look
        .must("fs.option.create.conditional.overwrite", true)
        .must("fs.s3a.create.header." + ID, id)
        .build();
  }

  private static void put(FSDataOutputStream stream, byte[] content) throws IOException {
    try {
      stream.write(content);
    } catch (IOException error) {
      stream.abort(); // a close would put the half
      throw error;
    }
    stream.close();
  }

  /**
   * Return whether the object that is there is of this write; nothing there is not.
   *
   * @throws FileAlreadyExistsException when it is of another
   * @throws IOException the error after which it is asked, when there is no answer
   */
  private static boolean isWritten(FileSystem fileSystem, Path path, String id, IOException error)
      throws IOException {
    byte[] found;
    try {
      found = fileSystem.getXAttr(path, "header." + ID);
    } catch (FileNotFoundException nothing) {
      return false;
    } catch (IOException unanswered) {
      error.addSuppressed(unanswered);
      throw error;
    }
    if (Arrays.equals(found, id.getBytes(StandardCharsets.UTF_8))) {
      return true;
    }
    FileAlreadyExistsException lost = new FileAlreadyExistsException(path.toString());
    lost.initCause(error);
    throw lost;
  }

  /** Return whether S3 wants the PUT again (409): another request for the same name was under way. */
  private static boolean isConflict(IOException error) {
    return String.valueOf(error.getMessage()).contains("Status Code: 409");
  }

  private static void pause(long milliseconds) throws IOException {
    try {
      Thread.sleep(milliseconds);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new InterruptedIOException("interrupted between two attempts to write a commit");
    }
  }
}

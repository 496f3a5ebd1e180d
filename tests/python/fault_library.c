/* Loaded before everything else (LD_PRELOAD), in Python, Java and their workers: lets calls of the system on files below
 * a folder fail, or the process be killed at one of them. What fails is in a file that all processes map; a test arms it
 * while they run. See fault_points.py, which has the same struct. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OPEN = 1, WRITE = 2, RENAME = 4, MKDIR = 8, UNLINK = 16, READ = 32 };

struct control {
    uint32_t armed, error, calls, stays; /* error 0: kill the process */
    uint64_t at, count, hits;            /* the at-th call fails; with stays all later ones too */
    uint64_t seen[6];                    /* how many calls of each kind there were */
    char below[PATH_MAX], but[PATH_MAX]; /* files below a folder, but not below another */
};

static struct control *control;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAULT_CONTROL");
    int file = path ? syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *mapped = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    syscall(SYS_close, file);
    if (mapped != MAP_FAILED) control = mapped;
}

/* Whether this call is to fail; errno is set. */
static int fails(int call, const char *path) {
    if (!control || !control->armed || !path) return 0;
    char whole[PATH_MAX * 2];
    if (path[0] != '/') {
        if (syscall(SYS_getcwd, whole, PATH_MAX) < 0) return 0;
        strcat(whole, "/");
        strncat(whole, path, PATH_MAX - 1);
        path = whole;
    }
    if (strncmp(path, control->below, strlen(control->below))) return 0;
    if (control->but[0] && !strncmp(path, control->but, strlen(control->but))) return 0;
    __atomic_add_fetch(&control->seen[__builtin_ctz(call)], 1, __ATOMIC_SEQ_CST);
    if (!(control->calls & call)) return 0;
    uint64_t number = __atomic_add_fetch(&control->count, 1, __ATOMIC_SEQ_CST);
    if (number < control->at || (number > control->at && !control->stays)) return 0;
    __atomic_add_fetch(&control->hits, 1, __ATOMIC_SEQ_CST);
    if (!control->error) syscall(SYS_kill, getpid(), SIGKILL);
    errno = control->error;
    return 1;
}

static int fails_on(int call, int file) {
    if (!control || !control->armed) return 0;
    char link[40] = "/proc/self/fd/", digits[12], path[PATH_MAX];
    int at = 14, length = 0;
    for (int rest = file; rest || !length; rest /= 10) digits[length++] = '0' + rest % 10;
    while (length) link[at++] = digits[--length];
    ssize_t size = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return fails(call, path);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define MODE(flags, last) mode_t mode = 0; if ((flags) & (O_CREAT | O_TMPFILE)) { va_list list; va_start(list, last); mode = va_arg(list, mode_t); va_end(list); }
#define WAY(flags) ((flags) & (O_WRONLY | O_RDWR | O_CREAT) ? OPEN : READ)

int open(const char *path, int flags, ...) { MODE(flags, flags) return fails(WAY(flags), path) ? -1 : NEXT(open)(path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags, flags) return fails(WAY(flags), path) ? -1 : NEXT(open64)(path, flags, mode); }
int openat(int folder, const char *path, int flags, ...) { MODE(flags, flags) return fails(WAY(flags), path) ? -1 : NEXT(openat)(folder, path, flags, mode); }
int openat64(int folder, const char *path, int flags, ...) { MODE(flags, flags) return fails(WAY(flags), path) ? -1 : NEXT(openat64)(folder, path, flags, mode); }
ssize_t write(int file, const void *bytes, size_t size) { return fails_on(WRITE, file) ? -1 : NEXT(write)(file, bytes, size); }
ssize_t pwrite(int file, const void *bytes, size_t size, off_t at) { return fails_on(WRITE, file) ? -1 : NEXT(pwrite)(file, bytes, size, at); }
ssize_t pwrite64(int file, const void *bytes, size_t size, off64_t at) { return fails_on(WRITE, file) ? -1 : NEXT(pwrite64)(file, bytes, size, at); }
ssize_t read(int file, void *bytes, size_t size) { return fails_on(READ, file) ? -1 : NEXT(read)(file, bytes, size); }
ssize_t pread64(int file, void *bytes, size_t size, off64_t at) { return fails_on(READ, file) ? -1 : NEXT(pread64)(file, bytes, size, at); }
int rename(const char *from, const char *to) { return fails(RENAME, to) ? -1 : NEXT(rename)(from, to); }
int mkdir(const char *path, mode_t mode) { return fails(MKDIR, path) ? -1 : NEXT(mkdir)(path, mode); }
int unlink(const char *path) { return fails(UNLINK, path) ? -1 : NEXT(unlink)(path); }

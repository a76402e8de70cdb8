/* faults: runs hpc-train-stage again and again with one thing going wrong in each run, and checks
 * that it was reported, with nothing left behind, or did no harm: the copy is the whole source, as
 * it was or as it became. Usage: faults HELPER MODULE FOLDER TRIES SEED KIND[,KIND...] MODE...
 * Modes: copy, or an archive of the tree (made by `faults --tree FOLDER`) to extract. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/stage/fault.h"

#define NUM_FILES 24
#define DEADLINE 30

static const char *const names[NUM_FAULTS] = {
    [FAULT_WRITE] = "write",
    [FAULT_WRITE_SHORT] = "write-short",
    [FAULT_WRITE_ERROR] = "write-error",
    [FAULT_WRITE_FULL] = "write-full",
    [FAULT_CREATE] = "create",
    [FAULT_BACK] = "back",
    [FAULT_READ_SHORT] = "read-short",
    [FAULT_READ_END] = "read-end",
    [FAULT_READ_ERROR] = "read-error",
    [FAULT_TRUNCATE] = "truncate",
    [FAULT_GROW] = "grow",
    [FAULT_VANISH] = "vanish",
    [FAULT_REWRITE] = "rewrite",
    [FAULT_REPLACE] = "replace",
    [FAULT_FILL] = "fill",
    [FAULT_FLIP] = "flip",
    [FAULT_CUT] = "cut",
};

typedef struct file {
    char path[64];
    size_t size;
    unsigned char *bytes;
} file;

static file files[NUM_FILES];
static uint64_t state;
static const char *helper, *module;

static void die(const char *what)
{
    printf("Bail out! %s: %s\n", what, strerror(errno));
    exit(1);
}

#define ROOM (2 * PATH_MAX)

__attribute__((format(printf, 2, 3))) static void spell(char out[ROOM], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (vsnprintf(out, ROOM, format, args) >= ROOM)
        die("a name is too long");
    va_end(args);
}

static uint64_t draw(uint64_t bound) /* SplitMix64 */
{
    uint64_t z = state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return (z ^ z >> 31) % bound;
}

/* ---- the tree: always the same ---- */

static void plan_tree(void)
{
    static const char *const folders[] = {"", "a/", "a/b/", "new\nline/"};
    uint64_t kept = state;
    state = 1;
    for (int i = 0; i < NUM_FILES; i++) {
        file *f = &files[i];
        snprintf(f->path, sizeof f->path, "%sfile %d", folders[i % 4], i);
        f->size = i < 2 ? (size_t) i * 400000 : draw(i < 6 ? 60000 : 3000);
        f->bytes = malloc(f->size + sizeof FAULT_GROWTH);
        for (size_t b = 0; b < f->size; b++)
            f->bytes[b] = (unsigned char) draw(256);
    }
    state = kept;
}

static void put(const char *path, const void *bytes, size_t size)
{
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t) size)
        die(path);
    const struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    futimens(fd, times);
    close(fd);
}

static void put_file(const file *f)
{
    char path[ROOM];
    spell(path, "tree/%s", f->path);
    put(path, f->bytes, f->size);
}

static int make_tree(void)
{
    mkdir("tree", 0755);
    mkdir("tree/a", 0755);
    mkdir("tree/a/b", 0755);
    mkdir("tree/new\nline", 0755);
    for (int i = 0; i < NUM_FILES; i++)
        put_file(&files[i]);
    if (symlink("a/b", "tree/link") != 0 && errno != EEXIST)
        die("tree/link");
    return 0;
}

/* ---- what came of it ---- */

static unsigned char *get(const char *path, size_t *size)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_NOFOLLOW);
    if (fd < 0)
        return NULL;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        close(fd);
        return NULL;
    }
    unsigned char *bytes = malloc((size_t) info.st_size + 1);
    *size = (size_t) info.st_size;
    if (read(fd, bytes, *size) != (ssize_t) *size)
        die(path);
    close(fd);
    return bytes;
}

/* Whether the bytes are those of the file, or what the fault made of them as a whole. */
static bool is_version(const file *f, const unsigned char *bytes, size_t size, int kind)
{
    if (size == f->size && memcmp(bytes, f->bytes, size) == 0)
        return true;
    if (kind == FAULT_TRUNCATE)
        return size == f->size / 2 && memcmp(bytes, f->bytes, size) == 0;
    if (kind == FAULT_GROW)
        return size == f->size + strlen(FAULT_GROWTH) && memcmp(bytes, f->bytes, f->size) == 0 &&
               memcmp(bytes + f->size, FAULT_GROWTH, strlen(FAULT_GROWTH)) == 0;
    if (kind != FAULT_REWRITE || size != f->size)
        return false;
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != (f->bytes[i] ^ FAULT_MASK))
            return false;
    }
    return true;
}

static long count_files(const char *folder)
{
    char path[ROOM];
    long count = 0;
    DIR *open_folder = opendir(folder);
    if (open_folder == NULL)
        return 0;
    for (struct dirent *e; (e = readdir(open_folder)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        spell(path, "%s/%s", folder, e->d_name);
        count += e->d_type == DT_DIR ? count_files(path) : 1;
    }
    closedir(open_folder);
    return count;
}

/* NULL: the copy `to`/x is whole. `changed`: the file that the fault changed, or NULL. */
static const char *judge_copy(const char *to, int kind, const file *changed)
{
    char path[ROOM], link[16] = "";
    long missing = 0;
    for (int i = 0; i < NUM_FILES; i++) {
        const file *f = &files[i];
        size_t size = 0;
        spell(path, "%s/x/%s", to, f->path);
        unsigned char *bytes = get(path, &size);
        if (bytes == NULL && f == changed && kind == FAULT_VANISH) {
            missing++; /* before it was listed */
            continue;
        }
        bool good = bytes != NULL && is_version(f, bytes, size, f == changed ? kind : -1);
        free(bytes);
        if (!good)
            return f->path;
    }
    spell(path, "%s/x/link", to);
    if (readlink(path, link, sizeof link - 1) != 3 || strcmp(link, "a/b") != 0)
        return "link";
    spell(path, "%s/x", to);
    return count_files(path) + missing == NUM_FILES + 1 ? NULL : "a file too many";
}

/* ---- one run ---- */

typedef struct outcome {
    int status; /* -1: killed */
    char text[4096];
} outcome;

static void run(const char *to, const char *mode, const char *fault, const char *path, outcome *out)
{
    int ends[2], state_of = 0;
    if (pipe(ends) != 0)
        die("pipe");
    pid_t child = fork();
    if (child == 0) {
        bool copy = strcmp(mode, "copy") == 0;
        char source[ROOM];
        spell(source, "%s:x", copy ? "tree" : mode);
        dup2(ends[1], 2);
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        alarm(DEADLINE);
        setenv("LD_PRELOAD", module, 1);
        setenv("HPCT_FAULT", fault, 1);
        setenv("HPCT_FAULT_PATH", path, 1);
        execl(helper, helper, "--to", to, "--mode", copy ? "copy" : "extract", source,
              (char *) NULL);
        _exit(99);
    }
    close(ends[1]);
    size_t used = 0;
    for (ssize_t got; used < sizeof out->text - 1 &&
                      (got = read(ends[0], out->text + used, sizeof out->text - 1 - used)) > 0;)
        used += (size_t) got;
    out->text[used] = '\0';
    close(ends[0]);
    while (waitpid(child, &state_of, 0) < 0) {
    }
    out->status = WIFEXITED(state_of) ? WEXITSTATUS(state_of) : -1;
}

static long count_calls(const char *to, const char *mode, int kind)
{
    char fault[32];
    outcome out;
    long count = 0;
    setenv("HPCT_FAULT_COUNT", "calls", 1);
    snprintf(fault, sizeof fault, "%d:0:0", kind);
    run(to, mode, fault, "nothing", &out);
    unsetenv("HPCT_FAULT_COUNT");
    FILE *f = fopen("calls", "r");
    if (out.status != 0 || f == NULL || fscanf(f, "%ld", &count) != 1) {
        printf("Bail out! without a fault it fails already: %d %s\n", out.status, out.text);
        exit(1);
    }
    fclose(f);
    return count;
}

static void clean(const char *to)
{
    char command[ROOM];
    spell(command, "rm -rf '%s'/* '%s'/.hpc-train", to, to);
    if (system(command) != 0)
        die(command);
}

/* NULL, or what is wrong. */
static const char *judge(const char *to, const outcome *out, int kind, const file *changed)
{
    static char why[ROOM];
    char path[ROOM];
    if (out->status == 0) {
        const char *bad = judge_copy(to, kind, changed);
        if (bad == NULL)
            return NULL;
        spell(why, "SILENT: %s is wrong in the copy", bad);
        return why;
    }
    if (out->status != 65 && out->status != 66 && out->status != 74 && out->status != 78) {
        spell(why, "ended with %d", out->status);
        return why;
    }
    if (strstr(out->text, "hpc-train-stage: ") == NULL)
        return "failed without a message";
    if (kind == FAULT_FILL && strstr(out->text, "No space left") == NULL &&
        strstr(out->text, "are free there") == NULL && strstr(out->text, "free space") == NULL)
        return "failed without saying that the disk is full";
    spell(path, "%s/x", to);
    if (access(path, F_OK) == 0)
        return "failed, but left a copy";
    spell(path, "%s/.hpc-train/incoming", to);
    if (access(path, F_OK) == 0)
        return "failed, and left something unfinished";
    return NULL;
}

typedef struct totals {
    long tries, reported, harmless, bad;
} totals;

static void try_one(const char *to, const char *mode, int kind, long calls, totals *sum)
{
    char fault[64], path[ROOM];
    outcome out;
    bool copy = strcmp(mode, "copy") == 0;
    const file *changed = copy ? &files[draw(NUM_FILES)] : NULL;
    size_t size = 0;
    long call = calls > 0 ? 1 + (long) draw((uint64_t) calls) : 0;
    unsigned char *archive = copy ? NULL : get(mode, &size);
    snprintf(fault, sizeof fault, "%d:%ld:%llu", kind, call, (unsigned long long) draw(1 << 30));
    spell(path, "%s", mode);
    if (copy)
        spell(path, "tree/%s", changed->path);
    if (kind == FAULT_FILL)
        spell(path, "%s/filler", to);
    if (kind == FAULT_FLIP || kind == FAULT_CUT) {
        size_t at = draw(size);
        unsigned char kept = archive[at];
        archive[at] ^= (unsigned char) (1 << draw(8));
        put(mode, archive, kind == FAULT_FLIP ? size : at);
        archive[at] = kept;
    }
    run(to, mode, fault, path, &out);
    const char *why = judge(to, &out, kind, changed);
    sum->tries++;
    sum->reported += out.status != 0;
    sum->harmless += out.status == 0;
    if (why != NULL) {
        sum->bad++;
        printf("# %s %s %s: %s\n# it said: %s\n", mode, names[kind], fault, why, out.text);
    }
    if (copy && kind >= FAULT_FIRST_CHANGE && kind <= FAULT_LAST_CHANGE)
        put_file(changed);
    if (!copy)
        put(mode, archive, size);
    free(archive);
    clean(to);
}

static bool wanted(const char *list, const char *name)
{
    size_t size = strlen(name);
    for (const char *p = list; (p = strstr(p, name)) != NULL; p += size) {
        if ((p == list || p[-1] == ',') && (p[size] == ',' || p[size] == '\0'))
            return true;
    }
    return strcmp(list, "all") == 0 && strcmp(name, "fill") != 0;
}

static bool applies(int kind, const char *mode)
{
    bool at_rest = kind == FAULT_FLIP || kind == FAULT_CUT;
    if (strcmp(mode, "copy") == 0)
        return !at_rest;
    /* These have no sums over names and modes, or none at all. */
    const char *end = strrchr(mode, '.');
    return kind != FAULT_FLIP || (strcmp(end, ".zip") != 0 && strcmp(end, ".tar") != 0);
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    plan_tree();
    if (argc == 3 && strcmp(argv[1], "--tree") == 0)
        return chdir(argv[2]) != 0 ? 1 : make_tree();
    if (argc < 8 || chdir(argv[3]) != 0) {
        fprintf(stderr, "usage: faults HELPER MODULE FOLDER TRIES SEED KINDS MODE...\n");
        return 64;
    }
    helper = argv[1];
    module = argv[2];
    long tries = strtol(argv[4], NULL, 10);
    state = strtoull(argv[5], NULL, 10);
    char to[ROOM];
    int pairs = 0, pair = 0;
    spell(to, "%s/to", argv[3]);
    mkdir("to", 0755);
    clean(to);
    for (int kind = 0; kind < NUM_FAULTS; kind++) {
        for (int m = 7; m < argc; m++)
            pairs += wanted(argv[6], names[kind]) && applies(kind, argv[m]);
    }
    printf("1..%d\n", pairs);
    for (int kind = 0; kind < NUM_FAULTS; kind++) {
        for (int m = 7; m < argc; m++) {
            totals sum = {0};
            if (!wanted(argv[6], names[kind]) || !applies(kind, argv[m]))
                continue;
            long calls =
                kind == FAULT_FLIP || kind == FAULT_CUT ? 0 : count_calls(to, argv[m], kind);
            clean(to);
            long share = tries / pairs + (pair < tries % pairs);
            for (long i = 0; i < share; i++)
                try_one(to, argv[m], kind, calls, &sum);
            printf("%s %d - %s, %s: %ld tries, %ld reported, %ld harmless, %ld neither\n",
                   sum.bad == 0 && sum.tries > 0 ? "ok" : "not ok", ++pair, argv[m], names[kind],
                   sum.tries, sum.reported, sum.harmless, sum.bad);
        }
    }
    return 0;
}

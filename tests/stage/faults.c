/* faults: runs hpc-train-stage again and again with one thing going wrong in each run, and checks
 * that it was reported, with nothing left behind, or did no harm: the copy is the whole source, as
 * it was or as it became. Usage: faults HELPER MODULE FOLDER TRIES SEED KIND[,KIND...] MODE...
 * Modes: copy, or an archive of the tree (made by `faults --tree FOLDER`) to extract; broadcast, or
 * broadcast: before the archive's name: with other nodes, one of which the fault happens to (where
 * munged runs). */
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
#define NUM_NODES 3 /* of a broadcast */
#define FIRST_PORT 20000
#define DEADLINE 30
#define WAIT "10" /* seconds for another node */

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
    [FAULT_NET_FLIP] = "net-flip",
    [FAULT_NET_SHORT] = "net-short",
    [FAULT_NET_END] = "net-end",
    [FAULT_NET_ERROR] = "net-error",
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

/* How a mode is written, taken apart. */
typedef struct way {
    const char *archive; /* NULL: the tree */
    int nodes;
} way;

static way way_of(const char *mode)
{
    static const char broadcast[] = "broadcast:";
    if (strcmp(mode, "copy") == 0)
        return (way){NULL, 1};
    if (strcmp(mode, "broadcast") == 0)
        return (way){NULL, NUM_NODES};
    if (strncmp(mode, broadcast, strlen(broadcast)) == 0)
        return (way){mode + strlen(broadcast), NUM_NODES};
    return (way){mode, 1};
}

static void folder_of(const char *to, int node, char path[ROOM])
{
    spell(path, node == 0 ? "%s" : "%s/node%d", to, node);
}

/* Ports that no run before took, so that nothing from it may come. */
static void write_nodes(int nodes, int *run_number)
{
    static int run;
    FILE *f = fopen("nodes", "w");
    if (f == NULL)
        die("nodes");
    run = (run + 1) % 3000;
    for (int i = 0; i < nodes; i++)
        fprintf(f, "127.0.0.1:%d\n", FIRST_PORT + run * NUM_NODES + i);
    if (fclose(f) != 0)
        die("nodes");
    *run_number = run;
}

/* One node; its two outputs go to `end`. */
static void run_node(const way *w, const char *to, int node, int run_number, int end)
{
    char source[ROOM], folder[ROOM], index[16], job[32];
    const char *argv[24] = {helper, "--to", folder, "--mode"};
    int count = 4;
    folder_of(to, node, folder);
    spell(source, "%s:x", w->archive == NULL ? "tree" : w->archive);
    if (w->nodes > 1) {
        snprintf(index, sizeof index, "%d", node);
        snprintf(job, sizeof job, "1.%d", run_number);
        argv[count++] = w->archive == NULL ? "broadcast" : "extract,broadcast";
        const char *const more[] = {"--nodes", "nodes", "--index", index,
                                    "--job",   job,     "--wait",  WAIT};
        for (size_t i = 0; i < sizeof more / sizeof *more; i++)
            argv[count++] = more[i];
    } else {
        argv[count++] = w->archive == NULL ? "copy" : "extract";
    }
    argv[count++] = source;
    dup2(end, 2);
    dup2(end, 1);
    alarm(DEADLINE);
    execv(helper, (char **) (uintptr_t) argv);
    _exit(99);
}

/* The fault happens to node `victim`. */
static void run(const char *to, const char *mode, int victim, const char *fault, const char *path,
                outcome out[NUM_NODES])
{
    const way w = way_of(mode);
    int ends[NUM_NODES][2], run_number = 0;
    pid_t children[NUM_NODES];
    if (w.nodes > 1)
        write_nodes(w.nodes, &run_number);
    for (int i = 0; i < w.nodes; i++) {
        char folder[ROOM];
        folder_of(to, i, folder);
        if (mkdir(folder, 0755) != 0 && errno != EEXIST)
            die(folder);
        if (pipe2(ends[i], O_CLOEXEC) != 0)
            die("pipe");
        children[i] = fork();
        if (children[i] != 0) {
            close(ends[i][1]);
            continue;
        }
        if (i == victim) {
            setenv("LD_PRELOAD", module, 1);
            setenv("HPCT_FAULT", fault, 1);
            setenv("HPCT_FAULT_PATH", path, 1);
        }
        run_node(&w, to, i, run_number, ends[i][1]);
    }
    for (int i = 0; i < w.nodes; i++) {
        size_t used = 0;
        int state_of = 0;
        for (ssize_t got;
             used < sizeof out[i].text - 1 &&
             (got = read(ends[i][0], out[i].text + used, sizeof out[i].text - 1 - used)) > 0;)
            used += (size_t) got;
        out[i].text[used] = '\0';
        close(ends[i][0]);
        while (waitpid(children[i], &state_of, 0) < 0) {
        }
        out[i].status = WIFEXITED(state_of) ? WEXITSTATUS(state_of) : -1;
    }
}

static long count_calls(const char *to, const char *mode, int victim, int kind)
{
    char fault[32];
    outcome out[NUM_NODES];
    long count = 0;
    setenv("HPCT_FAULT_COUNT", "calls", 1);
    snprintf(fault, sizeof fault, "%d:0:0", kind);
    run(to, mode, victim, fault, "nothing", out);
    unsetenv("HPCT_FAULT_COUNT");
    FILE *f = fopen("calls", "r");
    if (out[victim].status != 0 || f == NULL || fscanf(f, "%ld", &count) != 1) {
        printf("Bail out! without a fault it fails already: %d %s\n", out[victim].status,
               out[victim].text);
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

static bool says(const outcome *out, int nodes, const char *text)
{
    for (int i = 0; i < nodes; i++) {
        if (strstr(out[i].text, text) != NULL)
            return true;
    }
    return false;
}

/* NULL, or what is wrong with one node's folder `to`. Of several nodes those whom another one told
 * what failed need not say it again; and after all had all, one may be lost: a copy that is left
 * then is whole. */
static const char *judge(const char *to, const outcome *mine, const outcome *out, int nodes,
                         int kind, const file *changed)
{
    static char why[ROOM];
    char path[ROOM];
    const bool lost = nodes > 1 && mine->status == 69;
    spell(path, "%s/x", to);
    bool copy = access(path, F_OK) == 0;
    if (mine->status == 0 || (copy && nodes > 1)) {
        const char *bad = judge_copy(to, kind, changed);
        spell(why, "%s: %s is wrong in the copy", mine->status == 0 ? "SILENT" : "reported, but",
              bad == NULL ? "" : bad);
        if (bad != NULL)
            return why;
        copy = false;
    }
    if (mine->status == 0)
        return NULL;
    if (mine->status != 65 && mine->status != 66 && mine->status != 74 && mine->status != 78 &&
        !lost) {
        spell(why, "ended with %d", mine->status);
        return why;
    }
    if (!says(out, nodes, "hpc-train-stage: "))
        return "failed without a message";
    if (kind == FAULT_FILL && !says(out, nodes, "No space left") &&
        !says(out, nodes, "are free there") && !says(out, nodes, "free space"))
        return "failed without saying that the disk is full";
    if (copy)
        return "failed, but left a copy";
    spell(path, "%s/.hpc-train/incoming", to);
    if (access(path, F_OK) == 0)
        return "failed, and left something unfinished";
    return NULL;
}

typedef struct totals {
    long tries, reported, harmless, bad;
} totals;

static void try_one(const char *to, const char *mode, const long calls[NUM_NODES], int kind,
                    totals *sum)
{
    char fault[64], path[ROOM], folder[ROOM];
    outcome out[NUM_NODES];
    const way w = way_of(mode);
    const file *changed = w.archive == NULL ? &files[draw(NUM_FILES)] : NULL;
    size_t size = 0;
    int victim = (int) draw((uint64_t) w.nodes);
    long call = calls[victim] > 0 ? 1 + (long) draw((uint64_t) calls[victim]) : 0;
    unsigned char *archive = w.archive == NULL ? NULL : get(w.archive, &size);
    bool failed = false, bad = false;
    snprintf(fault, sizeof fault, "%d:%ld:%llu", kind, call, (unsigned long long) draw(1 << 30));
    if (w.archive == NULL)
        spell(path, "tree/%s", changed->path);
    else
        spell(path, "%s", w.archive);
    if (kind == FAULT_FILL)
        spell(path, "%s/filler", to);
    if (kind == FAULT_FLIP || kind == FAULT_CUT) {
        size_t at = draw(size);
        unsigned char kept = archive[at];
        archive[at] ^= (unsigned char) (1 << draw(8));
        put(w.archive, archive, kind == FAULT_FLIP ? size : at);
        archive[at] = kept;
    }
    run(to, mode, victim, fault, path, out);
    for (int i = 0; i < w.nodes; i++) {
        folder_of(to, i, folder);
        const char *why = judge(folder, &out[i], out, w.nodes, kind, changed);
        failed = failed || out[i].status != 0;
        if (why == NULL)
            continue;
        bad = true;
        printf("# %s %s %s, to node %d: node %d: %s\n", mode, names[kind], fault, victim, i, why);
        for (int said = 0; said < w.nodes; said++)
            printf("# node %d ended with %d and said: %s\n", said, out[said].status,
                   out[said].text);
    }
    sum->tries++;
    sum->reported += failed;
    sum->harmless += !failed;
    sum->bad += bad;
    if (changed != NULL && kind >= FAULT_FIRST_CHANGE && kind <= FAULT_LAST_CHANGE)
        put_file(changed);
    if (w.archive != NULL)
        put(w.archive, archive, size);
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
    const way w = way_of(mode);
    if (w.nodes == 1 && kind >= FAULT_FIRST_NET && kind <= FAULT_LAST_NET)
        return false;
    if (w.archive == NULL)
        return kind != FAULT_FLIP && kind != FAULT_CUT;
    /* These have no sums over names and modes, or none at all. */
    const char *end = strrchr(w.archive, '.');
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
            long calls[NUM_NODES] = {0};
            for (int i = 0; i < way_of(argv[m]).nodes && kind != FAULT_FLIP && kind != FAULT_CUT;
                 i++) {
                calls[i] = count_calls(to, argv[m], i, kind);
                clean(to);
            }
            long share = tries / pairs + (pair < tries % pairs);
            for (long i = 0; i < share; i++)
                try_one(to, argv[m], calls, kind, &sum);
            printf("%s %d - %s, %s: %ld tries, %ld reported, %ld harmless, %ld neither\n",
                   sum.bad == 0 && sum.tries > 0 ? "ok" : "not ok", ++pair, argv[m], names[kind],
                   sum.tries, sum.reported, sum.harmless, sum.bad);
        }
    }
    return 0;
}

/* faults: runs hpc-train-stage again and again with one thing going wrong in each run, and checks
 * that it was reported, with nothing left behind, or did no harm: the copy is the whole source, as
 * it was or as it became. Usage: faults HELPER MODULE FOLDER TRIES SEED KIND[,KIND...] MODE...
 * Modes: copy, or an archive of the tree (made by `faults --tree FOLDER`) to extract; broadcast, or
 * broadcast:ARCHIVE, by three nodes, one of which has the fault: then all must have failed, or
 * none. */
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
#define DEADLINE 60
#define TEAM 3

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
    [FAULT_RECV] = "recv",
    [FAULT_RECV_SHORT] = "recv-short",
    [FAULT_RECV_END] = "recv-end",
    [FAULT_SEND_SHORT] = "send-short",
    [FAULT_SEND_ERROR] = "send-error",
    [FAULT_KILL] = "kill",
    [FAULT_FLIP] = "flip",
    [FAULT_CUT] = "cut",
};

typedef struct file {
    char path[64];
    size_t size;
    unsigned char *bytes;
} file;

/* Of a broadcast or not, and the archive that is staged, NULL: the tree. */
typedef struct mode {
    const char *name, *archive;
    bool team;
} mode;

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
    int status[TEAM]; /* -1: killed */
    char text[8192];
} outcome;

static int nodes_of(const mode *m)
{
    return m->team ? TEAM : 1;
}

static mode mode_of(const char *name)
{
    static const char broadcast[] = "broadcast";
    size_t size = strlen(broadcast);
    mode m = {.name = name, .archive = name};
    if (strncmp(name, broadcast, size) == 0 && (name[size] == ':' || name[size] == '\0')) {
        m.team = true;
        m.archive = name[size] == ':' ? name + size + 1 : NULL;
    } else if (strcmp(name, "copy") == 0) {
        m.archive = NULL;
    }
    return m;
}

static void place_of(char out[ROOM], const char *to, const mode *m, int node)
{
    if (m->team)
        spell(out, "%s/%d", to, node);
    else
        spell(out, "%s", to);
}

static void begin(const char *to, const mode *m, int node)
{
    const char *arguments[32] = {helper};
    char source[ROOM], place[ROOM], index[8];
    int n = 1;
    spell(source, "%s:x", m->archive == NULL ? "tree" : m->archive);
    place_of(place, to, m, node);
    snprintf(index, sizeof index, "%d", node);
    arguments[n++] = "--to";
    arguments[n++] = place;
    arguments[n++] = "--mode";
    if (m->team) {
        arguments[n++] = m->archive == NULL ? "broadcast" : "extract,broadcast";
        arguments[n++] = "--nodes";
        arguments[n++] = "nodes";
        arguments[n++] = "--index";
        arguments[n++] = index;
        arguments[n++] = "--job";
        arguments[n++] = "faults";
        arguments[n++] = "--wait";
        arguments[n++] = "10";
    } else {
        arguments[n++] = m->archive == NULL ? "copy" : "extract";
    }
    arguments[n++] = source;
    alarm(DEADLINE);
    execv(helper, (char *const *) (uintptr_t) arguments);
    _exit(99);
}

/* Other ports than in the run before. */
static void write_nodes(void)
{
    static int run;
    FILE *f = fopen("nodes", "w");
    if (f == NULL)
        die("nodes");
    for (int i = 0; i < TEAM; i++)
        fprintf(f, "127.0.0.1:%d\n", 28000 + run % 500 * TEAM + i);
    if (fclose(f) != 0)
        die("nodes");
    run++;
}

/* The fault is the node's `victim`. */
static void run(const char *to, const mode *m, int victim, const char *fault, const char *path,
                outcome *out)
{
    int ends[2];
    pid_t children[TEAM];
    if (pipe(ends) != 0)
        die("pipe");
    if (m->team)
        write_nodes();
    for (int node = 0; node < nodes_of(m); node++) {
        char place[ROOM];
        place_of(place, to, m, node);
        mkdir(place, 0755);
        children[node] = fork();
        if (children[node] != 0)
            continue;
        dup2(ends[1], 2);
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        if (node == victim) {
            setenv("LD_PRELOAD", module, 1);
            setenv("HPCT_FAULT", fault, 1);
            setenv("HPCT_FAULT_PATH", path, 1);
        } else {
            unsetenv("HPCT_FAULT_COUNT");
        }
        begin(to, m, node);
    }
    close(ends[1]);
    size_t used = 0;
    char rest[512];
    for (ssize_t got;;) {
        bool room = used < sizeof out->text - 1;
        got = room ? read(ends[0], out->text + used, sizeof out->text - 1 - used)
                   : read(ends[0], rest, sizeof rest);
        if (got <= 0)
            break;
        used += room ? (size_t) got : 0;
    }
    out->text[used] = '\0';
    close(ends[0]);
    for (int node = 0; node < nodes_of(m); node++) {
        int state_of = 0;
        while (waitpid(children[node], &state_of, 0) < 0) {
        }
        out->status[node] = WIFEXITED(state_of) ? WEXITSTATUS(state_of) : -1;
    }
}

static long count_calls(const char *to, const mode *m, int victim, int kind)
{
    char fault[32];
    outcome out;
    long count = 0;
    bool good = true;
    setenv("HPCT_FAULT_COUNT", "calls", 1);
    snprintf(fault, sizeof fault, "%d:0:0", kind);
    run(to, m, victim, fault, "nothing", &out);
    unsetenv("HPCT_FAULT_COUNT");
    for (int node = 0; node < nodes_of(m); node++)
        good = good && out.status[node] == 0;
    FILE *f = fopen("calls", "r");
    if (!good || f == NULL || fscanf(f, "%ld", &count) != 1) {
        printf("Bail out! without a fault it fails already: %s\n", out.text);
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

/* NULL, or what is wrong on a node. */
static const char *judge_node(const char *to, const mode *m, int status, int kind,
                              const file *changed)
{
    static char why[ROOM];
    char path[ROOM];
    if (status == 0) {
        const char *bad = judge_copy(to, kind, changed);
        if (bad == NULL)
            return NULL;
        spell(why, "SILENT: %s is wrong in the copy", bad);
        return why;
    }
    if (status != 65 && status != 66 && status != 69 && status != 74 && status != 78) {
        spell(why, "ended with %d", status);
        return why;
    }
    spell(path, "%s/x", to);
    /* When the last word between the nodes is lost, all have the whole of it. */
    if (access(path, F_OK) == 0 && (!m->team || judge_copy(to, kind, changed) != NULL))
        return "failed, but left a copy";
    spell(path, "%s/.hpc-train/incoming", to);
    if (access(path, F_OK) == 0)
        return "failed, and left something unfinished";
    return NULL;
}

static bool has_failed(const outcome *out, const mode *m)
{
    bool failed = false;
    for (int node = 0; node < nodes_of(m); node++)
        failed = failed || out->status[node] != 0;
    return failed;
}

static const char *judge(const char *to, const mode *m, int victim, const outcome *out, int kind,
                         const file *changed)
{
    int failed = 0, judged = 0, without = 0;
    for (int node = 0; node < nodes_of(m); node++) {
        char place[ROOM];
        if (kind == FAULT_KILL && node == victim && out->status[node] < 0)
            continue; /* it can neither say nor clean anything */
        place_of(place, to, m, node);
        const char *why = judge_node(place, m, out->status[node], kind, changed);
        if (why != NULL)
            return why;
        judged++;
        failed += out->status[node] != 0;
        without += out->status[node] != 0 && judge_copy(place, kind, changed) != NULL;
    }
    /* When the last word does not come, who waits for it fails; but then all have their copy. */
    if (failed != judged && without != 0)
        return "it failed on some nodes only";
    if (failed != 0 && strstr(out->text, "hpc-train-stage: ") == NULL)
        return "failed without a message";
    if (failed != 0 && kind == FAULT_FILL && strstr(out->text, "No space left") == NULL &&
        strstr(out->text, "are free there") == NULL && strstr(out->text, "free space") == NULL)
        return "failed without saying that the disk is full";
    return NULL;
}

typedef struct totals {
    long tries, reported, harmless, bad;
} totals;

static void try_one(const char *to, const mode *m, int kind, int victim, long calls, totals *sum)
{
    char fault[64], path[ROOM];
    outcome out;
    const bool copy = m->archive == NULL;
    const file *changed = copy ? &files[draw(NUM_FILES)] : NULL;
    size_t size = 0;
    long call = calls > 0 ? 1 + (long) draw((uint64_t) calls) : 0;
    unsigned char *archive = copy ? NULL : get(m->archive, &size);
    snprintf(fault, sizeof fault, "%d:%ld:%llu", kind, call, (unsigned long long) draw(1 << 30));
    if (copy)
        spell(path, "tree/%s", changed->path);
    else
        spell(path, "%s", m->archive);
    if (kind == FAULT_FILL)
        spell(path, "%s/filler", to);
    if (kind == FAULT_FLIP || kind == FAULT_CUT) {
        size_t at = draw(size);
        unsigned char kept = archive[at];
        archive[at] ^= (unsigned char) (1 << draw(8));
        put(m->archive, archive, kind == FAULT_FLIP ? size : at);
        archive[at] = kept;
    }
    run(to, m, victim, fault, path, &out);
    const char *why = judge(to, m, victim, &out, kind, changed);
    sum->tries++;
    sum->reported += has_failed(&out, m);
    sum->harmless += !has_failed(&out, m);
    if (why != NULL) {
        sum->bad++;
        printf("# %s %s %s on %d: %s\n# it said: %s\n", m->name, names[kind], fault, victim, why,
               out.text);
    }
    if (copy && kind >= FAULT_FIRST_CHANGE && kind <= FAULT_LAST_CHANGE)
        put_file(changed);
    if (!copy)
        put(m->archive, archive, size);
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

static bool applies(int kind, const mode *m)
{
    bool at_rest = kind == FAULT_FLIP || kind == FAULT_CUT;
    if (kind >= FAULT_FIRST_NET && kind <= FAULT_LAST_NET && !m->team)
        return false;
    if (m->archive == NULL)
        return !at_rest;
    /* These have no sums over names and modes, or none at all. */
    const char *end = strrchr(m->archive, '.');
    return kind != FAULT_FLIP || (strcmp(end, ".zip") != 0 && strcmp(end, ".tar") != 0);
}

/* Only the first node reads the source. */
static int victims_of(int kind, const mode *m)
{
    bool reading = kind >= FAULT_READ_SHORT && kind <= FAULT_READ_ERROR;
    return reading || kind == FAULT_FLIP || kind == FAULT_CUT ? 1 : nodes_of(m);
}

static void try_all(const char *to, const mode *m, int kind, long tries, totals *sum)
{
    const int victims = victims_of(kind, m);
    long calls[TEAM] = {0};
    for (int i = 0; i < victims && kind != FAULT_FLIP && kind != FAULT_CUT; i++) {
        calls[i] = count_calls(to, m, i, kind);
        clean(to);
    }
    for (long i = 0; i < tries; i++) {
        int victim = (int) draw((uint64_t) victims);
        try_one(to, m, kind, victim, calls[victim], sum);
    }
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
        for (int i = 7; i < argc; i++) {
            const mode m = mode_of(argv[i]);
            pairs += wanted(argv[6], names[kind]) && applies(kind, &m);
        }
    }
    printf("1..%d\n", pairs);
    for (int kind = 0; kind < NUM_FAULTS; kind++) {
        for (int i = 7; i < argc; i++) {
            const mode m = mode_of(argv[i]);
            totals sum = {0};
            if (!wanted(argv[6], names[kind]) || !applies(kind, &m))
                continue;
            try_all(to, &m, kind, tries / pairs + (pair < tries % pairs), &sum);
            printf("%s %d - %s, %s: %ld tries, %ld reported, %ld harmless, %ld neither\n",
                   sum.bad == 0 && sum.tries > 0 ? "ok" : "not ok", ++pair, m.name, names[kind],
                   sum.tries, sum.reported, sum.harmless, sum.bad);
        }
    }
    return 0;
}

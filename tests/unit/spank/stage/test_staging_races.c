/* spank: what root starts for a user, while that user exchanges everything below its feet: data,
 * records, destinations and links. Whatever the helpers are led to, they have no more rights than
 * he. With HPC_TRAIN_LONG=1: ten thousand races. */
#include "base/clock.h"
#include "spank/child.h"
#include "spank/remove.h"
#include "spank/spec/out_record.h"
#include "spank/stage_out.h"
#include "spank/tmpdir.h"
#include "tests/unit/spank/place.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define base place_base
#define parent place_parent
#define in place_text
#define shell place_shell

#define FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define JOB 6

static char helper[PATH_MAX];

static double now(void)
{
    return (double) hpct_now_ms() * 1e-3;
}

static void become_user(void)
{
    if (setgroups(0, NULL) != 0 || setgid(place_gid) != 0 || setuid(place_uid) != 0)
        _exit(99);
}

/* ---- the user -------------------------------------------------------------------------------- */

static void put_file(int at, const char *name, const char *text)
{
    int fd = openat(at, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd >= 0 && write(fd, text, strlen(text)) < 0)
        _exit(99);
    close(fd);
}

/* Two names for what changes places all the time. */
static void plant(int at, const char *name, const char *target)
{
    char twin[64];
    snprintf(twin, sizeof twin, "~%s", name);
    symlinkat(target, at, twin);
}

/* And back again, so that much goes well until it does not. */
static void swap(int at, const char *name, unsigned *seed)
{
    char twin[64];
    snprintf(twin, sizeof twin, "~%s", name);
    renameat2(at, name, at, twin, RENAME_EXCHANGE);
    if (rand_r(seed) % 4 != 0)
        usleep((useconds_t) (rand_r(seed) % 200));
    renameat2(at, name, at, twin, RENAME_EXCHANGE);
}

static void write_record(const char *job, const char *list)
{
    char step[] = "0", cwd[PATH_MAX], text[PATH_MAX];
    uint32_t task = 0;
    snprintf(cwd, sizeof cwd, "%s/own", base);
    snprintf(text, sizeof text, "%s", list);
    hpct_spec_out_record_write(job, &(hpct_spec_out_record){.job = JOB,
                                                            .step = step,
                                                            .umask = 022,
                                                            .cwd = cwd,
                                                            .list = text,
                                                            .tasks = &task,
                                                            .num_tasks = 1});
}

static void attack(int ready, unsigned seed)
{
    char job[PATH_MAX], root[PATH_MAX], file[PATH_MAX], secret[PATH_MAX];
    char honest[] = "data:dst/data,data/f:dst/f,file:dst/file";
    char *hostile[] = {in("data:%s/root/new,file:%s/root/file", base, base),
                       in("../../root/secret:dst/up,data:dst/../../root/x"),
                       in("data/f:dst/%%N,~data/secret:dst/secret")};
    snprintf(job, sizeof job, "%s/%d", parent, JOB);
    snprintf(root, sizeof root, "%s/root", base);
    snprintf(file, sizeof file, "%s/root/file", base);
    snprintf(secret, sizeof secret, "%s/root/secret", base);
    umask(0);
    int at = open(job, FOLDER), own = open(in("%s/own", base), FOLDER);
    mkdirat(at, "data", 0777);
    mkdirat(at, "in", 0777);
    mkdirat(own, "src", 0777);
    mkdirat(own, "dst", 0777);
    int data = openat(at, "data", FOLDER), to = openat(own, "dst", FOLDER);
    int from = openat(own, "src", FOLDER), staged = openat(at, "in", FOLDER);
    put_file(data, "f", "mine");
    put_file(at, "file", "mine");
    put_file(from, "f", "mine");
    put_file(from, "g", "mine");
    write_record(job, honest);
    int private = openat(at, ".hpc-train", FOLDER);
    plant(at, ".hpc-train", root);
    plant(at, "data", root);
    plant(at, "in", root);
    plant(at, "file", secret);
    plant(data, "f", secret);
    plant(staged, "f", file);
    plant(to, "data", root);
    plant(to, "f", file);
    plant(own, "dst", root);
    plant(own, "src", root);
    plant(from, "f", secret);
    plant(private, "out.0", secret);
    mkfifoat(private, "new-out.0", 0666);
    if (write(ready, "", 1) != 1)
        _exit(99);
    for (;;) {
        switch (rand_r(&seed) % 16) {
        case 0:
            swap(at, ".hpc-train", &seed);
            break;
        case 1:
            swap(at, "data", &seed);
            break;
        case 2:
            swap(at, "in", &seed);
            break;
        case 3:
            swap(at, "file", &seed);
            break;
        case 4:
            swap(data, "f", &seed);
            break;
        case 5:
            swap(staged, "f", &seed);
            break;
        case 6:
            swap(to, "data", &seed);
            break;
        case 7:
            swap(to, "f", &seed);
            break;
        case 8:
            swap(own, "dst", &seed);
            break;
        case 9:
            swap(own, "src", &seed);
            break;
        case 10:
            swap(from, "f", &seed);
            break;
        case 11:
            swap(private, "out.0", &seed);
            break;
        case 12:
            mkfifoat(data, "pipe", 0666);
            linkat(AT_FDCWD, file, data, "hard", 0);
            break;
        case 13:
            unlinkat(data, "pipe", 0);
            put_file(private, "out.1", "end=");
            break;
        case 14:
            write_record(job, hostile[rand_r(&seed) % 3]);
            usleep((useconds_t) (rand_r(&seed) % 2000));
            write_record(job, honest);
            break;
        default:
            write_record(job, honest);
            break;
        }
        if (rand_r(&seed) % 2 == 0) /* let those who are to fall into it come near */
            usleep((useconds_t) (rand_r(&seed) % 1000));
    }
}

/* ---- root ------------------------------------------------------------------------------------ */

static void no_line(void *context, const char *text)
{
}

/* In, out at the step's end, out at the job's end, as the plugin does it. */
static void run_helpers(int *good, int *bad)
{
    const hpct_spank_person person = {.uid = place_uid, .gid = place_gid};
    char *from = in("%s/%d", parent, JOB), list[PATH_MAX * 2], to[] = "--to", lists[] = "--list";
    snprintf(list, sizeof list, "%s/own/src/f:in/f,%s/own/src/g:in/g", base, base);
    hpct_spank_settings settings = {.helper = helper};
    hpct_spank_stage_out out = {.settings = &settings, .from = from, .as = &person};
    const hpct_spank_child stage = {
        .arguments = (char *[]){helper, to, from, lists, list, NULL},
        .stall_seconds = 20,
        .as = &person,
        .end_signal = SIGKILL,
        .file = -1,
    };
    hpct_status status[] = {hpct_spank_child_run(&stage, "staging"),
                            hpct_spank_stage_out_step(&out, "0", NULL, 1),
                            hpct_spank_stage_out_last(&out, 5, no_line, NULL)};
    for (int i = 0; i < 3; i++) {
        *good += status[i] == HPCT_OK;
        *bad += status[i] != HPCT_OK;
    }
}

static void assert_same(const struct stat *a, const char *name)
{
    struct stat b;
    assert_int_equal(lstat(in("%s/root%s", base, name), &b), 0);
    assert_int_equal(a->st_uid, b.st_uid);
    assert_int_equal(a->st_mode, b.st_mode);
    assert_int_equal(a->st_size, b.st_size);
    assert_int_equal(a->st_mtim.tv_sec, b.st_mtim.tv_sec);
    assert_int_equal(a->st_mtim.tv_nsec, b.st_mtim.tv_nsec);
    if (!S_ISREG(
            a->st_mode)) /* hard links may come and go, where the kernel lets users make them */
        assert_int_equal(a->st_ctim.tv_nsec, b.st_ctim.tv_nsec);
}

TEST(the_helpers_have_only_the_users_rights)
{
    static const char *const names[] = {"", "/file", "/secret"};
    struct stat before[3];
    int times = place_times(12, 10000), good = 0, bad = 0;
    unsigned seed = 1;
    if (geteuid() != 0)
        skip();
    const char *top = getenv("top_builddir");
    snprintf(helper, sizeof helper, "%s/hpc-train-stage", top == NULL ? "." : top);
    if (access(helper, X_OK) != 0)
        fail_msg("%s is not there", helper);
    /* where a build may lie, users need not be let in */
    shell(in("cp %s %s/helper && chmod 755 %s/helper", helper, base, base));
    snprintf(helper, sizeof helper, "%s/helper", base);
    shell(in("mkdir -m 755 %s/root && cd %s/root && echo keep >file && "
             "(umask 077 && echo sesame >secret)",
             base, base));
    for (int i = 0; i < 3; i++)
        assert_int_equal(lstat(in("%s/root%s", base, names[i]), &before[i]), 0);
    int outside = open(base, FOLDER), voice = dup(2), null = open("/dev/null", O_WRONLY);
    for (int round = 0; round < times; round++) {
        int ready[2];
        char byte;
        assert_int_equal(hpct_spank_tmpdir_make(parent, JOB, place_uid, place_gid), HPCT_OK);
        assert_int_equal(mkdirat(outside, "own", 0755), 0);
        assert_int_equal(fchownat(outside, "own", place_uid, place_gid, 0), 0);
        assert_int_equal(pipe(ready), 0);
        pid_t child = fork();
        if (child == 0) {
            become_user();
            attack(ready[1], seed + (unsigned) round);
        }
        assert_int_equal(read(ready[0], &byte, 1), 1);
        dup2(null, 2);
        double start = now();
        run_helpers(&good, &bad);
        double took = now() - start;
        dup2(voice, 2);
        hpct_status removed = hpct_spank_tmpdir_remove(parent, JOB);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        close(ready[0]);
        close(ready[1]);
        assert_int_equal(removed, HPCT_OK);
        assert_true(took < 100); /* he goes on for ever */
        for (int i = 0; i < 3; i++)
            assert_same(&before[i], names[i]);
        shell(in("cd %s && test -z \"$(find own ! -uid %u ! -samefile root/file)\" && "
                 "! grep -rqs sesame own && test -z \"$(ls -A %s)\" && "
                 "test \"$(ls root)\" = \"$(printf 'file\\nsecret')\"",
                 base, place_uid, parent));
        assert_int_equal(hpct_spank_remove(outside, "own", "own", 20), HPCT_OK);
    }
    close(outside);
    close(voice);
    close(null);
    print_message("%d races: %d helpers did their work, %d refused\n", times, good, bad);
    assert_true(good > 0 && bad > 0); /* it was one */
}

int main(void)
{
    return unit_run(place_setup, place_teardown);
}

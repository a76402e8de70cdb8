/* Waits by pidfd and waitpid, which a user's process cannot block. Reads nothing that the user can
 * write. */
#include <config.h>

#include "spank/forked.h"

#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"

void hpct_spank_forked_rename(void)
{
    prctl(PR_SET_NAME, "hpc-train");
}

/* Groups first, while still root; then verifies all ids. */
bool hpct_spank_person_become(const hpct_spank_person *person)
{
    uid_t uids[3];
    gid_t gids[3];
    return setgroups(person->num_groups, person->groups) == 0 &&
           setresgid(person->gid, person->gid, person->gid) == 0 &&
           setresuid(person->uid, person->uid, person->uid) == 0 &&
           getresuid(uids, uids + 1, uids + 2) == 0 && getresgid(gids, gids + 1, gids + 2) == 0 &&
           uids[0] == person->uid && uids[1] == person->uid && uids[2] == person->uid &&
           gids[0] == person->gid && gids[1] == person->gid && gids[2] == person->gid &&
           (person->uid == 0 || setuid(0) != 0);
}

void hpct_spank_forked_begin(int end_signal, pid_t parent)
{
    sigset_t none;
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, end_signal); /* after a change of user id, which would clear it */
    if (getppid() != parent)             /* the parent exited before prctl */
        _exit(HPCT_ERR_IO);
}

double hpct_spank_forked_now(void)
{
    return (double) hpct_now_ms() * 1e-3;
}

/* Whether the process has ended or was killed although waitpid does not report it: a tracer must
 * reap it first, or it is blocked in a system call to a file server that does not respond. */
static bool is_lost(pid_t pid)
{
    char line[256], state;
    unsigned long signals;
    bool lost = false;
    snprintf(line, sizeof line, "/proc/%d/status", (int) pid);
    FILE *file = fopen(line, "re");
    while (file != NULL && !lost && fgets(line, sizeof line, file) != NULL)
        lost = (sscanf(line, "State: %c", &state) == 1 && state == 'Z') ||
               ((sscanf(line, "SigPnd: %lx", &signals) == 1 ||
                 sscanf(line, "ShdPnd: %lx", &signals) == 1) &&
                (signals >> (SIGKILL - 1) & 1) != 0);
    if (file != NULL)
        fclose(file);
    return lost;
}

static hpct_spank_forked_end past(double start, double heard,
                                  const hpct_spank_forked_limits *limits)
{
    double time = hpct_spank_forked_now();
    if (limits->seconds > 0 && time >= start + limits->seconds)
        return HPCT_SPANK_FORKED_OUT_OF_TIME;
    if (limits->stall_seconds > 0 && time >= heard + limits->stall_seconds)
        return HPCT_SPANK_FORKED_STALLED;
    return HPCT_SPANK_FORKED_ENDED;
}

/* Waits a second or until the next limit. Kernels before 5.3 have no pidfd: polls instead. */
static void rest(struct pollfd *end, double start, double heard,
                 const hpct_spank_forked_limits *limits, int *pause)
{
    double now = hpct_spank_forked_now(), left = end->fd >= 0 ? 1 : *pause * 1e-3;
    if (*pause < 50)
        *pause *= 2;
    if (limits->seconds > 0 && start + limits->seconds - now < left)
        left = start + limits->seconds - now;
    if (limits->stall_seconds > 0 && heard + limits->stall_seconds - now < left)
        left = heard + limits->stall_seconds - now;
    poll(end, 1, left > 0 ? (int) (left * 1000) + 1 : 0);
}

hpct_spank_forked_end hpct_spank_forked_await(pid_t pid, double start,
                                              const hpct_spank_forked_limits *limits, int *state)
{
    struct pollfd end = {.fd = (int) syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
    double heard = start, killed = 0;
    int pause = 1;
    hpct_spank_forked_end how = HPCT_SPANK_FORKED_ENDED;
    for (;;) {
        pid_t ended = waitpid(pid, state, WNOHANG);
        if (ended == pid && how == HPCT_SPANK_FORKED_LOST)
            how = HPCT_SPANK_FORKED_ENDED;
        if (ended < 0 && errno != EINTR && killed == 0)
            how = HPCT_SPANK_FORKED_LOST;
        if (ended == pid || (ended < 0 && errno != EINTR) ||
            (killed != 0 && hpct_spank_forked_now() >= killed + HPCT_SPANK_KILL_SECONDS))
            break;
        if (killed != 0) {
            hpct_pause_ms(5);
            continue;
        }
        if (limits->alive != NULL && limits->alive(limits->context))
            heard = hpct_spank_forked_now();
        if (is_lost(pid)) {
            how = HPCT_SPANK_FORKED_LOST;
            killed = hpct_spank_forked_now();
        } else if ((how = past(start, heard, limits)) != HPCT_SPANK_FORKED_ENDED) {
            kill(pid, SIGKILL);
            killed = hpct_spank_forked_now();
        } else {
            rest(&end, start, heard, limits, &pause);
        }
    }
    if (end.fd >= 0)
        close(end.fd);
    return how;
}

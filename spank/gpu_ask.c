/* The request is a memfd and the answer a pipe, so neither side can block the other. */
#include <config.h>

#include "spank/gpu_ask.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"

static void become_helper(char *helper, char *node, int request, int answer, pid_t parent)
{
    static char node_option[] = "--node", locale[] = "LC_ALL=C.UTF-8",
                path[] = "PATH=/usr/bin:/bin";
    char slurm_conf[4096] = "SLURM_CONF=";
    char *arguments[] = {helper, node == NULL ? NULL : node_option, node, NULL};
    char *environment[] = {path, locale, NULL, NULL};
    const char *conf = getenv("SLURM_CONF");
    sigset_t none;
    if (conf != NULL && strlen(conf) < sizeof slurm_conf - strlen(slurm_conf)) {
        strcat(slurm_conf, conf);
        environment[2] = slurm_conf;
    }
    int null = open("/dev/null", O_WRONLY);
    if (null < 0 || dup2(request, 0) < 0 || dup2(answer, 1) < 0 || dup2(null, 2) < 0)
        _exit(HPCT_ERR_INTERNAL);
    close_range(3, ~0u, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* the parent exited before prctl */
        _exit(HPCT_ERR_INTERNAL);
    execve(helper, arguments, environment);
    dprintf(1, "%s cannot be started: %s\n", helper, strerror(errno));
    _exit(HPCT_ERR_CONFIG);
}

/* Reads until the helper closes its end; false at the deadline. */
static bool read_answer(int from, int64_t end, char *answer, size_t size)
{
    char spare[256];
    size_t have = 0;
    for (;;) {
        struct pollfd wait = {.fd = from, .events = POLLIN};
        int64_t left = end - hpct_now_ms();
        int ready = left <= 0 ? 0 : poll(&wait, 1, (int) left);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return false;
        bool full = have + 1 >= size;
        ssize_t got =
            read(from, full ? spare : answer + have, full ? sizeof spare : size - 1 - have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return true;
        if (!full)
            have += (size_t) got;
        answer[have] = '\0';
    }
}

/* A process that hangs in a driver may not end even after SIGKILL: then it is left behind until the
 * step ends. */
static bool await_end(pid_t child, int *state)
{
    for (int i = 0; i < 200; i++) {
        pid_t ended = waitpid(child, state, WNOHANG);
        if (ended != 0 && !(ended < 0 && errno == EINTR))
            return ended == child;
        nanosleep(&(struct timespec){.tv_nsec = i < 20 ? 100000 : 5000000}, NULL);
    }
    return false;
}

hpct_status hpct_spank_gpu_ask(const char *helper, const char *node, const char *request,
                               int seconds, char *answer, size_t size)
{
    int ends[2] = {-1, -1}, state = 0, file = memfd_create("hpc-train-gpus", MFD_CLOEXEC);
    char *helper_copy = strdup(helper), *node_copy = node == NULL ? NULL : strdup(node);
    hpct_status status = HPCT_OK;
    pid_t parent = getpid(), child = -1;
    answer[0] = '\0';
    if (helper_copy == NULL || (node != NULL && node_copy == NULL) || file < 0 ||
        write(file, request, strlen(request)) != (ssize_t) strlen(request) ||
        lseek(file, 0, SEEK_SET) != 0 || pipe2(ends, O_CLOEXEC) != 0 || (child = fork()) < 0) {
        status = hpct_fail(HPCT_ERR_INTERNAL, "%s cannot be started: %s", helper, strerror(errno));
        goto end;
    }
    if (child == 0)
        become_helper(helper_copy, node_copy, file, ends[1], parent);
    close(ends[1]);
    ends[1] = -1;
    bool in_time = read_answer(ends[0], hpct_now_ms() + seconds * 1000, answer, size);
    if (!in_time)
        kill(child, SIGKILL);
    if (!await_end(child, &state) || !in_time) {
        kill(child, SIGKILL);
        status = hpct_fail(HPCT_ERR_CONFIG, "%s did not answer within %d seconds", helper, seconds);
    } else if (WIFSIGNALED(state)) {
        status = hpct_fail(HPCT_ERR_CONFIG, "%s was ended by signal %d", helper, WTERMSIG(state));
    } else if (WEXITSTATUS(state) != 0) {
        status = hpct_fail(HPCT_ERR_CONFIG, "%.*s", (int) strcspn(answer, "\n"), answer);
    }
end:
    hpct_fd_close(file);
    hpct_fd_close(ends[0]);
    hpct_fd_close(ends[1]);
    free(helper_copy);
    free(node_copy);
    return status;
}

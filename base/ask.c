/* A child with a pipe; whatever it does, it is gone when the call returns. */
#include "base/ask.h"

#include "base/process.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLICE_MS 200 /* in which a cancellation is noticed */

extern char **environ;

/* The signals that its caller blocks or ignores are not the program's. */
static int spawn(pid_t *pid, char *const *arguments, int output)
{
    sigset_t none, all;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output, 1);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    int error = posix_spawnp(pid, arguments[0], &actions, &attributes, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return error;
}

static hpct_status late(const hpct_ask *ask)
{
    return hpct_fail(HPCT_ERR_IO, "%s has not answered within %.0f s", ask->arguments[0],
                     ask->seconds);
}

static hpct_status read_answer(const hpct_ask *ask, double until, int fd, char *text, size_t size)
{
    size_t length = 0;
    struct pollfd one = {.fd = fd, .events = POLLIN};
    text[0] = '\0';
    while (hpct_process_clock() < until &&
           (ask->is_cancelled == NULL || !ask->is_cancelled(ask->context))) {
        int ready = poll(&one, 1, SLICE_MS);
        if (ready == 0 || (ready < 0 && errno == EINTR))
            continue;
        ssize_t bytes = ready > 0 ? read(fd, text + length, size - 1 - length) : -1;
        if (bytes == 0 && length + 1 < size)
            return HPCT_OK;
        if (bytes < 0 && errno == EINTR)
            continue;
        if (bytes < 0)
            return hpct_fail(HPCT_ERR_IO, "%s: its output cannot be read: %s", ask->arguments[0],
                             strerror(errno));
        length += (size_t) bytes;
        text[length] = '\0';
        if (length + 1 >= size)
            return hpct_fail(HPCT_ERR_IO, "%s has printed %zu bytes or more", ask->arguments[0],
                             size);
    }
    return late(ask);
}

/* A program may close its output and go on. */
static hpct_status await_end(const hpct_ask *ask, double until, pid_t pid, int *how)
{
    pid_t ended;
    while ((ended = waitpid(pid, how, WNOHANG)) == 0 && hpct_process_clock() < until)
        usleep(2000);
    return ended != 0 ? HPCT_OK : late(ask);
}

hpct_status hpct_ask_run(const hpct_ask *ask, char *text, size_t size)
{
    int fds[2], how = 0;
    double until = hpct_process_clock() + ask->seconds;
    pid_t pid;
    text[0] = '\0';
    if (pipe2(fds, O_CLOEXEC) != 0)
        return hpct_fail(HPCT_ERR_IO, "no pipe for %s: %s", ask->arguments[0], strerror(errno));
    int error = spawn(&pid, ask->arguments, fds[1]);
    close(fds[1]);
    hpct_status status = error == 0 ? read_answer(ask, until, fds[0], text, size)
                                    : hpct_fail(HPCT_ERR_IO, "%s cannot be run: %s",
                                                ask->arguments[0], strerror(error));
    close(fds[0]);
    if (error != 0)
        return status;
    if (status == HPCT_OK)
        status = await_end(ask, until, pid, &how);
    if (status != HPCT_OK) {
        kill(pid, SIGKILL);
        while (waitpid(pid, &how, 0) < 0 && errno == EINTR)
            continue;
    }
    if (status == HPCT_OK && !(WIFEXITED(how) && WEXITSTATUS(how) == 0))
        status = hpct_fail(HPCT_ERR_IO, "%s has failed (%s %d)", ask->arguments[0],
                           WIFEXITED(how) ? "exit status" : "signal",
                           WIFEXITED(how) ? WEXITSTATUS(how) : WTERMSIG(how));
    return status;
}

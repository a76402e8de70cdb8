/* Signals come by a file descriptor, so that one poll waits for all. */
#include "agent/launch/srun.h"

#include "agent/launch/srun_line.h"
#include "base/ask.h"
#include "base/process.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SLICE_MS 250
#define SHORT_SLICE_MS 50
#define FACTS_SECONDS 30  /* between questions after the step, at most */
#define PATIENCE 3        /* seconds from the first failed task until nodes are looked at, */
#define LOOK_SECONDS 3    /* between two looks, */
#define MOST_PATIENCE 900 /* and until srun is killed whatever the nodes do */
#define GROW_SECONDS 30
#define SIGNAL_SECONDS 10 /* that scancel gets */
#define LINE 1024         /* what is read of a line */

extern char **environ;

typedef struct run {
    hpct_launch_srun *srun;
    hpct_launch_srun_end *end;
    pid_t pid;
    int errors, signals; /* read ends; errors: -1 once closed */
    char line[LINE];
    size_t length;
    int first_code;   /* status of the task that failed first; -1: not known */
    int not_started;  /* tasks whose program could not be started */
    bool differ;      /* tasks have failed in more than one way, or were killed */
    bool zero_failed; /* task 0, or a node */
    double began, failed_at, ended_at, asked_at, looked_at; /* 0: not yet */
    bool has_ended;
    bool terminates; /* SIGTERM is to be passed on as soon as the step is known */
} run;

static const int passed_on[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};

static void signals_of(sigset_t *set)
{
    sigemptyset(set);
    for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
        sigaddset(set, passed_on[i]);
}

static sigset_t as_before;

void hpct_launch_srun_block_signals(void)
{
    sigset_t set;
    signals_of(&set);
    sigprocmask(SIG_BLOCK, &set, &as_before);
}

void hpct_launch_srun_unblock_signals(void)
{
    sigprocmask(SIG_SETMASK, &as_before, NULL);
}

bool hpct_launch_srun_stopped(int seconds)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    return sigtimedwait(&set, NULL, &(struct timespec){.tv_sec = seconds}) > 0;
}

bool hpct_launch_status_explains(int status)
{
    return status >= HPCT_ERR_USAGE && status <= HPCT_ERR_CONFIG && status != HPCT_ERR_PEER;
}

/* ---- starting ---- */

/* In this process group, so that Ctrl-C reaches it too. */
static int spawn(run *r, int errors)
{
    sigset_t none, ignored_here;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    sigemptyset(&none);
    sigemptyset(&ignored_here);
    sigaddset(&ignored_here, SIGPIPE);
    sigaddset(&ignored_here, SIGXFSZ);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &ignored_here);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, errors, 2);
    int error = posix_spawnp(&r->pid, r->srun->arguments[0], &actions, &attributes,
                             r->srun->arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return error;
}

static hpct_status start(run *r)
{
    int fds[2];
    sigset_t set;
    signals_of(&set);
    if (pipe2(fds, O_CLOEXEC) != 0)
        return hpct_fail(HPCT_ERR_IO, "no pipe for srun: %s", strerror(errno));
    r->errors = fds[0];
    r->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    int error = r->signals < 0 ? errno : spawn(r, fds[1]);
    close(fds[1]);
    return error == 0 ? HPCT_OK
                      : hpct_fail(HPCT_ERR_IO, "srun cannot be started: %s", strerror(error));
}

/* ---- what it says ---- */

/* Ranks that end with 69 name another as lost, and with 75 all have stopped. What ends after the
 * first failure was ended by Slurm. */
static bool is_cause(const hpct_launch_srun_line *line)
{
    return line->event != HPCT_LAUNCH_SRUN_EXITED ||
           (line->code != HPCT_ERR_PEER && line->code != HPCT_ERR_STOPPED);
}

/* Of `hpc-train check` and `fit --check` (agent/cost/check.c). */
static void note_slow(run *r, const char *text)
{
    static const char *const says[] = {" nodes is slow: ", " nodes are slow: "};
    for (size_t i = 0; i < sizeof says / sizeof says[0]; i++) {
        const char *at = strstr(text, says[i]);
        if (at != NULL)
            snprintf(r->end->slow, sizeof r->end->slow, "%.*s", (int) strcspn(at, ";"), at);
    }
}

static void note_line(run *r)
{
    hpct_launch_srun_line line;
    const char *text = r->line, *program;
    r->line[r->length] = '\0';
    r->length = 0;
    note_slow(r, text);
    if (hpct_launch_srun_line_no_program(text, &program)) {
        r->not_started++;
        snprintf(r->end->program, sizeof r->end->program, "%s", program);
    }
    for (const char *at = text; (at = strstr(at + 1, "srun: error: ")) != NULL;)
        text = at; /* a task had not ended its line */
    if (!hpct_launch_srun_line_parse(text, &line))
        return;
    bool stopped = line.event == HPCT_LAUNCH_SRUN_EXITED && line.code == HPCT_ERR_STOPPED;
    if (r->first_code == 0)
        r->first_code = line.code > 0 ? line.code : -1;
    r->differ |= line.event != HPCT_LAUNCH_SRUN_EXITED || line.code != r->first_code;
    r->zero_failed |= line.has_first || line.event == HPCT_LAUNCH_SRUN_NODE_FAILED;
    if (r->failed_at == 0 && !stopped)
        r->failed_at = hpct_process_clock();
    if (r->end->how[0] != '\0' || !is_cause(&line))
        return;
    snprintf(r->end->how, sizeof r->end->how, "%.*s", (int) sizeof r->end->how - 1,
             text + strlen("srun: error: "));
    if (strpbrk(line.nodes, "[,") == NULL)
        snprintf(r->end->failed, sizeof r->end->failed, "%s", line.nodes);
}

static void pass_on(const char *text, ssize_t length)
{
    while (length > 0) {
        ssize_t written = write(STDERR_FILENO, text, (size_t) length);
        if (written < 0 && errno != EINTR)
            return; /* its reader has ended */
        if (written > 0) {
            text += written;
            length -= written;
        }
    }
}

static void read_errors(run *r)
{
    char text[4096];
    ssize_t length = read(r->errors, text, sizeof text);
    if (length < 0 && errno == EINTR)
        return;
    if (length <= 0) {
        close(r->errors);
        r->errors = -1;
        return;
    }
    pass_on(text, length);
    for (ssize_t i = 0; i < length; i++) {
        if (text[i] == '\n' || text[i] == '\r') {
            note_line(r);
            continue;
        }
        if (r->length + 1 == sizeof r->line) { /* the end of a line counts */
            r->length /= 2;
            memmove(r->line, r->line + r->length, r->length);
        }
        r->line[r->length++] = text[i];
    }
}

/* ---- signals ---- */

/* To all tasks of the step. */
static void signal_step(run *r, const char *name)
{
    char option[32], text[64];
    snprintf(option, sizeof option, "--signal=%s", name);
    char *const arguments[] = {"scancel", option, r->srun->facts->id, NULL};
    const hpct_ask ask = {.arguments = arguments, .seconds = SIGNAL_SECONDS};
    (void) hpct_ask_run(&ask, text, sizeof text);
}

/* A terminal sends SIGINT to srun, too. */
static void take_signal(run *r, const struct signalfd_siginfo *signal)
{
    int number = (int) signal->ssi_signo;
    switch (number) {
    case SIGCHLD:
        break;
    case SIGTERM:
    case SIGHUP:
        r->end->stopped = r->terminates = true;
        break;
    case SIGINT:
        r->end->stopped = true;
        if (signal->ssi_code != SI_KERNEL)
            kill(r->pid, SIGINT);
        break;
    default:
        kill(r->pid, number);
    }
}

static void take_signals(run *r)
{
    struct signalfd_siginfo signal;
    while (!r->has_ended && read(r->signals, &signal, sizeof signal) == (ssize_t) sizeof signal)
        take_signal(r, &signal);
}

static void look_for_end(run *r)
{
    int how;
    if (waitpid(r->pid, &how, WNOHANG) != r->pid)
        return;
    r->has_ended = true;
    r->ended_at = hpct_process_clock();
    r->end->status = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

/* ---- time ---- */

static bool is_known(const run *r)
{
    return r->srun->facts->id[0] != '\0';
}

/* After 0.05 s, 0.1 s, 0.2 s, and so on; later twice a minute. */
static void learn(run *r, double now)
{
    double pause = r->asked_at - r->began;
    if (is_known(r) || now - r->asked_at < (pause < FACTS_SECONDS ? pause : FACTS_SECONDS))
        return;
    (void) hpct_launch_step_facts_ask(r->srun->job, r->pid, r->srun->facts);
    r->asked_at = hpct_process_clock();
}

/* SIGTERM would make srun kill its tasks at once: they get it by scancel. */
static void terminate(run *r, double now)
{
    if (!r->terminates || (!is_known(r) && now - r->began < FACTS_SECONDS))
        return;
    r->terminates = false;
    if (is_known(r))
        signal_step(r, "TERM");
    else
        kill(r->pid, SIGTERM);
}

/* Slurm waits for a node that is switched off, though nothing of the step can be saved any more. */
static void hasten(run *r, double now)
{
    if (r->srun->goes_on || r->failed_at == 0 || now - r->failed_at < PATIENCE ||
        now - r->looked_at < LOOK_SECONDS)
        return;
    bool kills = r->srun->lacks_node(r->srun->context) || now - r->failed_at > MOST_PATIENCE;
    r->looked_at = hpct_process_clock();
    if (!kills)
        return;
    r->end->gave_up = true;
    kill(r->pid, SIGKILL);
    if (is_known(r)) /* Slurm would let it go on without srun */
        signal_step(r, "KILL");
}

static void try_to_grow(run *r, double now)
{
    if (r->srun->grows == NULL || r->end->asked_to_grow || r->failed_at > 0 || r->end->stopped ||
        !is_known(r) || now - r->looked_at < GROW_SECONDS)
        return;
    r->end->asked_to_grow = r->srun->grows(r->srun->context);
    r->looked_at = hpct_process_clock();
    if (r->end->asked_to_grow)
        signal_step(r, "USR1");
}

/* Until srun has ended, and what it has printed is read; what it leaves running may keep the pipe
 * open. */
static void attend(run *r)
{
    while (!r->has_ended || r->errors >= 0) {
        struct pollfd fds[] = {{.fd = r->signals, .events = POLLIN},
                               {.fd = r->errors, .events = POLLIN}};
        (void) poll(fds, 2, is_known(r) ? SLICE_MS : SHORT_SLICE_MS);
        if (fds[1].revents != 0 && r->errors >= 0)
            read_errors(r);
        else if (r->has_ended)
            break;
        take_signals(r);
        double now = hpct_process_clock();
        if (r->has_ended)
            continue;
        look_for_end(r);
        if (r->has_ended)
            continue;
        learn(r, now);
        terminate(r, now);
        hasten(r, now);
        try_to_grow(r, now);
    }
}

hpct_status hpct_launch_srun_run(hpct_launch_srun *srun, hpct_launch_srun_end *end)
{
    run r = {.srun = srun, .end = end, .errors = -1, .signals = -1};
    *end = (hpct_launch_srun_end){.status = 0};
    r.began = r.looked_at = r.asked_at = hpct_process_clock();
    hpct_status status = start(&r);
    if (status == HPCT_OK)
        attend(&r);
    if (r.errors >= 0)
        close(r.errors);
    if (r.signals >= 0)
        close(r.signals);
    end->others_failed = srun->goes_on && r.failed_at > 0 && !r.zero_failed && !r.end->gave_up;
    if (!srun->goes_on && end->status != 0 && r.first_code > 0)
        end->status = r.first_code;
    end->alike = r.first_code > 0 && !r.differ;
    if (!end->alike || (is_known(&r) && r.not_started < srun->facts->tasks))
        end->program[0] = '\0';
    end->began = is_known(&r) || r.failed_at > 0;
    end->seconds = r.ended_at - r.began;
    return status;
}

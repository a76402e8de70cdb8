/* Signal handlers that only record the signal. */
#include "agent/rank/stop.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

static const struct {
    int number;
    const char *name;
    bool ignored; /* ignored, not recorded */
} signals[] = {
    {SIGINT, "SIGINT", false},   {SIGTERM, "SIGTERM", false}, {SIGUSR1, "SIGUSR1", false},
    {SIGUSR2, "SIGUSR2", false}, {SIGHUP, "SIGHUP", false},   {SIGXCPU, "SIGXCPU", false},
    {SIGPIPE, "SIGPIPE", true},  {SIGXFSZ, "SIGXFSZ", true},
};
#define NUM_SIGNALS ((int) (sizeof signals / sizeof signals[0]))

static volatile sig_atomic_t received, pressed; /* the first signal; the first SIGINT or SIGTERM */
static struct timespec pressed_at;
static struct sigaction before[NUM_SIGNALS];
static bool ours[NUM_SIGNALS];

/* The handler has an alternate stack: oneDNN's sgemm (2.6.3, AVX-512) violates the ABI's rules for
 * the stack pointer, so that a signal frame on the normal stack corrupts memory (a loop of
 * dnnl_sgemm under a timer signal fails within a second). */
static char handler_stack[65536] __attribute__((aligned(64)));
static bool own_stack;

/* Slurm may deliver a signal twice: SIGINT or SIGTERM again within a second counts as one. Other
 * signals may repeat (SIGXCPU every second) or precede a SIGTERM. */
static void remember(int signal)
{
    struct timespec now;
    int error = errno;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (received == 0)
        received = signal;
    if (signal == SIGINT || signal == SIGTERM) {
        if (pressed == 0) {
            pressed = signal;
            pressed_at = now;
        } else if (now.tv_sec - pressed_at.tv_sec >= 2) {
            struct sigaction action = {.sa_handler = SIG_DFL};
            sigaction(signal, &action, NULL);
            raise(signal);
        }
    }
    errno = error;
}

/* Whether the program does not use the signal. UCX, which Open MPI may load, handles SIGHUP for its
 * debug mode. */
static bool is_free(int number, const struct sigaction *present)
{
    return present->sa_handler == SIG_DFL || (number == SIGHUP && present->sa_handler != SIG_IGN);
}

void hpct_rank_stop_begin(void)
{
    const struct sigaction action = {.sa_handler = remember, .sa_flags = SA_RESTART | SA_ONSTACK};
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    stack_t stack = {.ss_sp = handler_stack, .ss_size = sizeof handler_stack}, current;
    own_stack = sigaltstack(NULL, &current) == 0 && (current.ss_flags & SS_DISABLE) &&
                sigaltstack(&stack, NULL) == 0;
    received = pressed = 0;
    for (int i = 0; i < NUM_SIGNALS; i++) {
        int number = signals[i].number;
        ours[i] = sigaction(number, NULL, &before[i]) == 0 && is_free(number, &before[i]) &&
                  sigaction(number, signals[i].ignored ? &ignore : &action, NULL) == 0;
    }
}

void hpct_rank_stop_end(void)
{
    for (int i = 0; i < NUM_SIGNALS; i++) {
        if (ours[i])
            sigaction(signals[i].number, &before[i], NULL);
        ours[i] = false;
    }
    if (own_stack)
        sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
    own_stack = false;
}

int hpct_rank_stop_signal(void)
{
    return received;
}

void hpct_rank_stop_raise(int signal)
{
    if (received == 0)
        received = signal;
}

const char *hpct_rank_stop_name(int signal)
{
    if (signal == HPCT_RANK_STOP_DEADLINE)
        return "the job's time limit";
    for (int i = 0; i < NUM_SIGNALS; i++) {
        if (signals[i].number == signal)
            return signals[i].name;
    }
    return "a signal";
}

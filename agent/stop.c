/* Handlers that only remember. */
#include "agent/stop.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

static const struct {
    int number;
    const char *name;
    bool ignored; /* no wish */
} signals[] = {
    {SIGINT, "SIGINT", false},   {SIGTERM, "SIGTERM", false}, {SIGUSR1, "SIGUSR1", false},
    {SIGUSR2, "SIGUSR2", false}, {SIGHUP, "SIGHUP", false},   {SIGXCPU, "SIGXCPU", false},
    {SIGPIPE, "SIGPIPE", true},  {SIGXFSZ, "SIGXFSZ", true},
};
#define NUM_SIGNALS ((int) (sizeof signals / sizeof signals[0]))

static volatile sig_atomic_t received, pressed; /* the first; the first SIGINT or SIGTERM */
static struct timespec pressed_at;
static struct sigaction before[NUM_SIGNALS];
static bool ours[NUM_SIGNALS];

/* The handler runs on a stack of its own: oneDNN's sgemm (2.6.3, AVX-512) does not keep the ABI's
 * rules for the stack pointer, and a signal's frame on the normal stack corrupts memory (a loop of
 * dnnl_sgemm under a timer signal shows it within a second). */
static char handler_stack[65536] __attribute__((aligned(64)));
static bool own_stack;

/* Slurm may deliver one signal twice: what comes within a second of the first is the same wish. Of
 * the others some come again and again (SIGXCPU each second), or before a SIGTERM. */
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

/* Not the program's own. UCX, which Open MPI may bring, takes SIGHUP for its debug mode. */
static bool is_free(int number, const struct sigaction *present)
{
    return present->sa_handler == SIG_DFL || (number == SIGHUP && present->sa_handler != SIG_IGN);
}

void hpct_stop_begin(void)
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

void hpct_stop_end(void)
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

int hpct_stop_signal(void)
{
    return received;
}

const char *hpct_stop_name(int signal)
{
    for (int i = 0; i < NUM_SIGNALS; i++) {
        if (signals[i].number == signal)
            return signals[i].name;
    }
    return "a signal";
}

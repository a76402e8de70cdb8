/* Handlers that only remember. */
#include "agent/stop.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

static const int signals[] = {SIGINT, SIGTERM};
#define NUM_SIGNALS ((int) (sizeof signals / sizeof signals[0]))

static volatile sig_atomic_t received;
static struct sigaction before[NUM_SIGNALS];
static bool ours[NUM_SIGNALS];

static void remember(int signal)
{
    received = signal;
}

void hpct_stop_begin(void)
{
    struct sigaction action = {.sa_handler = remember, .sa_flags = (int) SA_RESETHAND | SA_RESTART};
    sigemptyset(&action.sa_mask);
    received = 0;
    for (int i = 0; i < NUM_SIGNALS; i++) {
        ours[i] = sigaction(signals[i], NULL, &before[i]) == 0 && before[i].sa_handler == SIG_DFL &&
                  sigaction(signals[i], &action, NULL) == 0;
    }
}

void hpct_stop_end(void)
{
    for (int i = 0; i < NUM_SIGNALS; i++) {
        if (ours[i])
            sigaction(signals[i], &before[i], NULL);
        ours[i] = false;
    }
}

int hpct_stop_signal(void)
{
    return received;
}

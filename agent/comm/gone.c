/* Signal handler that sets a flag. */
#include "agent/comm/gone.h"

#include "base/cluster/tasks.h"

#include <signal.h>
#include <stddef.h>
#include <stdlib.h>

static volatile sig_atomic_t gone;
static struct sigaction before;
static sigset_t mask_before; /* the plugin has blocked the signal */

static void remember(int number)
{
    (void) number;
    gone = 1;
}

void hpct_comm_gone_begin(void)
{
    struct sigaction action = {.sa_handler = remember, .sa_flags = SA_RESTART};
    sigset_t signals;
    sigemptyset(&action.sa_mask);
    sigemptyset(&signals);
    sigaddset(&signals, HPCT_CLUSTER_GONE_SIGNAL);
    gone = getenv(HPCT_CLUSTER_GONE_VARIABLE) != NULL;
    sigaction(HPCT_CLUSTER_GONE_SIGNAL, &action, &before);
    pthread_sigmask(SIG_UNBLOCK, &signals, &mask_before);
}

void hpct_comm_gone_end(void)
{
    pthread_sigmask(SIG_SETMASK, &mask_before, NULL);
    sigaction(HPCT_CLUSTER_GONE_SIGNAL, &before, NULL);
}

bool hpct_comm_gone_is_zero(void)
{
    return gone != 0;
}

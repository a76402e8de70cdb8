/* A handler that only remembers. */
#include "agent/comm/gone.h"

#include "agent/cluster/tasks.h"

#include <stddef.h>
#include <stdlib.h>

static volatile sig_atomic_t gone;
static struct sigaction before;

static void remember(int number)
{
    (void) number;
    gone = 1;
}

void hpct_gone_begin(void)
{
    struct sigaction action = {.sa_handler = remember, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    gone = getenv(HPCT_GONE_VARIABLE) != NULL;
    sigaction(HPCT_GONE_SIGNAL, &action, &before);
}

void hpct_gone_end(void)
{
    sigaction(HPCT_GONE_SIGNAL, &before, NULL);
}

bool hpct_gone_is_zero(void)
{
    return gone != 0;
}

#include "agent/cost/payoff.h"

#include <math.h>

/* Images per second with the fastest allowed scheme; 0 if none is possible. */
static double rate(const hpct_cost_payoff_case *c, int ranks)
{
    double global = c->same_global ? c->samples : c->samples * ranks, best = INFINITY;
    double samples = c->same_global ? ceil(c->samples / ranks) : c->samples;
    for (int scheme = 0; scheme < HPCT_COST_SCHEMES; scheme++) {
        if (!c->allowed[scheme])
            continue;
        hpct_cost_prediction p = hpct_cost_predict((hpct_cost_scheme) scheme, c->cost, c->network,
                                                   &c->how, ranks, samples);
        if (p.possible)
            best = fmin(best, p.step_seconds);
    }
    return global / best;
}

int hpct_cost_payoff(const hpct_cost_payoff_case *c)
{
    int most = 1, limit = HPCT_COST_PAYOFF_MOST;
    double alone = rate(c, 1), top = alone;
    if (c->same_global && c->samples < limit)
        limit = (int) c->samples;
    for (int ranks = 1; ranks < limit;) {
        ranks = ranks + 1 + ranks / 16 < limit ? ranks + 1 + ranks / 16 : limit;
        double here = rate(c, ranks);
        if (here <= top)
            continue;
        top = here;
        if (here >= HPCT_COST_PAYOFF_EFFICIENCY * ranks * alone)
            most = ranks;
    }
    return most;
}

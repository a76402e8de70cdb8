#include "agent/cost/contest.h"

#include "base/sort.h"

#include <math.h>
#include <string.h>

#define SLOW 2          /* factor of the best time so far */
#define FORESEEN_SLOW 4 /* the same */
#define SAME 1.02       /* the same */

/* ---- results so far ---- */

/* Quantile `share` of the block times, 0 the fastest, 1 the slowest. */
static double quantile(const hpct_cost_contest *c, int i, double share)
{
    double sorted[HPCT_COST_CONTEST_ROUNDS];
    if (c->blocks[i] == 0)
        return NAN;
    memcpy(sorted, c->seconds[i], sizeof sorted);
    hpct_sort_numbers(sorted, (size_t) c->blocks[i]);
    return sorted[(int) (share * (c->blocks[i] - 1))];
}

double hpct_cost_contest_median(const hpct_cost_contest *c, int i)
{
    return quantile(c, i, 0.5);
}

/* The candidate with the smallest median, or -1. */
static int fastest(const hpct_cost_contest *c)
{
    int best = -1;
    for (int i = 0; i < c->num; i++) {
        double seconds = hpct_cost_contest_median(c, i);
        if (!isnan(seconds) && (best < 0 || seconds < hpct_cost_contest_median(c, best)))
            best = i;
    }
    return best;
}

static double least(const hpct_cost_contest *c)
{
    int best = fastest(c);
    return best < 0 ? INFINITY : hpct_cost_contest_median(c, best);
}

/* ---- rounds ---- */

static double place(const hpct_cost_contest *c, int i)
{
    return isnan(c->foreseen[i]) ? INFINITY : c->foreseen[i];
}

void hpct_cost_contest_order(const hpct_cost_contest *c, int *order)
{
    for (int i = 0; i < c->num; i++) {
        int at = i;
        for (; at > 0 && place(c, i) < place(c, order[at - 1]); at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

bool hpct_cost_contest_calls(hpct_cost_contest *c, int i)
{
    if (c->foreseen[i] > FORESEEN_SLOW * least(c))
        c->runs[i] = false;
    return c->runs[i];
}

double hpct_cost_contest_limit(const hpct_cost_contest *c, int i)
{
    bool doubtful = c->blocks[i] < 2 && c->foreseen[i] <= least(c);
    return doubtful ? INFINITY : SLOW * least(c);
}

void hpct_cost_contest_note(hpct_cost_contest *c, int i, double seconds)
{
    if (c->blocks[i] < HPCT_COST_CONTEST_ROUNDS)
        c->seconds[i][c->blocks[i]++] = seconds;
}

bool hpct_cost_contest_is_over(hpct_cost_contest *c, bool late)
{
    int best = fastest(c), left = 0;
    for (int i = 0; i < c->num && best >= 0; i++) {
        bool twice = c->blocks[i] > 1 && c->blocks[best] > 1;
        if (hpct_cost_contest_median(c, i) > hpct_cost_contest_limit(c, i) ||
            (twice && quantile(c, i, 0) > quantile(c, best, 1)))
            c->runs[i] = false;
        left += c->runs[i];
    }
    bool first = best < 0 || c->blocks[best] < 2;
    return left < 2 ? late || !first : late && !first;
}

int hpct_cost_contest_winner(const hpct_cost_contest *c)
{
    for (int i = 0; i < c->num; i++) {
        if (hpct_cost_contest_median(c, i) <= SAME * least(c))
            return i;
    }
    return -1;
}

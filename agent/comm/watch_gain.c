/* Whether the ranks get on: rank 0 knows of each how much it has done and whom it waits for. Once
 * nobody gets on, the one that waits for nobody is the one for whom all others wait: for its files,
 * say. */
#include "agent/comm/watch_state.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void hpct_watch_gained(hpct_gain *gain, hpct_waits waits, uint32_t done, int64_t now)
{
    if (gain->done != done || gain->waits != waits)
        *gain = (hpct_gain){waits, done, now};
}

/* Of all ranks: since when none gets on, how many wait for as little as whom, and which is the
 * first of those (NULL: rank 0). */
typedef struct standstill {
    int64_t since_ms;
    hpct_waits least;
    int num;
    const hpct_member *first;
} standstill;

static void add(standstill *all, const hpct_gain *gain, const hpct_member *member)
{
    if (gain->since_ms > all->since_ms)
        all->since_ms = gain->since_ms;
    if (gain->waits == all->least)
        all->num++;
    if (gain->waits >= all->least)
        return;
    all->least = gain->waits;
    all->num = 1;
    all->first = member;
}

static standstill look(const hpct_watch *watch)
{
    standstill all = {watch->gain.since_ms, watch->gain.waits, 1, NULL};
    for (int i = 0; i < watch->num_members; i++) {
        const hpct_member *member = &watch->members[i];
        if (member->left) /* does not train any more */
            all.least = HPCT_WAITS_UNSEEN;
        else if (member->rank >= 0)
            add(&all, &member->gain, member);
    }
    return all;
}

/* Why all stand still, as a line about the first of those. */
static void explain(char *text, size_t size, const standstill *all, long seconds)
{
    char others[40] = "";
    if (all->num > 1)
        snprintf(others, sizeof others, ", as %d more", all->num - 1);
    if (all->least == HPCT_WAITS_FOR_NOBODY)
        snprintf(
            text, size,
            "it has not gone on for %ld s%s, and the others wait for it (do its files answer?)",
            seconds, others);
    else
        snprintf(text, size, "no rank has gone on for %ld s: all wait for %s", seconds,
                 all->least == HPCT_WAITS_FOR_DEVICE ? "their GPUs" : "one another");
}

bool hpct_watch_still_gains(hpct_watch *watch, int64_t now, hpct_frame *lost)
{
    const hpct_watch_options *o = &watch->options;
    standstill all = look(watch);
    int64_t still = now - all.since_ms;
    bool ends = o->standstill_ms > 0 && still >= o->standstill_ms;
    if (all.least == HPCT_WAITS_UNSEEN || (!ends && still < o->notice_ms)) {
        watch->standstill_noted = false;
        return true;
    }
    *lost = (hpct_frame){.type = all.least == HPCT_WAITS_FOR_NOBODY ? HPCT_FRAME_LOST
                                                                    : HPCT_FRAME_ABORT,
                         .rank = all.first == NULL ? 0 : (uint32_t) all.first->rank};
    memcpy(lost->node, all.first == NULL ? watch->node : all.first->node, sizeof lost->node);
    explain(lost->text, sizeof lost->text, &all, (long) (still / 1000));
    if (!ends && !watch->standstill_noted)
        dprintf(STDERR_FILENO, "%shpc-train: rank %u on %s: %s\n",
                isatty(STDERR_FILENO) ? "\n" : "", lost->rank, lost->node, lost->text);
    watch->standstill_noted = true;
    return !ends;
}

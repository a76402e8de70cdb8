/* Progress of the ranks: rank 0 knows each rank's progress and what it waits for. If none makes
 * progress, the rank that waits for no other is the cause, for example because of a hung file
 * system. */
#include "agent/comm/watch_state.h"

#include <stdio.h>
#include <string.h>

void hpct_comm_watch_gained(hpct_comm_gain *gain, hpct_waits waits, uint32_t done, int64_t now)
{
    if (gain->done != done || gain->waits != waits)
        *gain = (hpct_comm_gain){waits, done, now};
}

/* Over all ranks: time since when none makes progress; the least dependent kind of wait, the number
 * of ranks in it, and the one that has been in it longest (NULL: rank 0). */
typedef struct standstill {
    int64_t since_ms, first_since_ms;
    hpct_waits least;
    int num;
    const hpct_comm_member *first;
} standstill;

static void add(standstill *all, const hpct_comm_gain *gain, const hpct_comm_member *member)
{
    if (gain->since_ms > all->since_ms)
        all->since_ms = gain->since_ms;
    if (gain->waits > all->least)
        return;
    all->num = gain->waits < all->least ? 1 : all->num + 1;
    if (all->num == 1 || gain->since_ms < all->first_since_ms) {
        all->first = member;
        all->first_since_ms = gain->since_ms;
    }
    all->least = gain->waits;
}

static standstill find_standstill(const hpct_comm_watch *watch)
{
    standstill all = {.least = HPCT_WAITS_FOR_RANKS};
    add(&all, &watch->gain, NULL);
    for (int i = 0; i < watch->num_members; i++) {
        const hpct_comm_member *member = &watch->members[i];
        if (member->left) /* has finished training */
            all.least = HPCT_WAITS_UNSEEN;
        else if (member->rank >= 0)
            add(&all, &member->gain, member);
    }
    return all;
}

/* Describes the cause of a standstill, as a line about the first of those ranks. */
static void explain(char *text, size_t size, const standstill *all, long seconds)
{
    char others[40] = "";
    if (all->num > 1)
        snprintf(others, sizeof others, ", as %d more", all->num - 1);
    if (all->least == HPCT_WAITS_FOR_NOBODY)
        snprintf(text, size,
                 "it has made no progress for %ld s%s, and the others wait for it (do its files "
                 "answer?)",
                 seconds, others);
    else
        snprintf(text, size, "no rank has made progress for %ld s: all wait for %s", seconds,
                 all->least == HPCT_WAITS_FOR_DEVICE ? "their GPUs" : "one another");
}

bool hpct_comm_watch_still_gains(hpct_comm_watch *watch, int64_t now, hpct_net_frame *lost)
{
    const hpct_comm_watch_options *o = &watch->options;
    standstill all = find_standstill(watch);
    int64_t still = now - all.since_ms;
    bool ends = o->standstill_ms > 0 && still >= o->standstill_ms;
    bool notes = o->notice_ms > 0 && still >= o->notice_ms;
    if (all.least == HPCT_WAITS_UNSEEN || (!ends && !notes)) {
        watch->standstill_noted = false;
        return true;
    }
    bool blames = all.least == HPCT_WAITS_FOR_NOBODY;
    *lost = (hpct_net_frame){.type = blames ? HPCT_NET_FRAME_LOST : HPCT_NET_FRAME_ABORT,
                             .rank = all.first == NULL ? 0 : (uint32_t) all.first->rank};
    memcpy(lost->node, all.first == NULL ? watch->node : all.first->node, sizeof lost->node);
    explain(lost->text, sizeof lost->text, &all, (long) (still / 1000));
    if (!ends && !watch->standstill_noted) {
        char line[300], who[100] = "";
        if (blames)
            snprintf(who, sizeof who, "rank %u on %s: ", lost->rank, lost->node);
        snprintf(line, sizeof line, "hpc-train: %s%s", who, lost->text);
        hpct_comm_watch_say(line, 0);
    }
    watch->standstill_noted = true;
    return !ends;
}

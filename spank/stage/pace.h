/* spank/stage/pace.h - whether one more thread would help: how a thread spent its time at work. One
 * that ran all the time may be helped by another, on another core; so may one that waited for a
 * disk or a server. One that had to share its core with others (as the nodes of a test cluster do)
 * would only take turns with another. */
#ifndef HPCT_STAGE_PACE_H
#define HPCT_STAGE_PACE_H

typedef enum hpct_pace_kind {
    HPCT_PACE_EARLY, /* it cannot be told yet */
    HPCT_PACE_BUSY,
    HPCT_PACE_WAITS,
    HPCT_PACE_SHARES,
} hpct_pace_kind;

/* One thread's; zeros to begin with. */
typedef struct hpct_pace {
    double wall, cpu;   /* seconds of work since the last answer; while at work less its start */
    long waits, shares; /* how often it gave its core up, and had it taken away */
} hpct_pace;

/* Around a piece of work, in its thread. */
void hpct_pace_begin(hpct_pace *pace);
void hpct_pace_end(hpct_pace *pace);

/* After a piece of work. An answer other than HPCT_PACE_EARLY begins anew. */
hpct_pace_kind hpct_pace_look(hpct_pace *pace);

/* How many cores this process may use, at most `most`. */
int hpct_pace_cores(int most);

#endif

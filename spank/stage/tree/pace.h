/* spank/stage/tree/pace.h - whether another thread would help, from how a thread spent its time:
 * yes if it ran all the time (another core may be free) or waited for storage; no if it shared its
 * core. */
#ifndef HPCT_SPANK_STAGE_TREE_PACE_H
#define HPCT_SPANK_STAGE_TREE_PACE_H

typedef enum hpct_pace_kind {
    HPCT_PACE_EARLY, /* not enough data yet */
    HPCT_PACE_BUSY,
    HPCT_PACE_WAITS,
    HPCT_PACE_SHARES,
} hpct_pace_kind;

/* State of one thread; zero-initialized. */
typedef struct hpct_pace {
    double wall, cpu;   /* seconds of work since the last answer; during work minus its start */
    long waits, shares; /* voluntary and involuntary context switches */
} hpct_pace;

/* Before a piece of work, in the thread that does it. */
void hpct_pace_begin(hpct_pace *pace);
void hpct_pace_end(hpct_pace *pace);

/* After a piece of work. Any answer but HPCT_PACE_EARLY resets the state. */
hpct_pace_kind hpct_pace_look(hpct_pace *pace);

/* Number of usable cores, at most `most`. */
int hpct_pace_cores(int most);

#endif

/* tests/unit/agent/comm/watch_group.h - a group of processes under a watch, over real sockets. */
#ifndef HPCT_TESTS_UNIT_AGENT_COMM_WATCH_GROUP_H
#define HPCT_TESTS_UNIT_AGENT_COMM_WATCH_GROUP_H

#include "agent/comm/watch.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define RANKS 4
#define SILENCE_MS 2000

extern const hpct_auth_key key;
extern const hpct_auth auth;

typedef struct group {
    pid_t pids[RANKS];
    int out[RANKS]; /* each rank's stderr */
    int listen_fd, port;
    int join_seconds, standstill_ms;
    atomic_int *joined; /* how many have, shared by all processes */
} group;

typedef void rank_function(hpct_comm_watch *watch, int rank);

void sleep_ms(int ms);

/* Joins as a rank, runs the function and exits. */
void run_rank(const group *g, int rank, rank_function *function);

/* Starts all ranks but `absent` (-1 for none). */
void start(group *g, rank_function *function, int absent);

/* Until all have joined. */
void wait_for_all(const group *g);

/* Waits for a rank; its exit code (128 + signal when killed), and what it said. */
int finish(group *g, int rank, char *said, size_t size);

/* Whether these words are in it; as in a shell's pattern, [0-9]* is a number. */
bool says(const char *said, const char *words);

/* All but one end with this code, saying this (as says has it). */
void check_others(group *g, int victim, int code, const char *named);

/* Rank functions. */
void leave_after_a_while(hpct_comm_watch *watch, int rank);
void work_for_ever(hpct_comm_watch *watch, int rank);

#endif

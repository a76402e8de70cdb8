/* agent/top/terminal.h - the terminal while hpc-train top draws on it: another screen, no cursor,
 * keys without a line feed. Given back whatever ends it. One at a time. */
#ifndef HPCT_AGENT_TOP_TERMINAL_H
#define HPCT_AGENT_TOP_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

typedef enum hpct_top_terminal_event {
    HPCT_TOP_TERMINAL_DRAW, /* the time is over, or its size has changed */
    HPCT_TOP_TERMINAL_QUIT, /* q, SIGINT, or the terminal is gone */
} hpct_top_terminal_event;

/* Whether that stream is one, which understands escape sequences. */
bool hpct_top_terminal_is(FILE *stream);

/* From now on SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP and SIGWINCH arrive only in
 * hpct_top_terminal_wait, unless they are ignored. */
void hpct_top_terminal_open(FILE *stream);
void hpct_top_terminal_close(void);

void hpct_top_terminal_size(int *width, int *height);

/* Replaces what is shown by these lines, without a last line feed. */
void hpct_top_terminal_show(const char *text);

/* Up to `seconds`. SIGTSTP stops the process meanwhile, with the terminal given back; SIGTERM and
 * the like end it so. */
hpct_top_terminal_event hpct_top_terminal_wait(double seconds);

#endif

/* base/ask.h - runs another program and returns what it prints on standard output. */
#ifndef HPCT_BASE_ASK_H
#define HPCT_BASE_ASK_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct hpct_ask {
    char *const *arguments;              /* NULL-terminated; the program is searched for in PATH */
    double seconds;                      /* after which it is killed */
    bool (*is_cancelled)(void *context); /* asked several times a second; NULL: never */
    void *context;
} hpct_ask;

/* The program reads nothing, and what it prints on standard error is dropped. text[size] receives
 * its output, NUL-terminated. HPCT_ERR_IO, naming the program: it could not be started, took too
 * long, printed size bytes or more, or failed. */
hpct_status hpct_ask_run(const hpct_ask *ask, char *text, size_t size);

#endif

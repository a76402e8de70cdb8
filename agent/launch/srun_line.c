/* "srun: error: NODES: task[s] RANKS: HOW", "srun: error: Node failure on NODE",
 * "srun: error: Task launch for STEP failed on node NODE: WHY". */
#include "agent/launch/srun_line.h"

#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Moves *at behind `text` if it begins so. */
static bool skip(const char **at, const char *text)
{
    size_t length = strlen(text);
    if (strncmp(*at, text, length) != 0)
        return false;
    *at += length;
    return true;
}

/* Copies the name or list of names at *at, which ends before `end`, and moves behind that. */
static bool take_nodes(const char **at, const char *end, hpct_launch_srun_line *out)
{
    size_t length = 0;
    const char *text = *at;
    while (isalnum((unsigned char) text[length]) ||
           (text[length] != '\0' && strchr("-_.[],", text[length]) != NULL))
        length++;
    if (length == 0 || length >= sizeof out->nodes)
        return false;
    memcpy(out->nodes, text, length);
    out->nodes[length] = '\0';
    *at += length;
    return skip(at, end);
}

/* "0", "0-3,5" and what follows. */
static bool skip_ranks(const char **at)
{
    size_t length = strspn(*at, "0123456789-,");
    *at += length;
    return length > 0 && skip(at, ": ");
}

/* srun names signals as strsignal does, and adds " (core dumped)". */
static int code_of_signal(const char *text)
{
    if (strncmp(text, "Out Of Memory", 13) == 0)
        return 128 + SIGKILL;
    for (int number = 1; number < NSIG; number++) {
        const char *name = strsignal(number);
        size_t length = name != NULL ? strlen(name) : 0;
        if (length > 0 && strncmp(text, name, length) == 0 &&
            (text[length] == '\0' || strcmp(text + length, " (core dumped)") == 0))
            return 128 + number;
    }
    return 0;
}

/* A line of slurmstepd or of a task may begin in any way, one of srun only so. */
bool hpct_launch_srun_line_parse(const char *line, hpct_launch_srun_line *out)
{
    const char *at = line;
    *out = (hpct_launch_srun_line){.code = 0};
    if (!skip(&at, "srun: error: "))
        return false;
    const char *launch =
        strncmp(at, "Task launch for ", 16) == 0 ? strstr(at, "failed on node ") : NULL;
    if (launch != NULL) {
        launch += strlen("failed on node ");
        out->event = HPCT_LAUNCH_SRUN_NODE_FAILED;
        return take_nodes(&launch, ":", out);
    }
    if (skip(&at, "Node failure on ")) {
        out->event = HPCT_LAUNCH_SRUN_NODE_FAILED;
        return take_nodes(&at, "", out) && *at == '\0';
    }
    if (!take_nodes(&at, ": ", out) || !(skip(&at, "tasks ") || skip(&at, "task ")))
        return false;
    out->has_first = at[0] == '0'; /* ranks are in order */
    if (!skip_ranks(&at))
        return false;
    out->event = HPCT_LAUNCH_SRUN_KILLED;
    if (skip(&at, "Exited with exit code")) {
        out->event = HPCT_LAUNCH_SRUN_EXITED;
        out->code = atoi(at);
        return out->code > 0;
    }
    out->code = code_of_signal(at);
    return *at != '\0';
}

bool hpct_launch_srun_line_no_program(const char *line, const char **what)
{
    static const char text[] = ": error: execve(): ";
    const char *daemon = strstr(line, "slurmstepd"); /* behind a label, with --label */
    const char *at = daemon != NULL ? strstr(daemon, text) : NULL; /* or "slurmstepd-NODE" */
    if (at != NULL)
        *what = at + sizeof text - 1;
    return at != NULL;
}

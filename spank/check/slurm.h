/* spank/check/slurm.h - facts about this node's Slurm, from its own commands. */
#ifndef HPCT_SPANK_CHECK_SLURM_H
#define HPCT_SPANK_CHECK_SLURM_H

#include <stdbool.h>
#include <stddef.h>

typedef struct hpct_check_slurm_here {
    int major, minor;        /* 22, 5; 0 if no Slurm command was found */
    char plug_stack[4096];   /* the path of plugstack.conf on this node */
    char plugin_dirs[4096];  /* separated by ':'; "" if unknown */
    char job_container[256]; /* "job_container/tmpfs"; from 25.11 on "namespace/linux" and so on; ""
                                if unknown */
    char own_dirs[4096];     /* folders private to each job, separated by commas */
    bool controller_answers; /* otherwise the three above are guesses */
    bool fetches; /* no Slurm file on this node: each command fetches the controller's slurm.conf
                     and plugstack.conf */
} hpct_check_slurm_here;

void hpct_check_slurm_here_ask(hpct_check_slurm_here *out);

/* First line of a shell command's output; returns its exit status, 127 if it cannot be run. */
int hpct_check_first_line(const char *command, char *line, size_t size);

#endif

/* spank/check/slurm.h - what this node's Slurm says of itself, asked with its own commands. */
#ifndef HPCT_CHECK_SLURM_H
#define HPCT_CHECK_SLURM_H

#include <stdbool.h>
#include <stddef.h>

typedef struct hpct_slurm_here {
    int major, minor;        /* 22, 5; 0 when no Slurm command was found */
    char plug_stack[4096];   /* the path of plugstack.conf on this node */
    char plugin_dirs[4096];  /* with ':' between them; "" when nobody said */
    char job_container[256]; /* "job_container/tmpfs"; from 25.11 on "namespace/linux" and so on;
                                "" when nobody said */
    char own_dirs[4096];     /* the folders of which it gives each job its own, with commas */
    bool controller_answers; /* else the three above are guesses */
    bool fetches; /* no file of it is on this node: each command fetches the controller's slurm.conf
                     and plugstack.conf for itself */
} hpct_slurm_here;

void hpct_slurm_here_ask(hpct_slurm_here *out);

/* The first line of what a shell command prints; its exit status, 127 when it cannot be run. */
int hpct_first_line(const char *command, char *line, size_t size);

#endif

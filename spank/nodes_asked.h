/* spank/nodes_asked.h - whether srun, sbatch or salloc was given one node, several components, or a
 * job array. SPANK does not provide this, so command line and script are searched. */
#ifndef HPCT_SPANK_NODES_ASKED_H
#define HPCT_SPANK_NODES_ASKED_H

#include <stdbool.h>

/* True if `arguments` (spank/arguments.h) or the #SBATCH lines of the first script
 * among them have -N1 or --nodes=1. All words are taken as the command's options; the steps, which
 * know their nodes, check again. */
bool hpct_spank_nodes_asked_one(char *const *arguments);

/* True if there are several components, separated by a colon, which may have more nodes. */
bool hpct_spank_nodes_asked_parts(char *const *arguments);

/* True if srun's own options, before the program, certainly give two or more nodes. */
bool hpct_spank_nodes_asked_several(char *const *arguments);

/* Whether sbatch's own options or the script's #SBATCH lines have --array. -1: unknown, the script
 * came from standard input. */
int hpct_spank_nodes_asked_array(char *const *arguments);

#endif

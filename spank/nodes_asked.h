/* spank/nodes_asked.h - whether srun, sbatch or salloc was asked for one node, for a job of several
 * components, or for an array of jobs. SPANK does not tell, so it is looked for in the command line
 * and in the script. */
#ifndef HPCT_SPANK_NODES_ASKED_H
#define HPCT_SPANK_NODES_ASKED_H

#include <stdbool.h>

/* True when `arguments` (ended by NULL; the first is the program) or the #SBATCH lines of the first
 * script among them say -N1 or --nodes=1. What stands there is taken for the command's own without
 * knowing its options: the steps, which know their nodes, check again. */
bool hpct_nodes_asked_one(char *const *arguments);

/* True when there are several components, with a colon between them; no node is then all there is.
 */
bool hpct_nodes_asked_parts(char *const *arguments);

/* True when srun's own options, before the program, surely say that it is two nodes or more. */
bool hpct_nodes_asked_several(char *const *arguments);

/* Whether sbatch's own options, before the script, or the script's #SBATCH lines say --array. -1:
 * not known, as the script came from standard input. */
int hpct_nodes_asked_array(char *const *arguments);

/* The same for this process. */
bool hpct_nodes_asked_one_here(void);
bool hpct_nodes_asked_parts_here(void);
bool hpct_nodes_asked_several_here(void);
int hpct_nodes_asked_array_here(void);

#endif

/* spank/contexts.h - the plugin's parts, one per place where Slurm loads it. */
#ifndef HPCT_SPANK_CONTEXTS_H
#define HPCT_SPANK_CONTEXTS_H

#include "agent/cluster/config.h"
#include "base/auth/key.h"
#include "spank/describe.h"
#include "spank/given.h"
#include "spank/gpu_meet.h"
#include "spank/options.h"
#include "spank/ports_agree.h"
#include "spank/settings.h"
#include "spank/share.h"
#include "spank/slurm_api.h"
#include "spank/stage_out.h"

/* What root does in the job directories' parent can be held up by a process that has one of them
 * open, so each visit is an errand. */
#define HPCT_FOLDER_SECONDS 20

/* The step is being ended. A task that is not ready yet ends with HPCT_ERR_PEER, and its status is
 * not the one of a task that was killed; programs do not notice this signal. */
#define HPCT_TASK_SIGNAL SIGURG

/* What lives as long as the plugin is loaded. In slurmstepd the tasks are forked with a copy. */
typedef struct hpct_plugin {
    hpct_settings settings;
    char trouble[1024]; /* why hpc-train cannot be used; "" when it can */
    hpct_status status; /* and what kind of reason that is */
    hpct_options options;
    hpct_given given;            /* srun, sbatch and salloc only, until they have checked it */
    hpct_key key;                /* of the step: srun and slurmstepd */
    hpct_ports_host *ports_host; /* srun only */
    /* slurmstepd only */
    bool on;
    uint32_t job, step;
    pid_t daemon; /* slurmstepd itself */
    bool has_key;
    int srun_port;    /* where srun has the nodes agree on their ports; 0: it does not */
    int results_port; /* and hears what became of results */
    hpct_share *share;
    bool out;             /* results are to be copied out */
    hpct_person user;     /* who then does it */
    char *cgroup;         /* the first task's, when that is not slurmstepd's own */
    uint32_t tasks_ended; /* on this node */
    hpct_gpu_meet *gpus;
} hpct_plugin;

/* srun, sbatch, salloc, before anything is queued: checks what the environment says (the command
 * line was checked option by option). Other than HPCT_OK, after a message, when the command must
 * end with that status: HPCT_ERR_CONFIG when it is the administrator's arguments that are wrong.
 * `srun`: it is srun, which will ask about the nodes later, when it knows them. */
hpct_status hpct_client_check(hpct_plugin *plugin, bool srun);

/* srun, when it knows the step's nodes and before any task starts; serves them where they are
 * several. False, after a message, when they would write over each other's results. */
bool hpct_client_check_nodes(hpct_plugin *plugin, hpct_slurm *slurm);

/* srun, before the step's environment is made: hears from the nodes what becomes of results, and
 * ends with 66 or 74, rather than 0, when some are missing or not copied. */
void hpct_client_hear_results(const hpct_plugin *plugin, const hpct_choices *choices);

/* srun: whether the script that it runs in is of a job array, as its own step has noted; false when
 * there is no note. */
bool hpct_client_script_array(bool *is_array);

/* slurmd, as root, when it starts, before any job: the job directories' parent is made. */
void hpct_daemon_start(hpct_plugin *plugin);

/* slurmstepd, as root, before it becomes the user: decides whether hpc-train is on for this step,
 * and makes the job directory. Keeps what goes wrong in plugin->trouble, for the tasks to report:
 * an error of a step must never look like an error of the node. */
void hpct_step_start(hpct_plugin *plugin, hpct_slurm *slurm);

/* A node's tasks, as the user: which block of ports is the step's. See hpct_task_facts. */
typedef struct hpct_ports_choosing {
    hpct_plugin *plugin;
    const hpct_environment *environment;
    int local_rank;
} hpct_ports_choosing;
hpct_status hpct_ports_choose(void *choosing, const hpct_ports_wanted *wanted, int *choice);

/* "host:port" in srun; false when Slurm does not say where srun is. */
bool hpct_srun_address(const hpct_environment *environment, int port, char *text, size_t size);

/* Each task, as the user: data, environment, GPU, port. HPCT_OK when it may start; after anything
 * else the message was printed and the step is being ended. */
hpct_status hpct_task_start(hpct_plugin *plugin, hpct_slurm *slurm);

/* Each task, as the user, last: the first one of the node writes down what is to be copied out.
 * `config` is NULL in a script; `key`: the file of the task's key, may be NULL. */
hpct_status hpct_task_record_out(hpct_plugin *plugin, hpct_slurm *slurm,
                                 const hpct_environment *environment, const hpct_config *config,
                                 const char *tmpdir, const char *key);

/* slurmstepd, as root: a task has been forked; one has ended. With the last one of the node,
 * results are copied out: srun waits for that, and still shows what is said. */
void hpct_task_forked(hpct_plugin *plugin, hpct_slurm *slurm);
void hpct_task_ended(hpct_plugin *plugin, hpct_slurm *slurm);

/* slurmstepd, as root, at its orderly end. */
void hpct_step_end(hpct_plugin *plugin);

/* The step as users name it: "0", "batch". */
void hpct_step_name(uint32_t step, char name[HPCT_STEP_NAME]);

/* Prolog and epilog of a job on a node, as root: the job directory of an earlier run, or of this
 * one, is removed, after a last try to copy out what is in it; in the epilog, where nobody waits
 * for a job to start, also what earlier removals had to leave. */
void hpct_job_clean(hpct_plugin *plugin, hpct_slurm *slurm, bool epilog);

#endif

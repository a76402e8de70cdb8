/* spank/contexts.h - the plugin's parts, one per SPANK context. */
#ifndef HPCT_SPANK_CONTEXTS_H
#define HPCT_SPANK_CONTEXTS_H

#include "base/auth/key.h"
#include "base/cluster/config.h"
#include "spank/agree/ports_agree.h"
#include "spank/describe.h"
#include "spank/given.h"
#include "spank/gpu_meet.h"
#include "spank/options.h"
#include "spank/settings.h"
#include "spank/share.h"
#include "spank/slurm_api.h"
#include "spank/stage_out.h"

/* Root's access to the parent of job directories can be delayed by a process that has one open, so
 * each access is made by a child process with a timeout. */
#define HPCT_SPANK_FOLDER_SECONDS 20

/* Signal to tasks when the step is ended: a task that has not started its program ends with
 * HPCT_ERR_PEER instead of being killed; programs ignore it by default. */
#define HPCT_SPANK_TASK_SIGNAL SIGURG

/* Lives as long as the plugin is loaded. In slurmstepd each task is forked with a copy. */
typedef struct hpct_spank_plugin {
    hpct_spank_settings settings;
    char trouble[1024]; /* why hpc-train cannot be used; "" if it can */
    hpct_status status; /* the status of that */
    hpct_spank_options options;
    hpct_spank_given given; /* srun, sbatch and salloc only, until they are checked */
    hpct_auth_key key;      /* the step's key: srun and slurmstepd */
    /* slurmstepd only */
    bool on;
    uint32_t job, step;
    int64_t start; /* hpct_now_ms */
    pid_t daemon;  /* slurmstepd itself */
    bool has_key;
    int srun_port;    /* port where srun coordinates ports; 0: none */
    int64_t end_time; /* of the job; 0: unknown */
    int results_port; /* port where srun receives reports about stage-out */
    hpct_spank_share *share;
    bool out;               /* results will be copied out */
    hpct_spank_person user; /* the helper's user */
    char *folder;           /* base of relative destinations; NULL: the step's directory */
    char *cgroup;           /* the first task's cgroup, if not slurmstepd's own */
    uint32_t tasks_ended;   /* on this node */
    hpct_spank_gpu_meet *gpus;
    hpct_spank_ports_keeper *keeper; /* NULL in a script's step */
} hpct_spank_plugin;

/* sbatch, salloc, first of all: within a job, removes the options and variables of that job, as the
 * new job does not inherit them. */
void hpct_spank_client_leave_job(const hpct_spank_plugin *plugin);

/* srun, sbatch, salloc, before queueing: checks options from the environment (the command line was
 * checked option by option). Returns a status other than HPCT_OK, after a message, if the command
 * must end with it; HPCT_ERR_CONFIG for wrong arguments in plugstack.conf. `srun`: node checks are
 * done later, when srun knows the nodes. */
hpct_status hpct_spank_client_check(hpct_spank_plugin *plugin, bool srun);

/* srun, when it knows the step's nodes, before tasks start. Returns false, after a message, if
 * nodes would overwrite each other's results. */
bool hpct_spank_client_check_nodes(hpct_spank_plugin *plugin, hpct_slurm *slurm);

/* srun, before the step's environment is built: starts to receive reports about stage-out; srun
 * ends with 66 or 74 instead of 0 if results are missing or were not copied. */
void hpct_spank_client_hear_results(const hpct_spank_plugin *plugin,
                                    const hpct_spank_choices *choices);

/* srun has nodes and is about to start the tasks: reports must come. */
void hpct_spank_client_results_start(void);

/* srun, in the same way: serves the agreement of the nodes on ports and network, and ends a step
 * with a node that has no part in it. `nodes` 0, before the step is known: it may have several
 * components. */
void hpct_spank_client_serve_ports(const hpct_spank_plugin *plugin,
                                   const hpct_spank_choices *choices, uint32_t job, uint32_t step,
                                   uint32_t nodes);
void hpct_spank_client_end_ports(void);

/* srun: Slurm may unload its plugins before the process ends. False: it will. */
bool hpct_spank_client_stay_loaded(void);

/* srun: sets *is_array to whether the enclosing script belongs to a job array, as recorded by its
 * step. Returns false without a record. */
bool hpct_spank_client_script_array(bool *is_array);

/* slurmd, as root, at start, before any job: creates the parent of the job directories. */
void hpct_spank_daemon_start(hpct_spank_plugin *plugin);

/* slurmstepd, as root: decides whether hpc-train is on for this step, and creates the job
 * directory. Errors are kept in plugin->trouble for the tasks to report: an error of a step must
 * not look like one of the node. */
void hpct_spank_step_start(hpct_spank_plugin *plugin, hpct_slurm *slurm);

/* A node's tasks, as the user: chooses the step's block of ports. See hpct_spank_task_facts. */
typedef struct hpct_spank_ports_choosing {
    hpct_spank_plugin *plugin;
    const hpct_cluster_environment *environment;
    const hpct_spec_network *wish;
    int local_rank;
} hpct_spank_ports_choosing;
hpct_status hpct_spank_ports_choose(void *choosing, const hpct_spank_ports_wanted *wanted,
                                    int *choice);

/* srun's "host:port"; false if unknown. */
bool hpct_spank_srun_address(const hpct_cluster_environment *environment, int port, char *text,
                             size_t size);

/* Each task, as the user: data, environment, GPU, port. HPCT_OK if the program may start; otherwise
 * a message was printed and the step is being ended. */
hpct_status hpct_spank_task_start(hpct_spank_plugin *plugin, hpct_slurm *slurm);

/* Each task, as the user, last: the node's first task writes the stage-out record. `config` is NULL
 * in a script; `key`: the task's key file, may be NULL. */
hpct_status hpct_spank_task_record_out(hpct_spank_plugin *plugin, hpct_slurm *slurm,
                                       const hpct_cluster_environment *environment,
                                       const hpct_cluster_config *config, const char *tmpdir,
                                       const char *key);

/* slurmstepd, as root: a task was forked; a task has ended. After the node's last task, results are
 * copied out; srun waits for that and shows messages. */
void hpct_spank_task_forked(hpct_spank_plugin *plugin, hpct_slurm *slurm);
void hpct_spank_task_ended(hpct_spank_plugin *plugin, hpct_slurm *slurm);

/* slurmstepd, as root, when it exits normally. */
void hpct_spank_step_end(hpct_spank_plugin *plugin);

/* The step's name for users: "0", "batch". */
void hpct_spank_step_name(uint32_t step, char name[HPCT_SPANK_STEP_NAME]);

/* Prolog and epilog of a job on a node, as root: removes the job directory, after a last attempt to
 * copy results out; the epilog also continues unfinished removals. */
void hpct_spank_job_clean(hpct_spank_plugin *plugin, hpct_slurm *slurm, bool epilog);

#endif

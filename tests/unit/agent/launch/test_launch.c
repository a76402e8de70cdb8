/* What launch reads of Slurm's commands, and the command lines of srun that it makes. */
#include "agent/launch/command.h"
#include "agent/launch/nodes.h"
#include "agent/launch/srun_line.h"
#include "agent/launch/step_facts.h"
#include "agent/launch/variables.h"
#include "base/net/link.h"
#include "tests/unit/base/net/name_service.h"
#include "tests/unit/cases.h"

#include <sys/stat.h>
#include <unistd.h>

static hpct_status parse_line(const parse_case *c, char *got, size_t size)
{
    static const char *const events[] = {"exited", "killed", "node failed"};
    hpct_launch_srun_line line;
    bool known = hpct_launch_srun_line_parse(c->text, &line);
    if (known)
        snprintf(got, size, "%s %s %d%s", line.nodes, events[line.event], line.code,
                 line.has_first ? ", task 0" : "");
    return accepted_if(known);
}

/* As Slurm 22.05, 24.11 and 25.05 print them. */
TEST(lines_of_srun_name_what_failed)
{
    static const parse_case cases[] = {
        {"srun: error: node2: task 2: Killed", HPCT_OK, "node2 killed 137"},
        {"srun: error: node2: task 2: Segmentation fault (core dumped)", HPCT_OK,
         "node2 killed 139"},
        {"srun: error: node2: task 2: Aborted", HPCT_OK, "node2 killed 134"},
        {"srun: error: node2: task 2: Real-time signal 1", HPCT_OK, "node2 killed 163"},
        {"srun: error: node2: task 2: Out Of Memory", HPCT_OK, "node2 killed 137"},
        {"srun: error: node2: task 2: Terminated by somebody", HPCT_OK, "node2 killed 0"},
        {"srun: error: node0: task 0: Exited with exit code 69", HPCT_OK,
         "node0 exited 69, task 0"},
        {"srun: error: gpu-1.site: tasks 4-5,7: Exited with exit code 1", HPCT_OK,
         "gpu-1.site exited 1"},
        {"srun: error: n[0-1,07]: tasks 0-3: Terminated", HPCT_OK, "n[0-1,07] killed 143, task 0"},
        {"srun: error: Node failure on node3", HPCT_OK, "node3 node failed 0"},
        {"srun: error: Task launch for StepId=7.0 failed on node node3: Communication connection "
         "failure",
         HPCT_OK, "node3 node failed 0"},
        {"srun: error: Task launch for 7.0 failed on node node3: Invalid job credential", HPCT_OK,
         "node3 node failed 0"},
        {"", HPCT_ERR_USAGE},
        {"srun: error: ", HPCT_ERR_USAGE},
        {"srun: error: node0: task 0: ", HPCT_ERR_USAGE},
        {"srun: error: node0: task : Killed", HPCT_ERR_USAGE},
        {"srun: error: node0: task 0: Exited with exit code", HPCT_ERR_USAGE},
        {"srun: error: node0: task 0: Exited with exit code 0", HPCT_ERR_USAGE},
        {"srun: error: node0: Killed", HPCT_ERR_USAGE},
        {"srun: error: Node failure on ", HPCT_ERR_USAGE},
        {"srun: error: Node failure on a b", HPCT_ERR_USAGE},
        {"srun: error: Task launch for StepId=7.0 failed", HPCT_ERR_USAGE},
        {"srun: Job step aborted: Waiting up to 7 seconds for job step to finish.", HPCT_ERR_USAGE},
        {"srun: error: Timed out waiting for job step to complete", HPCT_ERR_USAGE},
        {"slurmstepd: error: *** STEP 7.0 ON node0 CANCELLED AT 2026-11-27T10:00:00 ***",
         HPCT_ERR_USAGE},
        {"error: node0: task 0: Killed", HPCT_ERR_USAGE},
        {"rank 1: srun: error: node0: task 0: Killed", HPCT_ERR_USAGE},
    };
    RUN_CASES(parse_line, cases);
}

static hpct_status parse_program(const parse_case *c, char *got, size_t size)
{
    const char *what = NULL;
    bool known = hpct_launch_srun_line_no_program(c->text, &what);
    if (known)
        snprintf(got, size, "%s", what);
    return accepted_if(known);
}

TEST(a_line_of_slurmstepd_names_the_program)
{
    static const parse_case cases[] = {
        {"slurmstepd: error: execve(): train: No such file or directory", HPCT_OK,
         "train: No such file or directory"},
        {"12: slurmstepd-node3: error: execve(): ./a b: Permission denied", HPCT_OK,
         "./a b: Permission denied"},
        {"slurmstepd: error: execve(): bad interpreter(/no/python): No such file or directory",
         HPCT_OK, "bad interpreter(/no/python): No such file or directory"},
        {"slurmstepd: error: *** STEP 3.18 ON node0 CANCELLED", HPCT_ERR_USAGE},
        {"train: error: execve(): x: No such file or directory", HPCT_ERR_USAGE},
        {"", HPCT_ERR_USAGE},
    };
    RUN_CASES(parse_program, cases);
}

TEST(a_name_that_is_too_long_is_no_name)
{
    char line[400] = "srun: error: ";
    hpct_launch_srun_line out;
    memset(line + strlen(line), 'n', 255);
    strcat(line, ": task 0: Killed");
    assert_true(hpct_launch_srun_line_parse(line, &out));
    line[13 + 255] = 'n';
    line[13 + 256] = '\0';
    strcat(line, ": task 0: Killed");
    assert_false(hpct_launch_srun_line_parse(line, &out));
}

#define STEP(id, pid)                                                                              \
    "StepId=" id " UserId=1000 StartTime=2026-11-27T10:00:00 TimeLimit=UNLIMITED State=RUNNING "   \
    "Partition=main NodeList=node[0-1] Nodes=2 CPUs=4 Tasks=4 Name=my program Network=(null) "     \
    "TRES=cpu=4,node=2 ResvPorts=(null) SrunHost:Pid=login:" pid "\n"

static hpct_status parse_step(const parse_case *c, char *got, size_t size)
{
    hpct_launch_step_facts facts;
    bool known = hpct_launch_step_facts_parse(c->text, c->number, &facts);
    if (known)
        snprintf(got, size, "%s %d %d", facts.id, facts.nodes, facts.tasks);
    hpct_launch_step_facts_free(&facts);
    return accepted_if(known);
}

TEST(a_step_is_found_by_its_srun)
{
    static const parse_case cases[] = {
        {STEP("7.0", "12"), HPCT_OK, "7.0 2 4", 12},
        {"StepId=7.batch Nodes=1 Tasks=1 NodeList=node0\n" STEP("7.3", "5") STEP("7.4", "12"),
         HPCT_OK, "7.4 2 4", 12},
        {STEP("9_4.0", "12"), HPCT_OK, "9_4.0 2 4", 12},
        {STEP("7.0", "12"), HPCT_ERR_USAGE, NULL, 13},
        {"No steps in the system\n", HPCT_ERR_USAGE, NULL, 12},
        {"", HPCT_ERR_USAGE, NULL, 12},
        {"StepId=7.0 Nodes=2 Tasks=1 NodeList=n SrunHost:Pid=h:12\n", HPCT_ERR_USAGE, NULL, 12},
        {"StepId=7.0 Nodes=0 Tasks=1 NodeList=n SrunHost:Pid=h:12\n", HPCT_ERR_USAGE, NULL, 12},
        {"Nodes=1 Tasks=1 NodeList=n SrunHost:Pid=h:12\n", HPCT_ERR_USAGE, NULL, 12},
        {"StepId= Nodes=1 Tasks=1 NodeList=n SrunHost:Pid=h:12\n", HPCT_ERR_USAGE, NULL, 12},
        {"StepId=123456789012345678901234567890123456789012345678 Nodes=1 Tasks=1 NodeList=n "
         "SrunHost:Pid=h:12",
         HPCT_ERR_USAGE, NULL, 12},
    };
    RUN_CASES(parse_step, cases);
}

static hpct_status parse_layout(const parse_case *c, char *got, size_t size)
{
    char *text = strdup(c->text);
    hpct_launch_step_facts facts = {.tasks = c->number};
    bool known = hpct_launch_step_facts_parse_layout(text, &facts);
    for (int task = 0; known && task < facts.tasks; task++)
        snprintf(got + strlen(got), size - strlen(got), "%s%s", task > 0 ? " " : "",
                 facts.hosts[task]);
    hpct_launch_step_facts_free(&facts);
    free(text);
    return accepted_if(known);
}

#define LAYOUT "Job step layout:\n\t5 tasks, 2 nodes (node[0-1])\n\n"

/* As sattach --layout of Slurm 22.05 to 26.05 prints it. */
TEST(a_layout_names_the_node_of_each_task)
{
    static const parse_case cases[] = {
        {LAYOUT "\tNode 0 (node0), 3 task(s): 0 2 4 \n\tNode 1 (node1), 2 task(s): 1 3 \n", HPCT_OK,
         "node0 node1 node0 node1 node0", 5},
        {LAYOUT "\tNode 0 (gpu-1.site), 1 task(s): 0 \n", HPCT_OK, "gpu-1.site", 1},
        {LAYOUT "\tNode 0 (node0), 1 task(s): 0 \n", HPCT_ERR_USAGE, NULL, 2},
        {LAYOUT "\tNode 0 (node0), 2 task(s): 0 0 \n", HPCT_ERR_USAGE, NULL, 2},
        {LAYOUT "\tNode 0 (node0), 2 task(s): 0 2 \n", HPCT_ERR_USAGE, NULL, 2},
        {LAYOUT "\tNode 0 (node0), 2 task(s): 0 -1 \n", HPCT_ERR_USAGE, NULL, 2},
        {LAYOUT "\tNode 0 (), 1 task(s): 0 \n", HPCT_ERR_USAGE, NULL, 1},
        {"", HPCT_ERR_USAGE, NULL, 1},
    };
    RUN_CASES(parse_layout, cases);
}

#define JOB(id, gres) "JobId=" id " JobName=x JOB_GRES=gpu:6 " gres " Power=\n"
#define ON(nodes, gres) "Nodes=" nodes " CPU_IDs=0-1 Mem=0 GRES=" gres " "

static hpct_status divide_gpus(const parse_case *c, char *got, size_t size)
{
    return hpct_launch_gpus_per_node(c->with, "7", c->text, got, size);
}

TEST(gpus_of_a_job_are_those_of_each_node)
{
    static const parse_case cases[] = {
        {JOB("7", ON("n[0-2]", "gpu:2(IDX:0-1)")), HPCT_OK, "2", 0, "6"},
        {JOB("7", ON("n0", "gpu:2(IDX:0-1)") ON("n1", "gpu:2(IDX:1-2)")), HPCT_OK, "2", 0, "4"},
        {JOB("7", ON("n[0-1]", "nic:1,gpu:a100:2(IDX:0-1)")), HPCT_OK, "2", 0, "4"},
        {JOB("7", ON("n[0-1]", "gpu:a100:2(IDX:0-1),gpu:v100:1(IDX:2)")), HPCT_OK, "3", 0, "6"},
        {JOB("7", ON("n[0-1]", "gpu:a100:2(IDX:0-1),gpu:v100:1(IDX:2)")), HPCT_OK, "v100:1", 0,
         "v100:2"},
        {JOB("8", ON("n3", "gpu:1(IDX:0)")) JOB("7", ON("n0", "gpu:4(IDX:0-3)"))
             JOB("9", ON("n3", "gpu:1(IDX:0)")),
         HPCT_OK, "4", 0, "4"},
        {JOB("7", ON("n0", "gpu:2(IDX:0-1)") ON("n[1-2]", "gpu:1(IDX:0)")), HPCT_ERR_CONFIG,
         "SLURM_GPUS=4|--gpus-per-node", 0, "4"},
        {JOB("7", ON("n0", "gpu:2(IDX:0-1)") ON("n1", "")), HPCT_ERR_CONFIG, "--gpus-per-node", 0,
         "2"},
        {JOB("7", ON("n0", "gpu:1(IDX:0)") ON("n1", "gpu:2(IDX:0-1)") ON("n2", "gpu:1(IDX:0)")),
         HPCT_ERR_CONFIG, "--gpus-per-node", 0, "4"},
        {JOB("7", ON("n0", "gpu:a100:1(IDX:0),gpu:v100:1(IDX:1)")), HPCT_ERR_CONFIG,
         "--gpus-per-node", 0, "a100:1,v100:1"},
        {JOB("7", "Nodes=n0 Mem=0"), HPCT_ERR_CONFIG, "--gpus-per-node", 0, "1"},
        {"", HPCT_ERR_CONFIG, "--gpus-per-node", 0, "1"},
    };
    RUN_CASES(divide_gpus, cases);
}

static hpct_status parse_node(const parse_case *c, char *got, size_t size)
{
    hpct_launch_sinfo_line line;
    bool known = hpct_launch_sinfo_line_parse(c->text, &line);
    if (known)
        snprintf(got, size, "%s %s %s %d %s", line.name, line.state, line.address, line.port,
                 hpct_launch_sinfo_state_runs(line.state) ? "runs" : "out");
    return accepted_if(known);
}

TEST(a_node_runs_tasks_in_some_states)
{
    static const parse_case cases[] = {
        {"node0       alloc   10.0.0.1      6818    ", HPCT_OK, "node0 alloc 10.0.0.1 6818 runs"},
        {"node0 mix node0 6818", HPCT_OK, "node0 mix node0 6818 runs"},
        {"node0 drng node0 6818", HPCT_OK, "node0 drng node0 6818 runs"},
        {"node0 comp node0 6818", HPCT_OK, "node0 comp node0 6818 runs"},
        {"node0 alloc* node0 6818", HPCT_OK, "node0 alloc* node0 6818 out"},
        {"node0 down node0 6818", HPCT_OK, "node0 down node0 6818 out"},
        {"node0 down* node0 6818", HPCT_OK, "node0 down* node0 6818 out"},
        {"node0 fail node0 6818", HPCT_OK, "node0 fail node0 6818 out"},
        {"node0 idle~ node0 6818", HPCT_OK, "node0 idle~ node0 6818 out"},
        {"node0 alloc node0", HPCT_ERR_USAGE},
        {"node0 alloc node0 0", HPCT_ERR_USAGE},
        {"node0 alloc node0 70000", HPCT_ERR_USAGE},
        {"node0 alloc node0 x", HPCT_ERR_USAGE},
        {"node0 alloc node0 6818 more", HPCT_ERR_USAGE},
        {"", HPCT_ERR_USAGE},
    };
    RUN_CASES(parse_node, cases);
}

/* The options of srun that a text has, divided at spaces. */
static void split(char *text, char **words)
{
    int count = 0;
    char *rest = NULL;
    for (char *word = strtok_r(text, " ", &rest); word != NULL && count < 15;
         word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    words[count] = NULL;
}

static hpct_status parse_options(const parse_case *c, char *got, size_t size)
{
    char text[512];
    char *words[16];
    snprintf(text, sizeof text, "%s", c->text);
    split(text, words);
    hpct_status status = hpct_launch_check_options(words);
    snprintf(got, size, "%s%s%s", hpct_launch_chooses_nodes(words) ? "chosen" : "any",
             hpct_launch_is_arbitrary(words) ? ", arbitrary" : "",
             hpct_launch_goes_on(words) ? ", goes on" : "");
    return status;
}

TEST(options_that_forbid_a_restart_are_refused)
{
    static const parse_case cases[] = {
        {"", HPCT_OK, "any"},
        {"-N4 -n 8 --hpc-train --cpus-per-task=2 -K --kill-on-bad-exit=1 -K1", HPCT_OK, "any"},
        {"-N2 --nodelist=node[0-1]", HPCT_OK, "chosen"},
        {"-w node0", HPCT_OK, "chosen"},
        {"-xnode0", HPCT_OK, "chosen"},
        {"--exclude node0", HPCT_OK, "chosen"},
        {"--no-kill", HPCT_ERR_USAGE, "--no-kill|goes on without a node"},
        {"--no-kill -K0", HPCT_OK, "any, goes on"},
        {"-F nodes", HPCT_ERR_USAGE, "-F|--nodelist"},
        {"--gpus=4", HPCT_ERR_USAGE, "--gpus=4|--gpus-per-node"},
        {"-G4", HPCT_ERR_USAGE, "-G4"},
        {"--gpus-per-node=4 --gpus-per-task 1", HPCT_OK, "any"},
        {"-k", HPCT_ERR_USAGE, "-k"},
        {"-K0", HPCT_OK, "any, goes on"},
        {"-K1 --kill-on-bad-exit=0", HPCT_OK, "any, goes on"},
        {"--kill-on-bad-exit 0", HPCT_OK, "any, goes on"},
        {"--kill-on-bad-exit=0 -K -K1", HPCT_OK, "any"},
        {"-r 1", HPCT_ERR_USAGE, "-r|--nodelist"},
        {"--relative=1", HPCT_ERR_USAGE, "--relative=1"},
        {"--het-group=0,1", HPCT_ERR_USAGE, "--het-group=0,1|components"},
        {"--pty", HPCT_ERR_USAGE, "--pty"},
        {"--jobid=4", HPCT_ERR_USAGE, "--jobid=4"},
    };
    RUN_CASES(parse_options, cases);
}

/* `number` nodes are left; 0: the first run. */
static hpct_status make_command(const parse_case *c, char *got, size_t size)
{
    char text[512];
    char *words[16], *const program[] = {"hpc-train", "fit", "--no-kill", NULL};
    snprintf(text, sizeof text, "%s", c->text);
    split(text, words);
    char **command = hpct_launch_command(words, program, c->with);
    for (char **word = command; *word != NULL; word++)
        snprintf(got + strlen(got), size - strlen(got), "%s%s", word == command ? "" : " ", *word);
    free(command[0]);
    free(command);
    return HPCT_OK;
}

#define PROGRAM " hpc-train fit --no-kill"
#define LEFT(nodes, tasks) "--overlap --open-mode=append --nodes=" nodes " --ntasks=" tasks

TEST(later_runs_have_the_nodes_and_tasks_that_are_left)
{
    static const hpct_launch_place even = {.nodes = 3, .tasks = 6, .per_node = 2, .list = "a,b,c"},
                                   uneven = {.nodes = 3, .tasks = 5, .list = "a,b,c"},
                                   by_task = {
                                       .nodes = 2, .tasks = 3, .list = "b,a,b", .by_task = true};
    static const parse_case cases[] = {
        {"-N4 --hpc-train", HPCT_OK, "srun --kill-on-bad-exit=1 -N4 --hpc-train" PROGRAM},
        {"-N4 --hpc-train", HPCT_OK,
         "srun --kill-on-bad-exit=1 -N4 --hpc-train " LEFT("3", "6") " --ntasks-per-node=2 "
                                                                     "--nodelist=a,b,c" PROGRAM,
         0, &even},
        {"-n7", HPCT_OK,
         "srun --kill-on-bad-exit=1 -n7 " LEFT("3", "5") " --nodelist=a,b,c" PROGRAM, 0, &uneven},
        {"-m arbitrary", HPCT_OK,
         "srun --kill-on-bad-exit=1 -m arbitrary --overlap --open-mode=append --ntasks=3 "
         "--distribution=arbitrary --nodelist=b,a,b" PROGRAM,
         0, &by_task},
        {"--ntasks-per-gpu=1", HPCT_OK,
         "srun --kill-on-bad-exit=1 --ntasks-per-gpu=1 " LEFT("3", "6") " --nodelist=a,b,c" PROGRAM,
         0, &even},
        {"--exclusive -N4", HPCT_OK, "srun --kill-on-bad-exit=1 --exclusive -N4" PROGRAM},
        {"--exclusive -N4", HPCT_OK,
         "srun --kill-on-bad-exit=1 --exact -N4 " LEFT("3", "5") " --nodelist=a,b,c" PROGRAM, 0,
         &uneven},
        {"--export=PATH,HOME", HPCT_OK,
         "srun --kill-on-bad-exit=1 --export=PATH,HOME "
         "--export=PATH,HOME,HPC_TRAIN_RESTART,HPC_TRAIN_LAUNCH,HPC_TRAIN_LAUNCH_TASKS" PROGRAM},
        {"--export NONE", HPCT_OK,
         "srun --kill-on-bad-exit=1 --export NONE "
         "--export=HPC_TRAIN_RESTART,HPC_TRAIN_LAUNCH,HPC_TRAIN_LAUNCH_TASKS" PROGRAM},
        {"--export=ALL,A=1", HPCT_OK, "srun --kill-on-bad-exit=1 --export=ALL,A=1" PROGRAM},
    };
    unsetenv("SLURM_EXPORT_ENV");
    RUN_CASES(make_command, cases);
    setenv("SLURM_EXPORT_ENV", "NONE", 1); /* of sbatch --export=NONE */
    static const parse_case none[] = {
        {"", HPCT_OK,
         "srun --kill-on-bad-exit=1 "
         "--export=HPC_TRAIN_RESTART,HPC_TRAIN_LAUNCH,HPC_TRAIN_LAUNCH_TASKS" PROGRAM}};
    RUN_CASES(make_command, none);
    setenv("SRUN_EXPORT_ENV", "ALL", 1); /* srun prefers it */
    static const parse_case all[] = {{"", HPCT_OK, "srun --kill-on-bad-exit=1" PROGRAM}};
    RUN_CASES(make_command, all);
    setenv("SLURM_EXPORT_ENV", "ALL", 1);
    setenv("SRUN_EXPORT_ENV", "NONE", 1);
    RUN_CASES(make_command, none);
    static const parse_case option[] = {
        {"--export=ALL", HPCT_OK, "srun --kill-on-bad-exit=1 --export=ALL" PROGRAM}};
    RUN_CASES(make_command, option);
    unsetenv("SLURM_EXPORT_ENV");
    unsetenv("SRUN_EXPORT_ENV");
}

static hpct_status parse_with_variable(const parse_case *c, char *got, size_t size)
{
    char *variable = strdup(c->with), *equals = strchr(variable, '=');
    *equals = '\0';
    setenv(variable, equals + 1, 1);
    hpct_status status = parse_options(c, got, size);
    unsetenv(variable);
    free(variable);
    return status;
}

/* As srun has it: an option wins over its variable. */
TEST(variables_are_options)
{
    static const parse_case cases[] = {
        {"", HPCT_OK, "any, goes on", 0, "SLURM_KILL_BAD_EXIT=0"},
        {"", HPCT_OK, "any", 0, "SLURM_KILL_BAD_EXIT=1"},
        {"-K1", HPCT_OK, "any", 0, "SLURM_KILL_BAD_EXIT=0"},
        {"", HPCT_OK, "chosen, arbitrary", 0, "SLURM_HOSTFILE=hosts"},
        {"-w a", HPCT_OK, "chosen", 0, "SLURM_HOSTFILE=hosts"},
        {"", HPCT_OK, "any, arbitrary", 0, "SLURM_DISTRIBUTION=arbitrary"},
        {"-mblock", HPCT_OK, "any", 0, "SLURM_DISTRIBUTION=arbitrary"},
        {"--distribution=Arbitrary -w a,b,a", HPCT_OK, "chosen, arbitrary", 0,
         "SLURM_DISTRIBUTION=block"},
        {"-m hostfile,NoPack", HPCT_OK, "any, arbitrary", 0, "SLURM_DISTRIBUTION=plane"},
    };
    RUN_CASES(parse_with_variable, cases);
}

static void write_script(const char *folder, const char *name, const char *line)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\ncat <<'END'\n%s\nEND\n", line);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0755), 0);
}

/* Slurm of three nodes: the first one's slurmd listens, the others' addresses are not found in
 * time, and of the last one nobody is asked for. */
TEST(a_name_service_that_hangs_holds_up_no_restart)
{
    char folder[] = "/tmp/hpc-train-test.XXXXXX", path[4096], lines[256], *before = getenv("PATH");
    int listener, port = 0;
    hpct_launch_job_nodes nodes;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(hpct_net_link_listen(&listener, &port, "here", 1), HPCT_OK);
    snprintf(lines, sizeof lines,
             "node0 idle 127.0.0.1 %d\nnode1 idle hung %d\nnode2 idle hung-too %d", port, port,
             port);
    write_script(folder, "squeue", "7 node[0-2]");
    write_script(folder, "sinfo", lines);
    snprintf(path, sizeof path, "%s:%s", folder, before != NULL ? before : "");
    setenv("PATH", path, 1);
    open_names(false);
    assert_int_equal(hpct_launch_job_nodes_open(&nodes, "node[0-2]"), HPCT_OK);
    assert_int_equal(hpct_launch_job_nodes_look(&nodes, "7"), HPCT_OK);
    for (int i = 0; i < 3; i++)
        assert_true(nodes.nodes[i].is_there);
    assert_int_equal(names_so_far(), 1);
    open_names(true);
    hpct_launch_job_nodes_close(&nodes);
    close(listener);
    snprintf(path, sizeof path, "rm -r %s", folder);
    assert_int_equal(system(path), 0);
}

/* hpc-train-gpus, as the plugin runs it, on the machines of tests/fixtures/gpu: what it answers is
 * compared with the best that there is, found by trying all, from the descriptions in words. */
#include "spank/gpu/assign.h"
#include "spank/gpu/gres.h"
#include "tests/unit/cases.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_CPUS 512
#define MAX_NODES 8
#define MAX_GPUS 16
#define MAX_TASKS 40

typedef struct machine {
    char path[512], xml[512];
    int nodes, node_name[MAX_NODES], package[MAX_NODES], node_of_cpu[MAX_CPUS], cpus;
    char cpu_list[MAX_NODES][256];
    int table[MAX_NODES][MAX_NODES], rows;
    int gpus, gpu_node[MAX_GPUS]; /* the node's place, not its name */
    char uuid[MAX_GPUS][64];
    int slices, slice_gpu[MAX_GPUS];
    char slice_uuid[MAX_GPUS][64];
} machine;

static const char *const names[] = {
    "workstation1", "workstation2", "interleaved2", "ac922", "quad_socket",
    "dgx1",         "dgx_a100",     "hgx_h100",     "dgx2",  "mig_a100",
};
enum { NUM_MACHINES = sizeof names / sizeof *names };

static const char *variable(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value != NULL ? value : otherwise;
}

static void each_number(const char *list, int *array, int value)
{
    for (const char *p = list; *p != '\0';) {
        char *end;
        long low = strtol(p, &end, 10), high = low;
        if (*end == '-')
            high = strtol(end + 1, &end, 10);
        for (; low <= high; low++)
            array[low] = value;
        p = *end == ',' ? end + 1 : end;
    }
}

static int place_of_node(const machine *m, int name)
{
    int i = 0;
    while (i < m->nodes && m->node_name[i] != name)
        i++;
    return i;
}

static void read_machine(const char *name, machine *m)
{
    char line[512];
    int number, node;
    memset(m, 0, sizeof *m);
    memset(m->node_of_cpu, -1, sizeof m->node_of_cpu);
    snprintf(m->path, sizeof m->path, "%s/tests/fixtures/gpu/%s", variable("top_srcdir", "."),
             name);
    snprintf(m->xml, sizeof m->xml, "%s/tests/fixtures/gpu/%s.xml", variable("top_srcdir", "."),
             name);
    FILE *file = fopen(m->path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        int i = m->nodes;
        if (sscanf(line, "node %d package %d cpus %255s", &m->node_name[i], &m->package[i],
                   m->cpu_list[i]) == 3) {
            each_number(m->cpu_list[i], m->node_of_cpu, i);
            m->nodes++;
        } else if (strncmp(line, "distance ", 9) == 0) {
            char *p = line + 9;
            for (int to = 0; to < m->nodes; to++)
                m->table[m->rows][to] = (int) strtol(p, &p, 10);
            m->rows++;
        } else if (sscanf(line, "gpu %d pci %*s node %d uuid %63s", &number, &node,
                          m->uuid[m->gpus]) == 3) {
            m->gpu_node[m->gpus++] = place_of_node(m, node);
        } else if (sscanf(line, "mig %d uuid %63s", &m->slice_gpu[m->slices],
                          m->slice_uuid[m->slices]) == 2) {
            m->slices++;
        }
    }
    fclose(file);
    while (m->node_of_cpu[m->cpus] >= 0)
        m->cpus++;
    assert_true(m->gpus > 0 && m->cpus > 0 && (m->rows == 0 || m->rows == m->nodes));
}

/* From all CPUs of `list`, on average, to GPU number `gpu`. */
static double described_distance(const machine *m, const char *list, int gpu)
{
    int on[MAX_CPUS] = {0}, to = m->gpu_node[gpu], count = 0;
    double sum = 0;
    each_number(list, on, 1);
    for (int cpu = 0; cpu < m->cpus; cpu++) {
        int from = m->node_of_cpu[cpu];
        if (!on[cpu])
            continue;
        count++;
        if (from == to)
            sum += 10;
        else if (m->rows > 0)
            sum += m->table[from][to];
        else
            sum += m->package[from] == m->package[to] ? 15 : 21;
    }
    return sum / count;
}

/* ---- the best there is, by trying all ---- */

typedef struct problem {
    int tasks, gpus;
    double distance[MAX_TASKS][MAX_GPUS];
} problem;

/* Least sum over all ways in which each GPU has floor(tasks/gpus) to ceil(tasks/gpus) tasks: over
 * all vectors of loads, task after task. */
static double best_sum(const problem *p)
{
    int most = (p->tasks + p->gpus - 1) / p->gpus, least = p->tasks / p->gpus;
    size_t states = 1;
    for (int g = 0; g < p->gpus; g++)
        states *= (size_t) most + 1;
    double *best = malloc(states * sizeof *best), answer = -1;
    assert_non_null(best);
    for (size_t s = 0; s < states; s++)
        best[s] = -1;
    best[0] = 0;
    for (size_t s = 0; s < states; s++) {
        size_t digit = 1, rest = s;
        int task = 0, lowest = most;
        if (best[s] < 0)
            continue;
        for (int g = 0; g < p->gpus; g++, rest /= (size_t) most + 1) {
            int load = (int) (rest % ((size_t) most + 1));
            task += load;
            lowest = load < lowest ? load : lowest;
        }
        if (task == p->tasks) {
            if (lowest >= least && (answer < 0 || best[s] < answer))
                answer = best[s];
            continue;
        }
        rest = s;
        for (int g = 0; g < p->gpus; g++) {
            if (rest % ((size_t) most + 1) < (size_t) most) {
                double sum = best[s] + p->distance[task][g];
                if (best[s + digit] < 0 || sum < best[s + digit])
                    best[s + digit] = sum;
            }
            rest /= (size_t) most + 1;
            digit *= (size_t) most + 1;
        }
    }
    free(best);
    return answer;
}

static void check_choice(const problem *p, const int *chosen, double slack, const char *what)
{
    int load[MAX_GPUS] = {0};
    double sum = 0, best = best_sum(p);
    for (int task = 0; task < p->tasks; task++) {
        load[chosen[task]]++;
        sum += p->distance[task][chosen[task]];
    }
    for (int gpu = 0; gpu < p->gpus; gpu++) {
        if (load[gpu] < p->tasks / p->gpus || load[gpu] > (p->tasks + p->gpus - 1) / p->gpus)
            fail_msg("%s: GPU %d has %d of %d tasks", what, gpu, load[gpu], p->tasks);
    }
    if (sum > best + slack || sum < best - slack)
        fail_msg("%s: the distances sum to %g, and could to %g", what, sum, best);
}

/* ---- running it ---- */

/* Feeds the helper; its output, and its exit status. */
static int run_helper(const machine *m, const char *settings, const char *request, char *answer,
                      size_t size)
{
    char folder[] = "/tmp/hpc-train-gpu.XXXXXX", path[64], command[4096];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/request", folder);
    FILE *file = fopen(path, "w");
    fputs(request, file);
    fclose(file);
    snprintf(
        command, sizeof command,
        "HWLOC_XMLFILE='%s' FAKE_NVML='%s' LD_LIBRARY_PATH='%s/tests/gpu_without/libraries/.libs' "
        "SLURM_CONF=/nonexistent/slurm.conf %s '%s/hpc-train-gpus' <%s",
        m->xml, m->path, variable("top_builddir", "."), settings, variable("top_builddir", "."),
        path);
    file = popen(command, "r");
    assert_non_null(file);
    size_t got = fread(answer, 1, size - 1, file);
    answer[got] = '\0';
    int state = pclose(file);
    unlink(path);
    rmdir(folder);
    return WEXITSTATUS(state);
}

static void read_places(const char *answer, int tasks, int *places)
{
    char *p = (char *) (uintptr_t) answer;
    for (int task = 0; task < tasks; task++) {
        char *end;
        places[task] = (int) strtol(p, &end, 10);
        if (end == p || *end != '\n')
            fail_msg("no line for task %d in '%s'", task, answer);
        p = end + 1;
    }
    assert_string_equal(p, "");
}

/* One request: the tasks' CPUs; all see GPUs 0 to m->gpus - 1, or the slices. */
static void try(const machine *m, const char *const *lists, int tasks, bool slices)
{
    char request[MAX_TASKS * 1024] = "", visible[2048] = "", answer[4096], what[256];
    int places[MAX_TASKS];
    problem p = {.tasks = tasks, .gpus = slices ? m->slices : m->gpus};
    for (int gpu = 0; gpu < p.gpus; gpu++) {
        size_t used = strlen(visible);
        if (slices)
            snprintf(visible + used, sizeof visible - used, "%s%s", gpu == 0 ? "" : ",",
                     m->slice_uuid[gpu]);
        else
            snprintf(visible + used, sizeof visible - used, "%s%d", gpu == 0 ? "" : ",", gpu);
    }
    for (int task = 0; task < tasks; task++) {
        size_t used = strlen(request);
        snprintf(request + used, sizeof request - used, "%s %s\n", lists[task], visible);
        for (int gpu = 0; gpu < p.gpus; gpu++)
            p.distance[task][gpu] =
                described_distance(m, lists[task], slices ? m->slice_gpu[gpu] : gpu);
    }
    int status = run_helper(m, "", request, answer, sizeof answer);
    if (status != 0)
        fail_msg("%s: status %d: %s", m->path, status, answer);
    read_places(answer, tasks, places);
    snprintf(what, sizeof what, "%s, %d tasks", strrchr(m->path, '/') + 1, tasks);
    check_choice(&p, places, 0.02 * tasks, what);
}

TEST(gpus_are_assigned_at_least_distance)
{
    for (int i = 0; i < NUM_MACHINES; i++) {
        machine m;
        read_machine(names[i], &m);
        bool slices = m.slices > 0;
        int gpus = slices ? m.slices : m.gpus;
        /* more tasks than GPUs only where all ways can be tried */
        const int counts[] = {
            1, 2, gpus - 1, gpus, gpus <= 10 ? gpus + 2 : 3, gpus <= 4 ? 3 * gpus : 5};
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            const char *forward[MAX_TASKS], *last[MAX_TASKS], *mixed[MAX_TASKS];
            char two[MAX_NODES][600];
            for (int node = 0; node < m.nodes; node++) /* over the border of two nodes */
                snprintf(two[node], sizeof two[node], "%s,%s", m.cpu_list[node],
                         m.cpu_list[(node + 1) % m.nodes]);
            for (int task = 0; task < counts[c]; task++) {
                forward[task] = m.cpu_list[task * m.nodes / counts[c]]; /* block by block */
                last[task] = m.cpu_list[m.nodes - 1];                   /* all in one place */
                mixed[task] =
                    task % 3 == 1 ? two[task * 5 % m.nodes] : m.cpu_list[(7 * task + 3) % m.nodes];
            }
            if (counts[c] < 1)
                continue;
            try(&m, forward, counts[c], slices);
            try(&m, last, counts[c], slices);
            try(&m, mixed, counts[c], slices);
        }
    }
}

typedef struct place {
    const char *machine, *settings;
} place;
#define ON(machine, settings) (&(const place){machine, settings})

/* Text: the request; what the helper answers or says. */
static hpct_status ask_helper(const parse_case *c, char *got, size_t size)
{
    const place *p = c->with;
    machine m;
    read_machine(p->machine, &m);
    int status = run_helper(&m, p->settings, c->text, got, size);
    return status == 0 ? HPCT_OK : hpct_fail(HPCT_ERR_CONFIG, "%s", got);
}

TEST(nearest_gpus_are_given_out)
{
    const parse_case cases[] = {
        /* pairs of GPUs on nodes 3, 1, 7 and 5; the other four nodes get what their socket has left
         */
        {"0-15 0,1,2,3,4,5,6,7\n16-31 0,1,2,3,4,5,6,7\n32-47 0,1,2,3,4,5,6,7\n"
         "48-63 0,1,2,3,4,5,6,7\n64-79 0,1,2,3,4,5,6,7\n80-95 0,1,2,3,4,5,6,7\n"
         "96-111 0,1,2,3,4,5,6,7\n112-127 0,1,2,3,4,5,6,7\n",
         HPCT_OK, "0\n2\n3\n1\n4\n6\n7\n5\n", 0, ON("dgx_a100", "")},
        /* the sockets without GPUs: the neighbour's, not the opposite one's */
        {"32-47 0,1,2,3\n48-63 0,1,2,3\n", HPCT_OK, "2\n1\n", 0, ON("quad_socket", "")},
        /* one per socket, the other way round than by rank */
        {"20-39 0,4\n0-19 0,4\n", HPCT_OK, "1\n0\n", 0, ON("dgx1", "")},
        {"1,3,5 0,1\n", HPCT_OK, "1\n", 0, ON("interleaved2", "")},
        /* equals are given out in turn, and again from the first */
        {"0-3 0,1\n4-7 0,1\n8-11 0,1\n", HPCT_OK, "0\n1\n0\n", 0, ON("workstation2", "")},
        {"0-3 0\n4-7 0\n", HPCT_OK, "0\n0\n", 0, ON("workstation1", "")},
        /* UUIDs, whole and cut short, in an order of their own */
        {"88-95 GPU-00000004-0000-4000-8000-000000000003,GPU-00000004-0000-4000-8000-000000000000\n"
         "0-7 GPU-00000004-0000-4000-8000-000000000003,GPU-00000004-0000-4000-8000-000000000000\n",
         HPCT_OK, "0\n1\n", 0, ON("ac922", "")},
        {"0 GPU-00000003-0000-4000-8000-000000000001,0\n", HPCT_OK, "1\n", 0,
         ON("interleaved2", "")},
        /* ConstrainDevices: of eight GPUs the process sees 2 and 5, and calls them 0 and 1 */
        {"20-39 0,1\n", HPCT_OK, "1\n", 0, ON("dgx1", "FAKE_NVML_VISIBLE=2,5")},
        {"0-9 0,1\n20-29 0,1\n", HPCT_OK, "0\n1\n", 0, ON("dgx1", "FAKE_NVML_VISIBLE=4,2")},
        /* slices of the second GPU for those on its socket, and the older way to name one */
        {"24-27 "
         "MIG-0000000a-0000-5000-8000-000000000006,MIG-0000000a-0001-5000-8000-000000000002\n",
         HPCT_OK, "1\n", 0, ON("mig_a100", "")},
        {"24-27 MIG-GPU-0000000a-0000-4000-8000-000000000000/7/0,"
         "MIG-GPU-0000000a-0000-4000-8000-000000000001/2/0\n",
         HPCT_OK, "1\n", 0, ON("mig_a100", "")},
        /* --gpu-bind=mask_gpu: tasks with lists of their own, one GPU in both */
        {"0-19 0,4\n0-19 0,5\n", HPCT_OK, "0\n1\n", 0, ON("dgx1", "")},
        {"0-19 0,4\n20-39 0,5\n", HPCT_OK, "0\n1\n", 0, ON("dgx1", "")},
    };
    RUN_CASES(ask_helper, cases);
}

TEST(unknown_gpus_and_requests_are_rejected)
{
    const parse_case cases[] = {
        {"0 0,1\n", HPCT_ERR_CONFIG, "NVML does not start: Driver Not Loaded", 0,
         ON("dgx1", "FAKE_NVML=/nonexistent")},
        {"0 0,1\n", HPCT_ERR_CONFIG, "there is no NVML", 0,
         ON("dgx1", "LD_LIBRARY_PATH=/nonexistent")},
        {"0 0,99\n", HPCT_ERR_CONFIG, "NVML knows no GPU '99'", 0, ON("dgx1", "")},
        {"0 0,GPU-00000006\n", HPCT_ERR_CONFIG, "NVML knows no GPU 'GPU-00000006'", 0,
         ON("dgx1", "")}, /* of all eight */
        {"0 0,MIG-1\n", HPCT_ERR_CONFIG, "NVML knows no GPU 'MIG-1'", 0, ON("dgx1", "")},
        {"0 0,x\n", HPCT_ERR_CONFIG, "NVML knows no GPU 'x'", 0, ON("dgx1", "")},
        {"0 0,1\n", HPCT_ERR_CONFIG, "hwloc knows no PCI device 0000:17:00.0", 0,
         ON("mig_a100", "HWLOC_XMLFILE=$top_srcdir/tests/fixtures/gpu/dgx1.xml")},
        {"", HPCT_ERR_CONFIG, "no task", 0, ON("dgx1", "")},
        {"0\n", HPCT_ERR_CONFIG, "line 1", 0, ON("dgx1", "")},
        {"0 0\n0-99999 1\n", HPCT_ERR_CONFIG, "line 2", 0, ON("dgx1", "")},
    };
    RUN_CASES(ask_helper, cases);
}

/* ---- the assignment alone, on random distances and permissions ---- */

TEST(random_assignments_are_optimal)
{
    unsigned seed = 1;
    int distance[MAX_TASKS * MAX_GPUS], chosen[MAX_TASKS];
    for (int round = 0; round < 2000; round++) {
        problem p = {.gpus = 1 + round % 6};
        p.tasks = 1 + (round / 6) % (p.gpus < 5 ? 12 : 8);
        for (int task = 0; task < p.tasks; task++) {
            for (int gpu = 0; gpu < p.gpus; gpu++) {
                seed = seed * 1103515245 + 12345;
                distance[task * p.gpus + gpu] = (int) (seed >> 16 & 0x7fff) % (1 + round % 40);
                p.distance[task][gpu] = distance[task * p.gpus + gpu];
            }
        }
        assert_int_equal(hpct_gpus_assign(p.tasks, p.gpus, distance, chosen), HPCT_OK);
        check_choice(&p, chosen, 0.001, "random distances");
    }
}

TEST(tasks_get_only_visible_gpus)
{
    const int distance[] = {0, 9, -1, 0, 0, -1, 5, 5, 7}; /* three tasks, three GPUs */
    const int none[] = {1, -1, 1, -1};
    int chosen[3];
    assert_int_equal(hpct_gpus_assign(3, 3, distance, chosen), HPCT_OK);
    assert_int_equal(chosen[0], 0);
    assert_int_equal(chosen[1], 1);
    assert_int_equal(chosen[2], 2); /* the only one left, though the others are nearer */
    assert_int_equal(hpct_gpus_assign(2, 2, none, chosen), HPCT_OK);
    const int locked[] = {1, 1, -1, -1};
    assert_int_equal(hpct_gpus_assign(2, 2, locked, chosen), HPCT_ERR_CONFIG);
    assert_int_equal(hpct_gpus_assign(0, 2, locked, chosen), HPCT_ERR_USAGE);
    /* the largest that is allowed: all on one, far away */
    int *large = malloc(sizeof *large * 1024 * 128), *all = malloc(sizeof *all * 1024);
    assert_true(large != NULL && all != NULL);
    for (int i = 0; i < 1024 * 128; i++)
        large[i] = i % 128 == 77 ? HPCT_GPUS_MAX_DISTANCE : -1;
    assert_int_equal(hpct_gpus_assign(1024, 128, large, all), HPCT_OK);
    assert_int_equal(all[0], 77);
    assert_int_equal(all[1023], 77);
    free(large);
    free(all);
}

/* ---- gres.conf ---- */

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static const char *cores_of(const hpct_gpus_gres *gres, const char *name)
{
    const char *cores = NULL;
    return hpct_gpus_gres_locate(gres, name, &cores) == HPCT_OK ? cores : "?";
}

/* With: the file that is written. */
static hpct_status read_gres(const parse_case *c, char *got, size_t size)
{
    hpct_gpus_gres gres;
    write_text(c->with, c->text);
    return hpct_gpus_gres_read(c->with, "n2", &gres);
}

TEST(gres_conf_is_parsed)
{
    char folder[] = "/tmp/hpc-train-gres.XXXXXX", path[64], text[1024];
    hpct_gpus_gres gres;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/gres.conf", folder);
    snprintf(text, sizeof text,
             "# GPUs\nAutoDetect=off\nNodeName=login Name=gpu File=/dev/x0 Cores=9\n"
             "nodename=n[1-3] NAME=GPU Type=a100 File=%s/d[2-3],%s/d0 \\\n cores=0-7,16 # near\n"
             "Name=gpu file=%s/d1 CPUs=8-15\nName=nic File=%s/n0\n",
             folder, folder, folder, folder);
    write_text(path, text);
    assert_int_equal(hpct_gpus_gres_read(path, "n2", &gres), HPCT_OK);
    assert_int_equal(gres.count, 4);
    assert_string_equal(cores_of(&gres, "0"), "0-7,16");
    assert_string_equal(cores_of(&gres, "1"), "8-15");
    assert_string_equal(cores_of(&gres, "3"), "0-7,16");
    assert_string_equal(cores_of(&gres, "4"), "?");
    assert_string_equal(cores_of(&gres, "GPU-1"), "?");
    hpct_gpus_gres_free(&gres);
    assert_int_equal(hpct_gpus_gres_read(path, "n4", &gres), HPCT_OK); /* the line for all nodes */
    assert_int_equal(gres.count, 1);
    hpct_gpus_gres_free(&gres);
    write_text(path, "Name=gpu Count=2\n");
    assert_int_equal(hpct_gpus_gres_read(path, "n2", &gres), HPCT_OK);
    assert_string_equal(cores_of(&gres, "1"), "?"); /* without Cores= */
    assert_non_null(strstr(hpct_last_error(), "no Cores="));
    hpct_gpus_gres_free(&gres);
    const parse_case wrong[] = {
        {"Name=gpu Count=x\n", HPCT_ERR_CONFIG, NULL, 0, path},
        {"Name=gpu File=/dev/nvidia[0-\n", HPCT_ERR_CONFIG, NULL, 0, path},
        {"Name=nic Count=1\n", HPCT_ERR_CONFIG, NULL, 0, path},
    };
    RUN_CASES(read_gres, wrong);
    unlink(path);
    assert_int_equal(hpct_gpus_gres_read(path, "n2", &gres), HPCT_ERR_NO_INPUT);
    rmdir(folder);
}

/* Devices that a process may not open are not counted: asked as a user who may not. */
TEST(devices_without_access_are_not_numbered)
{
    char folder[] = "/tmp/hpc-train-gres.XXXXXX", path[4][64], conf[64], text[512];
    if (geteuid() != 0)
        skip();
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chmod(folder, 0755), 0);
    for (int i = 0; i < 4; i++) {
        snprintf(path[i], sizeof path[i], "%s/d%d", folder, i);
        write_text(path[i], "");
        assert_int_equal(chmod(path[i], i == 1 || i == 3 ? 0666 : 0600), 0);
    }
    snprintf(conf, sizeof conf, "%s/gres.conf", folder);
    snprintf(text, sizeof text,
             "Name=gpu File=%s/d[0-1] Cores=0\nName=gpu File=%s/d[2-3] Cores=1\n", folder, folder);
    write_text(conf, text);
    assert_int_equal(chmod(conf, 0644), 0);
    pid_t child = fork();
    if (child == 0) {
        hpct_gpus_gres gres;
        if (setgid(65534) != 0 || setuid(65534) != 0 ||
            hpct_gpus_gres_read(conf, NULL, &gres) != HPCT_OK)
            _exit(1);
        bool right = strcmp(cores_of(&gres, "0"), "0") == 0 &&
                     strcmp(cores_of(&gres, "1"), "1") == 0 &&
                     strcmp(cores_of(&gres, "2"), "?") == 0;
        hpct_gpus_gres_free(&gres);
        _exit(right ? 0 : 2);
    }
    int ended;
    assert_int_equal(waitpid(child, &ended, 0), child);
    for (int i = 0; i < 4; i++)
        unlink(path[i]);
    unlink(conf);
    rmdir(folder);
    assert_int_equal(ended, 0);
}

/* Without NVML the helper reads gres.conf beside slurm.conf; cores are counted by the machine. */
TEST(gres_conf_replaces_nvml)
{
    char folder[] = "/tmp/hpc-train-gres.XXXXXX", path[64], settings[512], answer[4096];
    machine m;
    read_machine("interleaved2", &m); /* cores 0 to 7 are CPUs 0, 2, ...; 8 to 15 are 1, 3, ... */
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/gres.conf", folder);
    write_text(path, "Name=gpu File=/nonexistent/g0 Cores=8-15\nName=gpu File=/nonexistent/g1 "
                     "Cores=0-7\n");
    snprintf(settings, sizeof settings, "LD_LIBRARY_PATH=/nonexistent SLURM_CONF=%s/slurm.conf",
             folder);
    assert_int_equal(run_helper(&m, settings, "0 0,1\n1 0,1\n", answer, sizeof answer), 0);
    assert_string_equal(answer, "1\n0\n");
    write_text(path, "Name=gpu File=/nonexistent/g[0-1] Cores=900\n");
    assert_int_equal(run_helper(&m, settings, "0 0,1\n", answer, sizeof answer), HPCT_ERR_CONFIG);
    assert_non_null(strstr(answer, "has none of them"));
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    unsetenv("HWLOC_COMPONENTS"); /* with it, hwloc does not look at HWLOC_XMLFILE */
    return unit_run(NULL, NULL);
}

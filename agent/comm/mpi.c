/* The communicator over MPI (Open MPI 4.1 or later); only the files mpi* include mpi.h.
 * Works on a duplicate of MPI_COMM_WORLD with MPI_ERRORS_RETURN, so that a lost peer does not end
 * the process before the watch has named it. */
#include "agent/comm/fabric.h"
#include "agent/comm/mpi_comm.h"
#include "base/progress.h"
#include "base/status.h"

#include <dlfcn.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* MPI counts are int; progress is counted per chunk */
#define MAX_CHUNK ((size_t) 1 << 24)

#define WAY_OUT "take srun --hpc-train, or srun --mpi=pmix with an Open MPI built for it, or mpirun"

hpct_status hpct_mpi_check(int code, const char *what)
{
    if (code == MPI_SUCCESS)
        return HPCT_OK;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    return hpct_fail(HPCT_ERR_PEER, "%s failed, probably because another rank was lost: %s", what,
                     text);
}

static hpct_status allreduce_sum(hpct_comm *comm, float *data, size_t count)
{
    const mpi_comm *mpi = (const mpi_comm *) comm;
    hpct_waits before = hpct_enter_wait(HPCT_WAITS_FOR_RANKS);
    int code = MPI_SUCCESS;
    while (count > 0 && code == MPI_SUCCESS) {
        size_t chunk = count < MAX_CHUNK ? count : MAX_CHUNK;
        hpct_count_progress();
        code = MPI_Allreduce(MPI_IN_PLACE, data, (int) chunk, MPI_FLOAT, MPI_SUM, mpi->group);
        data += chunk;
        count -= chunk;
    }
    hpct_enter_wait(before);
    return hpct_mpi_check(code, "MPI_Allreduce");
}

static hpct_status broadcast(hpct_comm *comm, void *data, size_t bytes, int root)
{
    const mpi_comm *mpi = (const mpi_comm *) comm;
    hpct_waits before = hpct_enter_wait(HPCT_WAITS_FOR_RANKS);
    int code = MPI_SUCCESS;
    for (char *next = data; bytes > 0 && code == MPI_SUCCESS;) {
        size_t chunk = bytes < MAX_CHUNK ? bytes : MAX_CHUNK;
        hpct_count_progress();
        code = MPI_Bcast(next, (int) chunk, MPI_BYTE, root, mpi->group);
        next += chunk;
        bytes -= chunk;
    }
    hpct_enter_wait(before);
    return hpct_mpi_check(code, "MPI_Bcast");
}

static hpct_status allgather(hpct_comm *comm, const void *mine, void *all, size_t bytes)
{
    const mpi_comm *mpi = (const mpi_comm *) comm;
    if (bytes > INT_MAX)
        return hpct_fail(HPCT_ERR_INTERNAL, "allgather: records of %zu bytes", bytes);
    hpct_waits before = hpct_enter_wait(HPCT_WAITS_FOR_RANKS);
    int code = MPI_Allgather(mine, (int) bytes, MPI_BYTE, all, (int) bytes, MPI_BYTE, mpi->group);
    hpct_enter_wait(before);
    return hpct_mpi_check(code, "MPI_Allgather");
}

static void free_groups(mpi_comm *mpi)
{
    if (mpi->reductions != MPI_COMM_NULL)
        MPI_Comm_free(&mpi->reductions);
    if (mpi->group != MPI_COMM_NULL)
        MPI_Comm_free(&mpi->group);
}

static void mpi_close(hpct_comm *comm)
{
    mpi_comm *mpi = (mpi_comm *) comm;
    hpct_comm_mail_close(mpi->host.mail);
    free_groups(mpi);
    if (!mpi->part)
        MPI_Finalize();
    free(mpi);
}

static void mpi_abandon(hpct_comm *comm)
{
    hpct_comm_mail_close(((mpi_comm *) comm)->host.mail);
    free(comm); /* MPI_Finalize would wait for the other ranks */
}

static hpct_status mpi_split(hpct_comm *comm, hpct_comm **out, int color);

static const hpct_comm_ops mpi_ops = {
    .name = "mpi",
    .of_hosts = true,
    .allreduce_sum = allreduce_sum,
    .broadcast = broadcast,
    .allgather = allgather,
    .prepare = hpct_comm_reduction_prepare,
    .start = hpct_comm_reduction_start,
    .progress = hpct_comm_reduction_progress,
    .is_done = hpct_comm_reduction_is_done,
    .wait = hpct_comm_reduction_wait,
    .release = hpct_comm_reduction_release,
    .open_stream = hpct_mpi_open_stream,
    .next = hpct_mpi_next,
    .pass = hpct_mpi_pass,
    .push = hpct_mpi_push,
    .drain = hpct_mpi_drain,
    .close_stream = hpct_mpi_close_stream,
    .split = mpi_split,
    .close = mpi_close,
    .abandon = mpi_abandon,
};

/* Groups of the ranks of `whole` with the same color. */
static hpct_status make_groups(mpi_comm *mpi, MPI_Comm whole, int color, int rank)
{
    HPCT_TRY(hpct_mpi_check(MPI_Comm_split(whole, color, rank, &mpi->group), "MPI_Comm_split"));
    MPI_Comm_set_errhandler(mpi->group, MPI_ERRORS_RETURN);
    HPCT_TRY(hpct_mpi_check(MPI_Comm_dup(mpi->group, &mpi->reductions), "MPI_Comm_dup"));
    MPI_Comm_set_errhandler(mpi->reductions, MPI_ERRORS_RETURN);
    MPI_Comm_rank(mpi->group, &mpi->host.base.rank);
    MPI_Comm_size(mpi->group, &mpi->host.base.size);
    return HPCT_OK;
}

static hpct_status new_comm(mpi_comm **out)
{
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return hpct_fail_memory(sizeof **out);
    (*out)->host.base.ops = &mpi_ops;
    (*out)->host.carrier = &hpct_mpi_carrier;
    (*out)->group = (*out)->reductions = MPI_COMM_NULL;
    return HPCT_OK;
}

static hpct_status mpi_split(hpct_comm *comm, hpct_comm **out, int color)
{
    const mpi_comm *whole = (const mpi_comm *) comm;
    mpi_comm *part;
    HPCT_TRY(new_comm(&part));
    part->part = true;
    part->place = whole->place;
    hpct_waits before = hpct_enter_wait(HPCT_WAITS_FOR_RANKS);
    hpct_status status = make_groups(part, whole->group, color, comm->rank);
    hpct_enter_wait(before);
    if (status != HPCT_OK) {
        free_groups(part);
        free(part);
        return status;
    }
    *out = &part->host.base;
    return HPCT_OK;
}

/* Open MPI prints long messages when a connection breaks, and for MPI_Abort; the watch has already
 * printed one line that names the rank. No MCA parameter disables them, only this function, which
 * exists in Open MPI 4. Under mpirun, which prints the messages itself, it fails with a message. */
static void silence_pages(void)
{
    typedef int suppress_function(const char *file, const char *topic);
    suppress_function *suppress;
    if (getenv("OMPI_COMM_WORLD_SIZE") != NULL)
        return;
    *(void **) &suppress = dlsym(RTLD_DEFAULT, "orte_show_help_suppress");
    if (suppress == NULL)
        return;
    suppress("help-mpi-btl-tcp.txt", "peer hung up");
    suppress("help-mpi-api.txt", "mpi-abort");
}

/* Open MPI may write to a connection whose peer is gone: SIGPIPE would end this process before the
 * watch has named the lost rank. A handler installed by the program is kept. */
static void survive_broken_connections(void)
{
    struct sigaction action;
    if (sigaction(SIGPIPE, NULL, &action) == 0 && !(action.sa_flags & SA_SIGINFO) &&
        action.sa_handler == SIG_DFL)
        signal(SIGPIPE, SIG_IGN);
}

/* From version 5 on, Open MPI would end this process when a TCP connection to another rank closes,
 * with its own status and mostly before the watch has named the lost rank; with this parameter it
 * returns an error. It then uses TCP and shared memory only, so the parameter is not set if there
 * is a faster fabric. A value set by the user is kept. */
static void survive_lost_ranks(void)
{
    if (!hpct_comm_fabric_has_adapter())
        setenv("OMPI_MCA_mpi_ft_enable", "1", 0);
}

/* Waiting ranks call sched_yield: several ranks, and their OpenMP threads, may share cores. A value
 * set by the user is kept. */
static void prefer_yielding(void)
{
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
}

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && *value != '\0';
}

/* True with mpirun's own variables, or those of PMIx; but these may be inherited from an enclosing
 * step if this step was started without PMIx: Slurm's PMIx namespace, slurm.pmix.JOB.STEP, then has
 * the other step's number. */
bool hpct_comm_mpi_is_told(const char **why)
{
    const char *group = getenv("PMIX_NAMESPACE"), *step = getenv("SLURM_STEP_ID");
    *why = "the launcher offers no PMIx";
    if (is_set("OMPI_COMM_WORLD_SIZE"))
        return true;
    if (!is_set("PMIX_RANK") || !is_set("PMIX_NAMESPACE"))
        return false;
    *why = "the PMIx here is another step's";
    return step == NULL || strncmp(group, "slurm.pmix.", 11) != 0 ||
           strcmp(strrchr(group, '.') + 1, step) == 0;
}

hpct_status hpct_comm_mpi_open(hpct_comm **out, int rank, int size, int *world,
                               void (*meet)(void *argument), void *argument)
{
    mpi_comm *mpi;
    bool initialised = false;
    int world_size = 0, thread_level = 0;
    const char *why;
    *world = 0;
    /* Under srun, MPI_Init (Open MPI 4) would end this process; elsewhere it would start as a
     * singleton. */
    if (!hpct_comm_mpi_is_told(&why) && !is_set("PMI_RANK"))
        return hpct_fail(HPCT_ERR_CONFIG,
                         "MPI sees no other rank (%s), but the job has %d: " WAY_OUT, why, size);
    HPCT_TRY(new_comm(&mpi));
    prefer_yielding();
    survive_broken_connections();
    survive_lost_ranks();
    hpct_status status =
        hpct_mpi_check(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &thread_level), "MPI_Init");
    if (status != HPCT_OK)
        goto fail;
    initialised = true;
    silence_pages();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    *world = world_size;
    if (world_size != size) {
        status = hpct_fail(HPCT_ERR_CONFIG, "MPI sees %d rank%s where the job has %d: " WAY_OUT,
                           world_size, world_size == 1 ? "" : "s", size);
        goto fail;
    }
    /* Under Slurm's PMIx, MPI_Init (Open MPI 4.1.4) may return while another rank is still in it; a
     * message that reaches that rank too early makes it crash with a segmentation fault. */
    if (meet != NULL)
        meet(argument);
    /* Ranks are the job's, whatever the order in MPI_COMM_WORLD. */
    status = make_groups(mpi, MPI_COMM_WORLD, 0, rank);
    if (status != HPCT_OK)
        goto fail;
    if (mpi->host.base.rank != rank) {
        status = hpct_fail(HPCT_ERR_CONFIG,
                           "MPI says this is rank %d, the job says %d: two tasks "
                           "have the same rank",
                           mpi->host.base.rank, rank);
        goto fail;
    }
    *out = &mpi->host.base;
    return HPCT_OK;

fail:
    free_groups(mpi);
    if (initialised && world_size != size) /* all ranks of this MPI_COMM_WORLD fail here */
        MPI_Finalize();
    free(mpi);
    return status;
}

void hpct_comm_mpi_set_place(hpct_comm *comm, const hpct_comm_mpi_place *place)
{
    ((mpi_comm *) comm)->place = *place;
}

void hpct_comm_mpi_end_step(int status)
{
    int initialised = 0, finalized = 0;
    if (MPI_Initialized(&initialised) == MPI_SUCCESS && initialised &&
        MPI_Finalized(&finalized) == MPI_SUCCESS && !finalized)
        MPI_Abort(MPI_COMM_WORLD, status);
}

bool hpct_comm_mpi_shares_pmix(void)
{
    return OMPI_MAJOR_VERSION < 5;
}

const char *hpct_comm_mpi_version(void)
{
    static char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    if (MPI_Get_library_version(text, &length) != MPI_SUCCESS)
        return "unknown";
    text[strcspn(text, ",\n")] = '\0'; /* "Open MPI v4.1.4, package: …" */
    return text;
}

/* Messages of reductions over MPI: persistent requests. */
#include "agent/comm/mpi_comm.h"

#define NAP_MS 1 /* longest sleep for letters: streams progress in MPI calls only */

static hpct_status prepare(hpct_comm_host_comm *host, void *request,
                           const hpct_comm_host_message *m)
{
    const mpi_comm *mpi = (const mpi_comm *) host;
    return m->receives ? hpct_mpi_check(MPI_Recv_init(m->data, (int) m->floats, MPI_FLOAT, m->peer,
                                                      m->tag, mpi->reductions, request),
                                        "MPI_Recv_init")
                       : hpct_mpi_check(MPI_Send_init(m->data, (int) m->floats, MPI_FLOAT, m->peer,
                                                      m->tag, mpi->reductions, request),
                                        "MPI_Send_init");
}

static hpct_status start(void *requests, int num)
{
    return hpct_mpi_check(MPI_Startall(num, requests), "MPI_Startall");
}

static hpct_status test(void *requests, int num, int *through)
{
    return hpct_mpi_check(MPI_Testall(num, requests, through, MPI_STATUSES_IGNORE), "MPI_Testall");
}

static void free_requests(void *requests, int num)
{
    MPI_Request *all = requests;
    for (int i = 0; i < num; i++)
        MPI_Request_free(&all[i]);
}

/* Streams that are sending need MPI calls to progress, too. */
static hpct_status move(hpct_comm_host_comm *host, bool sleep)
{
    const mpi_comm *mpi = (const mpi_comm *) host;
    int ignored;
    hpct_status status = hpct_comm_mail_move(host->mail, sleep ? NAP_MS : 0);
    if (status == HPCT_OK && sleep && mpi->streams > 0)
        status = hpct_mpi_check(
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, mpi->reductions, &ignored, MPI_STATUS_IGNORE),
            "MPI_Iprobe");
    return status;
}

const hpct_comm_carrier hpct_mpi_carrier = {
    .open_mail = hpct_mpi_open_mail,
    .move = move,
    .request_bytes = sizeof(MPI_Request),
    .prepare = prepare,
    .start = start,
    .test = test,
    .free = free_requests,
};

/* Agreement on NCCL, and opening its communicator. */
#include "agent/comm/device.h"

#include "agent/comm/nccl.h"
#include "base/status.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define GRACE_SECONDS 10 /* the watch finds lost ranks within 6 s */
#define PATIENCE 2000    /* polls with sched_yield before it sleeps */
#define NAP_NANOSECONDS 50000

void hpct_comm_nap(int looks)
{
    if (looks > PATIENCE)
        nanosleep(&(struct timespec){.tv_nsec = NAP_NANOSECONDS}, NULL);
    else
        sched_yield();
}

/* ---- cards ---- */

/* Host names may be equal on several hosts, in containers above all: the boot id is added. */
static void name_host(char *host, size_t size)
{
    char boot[40] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file != NULL && fscanf(file, "%39s", boot) != 1)
        boot[0] = '\0';
    if (file != NULL)
        fclose(file);
    gethostname(host, size - sizeof boot - 1);
    host[size - sizeof boot - 2] = '\0';
    size_t length = strlen(host);
    snprintf(host + length, size - length, " %s", boot);
}

void hpct_nccl_card_fill(hpct_nccl_card *card, const hpct_device_calls *calls, int rank)
{
    int version = 0;
    const char *own_host = getenv("NCCL_HOSTID"); /* NCCL identifies hosts by it, too */
    *card = (hpct_nccl_card){0};
    if (own_host != NULL && *own_host != '\0')
        snprintf(card->host, sizeof card->host, "%s", own_host);
    else
        name_host(card->host, sizeof card->host);
    if (calls == NULL) {
        snprintf(card->why, sizeof card->why, "it has no GPU");
        return;
    }
    snprintf(card->gpu, sizeof card->gpu, "%s", calls->device_name());
    if (!calls->has_nccl(&version) || (rank == 0 && calls->unique_id(card->id) != HPCT_DEVICE_OK)) {
        snprintf(card->why, sizeof card->why, "%.190s", calls->error());
        return;
    }
    card->version = version;
}

hpct_status hpct_nccl_cards_judge(bool *take, char *text, size_t text_size,
                                  const hpct_nccl_card *cards, int size)
{
    *take = true;
    *text = '\0';
    for (int rank = 0; rank < size && *take; rank++) {
        *take = cards[rank].version != 0;
        if (!*take)
            snprintf(text, text_size, "rank %d: %.190s", rank, cards[rank].why);
    }
    for (int rank = 0; rank < size && *take; rank++) {
        for (int other = 0; other < rank; other++) {
            if (strcmp(cards[rank].host, cards[other].host) == 0 &&
                strcmp(cards[rank].gpu, cards[other].gpu) == 0)
                return hpct_fail(
                    HPCT_ERR_CONFIG,
                    "ranks %d and %d have the same GPU (%s on %.*s), and NCCL wants one "
                    "for each: ask for as many GPUs as tasks; or, to try what it does, "
                    "give each rank its own NCCL_HOSTID",
                    other, rank, cards[rank].gpu, (int) strcspn(cards[rank].host, " "),
                    cards[rank].host);
        }
    }
    return HPCT_OK;
}

/* ---- opening ---- */

static hpct_status deal(const hpct_comm_device_options *o, const hpct_nccl_card *mine,
                        hpct_nccl_card *cards)
{
    return o->under != NULL ? o->under->ops->allgather(o->under, mine, cards, sizeof *mine)
                            : hpct_comm_exchange(o->meeting, mine, cards, sizeof *mine);
}

hpct_status hpct_comm_device_open(hpct_comm **out, const hpct_comm_device_options *options)
{
    const hpct_cluster_config *config = options->meeting->config;
    size_t size = (size_t) config->size;
    char why[256];
    bool take = false;
    hpct_nccl_card mine, *cards = calloc(size, sizeof *cards);
    *out = NULL;
    if (cards == NULL)
        return hpct_fail_memory(size * sizeof *cards);
    hpct_nccl_card_fill(&mine, options->calls, config->rank);
    hpct_status status = deal(options, &mine, cards);
    if (status == HPCT_OK)
        status = hpct_nccl_cards_judge(&take, why, sizeof why, cards, config->size);
    if (status == HPCT_OK && !take && mine.gpu[0] != '\0' && config->rank == 0)
        fprintf(stderr, "hpc-train: sums go through the hosts' memory, not by NCCL: %s\n", why);
    if (status == HPCT_OK && take) {
        hpct_nccl_options nccl = {.calls = options->calls,
                                  .rank = config->rank,
                                  .size = config->size,
                                  .seconds = options->meeting->seconds,
                                  .grace_seconds = GRACE_SECONDS,
                                  .under = options->under};
        memcpy(nccl.id, cards[0].id, sizeof nccl.id);
        status = hpct_comm_nccl_open(out, &nccl);
    }
    free(cards);
    return status;
}

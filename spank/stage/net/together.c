/* Letters and votes: offers, votes, decisions. */
#include <config.h>

#include "spank/stage/net/together.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

enum { OFFER_WORDS = 6 + 6, OFFER_BYTES = 8 * OFFER_WORDS };

void hpct_offer_identify(hpct_offer *offer, const struct stat *info, uint64_t origin)
{
    offer->origin = origin;
    offer->identity[0] = (uint64_t) info->st_ino;
    offer->identity[1] = (uint64_t) info->st_size;
    offer->identity[2] = (uint64_t) info->st_mtim.tv_sec;
    offer->identity[3] = (uint64_t) info->st_mtim.tv_nsec;
    offer->identity[4] = (uint64_t) info->st_ctim.tv_sec;
    offer->identity[5] = (uint64_t) info->st_ctim.tv_nsec;
}

bool hpct_offer_is(const hpct_offer *offer, const struct stat *info, uint64_t origin)
{
    hpct_offer other = {0};
    hpct_offer_identify(&other, info, origin);
    if (origin != 0 && origin == offer->origin) /* compare size and modification time only */
        return memcmp(offer->identity + 1, other.identity + 1, 3 * sizeof *other.identity) == 0;
    return memcmp(offer->identity, other.identity, sizeof other.identity) == 0;
}

hpct_status hpct_together_all(hpct_broadcast *b, bool first, bool mine, bool *all)
{
    uint8_t vote = mine;
    uint8_t *heard = NULL;
    size_t size = 0;
    HPCT_TRY(hpct_broadcast_vote(b, &vote, 1));
    if (first) {
        *all = vote != 0;
        return hpct_broadcast_tell(b, &vote, 1);
    }
    hpct_status status = hpct_broadcast_hear(b, &heard, &size);
    if (status == HPCT_OK && size != 1)
        status = hpct_fail(HPCT_ERR_INTERNAL, "the first node's answer is invalid");
    if (status == HPCT_OK)
        *all = heard[0] != 0;
    free(heard);
    return status;
}

static void write_offer(uint8_t *out, const hpct_offer *offer)
{
    const uint64_t words[OFFER_WORDS] = {
        offer->identity[0], offer->identity[1], offer->identity[2], offer->identity[3],
        offer->identity[4], offer->identity[5], offer->digest,      offer->bytes,
        offer->blocks,      offer->entries,     offer->extract,     offer->origin,
    };
    for (int i = 0; i < OFFER_WORDS; i++)
        hpct_wire_put64(out + 8 * i, words[i]);
}

static void read_offer(const uint8_t *in, hpct_offer *offer)
{
    for (int i = 0; i < 6; i++)
        offer->identity[i] = hpct_wire_get64(in + 8 * i);
    offer->digest = hpct_wire_get64(in + 48);
    offer->bytes = hpct_wire_get64(in + 56);
    offer->blocks = hpct_wire_get64(in + 64);
    offer->entries = hpct_wire_get64(in + 72);
    offer->extract = hpct_wire_get64(in + 80) != 0;
    offer->origin = hpct_wire_get64(in + 88);
}

hpct_status hpct_together_offer(hpct_broadcast *b, bool first, uint64_t task, hpct_offer *offers,
                                int count)
{
    size_t size = 8 + (size_t) count * OFFER_BYTES, got = 0;
    uint8_t *letter = NULL;
    hpct_status status = HPCT_OK;
    if (first) {
        letter = malloc(size);
        if (letter == NULL)
            return hpct_fail_memory(size);
        hpct_wire_put64(letter, task);
        for (int i = 0; i < count; i++)
            write_offer(letter + 8 + (size_t) i * OFFER_BYTES, &offers[i]);
        status = hpct_broadcast_tell(b, letter, size);
    } else {
        status = hpct_broadcast_hear(b, &letter, &got);
        if (status == HPCT_OK && (got != size || hpct_wire_get64(letter) != task))
            status = hpct_fail(HPCT_ERR_USAGE, "it is to stage something else, or in another way, "
                                               "than the first node");
        for (int i = 0; status == HPCT_OK && i < count; i++)
            read_offer(letter + 8 + (size_t) i * OFFER_BYTES, &offers[i]);
    }
    free(letter);
    return status;
}

static hpct_how choose(hpct_stage_mode mode, int nodes, const hpct_offer *offer, uint8_t votes,
                       const char *name, bool verbose)
{
    const hpct_stage_facts facts = {
        .nodes = nodes,
        .same = (votes & HPCT_VOTE_SAME) != 0,
        .extract = offer->extract,
        .bytes = offer->bytes,
        .entries = offer->entries,
    };
    char why[256] = "as asked for";
    hpct_stage_way way = mode.way;
    if (votes & HPCT_VOTE_HAS)
        return HPCT_HOW_NOT; /* each node prints this itself */
    if (way == HPCT_WAY_AUTO)
        way = hpct_stage_mode_choose(&facts, why, sizeof why);
    if (verbose)
        hpct_report_say("%s: %s: %s", name,
                        way == HPCT_WAY_BROADCAST ? "read here and sent to the other nodes"
                                                  : "copied by each node",
                        why);
    return way == HPCT_WAY_BROADCAST ? HPCT_HOW_BROADCAST : HPCT_HOW_COPY;
}

hpct_status hpct_together_decide(hpct_broadcast *b, bool first, hpct_stage_mode mode, int nodes,
                                 const hpct_offer *offers, const uint8_t *votes, int count,
                                 char *const *names, bool verbose, hpct_how *how)
{
    size_t size = (size_t) count;
    uint8_t *letter = malloc(size + 1);
    if (letter == NULL)
        return hpct_fail_memory(size);
    memcpy(letter, votes, size);
    hpct_status status = hpct_broadcast_vote(b, letter, size);
    if (first) {
        for (size_t i = 0; status == HPCT_OK && i < size; i++)
            letter[i] = (uint8_t) choose(mode, nodes, &offers[i], letter[i], names[i], verbose);
        if (status == HPCT_OK)
            status = hpct_broadcast_tell(b, letter, size);
    } else if (status == HPCT_OK) {
        uint8_t *heard = NULL;
        size_t got = 0;
        status = hpct_broadcast_hear(b, &heard, &got);
        if (status == HPCT_OK && got != size)
            status = hpct_fail(HPCT_ERR_INTERNAL, "the first node's answer is invalid");
        if (status == HPCT_OK)
            memcpy(letter, heard, size);
        free(heard);
    }
    for (size_t i = 0; status == HPCT_OK && i < size; i++) {
        if (letter[i] > HPCT_HOW_BROADCAST)
            status = hpct_fail(HPCT_ERR_INTERNAL, "the first node's answer is invalid");
        how[i] = (hpct_how) letter[i];
    }
    free(letter);
    return status;
}

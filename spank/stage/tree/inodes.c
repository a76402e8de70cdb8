/* A hash table with open addressing, at most half full. */
#include "spank/stage/tree/inodes.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/status.h"

typedef struct slot {
    dev_t device;
    ino_t inode;
    size_t value; /* index + 1; 0: free */
} slot;

struct hpct_stage_inodes {
    slot *slots;
    size_t count, room; /* `room`: a power of two, or 0 */
};

hpct_stage_inodes *hpct_stage_inodes_new(void)
{
    return calloc(1, sizeof(hpct_stage_inodes));
}

void hpct_stage_inodes_free(hpct_stage_inodes *inodes)
{
    if (inodes == NULL)
        return;
    free(inodes->slots);
    free(inodes);
}

static slot *find(slot *slots, size_t room, dev_t device, ino_t inode)
{
    uint64_t mix = ((uint64_t) inode ^ (uint64_t) device << 32) * UINT64_C(0x9E3779B97F4A7C15);
    for (size_t i = (size_t) (mix >> 20);; i++) {
        slot *s = &slots[i & (room - 1)];
        if (s->value == 0 || (s->device == device && s->inode == inode))
            return s;
    }
}

static hpct_status grow(hpct_stage_inodes *inodes)
{
    size_t room = inodes->room == 0 ? 256 : inodes->room * 2;
    slot *slots = calloc(room, sizeof *slots);
    if (slots == NULL)
        return hpct_fail_memory(room * sizeof *slots);
    for (size_t i = 0; i < inodes->room; i++) {
        const slot *old = &inodes->slots[i];
        if (old->value != 0)
            *find(slots, room, old->device, old->inode) = *old;
    }
    free(inodes->slots);
    inodes->slots = slots;
    inodes->room = room;
    return HPCT_OK;
}

hpct_status hpct_stage_inodes_add(hpct_stage_inodes *inodes, dev_t device, ino_t inode,
                                  size_t *value)
{
    if (inodes->count * 2 >= inodes->room) {
        hpct_status status = grow(inodes);
        if (status != HPCT_OK)
            return status;
    }
    slot *s = find(inodes->slots, inodes->room, device, inode);
    if (s->value != 0) {
        *value = s->value - 1;
        return HPCT_OK;
    }
    *s = (slot){.device = device, .inode = inode, .value = *value + 1};
    inodes->count++;
    return HPCT_OK;
}

bool hpct_stage_inodes_has(const hpct_stage_inodes *inodes, dev_t device, ino_t inode)
{
    return inodes->room != 0 && find(inodes->slots, inodes->room, device, inode)->value != 0;
}

/* What the other nodes of a broadcast may send: headers, reports of failure, and blocks of packed
 * items. What is taken out lies within what came, and packs to the same bytes again. The first byte
 * chooses. */
#include <limits.h>

#include "base/bytes.h"
#include "spank/stage/net/broadcast_link.h"
#include "spank/stage/net/pack.h"
#include "tests/fuzz/fuzz.h"

static void try_header(const uint8_t *data, size_t size)
{
    uint8_t in[HPCT_STAGE_WIRE_HEADER] = {0}, again[HPCT_STAGE_WIRE_HEADER];
    hpct_stage_wire_header header, second;
    memcpy(in, data, size < sizeof in ? size : sizeof in);
    if (!hpct_stage_wire_decode(&header, in)) {
        /* most have a wrong check: one with a right one, of the same numbers */
        header = (hpct_stage_wire_header){
            .type = (hpct_stage_wire_type) in[5],
            .size = (uint32_t) hpct_get(in + 8, 4),
            .sequence = hpct_get(in + 16, 8),
            .hash = hpct_get(in + 24, 8),
        };
        hpct_stage_wire_encode_again(in, &header);
        if (!hpct_stage_wire_decode(&header, in))
            return;
    }
    if (header.type < HPCT_STAGE_WIRE_CHALLENGE || header.type > HPCT_STAGE_WIRE_BYE ||
        header.size > HPCT_STAGE_LETTER_BYTES)
        abort();
    hpct_stage_wire_encode_again(again, &header);
    if (!hpct_stage_wire_decode(&second, again) || memcmp(in, again, sizeof in) != 0)
        abort();
}

static void try_failure(const uint8_t *data, size_t size)
{
    hpct_stage_wire_failure failure, second;
    uint8_t again[HPCT_STAGE_WIRE_FAILURE_MAX];
    if (!hpct_stage_wire_get_failure(&failure, data, size))
        return;
    for (size_t i = 0; failure.text[i] != '\0'; i++) {
        if (i == sizeof failure.text - 1 || (unsigned char) failure.text[i] < 0x20)
            abort();
    }
    if (failure.status == 0 ||
        !hpct_stage_wire_get_failure(&second, again,
                                     hpct_stage_wire_put_failure(again, &failure)) ||
        second.node != failure.node || strcmp(second.text, failure.text) != 0)
        abort();
}

static bool is_within(const void *part, size_t length, const uint8_t *data, size_t size)
{
    const uint8_t *at = part;
    return at >= data && at <= data + size && length <= (size_t) (data + size - at);
}

static void try_block(const uint8_t *data, size_t size)
{
    hpct_stage_pack_record record;
    size_t at = 0, before = 0;
    int got;
    hpct_stage_pack pack = {.data = malloc(size + 1), .room = size};
    while ((got = hpct_stage_pack_next(data, size, &at, &record)) > 0) {
        uint8_t *content = NULL;
        const hpct_stage_item *item = &record.item;
        if (at <= before || at > size)
            abort();
        before = at;
        if (item->path != NULL && (strlen(item->path) >= PATH_MAX ||
                                   !is_within(item->path, strlen(item->path) + 1, data, size)))
            abort();
        if (item->target != NULL && !is_within(item->target, strlen(item->target) + 1, data, size))
            abort();
        uint64_t bytes = record.kind == HPCT_STAGE_PACK_WHOLE  ? item->size
                         : record.kind == HPCT_STAGE_PACK_DATA ? record.size
                                                               : 0;
        if (record.data != NULL && !is_within(record.data, (size_t) bytes, data, size))
            abort();
        must(hpct_stage_pack_put(&pack, &record, &content));
        if (record.data != NULL)
            memcpy(content, record.data, (size_t) bytes);
        if (pack.size != at || memcmp(pack.data, data, at) != 0)
            abort();
    }
    if (got == 0 && at != size)
        abort();
    free(pack.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    switch (data[0] % 4) {
    case 0:
        try_header(data + 1, size - 1);
        break;
    case 1:
        try_failure(data + 1, size - 1);
        break;
    default:
        try_block(data + 1, size - 1);
        break;
    }
    return 0;
}

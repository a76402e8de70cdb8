/* agent/data/pickle.h - reads Python pickles of plain values and numpy integer arrays; everything
 * else is an error. Nothing is called or imported: the few names that numpy's arrays need are
 * implemented here, any other is an error. */
#ifndef HPCT_AGENT_DATA_PICKLE_H
#define HPCT_AGENT_DATA_PICKLE_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum hpct_data_pickle_kind {
    HPCT_DATA_PICKLE_NONE,
    HPCT_DATA_PICKLE_BOOL,
    HPCT_DATA_PICKLE_INT,
    HPCT_DATA_PICKLE_BYTES,    /* bytes, bytearray or text (UTF-8) */
    HPCT_DATA_PICKLE_SEQUENCE, /* list or tuple */
    HPCT_DATA_PICKLE_DICT,
    HPCT_DATA_PICKLE_NAME,  /* one of the known names */
    HPCT_DATA_PICKLE_DTYPE, /* of numpy: little-endian integers */
    HPCT_DATA_PICKLE_ARRAY,
} hpct_data_pickle_kind;

#define HPCT_DATA_PICKLE_MAX_RANK 4

typedef struct hpct_data_pickle_value hpct_data_pickle_value;
struct hpct_data_pickle_value {
    hpct_data_pickle_kind kind;
    int64_t integer;      /* INT, BOOL; NAME: which; DTYPE and ARRAY: width, negative if signed */
    const uint8_t *bytes; /* BYTES, and ARRAY's elements in C order */
    size_t count;         /* of bytes, or of items; a dictionary's are key, value, key, value … */
    size_t room;          /* allocated items */
    hpct_data_pickle_value **items;
    int rank; /* of an ARRAY */
    uint64_t sizes[HPCT_DATA_PICKLE_MAX_RANK];
};

typedef struct hpct_data_pickle hpct_data_pickle;

/* Reads one pickle of protocol 2 to 5; bytes of text and arrays are referenced in `bytes`, which
 * must outlive *out. HPCT_ERR_DATA, naming an opcode or name that is not permitted; `path` is for
 * the message. The caller frees *out. */
hpct_status hpct_data_pickle_read(hpct_data_pickle **out, const hpct_data_pickle_value **value,
                                  const uint8_t *bytes, size_t num_bytes, const char *path);
void hpct_data_pickle_free(hpct_data_pickle *pickle);

/* The value under a text key of a dictionary, or NULL. */
const hpct_data_pickle_value *hpct_data_pickle_get(const hpct_data_pickle_value *dict,
                                                   const char *key);

/* Element `index` of a list of integers or a one-dimensional array; false if it is neither. */
bool hpct_data_pickle_integer(const hpct_data_pickle_value *value, size_t index, int64_t *out);

#endif

/* base/digest.h - XXH3: of 64 bits, of data that processes compare; of 128 bits, of data that comes
 * in pieces. Against damage, not forgery. */
#ifndef HPCT_BASE_DIGEST_H
#define HPCT_BASE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HPCT_DIGEST_TEXT 33 /* 32 hexadecimal digits and the final zero */

typedef struct hpct_digest hpct_digest;

/* NULL when out of memory. */
hpct_digest *hpct_digest_new(void);
void hpct_digest_free(hpct_digest *digest); /* NULL is allowed */

void hpct_digest_add(hpct_digest *digest, const void *data, size_t bytes);
/* Of all that was added: high and low half. */
void hpct_digest_end(const hpct_digest *digest, uint64_t hash[2]);

/* Of data in memory. */
uint64_t hpct_digest_64(const void *data, size_t bytes);
void hpct_digest_of(const void *data, size_t bytes, uint64_t hash[2]);

void hpct_digest_format(const uint64_t hash[2], char text[HPCT_DIGEST_TEXT]);
/* Whether `text` is such digits; NULL is not. */
bool hpct_digest_parse(const char *text, uint64_t hash[2]);

#endif

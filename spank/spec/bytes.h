/* spank/spec/bytes.h - sizes in bytes as text. */
#ifndef HPCT_SPANK_SPEC_BYTES_H
#define HPCT_SPANK_SPEC_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parses "1048576", "500M", "2T" (K, M, G, T: powers of 1024); false if malformed. */
bool hpct_spec_bytes_parse(const char *text, uint64_t *bytes);

/* Formats "999 B", "1.5 MB", "130 GB" (powers of 1000); returns `text`. */
const char *hpct_spec_bytes_show(uint64_t bytes, char *text, size_t size);

#endif

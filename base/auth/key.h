/* base/auth/key.h - the key of a step: 256 random bits that its tasks share and nobody else has.
 * As text, which is how it travels and lies in files, it is 64 hexadecimal digits. Offers drawing,
 * reading and writing; calls no cryptography but the kernel's random numbers. */
#ifndef HPCT_AUTH_KEY_H
#define HPCT_AUTH_KEY_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stdint.h>

#define HPCT_KEY_BYTES 32
#define HPCT_KEY_TEXT (2 * HPCT_KEY_BYTES + 1)

/* Names the file that has a task's key. */
#define HPCT_KEY_VARIABLE "HPC_TRAIN_KEY_FILE"

typedef struct hpct_key {
    uint8_t bytes[HPCT_KEY_BYTES];
} hpct_key;

/* From getrandom(2). HPCT_ERR_INTERNAL when the kernel gives none. */
hpct_status hpct_key_draw(hpct_key *key);

void hpct_key_to_text(char text[HPCT_KEY_TEXT], const hpct_key *key);

/* False when it is anything but 64 digits; one newline may follow. */
bool hpct_key_from_text(hpct_key *key, const char *text);

/* A key in memory that core dumps leave out; freed with hpct_key_free, which wipes it. */
hpct_status hpct_key_new(hpct_key **out);
void hpct_key_free(hpct_key *key); /* allows NULL */

/* Reads a file; out as from hpct_key_new. HPCT_ERR_CONFIG, naming the file and what is wrong, when
 * it is not a plain file of this user's that nobody else may read, or holds no key. */
hpct_status hpct_key_read(hpct_key **out, const char *path);

#endif

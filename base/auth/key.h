/* base/auth/key.h - the key of a step: 256 random bits shared by its tasks only. Its text form, in
 * transit and in files, is 64 hexadecimal digits. Draws, reads and writes keys; uses no
 * cryptography but the kernel's random numbers. */
#ifndef HPCT_BASE_AUTH_KEY_H
#define HPCT_BASE_AUTH_KEY_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stdint.h>

#define HPCT_AUTH_KEY_BYTES 32
#define HPCT_AUTH_KEY_TEXT (2 * HPCT_AUTH_KEY_BYTES + 1)

/* Environment variable that names a task's key file. */
#define HPCT_AUTH_KEY_VARIABLE "HPC_TRAIN_KEY_FILE"

typedef struct hpct_auth_key {
    uint8_t bytes[HPCT_AUTH_KEY_BYTES];
} hpct_auth_key;

/* From getrandom(2). Returns HPCT_ERR_INTERNAL if that fails. */
hpct_status hpct_auth_key_draw(hpct_auth_key *key);

void hpct_auth_key_to_text(char text[HPCT_AUTH_KEY_TEXT], const hpct_auth_key *key);

/* Returns false unless text is 64 digits, optionally followed by a newline. */
bool hpct_auth_key_from_text(hpct_auth_key *key, const char *text);

/* A key in memory excluded from core dumps; freed with hpct_auth_key_free, which wipes it. */
hpct_status hpct_auth_key_new(hpct_auth_key **out);
void hpct_auth_key_free(hpct_auth_key *key); /* NULL is allowed */

/* Reads a file; *out as from hpct_auth_key_new. Returns HPCT_ERR_CONFIG, naming the file and the
 * reason, unless it is a regular file of this user, unreadable for others, that holds a key. */
hpct_status hpct_auth_key_read(hpct_auth_key **out, const char *path);

#endif

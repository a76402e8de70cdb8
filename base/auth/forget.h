/* base/auth/forget.h - removes a key from this process's memory, and so from its core dumps, where
 * libraries have copied it. */
#ifndef HPCT_BASE_AUTH_FORGET_H
#define HPCT_BASE_AUTH_FORGET_H

#include "base/auth/key.h"

/* Wipes all copies of the key, as bytes or as text, in memory that a core dump would have; `key`
 * itself, too, unless it is from hpct_auth_key_new. Nothing may need them any more. */
void hpct_auth_key_forget(const hpct_auth_key *key);

#endif

/* spank/script_lines.h - detects options in a batch script's #SBATCH lines, or after its name, that
 * sbatch would silently ignore or truncate. */
#ifndef HPCT_SPANK_SCRIPT_LINES_H
#define HPCT_SPANK_SCRIPT_LINES_H

#include <hpctrain/status.h>

/* Returns HPCT_ERR_USAGE, naming line and script, if a #SBATCH line with an option of hpc-train
 * comes after the script's first command or has a value with an unquoted '#'; or if such an option
 * comes after the name of a script that does not read its arguments. `arguments`: the command line,
 * NULL-terminated. HPCT_OK for other commands than sbatch, and without a script. Lines of a script
 * that writes another one may belong to that one and are not checked. */
hpct_status hpct_spank_script_lines_check(char *const *arguments);

#endif

/* agent/data/folder.h - folders of pictures. */
#ifndef HPCT_AGENT_DATA_FOLDER_H
#define HPCT_AGENT_DATA_FOLDER_H

#include <stdbool.h>

/* Whether there are pictures in subfolders. */
bool hpct_data_folder_has_pictures(const char *path);

#endif

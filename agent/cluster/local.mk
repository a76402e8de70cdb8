# agent/cluster/: node lists, task layouts, ports, config JSON; written by the plugin, read by the
# agent, so it depends on jansson alone.
EXTRA_DIST += agent/cluster/config.h

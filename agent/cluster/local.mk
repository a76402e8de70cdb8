# agent/cluster/: node lists, task layouts, ports, config JSON; written by the plugin, read by the
# agent, so it depends on jansson alone. Whoever links it links base/libbase.la too.
noinst_LTLIBRARIES += agent/cluster/libcluster.la
agent_cluster_libcluster_la_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
agent_cluster_libcluster_la_LIBADD = $(JANSSON_LIBS)
agent_cluster_libcluster_la_SOURCES = \
	agent/cluster/cluster.c agent/cluster/cluster.h \
	agent/cluster/components.c agent/cluster/components.h \
	agent/cluster/config.c agent/cluster/config.h \
	agent/cluster/config_json.c agent/cluster/config_read.c \
	agent/cluster/hostfile.c agent/cluster/hostfile.h \
	agent/cluster/hosts.c agent/cluster/hosts.h \
	agent/cluster/layout.c agent/cluster/layout.h \
	agent/cluster/names.c agent/cluster/names.h \
	agent/cluster/nodelist.c agent/cluster/nodelist.h \
	agent/cluster/number.c agent/cluster/number.h \
	agent/cluster/ports.c agent/cluster/ports.h \
	agent/cluster/roles.c agent/cluster/roles.h \
	agent/cluster/tasks.c agent/cluster/tasks.h \
	agent/cluster/variables.c agent/cluster/variables.h \
	agent/cluster/spec/bytes.c agent/cluster/spec/bytes.h \
	agent/cluster/spec/entry.c agent/cluster/spec/entry.h \
	agent/cluster/spec/mode.c agent/cluster/spec/mode.h \
	agent/cluster/spec/out_entry.c agent/cluster/spec/out_entry.h \
	agent/cluster/spec/out_record.c agent/cluster/spec/out_record.h

# base/cluster/: node lists, task layouts, ports, config JSON; written by the plugin, read by the
# agent. It depends on jansson alone; what links it links base/libbase.la, too.
noinst_LTLIBRARIES += base/cluster/libcluster.la
base_cluster_libcluster_la_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
base_cluster_libcluster_la_LIBADD = $(JANSSON_LIBS)
base_cluster_libcluster_la_SOURCES = \
	base/cluster/cluster.c base/cluster/cluster.h \
	base/cluster/components.c base/cluster/components.h \
	base/cluster/config.c base/cluster/config.h \
	base/cluster/config_json.c base/cluster/config_read.c \
	base/cluster/hostfile.c base/cluster/hostfile.h \
	base/cluster/hosts.c base/cluster/hosts.h \
	base/cluster/layout.c base/cluster/layout.h \
	base/cluster/names.c base/cluster/names.h \
	base/cluster/nodelist.c base/cluster/nodelist.h \
	base/cluster/ports.c base/cluster/ports.h \
	base/cluster/roles.c base/cluster/roles.h \
	base/cluster/tasks.c base/cluster/tasks.h \
	base/cluster/variables.c base/cluster/variables.h

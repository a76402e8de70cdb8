/* Preloaded so that Open MPI's modules stay mapped to the end: LeakSanitizer could not name, and so
 * not suppress, what a module that is gone has allocated. */
int dlclose(void *handle);

__attribute__((visibility("default"))) int dlclose(void *handle)
{
    (void) handle;
    return 0;
}

/* make_room INDEX COPY ROOM: an index file as one with room to be written in place, for the tests of the command. */
#include <shortlist.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    sl_index *index;
    sl_open_params open;
    sl_save_params save;
    sl_open_params_init(&open);
    sl_save_params_init(&save);
    open.place = SL_PLACE_DRAM;
    save.room = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
    if (argc != 4 || sl_index_open(argv[1], &open, &index) != SL_OK) return 1;
    sl_status status = sl_index_save(index, argv[2], &save);
    if (status != SL_OK) fprintf(stderr, "%s\n", sl_last_error());
    sl_index_free(index);
    return status != SL_OK;
}

/* make_hdf5 FILE [DISTANCE TYPE]: a small data set in the shape ann-benchmarks gives its own, for the tests of the
 * command. The file says this distance and this type; a sparse one has train and test of one dimension. */
#include <hdf5.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* 1 where the dataset was written. */
static int put(hid_t file, const char *name, int rank, const hsize_t *sides, hid_t stored, hid_t memory,
               const void *data) {
    hid_t space = H5Screate_simple(rank, sides, NULL), links = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(links, 1);
    hid_t set = H5Dcreate2(file, name, stored, space, links, H5P_DEFAULT, H5P_DEFAULT);
    int written = set >= 0 && H5Dwrite(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0;
    if (set >= 0) H5Dclose(set);
    H5Pclose(links);
    H5Sclose(space);
    return written;
}

/* Writes a text of the file: of its own length, or of a varying one. */
static int say(hid_t file, const char *name, const char *text, int varies) {
    hid_t space = H5Screate(H5S_SCALAR), type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, varies ? H5T_VARIABLE : strlen(text));
    if (varies) H5Tset_cset(type, H5T_CSET_UTF8);
    hid_t attribute = H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    int written = attribute >= 0 && H5Awrite(attribute, type, varies ? (const void *)&text : text) >= 0;
    if (attribute >= 0) H5Aclose(attribute);
    H5Tclose(type);
    H5Sclose(space);
    return written;
}

int main(int argc, char **argv) {
    float train[50][4], test[5][4], cube[2][2][2] = {{{0}}};
    int32_t neighbors[5][2];
    double doubles[3][2];
    uint8_t bytes[3][2];
    char text[2][2] = {"a", "b"};
    const int says = argc == 4, sparse = says && strcmp(argv[3], "sparse") == 0;
    if (argc != 2 && !says) {
        fprintf(stderr, "usage: make_hdf5 FILE [DISTANCE TYPE]\n");
        return 2;
    }
    for (int i = 0; i < 50; i++)
        for (int j = 0; j < 4; j++)
            train[i][j] = (float)i + 0.5f * (float)j;
    for (int i = 0; i < 5; i++) {
        for (int j = 0; j < 4; j++)
            test[i][j] = (float)i + 0.25f + 0.5f * (float)j;
        for (int j = 0; j < 2; j++)
            neighbors[i][j] = i + j;
    }
    for (int i = 0; i < 3; i++) {
        doubles[i][0] = i * 1.5;
        doubles[i][1] = i * 2.5;
        bytes[i][0] = (uint8_t)i;
        bytes[i][1] = (uint8_t)(255 - i);
    }
    hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    if (file < 0) return 1;
    hid_t string = H5Tcopy(H5T_C_S1);
    H5Tset_size(string, 2);
    int well =
        put(file, "train", sparse ? 1 : 2, (const hsize_t[]){sparse ? 200 : 50, 4}, H5T_IEEE_F32LE, H5T_NATIVE_FLOAT,
            train) &&
        put(file, "test", sparse ? 1 : 2, (const hsize_t[]){sparse ? 20 : 5, 4}, H5T_IEEE_F32BE, H5T_NATIVE_FLOAT,
            test) &&
        put(file, "neighbors", 2, (const hsize_t[]){5, 2}, H5T_STD_I32LE, H5T_NATIVE_INT32, neighbors) &&
        put(file, "doubles", 2, (const hsize_t[]){3, 2}, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, doubles) &&
        put(file, "group/inner/doubles", 2, (const hsize_t[]){3, 2}, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, doubles) &&
        put(file, "bytes", 2, (const hsize_t[]){3, 2}, H5T_STD_U8LE, H5T_NATIVE_UINT8, bytes) &&
        put(file, "cube", 3, (const hsize_t[]){2, 2, 2}, H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, cube) &&
        put(file, "text", 1, (const hsize_t[]){2}, string, string, text);
    if (says) well = well && say(file, "distance", argv[2], 0) && say(file, "type", argv[3], 1);
    H5Tclose(string);
    return H5Fclose(file) >= 0 && well ? 0 : 1;
}

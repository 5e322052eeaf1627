/* The mounts of this process, and its control groups, in made trees of files. */
#define _GNU_SOURCE
#include "base/cgroup.h"
#include "base/mounts.h"
#include "tests/support/check_main.h"
#include "tests/support/scratch.h"

#include <check.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define NONE UINT64_MAX

static scratch place;

static void set_up(void) {
    scratch_open(&place);
}

static void tear_down(void) {
    char command[SCRATCH_PATH + 16];
    snprintf(command, sizeof command, "rm -rf %s/*", place.folder);
    ck_assert_int_eq(system(command), 0);
    scratch_close(&place);
}

START_TEST(mounts_are_read_from_the_list) {
    static const char list[] = "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
                               "22 21 0:5 /a\\040b /data/x\\040y\\134.sl rw - ext4 /dev/sda1 rw\n"
                               "23 21 0:6 / /data rw,nosuid shared:2 master:1 - nfs4 server:/vol rw,vers=4.2\n"
                               "cut off\n"
                               "26 21 0:8 / /data/cut rw - \n"
                               "24 23 8:2 /models/one.slr /data/model.slr rw - xfs /dev/mapper/host rw\n"
                               "25 23 0:7 /two.slr /data/model.slr rw - tmpfs tmpfs rw\n";
    char path[SCRATCH_PATH], source[256];
    scratch_name(&place, "mounts", path);
    file_write(path, list, sizeof list - 1);
    ck_assert_int_eq(sl_mount_at(path, "/data/model.slr", source, sizeof source), 1);
    ck_assert_str_eq(source, "tmpfs of tmpfs, /two.slr of it");
    ck_assert_int_eq(sl_mount_at(path, "/data/x y\\.sl", source, sizeof source), 1);
    ck_assert_str_eq(source, "ext4 of /dev/sda1, /a b of it");
    ck_assert_int_eq(sl_mount_at(path, "/data", source, 9), 1);
    ck_assert_str_eq(source, "nfs4 of ");
    ck_assert_int_eq(sl_mount_at(path, "/data/other.slr", source, sizeof source), 0);
    ck_assert_int_eq(sl_mount_at(path, "/models/one.slr", source, sizeof source), 0);
    ck_assert_int_eq(sl_mount_at(place.folder, "/data", source, sizeof source), 0);
    scratch_name(&place, "missing", path);
    ck_assert_int_eq(sl_mount_at(path, "/data", source, sizeof source), 0);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------------
 * Control groups
 * ------------------------------------------------------------------------------------------------------------- */

/* Writes a file of the tree, and makes its folders. */
static void put_file(const char *name, const char *text) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s%s", place.folder, name);
    for (char *at = path + strlen(place.folder) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        (void)mkdir(path, 0700);
        *at = '/';
    }
    file_write(path, text, strlen(text));
}

static void limit(const char *folder, const char *file, const char *text) {
    char name[PATH_MAX];
    snprintf(name, sizeof name, "%s/%s", folder, file);
    put_file(name, text);
}

static void limit2(const char *folder, const char *text) {
    limit(folder, "memory.max", text);
}

static void limit1(const char *folder, const char *text) {
    limit(folder, "memory.limit_in_bytes", text);
}

static void mounts(const char *text) {
    put_file("/proc/self/mountinfo", text);
}

static void groups(const char *text) {
    put_file("/proc/self/cgroup", text);
}

static void expect(uint64_t memory) {
    ck_assert_uint_eq(sl_cgroup_memory(place.folder), memory);
}

#define MOUNT2 "30 23 0:26 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"

START_TEST(no_groups_no_limit) {
    expect(NONE);
    groups("");
    expect(NONE);
    groups("nonsense\n0::\n:::\n0::relative\n");
    expect(NONE);
    groups("0::/\n");
    mounts(MOUNT2);
    expect(NONE);
    limit2("/sys/fs/cgroup", "max\n");
    expect(NONE);
}
END_TEST

/* systemd's MemoryMax= of a service or a scope, and of the slices around it: the smallest counts, at any height. */
START_TEST(the_smallest_limit_on_the_path) {
    static const char *const folders[] = {"/sys/fs/cgroup/user.slice/user-1000.slice/run-5.scope",
                                          "/sys/fs/cgroup/user.slice/user-1000.slice", "/sys/fs/cgroup/user.slice",
                                          "/sys/fs/cgroup"};
    groups("0::/user.slice/user-1000.slice/run-5.scope\n");
    mounts(MOUNT2);
    for (size_t least = 0; least < 4; least++) {
        for (size_t i = 0; i < 4; i++)
            limit2(folders[i], i == least ? "268435456\n" : i % 2 ? "max\n" : "536870912\n");
        expect(268435456);
    }
    /* A sibling's limit is not this process's. */
    limit2("/sys/fs/cgroup", "max\n");
    limit2("/sys/fs/cgroup/user.slice/user-1000.slice/run-6.scope", "4096\n");
    limit2("/sys/fs/cgroup/system.slice", "4096\n");
    expect(536870912);
}
END_TEST

/* Slurm's tree of version 1. A group without a limit has a number that no machine has. */
START_TEST(version_1_has_a_tree_for_memory) {
    groups("12:cpu,cpuacct:/slurm\n4:hugetlb,memory:/slurm/uid_7/job_9/step_0/task_0\n1:name=systemd:/x\n0::/y\n");
    mounts("31 23 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n"
           "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
           "33 31 0:32 / /mnt/mem rw - cgroup cgroup rw,hugetlb,memory\n");
    limit1("/mnt/mem", "9223372036854771712\n");
    limit1("/mnt/mem/slurm/uid_7/job_9", "3000000000\n");
    limit1("/mnt/mem/slurm/uid_7/job_9/step_0", "2000000000\n");
    limit1("/mnt/mem/slurm/uid_7/job_9/step_0/task_0", "9223372036854771712\n");
    limit1("/sys/fs/cgroup/cpu,cpuacct/slurm", "1\n");
    expect(2000000000);
    limit1("/mnt/mem/slurm", "1000000000\n");
    expect(1000000000);
}
END_TEST

/* In a container with a namespace of groups, paths start at its own group, and its process may be outside. */
START_TEST(the_mount_shows_a_part_of_the_tree) {
    groups("4:memory:/docker/5a/inner/most\n");
    mounts("33 31 0:32 /docker/5a /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
    limit1("/sys/fs/cgroup/memory", "500000000\n");
    limit1("/sys/fs/cgroup/memory/inner", "400000000\n");
    limit1("/sys/fs/cgroup/memory/inner/most", "450000000\n");
    expect(400000000);
    groups("4:memory:/docker/5a\n");
    expect(500000000);
    /* A name that begins with the group's name is another group. */
    groups("4:memory:/docker/5ab/inner\n");
    expect(NONE);
}
END_TEST

/* A mount of other groups shows their limits, wherever it is. A folder below it may have this group's name. */
START_TEST(mounts_of_other_groups_do_not_count) {
    static const char *const others[] = {"/other", "/own/below", "/ow", "/own.slice", "/..own"};
    char text[512];
    limit2("/mnt/other", "4096\n");
    limit2("/mnt/other/own", "8192\n");
    limit2("/sys/fs/cgroup/own", "700000000\n");
    groups("0::/own\n");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(text, sizeof text, "40 23 0:26 %s /mnt/other rw - cgroup2 cgroup2 rw\n%s", others[i], MOUNT2);
        mounts(text);
        expect(700000000);
        snprintf(text, sizeof text, "30 23 0:26 %s /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", others[i]);
        mounts(text);
        expect(NONE);
    }
    mounts("30 23 0:26 /own /mnt/other rw - cgroup2 cgroup2 rw\n");
    expect(4096);
    mounts("30 23 0:26 /../.. /mnt/other rw - cgroup2 cgroup2 rw\n");
    expect(4096);
}
END_TEST

/* A container with a namespace of groups has paths from its own group on, and its process may be outside. */
START_TEST(paths_from_the_namespace_on) {
    groups("0::/app\n");
    mounts("30 23 0:26 /.. /sys/fs/cgroup rw - cgroup2 cgroup rw\n");
    limit2("/sys/fs/cgroup/app", "700000000\n");
    expect(700000000);
    groups("0::/../other/app\n");
    limit2("/sys/fs/other", "1\n");
    limit2("/sys/fs/cgroup", "800000000\n");
    expect(800000000);
}
END_TEST

/* Both versions at once, and a container whose /proc is hidden. */
START_TEST(what_is_there_counts) {
    limit2("/sys/fs/cgroup", "900000000\n");
    limit1("/sys/fs/cgroup/memory", "800000000\n");
    expect(800000000);
    groups("4:memory:/a\n0::/b/c\n");
    mounts("30 23 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
           "33 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    limit2("/sys/fs/cgroup/unified/b", "600000000\n");
    expect(600000000);
    limit1("/sys/fs/cgroup/memory/a", "500000000\n");
    expect(500000000);
    /* A group whose folder is gone, and a group with a deep path. */
    char deep[3000] = "0::";
    while (strlen(deep) < 2900)
        strcat(deep, "/group");
    groups(deep);
    expect(800000000);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("lists");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, mounts_are_read_from_the_list);
    tcase_add_test(tests, no_groups_no_limit);
    tcase_add_test(tests, the_smallest_limit_on_the_path);
    tcase_add_test(tests, version_1_has_a_tree_for_memory);
    tcase_add_test(tests, the_mount_shows_a_part_of_the_tree);
    tcase_add_test(tests, mounts_of_other_groups_do_not_count);
    tcase_add_test(tests, paths_from_the_namespace_on);
    tcase_add_test(tests, what_is_there_counts);
    return check_main("proc", &tests, 1);
}

/* Device descriptions: what is shipped is good, what is broken gets one line. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "builds/described_device.h"

Test(device, every_shipped_description_loads_and_says_where_it_was_read)
{
    char names[512], *rest = names;
    cr_assert(strlen(facts_device_names(names, sizeof names)) > 0,
              "FACTS_HOME must be the sources");
    for (char *name; (name = strsep(&rest, ",")) != NULL;) {
        facts_described_device d;
        facts_error m = { 0 };
        name += *name == ' ';
        cr_assert_eq(facts_device_load(&d, name, &m), 0, "%s", m.text);
        cr_expect_str_eq(d.name, name);
        cr_expect(d.source[0], "%s", name);
        cr_expect(strstr(d.json, "\"memoryBusWidth\""), "%s: cuDNN 9.27 wants it", name);
        bool from_specifications = strstr(name, "-spec") != NULL;
        cr_expect_eq(from_specifications, strstr(d.json, "\"deviceName\":\"described ") != NULL,
                     "%s: a product's name is for what was read off it", name);
        cr_expect_eq(from_specifications, d.read_with[0] == 0, "%s", name);
    }
}

Test(device, sm_comes_from_the_description)
{
    facts_described_device d;
    facts_error m = { 0 };
    cr_assert_eq(facts_device_load(&d, "h100-sxm", &m), 0, "%s", m.text);
    cr_expect_eq(d.sm, 90);
    cr_expect_eq(d.multiprocessors, 132);
    cr_assert_eq(facts_device_load(&d, "sm120-spec", &m), 0, "%s", m.text);
    cr_expect_eq(d.sm, 120);
}

/* A folder of its own: what is shipped may grow. */
Test(device, a_name_that_is_not_there_lists_those_that_are)
{
    char folder[] = "/tmp/facts-device-XXXXXX", devices[64], path[2][128];
    facts_described_device d;
    facts_error m = { 0 };
    cr_assert(mkdtemp(folder));
    snprintf(devices, sizeof devices, "%s/devices", folder);
    cr_assert_eq(mkdir(devices, 0755), 0);
    for (int i = 0; i < 2; i++) {
        snprintf(path[i], sizeof path[i], "%s/%s.json", devices, i ? "sm90-big" : "sm90-small");
        FILE *file = fopen(path[i], "w");
        fprintf(file,
                "{\"source\":\"a Hopper\",\"products\":[\"Hopper %s\"],"
                "\"device\":{\"deviceVer\":900,\"multiProcessorCount\":1}}",
                i ? "B7" : "S3");
        fclose(file);
    }
    setenv("FACTS_HOME", folder, 1);
    cr_expect_eq(facts_device_load(&d, "sm90-big", &m), 0, "%s", m.text);
    cr_expect_eq(facts_device_load(&d, "nvidia hopper-b7", &m), 0, "by its product: %s", m.text);
    cr_expect_str_eq(d.name, "sm90-big");
    cr_expect_eq(facts_device_load(&d, "NVIDIA GeForce Hopper S3 80GB", &m), 0, "%s", m.text);
    cr_expect_str_eq(d.name, "sm90-small", "by what a driver calls it");
    cr_expect_eq(facts_device_load(&d, "Hopper S31", &m), 2, "another product");
    cr_expect_eq(facts_device_load(&d, "sm_90", &m), 0, "by its architecture: %s", m.text);
    cr_expect_str_eq(d.name, "sm90-big", "the first");
    cr_expect_eq(facts_device_load(&d, "sm_91", &m), 2);
    cr_expect_eq(facts_device_load(&d, "small", &m), 2);
    cr_expect_eq(facts_device_load(&d, "nothing", &m), 2);
    cr_expect(strstr(m.text, "or one of: sm90-big, sm90-small"), "%s", m.text);
    cr_expect_eq(facts_device_load(&d, "../../ci/cudnn.lock", &m), 2);
    cr_expect_eq(facts_device_load(&d, "/dev/zero", &m), 2);
    cr_expect(strstr(m.text, "not a file"), "%s", m.text);
    for (int i = 0; i < 2; i++)
        unlink(path[i]);
    rmdir(devices);
    rmdir(folder);
}

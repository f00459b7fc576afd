/* What a record says of a case that was asked before. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "supervisor/resume.h"

#define WHO "\"case\":\"pass=fwd engine=all\",\"build\":\"b\",\"device\":\"cpu\","
#define LATE                                                                                       \
    "{" WHO "\"verdict\":\"inconclusive\",\"stage\":\"reference\",\"config\":0,\"more\":true}\n"
#define FIRST "{" WHO "\"verdict\":\"pass\",\"config\":0,\"more\":true}\n"
#define LAST "{" WHO "\"verdict\":\"pass\",\"config\":1}\n"

static facts_resume_state state_of(const char *record)
{
    char path[] = "/tmp/facts-resume-XXXXXX";
    facts_resume *resume;
    facts_error error = { 0 };
    const int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    cr_assert_geq(dprintf(fd, "%s", record), 0);
    close(fd);
    cr_assert_eq(facts_resume_read(&resume, path, NULL, false, NULL, &error), 0, "%s", error.text);
    facts_resume_state state = facts_resume_get(resume, "pass=fwd engine=all", "b", "cpu");
    facts_resume_free(resume);
    unlink(path);
    return state;
}

Test(resume, a_configuration_that_timed_out_in_facts_is_asked_again_whatever_the_others_answered)
{
    facts_resume_state state = state_of(LATE LAST);
    cr_expect(!state.done && state.from_config == 0, "done %d, from %d", state.done,
              state.from_config);
    cr_expect(state_of(FIRST LAST).done);
    cr_expect(state_of(LATE LAST FIRST LAST).done, "the second answer counts alone");
}

Test(resume, a_case_goes_on_at_its_first_configuration_without_a_row)
{
    facts_resume_state state = state_of(FIRST);
    cr_expect(!state.done && state.from_config == 1, "done %d, from %d", state.done,
              state.from_config);
}

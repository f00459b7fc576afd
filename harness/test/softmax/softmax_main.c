/* facts-softmax: the whole of `facts` for another operation. FACTS_WORKER names its worker. */
#include "commands/commands.h"
#include "driver/driver.h"
#include "softmax.h"

int main(int argc, char **argv)
{
    static const facts_driver softmax = { .language = &softmax_language, .proof = "type=f32" };
    return facts_run(&softmax, argc, argv);
}

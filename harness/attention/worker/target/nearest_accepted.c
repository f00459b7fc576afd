#include "nearest_accepted.h"

#include <fattn/policy.h>

void facts_row_nearest(json_t *row, fattn_context *context, const fattn_problem *refused)
{
    fattn_neighbour near[FATTN_MAX_NEIGHBOURS];
    size_t count = 0;
    if (fattn_explain(context, refused, 0, near, &count) != FATTN_OK)
        return;
    json_t *changes = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(changes, json_string(near[i].change));
    json_object_set_new(row, "nearest", changes);
}

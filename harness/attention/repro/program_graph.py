"""A recorded operation graph (fattn/descriptors.h) as lines of C: a helper for what every graph has, plain calls for the rest."""

TENSOR = (
    "CUDNN_ATTR_TENSOR_DATA_TYPE CUDNN_ATTR_TENSOR_DIMENSIONS "
    "CUDNN_ATTR_TENSOR_STRIDES CUDNN_ATTR_TENSOR_UNIQUE_ID "
    "CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT CUDNN_ATTR_TENSOR_IS_VIRTUAL "
    "CUDNN_ATTR_TENSOR_IS_BY_VALUE"
).split()

# C types of what is not a number.
WORDS = {
    "CUDNN_TYPE_DATA_TYPE": "cudnnDataType_t",
    "CUDNN_TYPE_POINTWISE_MODE": "cudnnPointwiseMode_t",
    "CUDNN_TYPE_REDUCTION_OPERATOR_TYPE": "cudnnReduceTensorOp_t",
    "CUDNN_TYPE_TENSOR_REORDERING_MODE": "cudnnBackendTensorReordering_t",
    "CUDNN_TYPE_RNG_DISTRIBUTION": "cudnnRngDistribution_t",
    "CUDNN_TYPE_RESHAPE_MODE": "cudnnBackendReshapeMode_t",
}
NUMBERS = {
    "CUDNN_TYPE_INT64": "int64_t",
    "CUDNN_TYPE_INT32": "int32_t",
    "CUDNN_TYPE_BOOLEAN": "bool",
    "CUDNN_TYPE_FLOAT": "float",
    "CUDNN_TYPE_DOUBLE": "double",
}

# An operation that a helper makes, with the description before it: (attribute that names the description, attributes of the call).
PAIRS = {
    "CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR": (
        "pointwise",
        "PW_DESCRIPTOR",
        ["XDESC", "BDESC", "TDESC", "YDESC"],
    ),
    "CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR": ("reduction", "DESC", ["XDESC", "YDESC"]),
}
MATMUL = (
    "DESC ADESC BDESC CDESC GEMM_M_OVERRIDE_DESC GEMM_N_OVERRIDE_DESC GEMM_K_OVERRIDE_DESC"
).split()
BEFORE = (
    "CUDNN_BACKEND_POINTWISE_DESCRIPTOR",
    "CUDNN_BACKEND_REDUCTION_DESCRIPTOR",
)  # made inside the helpers


class Graph:
    def __init__(self, recorded):
        self.descriptors = recorded["descriptors"]
        self.main = recorded["operation_graph"]
        self.slots = {binding["uid"]: binding["slot"] for binding in recorded["bindings"]}
        self.names, self.taken, self.used = {}, {"handle", "desc", "half"}, set()
        for place in range(len(self.descriptors)):
            self.names[place] = self.name_of(place)

    def attributes(self, place):
        return {attribute["name"]: attribute for attribute in self.descriptors[place]["attributes"]}

    def value(self, place, name):
        return self.attributes(place)[name]["values"][0]

    def name_of(self, place):
        """Of tensors of the call, their own; of others, what they are and their number."""
        kind = self.descriptors[place]["type"]
        if place == self.main:
            return "graph"
        if kind != "CUDNN_BACKEND_TENSOR_DESCRIPTOR":
            return f"{'op' if '_OPERATION_' in kind else 'd'}{place}"
        uid = self.value(place, "CUDNN_ATTR_TENSOR_UNIQUE_ID")
        slot = self.slots.get(uid, "")
        if slot in ("", "value", "scratch"):
            return f"{ {'': 't', 'value': 'constant', 'scratch': 'scratch'}[slot] }{uid}"
        name = slot.replace("[", "_").replace("]", "")
        name = name if name not in self.taken else f"{name}_{uid}"
        self.taken.add(name)
        return name

    def literal(self, attribute):
        """(count, what set() is given)."""
        kind, values = attribute["type"], attribute["values"]
        if kind in WORDS:
            return len(values), f"&({WORDS[kind]}){{ {values[0]} }}"
        if kind == "CUDNN_TYPE_BACKEND_DESCRIPTOR":
            return len(values), "(desc[]){ " + ", ".join(self.names[v] for v in values) + " }"
        if kind not in NUMBERS:
            raise ValueError(f"{attribute['name']}: no C type for {kind}")
        words = [str(v).lower() if isinstance(v, bool) else repr(v) for v in values]
        return (
            len(values),
            f"AT({', '.join(words)})"
            if kind == "CUDNN_TYPE_INT64"
            else f"(const {NUMBERS[kind]}[]){{ {', '.join(words)} }}",
        )

    def plain(self, name, attributes):
        """Each attribute by itself."""
        for attribute in attributes:
            if (
                attribute["type"] == "CUDNN_TYPE_BACKEND_DESCRIPTOR"
                and len(attribute["values"]) == 1
            ):
                yield f"give({name}, {attribute['name']}, {self.names[attribute['values'][0]]});"
            else:
                count, text = self.literal(attribute)
                yield f"set({name}, {attribute['name']}, {attribute['type']}, {count}, {text});"

    def tensor(self, place):
        attributes, name = self.attributes(place), self.names[place]
        value = {key: attributes[key]["values"] for key in TENSOR}
        if value[TENSOR[4]] != [16]:
            raise ValueError("a tensor with another alignment than 16 bytes")
        kind = "VIRTUAL" if value[TENSOR[5]][0] else "BY_VALUE" if value[TENSOR[6]][0] else "REAL"
        dim, stride = (", ".join(str(n) for n in value[key]) for key in TENSOR[1:3])
        made = f"tensor({value[TENSOR[3]][0]}, {value[TENSOR[0]][0]}, {kind}, {len(value[TENSOR[1]])}, AT({dim}), AT({stride}))"
        more = [attribute for key, attribute in attributes.items() if key not in TENSOR]
        self.used.add("tensor")
        if not more:
            return [f"desc {name} = finish({made});"]
        return [f"desc {name} = {made};", *self.plain(name, more), f"finish({name});"]

    def argument(self, place, prefix, word):
        attribute = self.attributes(place).get(prefix + word)
        return self.names[attribute["values"][0]] if attribute else "NULL"

    def operation(self, place):
        kind, name = self.descriptors[place]["type"], self.names[place]
        if kind == "CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR":
            self.used.add("matmul")
            return [
                f"desc {name} = matmul({', '.join(self.argument(place, 'CUDNN_ATTR_OPERATION_MATMUL_', word) for word in MATMUL)});"
            ]
        if kind in PAIRS:
            helper, how, words = PAIRS[kind]
            self.used.add(helper)
            prefix = f"CUDNN_ATTR_OPERATION_{helper.upper()}_"
            described = self.attributes(self.attributes(place)[prefix + how]["values"][0])
            tensors = ", ".join(self.argument(place, prefix, word) for word in words)
            if helper == "reduction":
                return [
                    f"desc {name} = reduction({described['CUDNN_ATTR_REDUCTION_OPERATOR']['values'][0]}, {tensors});"
                ]
            axis = described.get("CUDNN_ATTR_POINTWISE_AXIS", {"values": [0]})["values"][0]
            mode, math = (
                described[f"CUDNN_ATTR_POINTWISE_{key}"]["values"][0]
                for key in ("MODE", "MATH_PREC")
            )
            return [f"desc {name} = pointwise({mode}, {math}, {axis}, {tensors});"]
        return [
            f"desc {name} = create({kind});",
            *self.plain(name, self.descriptors[place]["attributes"]),
            f"finish({name});",
        ]

    def finished(self, place, done):
        """Descriptors in an order in which each comes after those that it refers to: an operation may be begun before its tensors."""
        if place in done:
            return
        done.add(place)
        for attribute in self.descriptors[place]["attributes"]:
            if attribute["type"] == "CUDNN_TYPE_BACKEND_DESCRIPTOR":
                for other in attribute["values"]:
                    yield from self.finished(other, done)
        yield place

    def lines(self):
        done = set()
        for place in (
            one for first in range(len(self.descriptors)) for one in self.finished(first, done)
        ):
            descriptor = self.descriptors[place]
            if descriptor["type"] in BEFORE:
                continue
            if descriptor["type"] == "CUDNN_BACKEND_TENSOR_DESCRIPTOR":
                yield from self.tensor(place)
            elif place == self.main:
                yield "desc graph = create(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);"
                yield from self.plain("graph", descriptor["attributes"])
                yield "set(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);"
                yield "return finish(graph);"
            else:
                yield from self.operation(place)

    def text(self):
        """The body of make_graph; `used` then names the helpers of program.c.in that it calls."""
        return "\n".join("    " + line for line in self.lines())

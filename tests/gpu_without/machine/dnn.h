/* tests/gpu_without/machine/dnn.h - cuDNN's descriptors as they are kept (dnn.cc), and what the
 * operations of a graph compute (dnn_steps.cc). */
#ifndef HPCT_TESTS_GPU_WITHOUT_MACHINE_DNN_H
#define HPCT_TESTS_GPU_WITHOUT_MACHINE_DNN_H

#include "tests/gpu_without/machine/numbers.h"
#include "tests/gpu_without/machine/streams.h"

#include <cudnn.h>
#include <functional>
#include <map>
#include <memory>
#include <string.h>
#include <string>
#include <vector>

namespace emulated::dnn
{

struct thing;
typedef std::shared_ptr<thing> reference;

struct thing {
    cudnnBackendDescriptorType_t type;
    bool final;
    std::map<int, std::vector<char>> values;
    std::map<int, std::vector<reference>> parts;

    template <typename T> std::vector<T> all(int name) const
    {
        auto found = values.find(name);
        if (found == values.end())
            return {};
        std::vector<T> list(found->second.size() / sizeof(T));
        memcpy(list.data(), found->second.data(), list.size() * sizeof(T));
        return list;
    }

    template <typename T> T one(int name) const
    {
        std::vector<T> list = all<T>(name);
        if (list.size() != 1)
            broken("cuDNN: attribute %d of a descriptor of type %d has %zu values", name,
                   (int) type, list.size());
        return list[0];
    }

    template <typename T> void put(int name, std::vector<T> list)
    {
        values[name].assign((const char *) list.data(), (const char *) (list.data() + list.size()));
    }

    const reference &part(int name) const
    {
        auto found = parts.find(name);
        if (found == parts.end() || found->second.size() != 1)
            broken("cuDNN: part %d of a descriptor of type %d is missing", name, (int) type);
        return found->second[0];
    }
};
struct tensor {
    int64_t id;
    number type;
    bool inside;
    int64_t size[4], stride[4];

    size_t count() const
    {
        return (size_t) (size[0] * size[1] * size[2] * size[3]);
    }

    /* [n][h][w][c] in memory, too. */
    bool is_plain() const
    {
        return stride[1] == 1 && stride[3] == size[1] && stride[2] == size[3] * size[1] &&
               stride[0] == size[2] * size[3] * size[1];
    }
};

tensor tensor_of(const thing &t);
tensor tensor_of(const thing &operation, int name);

/* [n][h][w][c] in fp32. */
typedef std::vector<float> values;

/* One run: the tensors that lie in memory, and those that do not. */
struct state {
    std::map<int64_t, void *> pointers;
    std::map<int64_t, values> inside;

    template <typename V> void visit(const tensor &t, V each) const
    {
        size_t i = 0;
        for (int64_t n = 0; n < t.size[0]; n++)
            for (int64_t h = 0; h < t.size[2]; h++)
                for (int64_t w = 0; w < t.size[3]; w++)
                    for (int64_t c = 0; c < t.size[1]; c++)
                        each(i++, (size_t) (n * t.stride[0] + c * t.stride[1] + h * t.stride[2] +
                                            w * t.stride[3]));
    }

    values load(const tensor &t)
    {
        if (t.inside) {
            auto found = inside.find(t.id);
            if (found == inside.end())
                broken("cuDNN: tensor %d is read before it is made", (int) t.id);
            return found->second;
        }
        const void *from = pointers.at(t.id);
        values v(t.count());
        if (t.is_plain())
            read(from, t.type, 0, v.size(), v.data());
        else
            visit(t, [&](size_t to, size_t place) { v[to] = read(from, t.type, place); });
        return v;
    }

    void store(const tensor &t, values v)
    {
        if (t.inside) {
            inside[t.id] = std::move(v);
            return;
        }
        void *to = pointers.at(t.id);
        if (t.is_plain())
            write(to, t.type, 0, v.size(), v.data());
        else
            visit(t, [&](size_t from, size_t place) { write(to, t.type, place, v[from]); });
    }
};

/* What an operation does in a run. */
typedef std::function<void(state &)> step;
step step_of(const thing &operation);

/* Whether the sizes of a convolution go together; true of all else. */
bool fits(const thing &operation);

/* Bytes that an operation reads of what it adds its result to. */
size_t bytes_added_to(const thing &operation);

} // namespace emulated::dnn

#endif

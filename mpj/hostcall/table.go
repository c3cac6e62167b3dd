package hostcall

// A table assigns handles to values, starting with 1. It reuses free handles.
type table[T any] struct {
	things []*T
	free   []uint32
}

// maxHandles bounds a table. Only a program that starts requests without waiting for them exceeds it.
const maxHandles = 1 << 22

func (t *table[T]) put(thing *T) uint32 {
	if last := len(t.free) - 1; last >= 0 {
		h := t.free[last]
		t.free = t.free[:last]
		t.things[h-1] = thing
		return h
	}
	if len(t.things) >= maxHandles {
		panic(faultf("more than %d open handles", maxHandles))
	}
	t.things = append(t.things, thing)
	return uint32(len(t.things))
}

func (t *table[T]) get(h uint32) *T {
	if h == 0 || int64(h) > int64(len(t.things)) || t.things[h-1] == nil {
		panic(faultf("unknown handle %d", h))
	}
	return t.things[h-1]
}

func (t *table[T]) drop(h uint32) {
	t.things[h-1] = nil
	t.free = append(t.free, h)
}

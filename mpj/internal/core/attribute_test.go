package core

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// TestAttributesFollowTheCommunicator checks that a duplicate gets the attributes that the copy functions return, in
// the order in which they were set, that Free deletes them in the opposite order, and that a delete function may refuse.
func TestAttributesFollowTheCommunicator(t *testing.T) {
	inWorld(t, 1, func(world *Comm) error {
		var calls []string
		refused := false
		key := func(name string) *Keyval {
			return &Keyval{
				Copy: func(_ *Comm, value any) (any, bool) { calls = append(calls, "copy "+name); return value, name != "b" },
				Delete: func(*Comm, any) error {
					if calls = append(calls, "delete "+name); refused {
						return errors.New("refused")
					}
					return nil
				},
			}
		}
		a, b, c, local := key("a"), key("b"), key("c"), new(Keyval)
		for i, k := range []*Keyval{a, b, c, local} {
			if err := PutAttribute(world, k, i); err != nil {
				return err
			}
		}
		world.SetHandler("handler")
		d := new(Comm)
		if err := Dup(world, d, nil, nil); err != nil {
			return err
		}
		for k, want := range map[*Keyval]any{a: 0, b: nil, c: 2, local: nil} {
			if got, ok := Attribute(d, k); got != want || ok != (want != nil) {
				return fmt.Errorf("the duplicate has %v, %t; want %v", got, ok, want)
			}
		}
		if d.Handler() != "handler" {
			return fmt.Errorf("the duplicate has handler %v", d.Handler())
		}
		refused = true
		if err := Free(d); !errors.Is(err, ErrOther) || d.Check() != nil {
			return unexpected(err, "the communicator was freed")
		}
		refused = false
		if err := Free(d); err != nil || d.Check() == nil {
			return unexpected(err, "the communicator was not freed")
		}
		want := []string{"copy a", "copy b", "copy c", "delete c", "delete c", "delete a"}
		if !slices.Equal(calls, want) {
			return fmt.Errorf("got %q, want %q", calls, want)
		}
		return nil
	})
}

package peer

import (
	"errors"
	"testing"
)

func TestOwnersNameJobsByTheirBeginning(t *testing.T) {
	ids := []string{"3f2b8c1e77", "3f2b9000", "77", "7777", "77"}
	for prefix, want := range map[string]struct {
		id  string
		err error
	}{
		"3f2b8c1e77": {"3f2b8c1e77", nil},
		"3f2b8c1e":   {"3f2b8c1e77", nil},
		"3f2b":       {"", errAmbiguous},
		"77":         {"77", nil}, // all of it, twice
		"777":        {"7777", nil},
		"9":          {"", errNotHosted},
		"":           {"", errNotHosted},
	} {
		if id, err := nameIn(ids, prefix); id != want.id || !errors.Is(err, want.err) {
			t.Errorf("%q: got %q, %v; want %q, %v", prefix, id, err, want.id, want.err)
		}
	}
}

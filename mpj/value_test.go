package mpj

import "testing"

// FuzzDecode holds that a value that another rank sends is one or an error.
func FuzzDecode(f *testing.F) {
	type value struct {
		Name  string
		Parts map[string][]int
	}
	b, err := encode(new(Comm), "SendValue", value{"x", map[string][]int{"a": {1, 2}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)-1])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := decode[value](new(Comm), "RecvValue", b)
		if err != nil {
			return
		}
		if _, err := encode(new(Comm), "SendValue", v); err != nil {
			t.Errorf("%+v was received and cannot be sent: %v", v, err)
		}
	})
}

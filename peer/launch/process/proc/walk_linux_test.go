package proc

import (
	"reflect"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMappingIsRead(t *testing.T) {
	for line, want := range map[string]mapping{
		"7f0a0000-7f0b0000 r--s 00001000 08:02 173521      /tmp/a  b (deleted)\n": {
			[]byte("7f0a0000-7f0b0000"), 4096, file{unix.Mkdev(8, 2), 173521}, []byte("/tmp/a  b (deleted)"),
		},
		"7f0a0000-7f0a1000 rw-p 00000000 00:00 0 \n": {at: []byte("7f0a0000-7f0a1000")},
	} {
		got := readMapping([]byte(line))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %+v, want %+v", line, got, want)
		}
		if d := len(want.name) > 0; got.deleted() != d {
			t.Errorf("%q: deleted %v, want %v", line, got.deleted(), d)
		}
	}
	if got := (mapping{at: []byte("7f0a0000-7f0b0000")}).length(); got != 1<<16 {
		t.Errorf("got %d bytes", got)
	}
}

func TestSpan(t *testing.T) {
	for text, want := range map[string]string{
		"00400000-00452000": "400000-452000", "7f0a-7f0b": "7f0a-7f0b", "00000000-00001000": "0-1000", "": "", "x": "x",
	} {
		if got := span(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

package filetransfer

import (
	"slices"
	"testing"
)

func TestContentIsFreeOnceNoJobPinsIt(t *testing.T) {
	p := pins{}
	one, other := Digest{1}, Digest{2}
	for _, tt := range []struct {
		job   string
		d     Digest
		first bool
	}{{"a", one, true}, {"a", one, false}, {"b", one, false}, {"b", other, true}} {
		if got := p.add(tt.job, tt.d); got != tt.first {
			t.Errorf("pin of %v by job %s: first %v, want %v", tt.d[0], tt.job, got, tt.first)
		}
	}
	if got, want := p.remove("b"), []Digest{other}; !slices.Equal(got, want) {
		t.Errorf("the contents free after job b are %v, want %v", got, want)
	}
	if got, want := p.remove("a"), []Digest{one}; !slices.Equal(got, want) {
		t.Errorf("the contents free after job a are %v, want %v", got, want)
	}
	if got := p.remove("a"); got != nil || len(p) > 0 {
		t.Errorf("the contents free after job a was removed again are %v; pins left: %v", got, p)
	}
}

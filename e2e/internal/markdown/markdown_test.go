package markdown

import (
	"os"
	"path/filepath"
	"testing"
)

func TestInsertReplacesItsSectionOnly(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	page := "# A\n<!-- ours:x -->\nold\n<!-- /ours:x -->\nb\n<!-- ours:y -->\n<!-- /ours:y -->\n"
	if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second call replaces the output of the first
		if err := Insert(file, "ours:x", "new\n"); err != nil {
			t.Fatal(err)
		}
	}
	got, _ := os.ReadFile(file)
	want := "# A\n<!-- ours:x -->\n\nnew\n\n<!-- /ours:x -->\nb\n<!-- ours:y -->\n<!-- /ours:y -->\n"
	if string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := Insert(file, "ours:z", "new"); err == nil {
		t.Error("a missing section was written")
	}
}

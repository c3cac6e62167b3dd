package tool

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExitStatuses(t *testing.T) {
	echo := Tool[string]{
		Name: "echo",
		Parse: func(flags *flag.FlagSet, args []string) (string, error) {
			text := flags.String("text", "", "what to say")
			err := flags.Parse(args)
			return *text, err
		},
		Work: func(_ context.Context, text string, stdout, _ io.Writer) error {
			if text == "" {
				return errors.New("nothing to say")
			}
			_, err := io.WriteString(stdout, text)
			return err
		},
	}
	for _, tt := range []struct {
		args           []string
		status         int
		stdout, stderr string
	}{
		{[]string{"-text", "aha"}, 0, "aha", ""},
		{[]string{"-h"}, 0, "", "what to say"},
		{[]string{"-x"}, 64, "", "echo: flag provided"},
		{nil, 1, "", "echo: nothing to say"},
	} {
		var stdout, stderr bytes.Buffer
		status := echo.Run(t.Context(), tt.args, &stdout, &stderr)
		if status != tt.status || stdout.String() != tt.stdout || !strings.Contains(stderr.String(), tt.stderr) {
			t.Errorf("%q: exit status %d, %q, %q", tt.args, status, &stdout, &stderr)
		}
	}
}

func TestPublish(t *testing.T) {
	sections := []Section{{"a", "table"}, {"b", ""}}
	var stdout bytes.Buffer
	if err := Publish(sections, "echo", "", "page.md", &stdout); err != nil || stdout.String() != "## a\n\ntable\n" {
		t.Errorf("got %q, %v", &stdout, err)
	}
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	if err := os.WriteFile(page, []byte("<!-- echo:a -->\nold\n<!-- /echo:a -->\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Publish(sections, "echo", dir, "page.md", io.Discard); err != nil {
		t.Error(err)
	}
	if got, _ := os.ReadFile(page); !strings.Contains(string(got), "table") || strings.Contains(string(got), "old") {
		t.Errorf("got %q", got)
	}
	if err := Publish([]Section{{"c", "x"}}, "echo", dir, "page.md", io.Discard); err == nil {
		t.Error("a section that the page does not have was written")
	}
}

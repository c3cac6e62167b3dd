package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHelpFitsATerminal(t *testing.T) {
	var out, errs bytes.Buffer
	if status := run(t.Context(), []string{"--help"}, &out, &errs); status != 0 || errs.Len() > 0 {
		t.Fatalf("got status %d, %s", status, errs.String())
	}
	for line := range strings.Lines(out.String()) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if !strings.Contains(out.String(), "Examples:") || !strings.Contains(out.String(), "Exit status:") {
		t.Error("no examples or no exit statuses")
	}
}

// TestMistypedVariableIsRefused checks that p2phalt rejects a mistyped variable, as the other commands do.
func TestMistypedVariableIsRefused(t *testing.T) {
	t.Setenv("P2PMPI_HOEM", t.TempDir())
	var out, errs bytes.Buffer
	if status := run(t.Context(), nil, &out, &errs); status != 64 || !strings.Contains(errs.String(), "did you mean P2PMPI_HOME?") {
		t.Errorf("got status %d, %q", status, errs.String())
	}
}

func TestMistakes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args   []string
		status int
		want   string
	}{
		"no folder":      {[]string{"--home", filepath.Join(file, "x")}, 73, "p2phalt: error: home " + file},
		"no peer":        {[]string{"--home", t.TempDir()}, 69, "p2phalt: error: no peer is running on home"},
		"both":           {[]string{"--drain", "--now"}, 64, "cannot be combined"},
		"argument":       {[]string{"please"}, 64, `unexpected argument "please"`},
		"mistyped":       {[]string{"--drian"}, 64, "p2phalt: hint: did you mean --drain?"},
		"no dashes":      {[]string{"now"}, 64, "p2phalt: hint: did you mean p2phalt --now?"},
		"unknown option": {[]string{"--force"}, 64, "unknown option"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if status := run(t.Context(), test.args, &out, &errs); status != test.status {
				t.Errorf("got status %d, want %d", status, test.status)
			}
			if !strings.Contains(errs.String(), test.want) {
				t.Errorf("got %q, want %q", errs.String(), test.want)
			}
		})
	}
}

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTablesAndPlotsOfSmallNetworks(t *testing.T) {
	dir := t.TempDir()
	page := ""
	for _, s := range []string{"growth", "limits"} {
		page += "<!-- finding:" + s + " -->\n<!-- /finding:" + s + " -->\n"
	}
	file := filepath.Join(dir, "networking.md")
	if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	if status := command.Run(t.Context(), []string{"-worlds", "1", "-peers", "300", "-out", dir}, nil, &errs); status != 0 {
		t.Fatalf("got status %d: %s", status, errs.String())
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| 300 | a peer | ", "| 300 | a newcomer | ", "| 8 asked at a time | a peer | ", "-worlds 1 -seed 1"} {
		if !strings.Contains(string(got), want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for _, plot := range []string{"finding-time.svg", "finding-messages.svg"} {
		if info, err := os.Stat(filepath.Join(dir, "networking", plot)); err != nil || info.Size() == 0 {
			t.Errorf("plot %s is missing or empty: %v", plot, err)
		}
	}
}

// TestSignalEndsTheCommand checks that a signal ends the command, and that it writes no tables without
// measurements.
func TestSignalEndsTheCommand(t *testing.T) {
	ctx, told := context.WithCancel(t.Context())
	told()
	var out, errs bytes.Buffer
	if status := command.Run(ctx, []string{"-worlds", "1", "-peers", "300"}, &out, &errs); status != 1 || out.Len() > 0 || !strings.Contains(errs.String(), "canceled") {
		t.Errorf("got status %d, %q, %q", status, &out, &errs)
	}
}

func TestMistakes(t *testing.T) {
	for _, args := range [][]string{{"-worlds", "0"}, {"-peers", "10"}, {"more"}, {"-x"}} {
		if status := command.Run(t.Context(), args, &bytes.Buffer{}, &bytes.Buffer{}); status != 64 {
			t.Errorf("%v: got status %d, want 64", args, status)
		}
	}
}

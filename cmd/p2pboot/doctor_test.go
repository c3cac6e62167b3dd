package main

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/peer/control/doctor"
)

// TestDoctorExitStatusIsTheWorst runs the command without a peer, with free and with taken ports.
func TestDoctorExitStatusIsTheWorst(t *testing.T) {
	skip.Long(t)
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	tests := map[string]struct {
		listen string
		status int
		about  string
		level  doctor.Level
	}{
		"no peer":     {"/ip4/127.0.0.1/tcp/0", 1, "peer", doctor.Warning},
		"ports taken": {"/ip4/127.0.0.1/tcp/" + strings.TrimPrefix(taken.Addr().String(), "127.0.0.1:"), 2, "ports", doctor.Failing},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			status := run(t.Context(), []string{"doctor", "--json", "--home", t.TempDir(), "--listen", test.listen}, &out, &errs)
			var all []doctor.Finding
			if err := json.Unmarshal(out.Bytes(), &all); err != nil {
				t.Fatal(err)
			}
			if doctor.Worst(all) == doctor.Failing && test.status != 2 {
				skip.Lacks(t, "a machine without other problems")
			}
			if status != test.status || errs.Len() > 0 {
				t.Errorf("got status %d, want %d; %s", status, test.status, errs.String())
			}
			if !slices.ContainsFunc(all, func(f doctor.Finding) bool { return f.About == test.about && f.Level == test.level }) {
				t.Errorf("got %+v, want %s: %s", all, test.level, test.about)
			}
		})
	}
}

// TestDoctorReportsUnusableHome checks that the report does not blame the machine for the consequences of an
// unusable home.
func TestDoctorReportsUnusableHome(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if status := run(t.Context(), []string{"doctor", "--nat=false", "--home", filepath.Join(file, "x"), "--listen", "/ip4/127.0.0.1/tcp/0"}, &out, &errs); status != 2 || errs.Len() > 0 {
		t.Errorf("got status %d, want 2; %s", status, errs.String())
	}
	if text := out.String(); !strings.Contains(text, "failure  home: ") || strings.Contains(text, "confinement") {
		t.Errorf("p2pboot doctor printed %s", text)
	}
}

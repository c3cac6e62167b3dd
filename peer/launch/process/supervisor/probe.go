package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/peer/launch/confine/sandbox"
)

// Probe finds out which sandbox mechanisms this machine provides to its peer, by trying them on a program
// with a folder below root. It takes some ten milliseconds.
func Probe(root string) sandbox.Report {
	r, err := probeWith(root, sandbox.Means{Namespaces: true})
	if err == nil && r.Namespaces {
		return r
	}
	why := "no namespaces: " + r.NoNamespaces
	if err != nil {
		why = "no namespaces: " + err.Error()
	}
	if r, err = probeWith(root, sandbox.Means{}); err != nil {
		r = sandbox.Report{NoLandlock: err.Error(), NoSeccomp: err.Error()}
	}
	r.NoNamespaces = why
	return r
}

// probeWith tries the given means in a supervisor.
func probeWith(root string, means sandbox.Means) (r sandbox.Report, err error) {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return r, err
	}
	folder, err := os.MkdirTemp(root, "probe-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(folder)
	program := filepath.Join(folder, "program")
	if err := os.WriteFile(program, nil, 0o700); err != nil {
		return r, err
	}
	line, inherited, err := proclink.Pair()
	if err != nil {
		return r, err
	}
	defer line.Close()
	defer inherited.Close()
	late := time.Now().Add(startTimeout)
	p, err := fork(Command{Title: "probe", Socket: inherited, Sandbox: means}, late)
	if err != nil {
		return r, err
	}
	defer p.report.Close()
	defer p.cmd.Wait()
	defer p.cmd.Process.Kill() // it may hang, for instance in a network file system whose server is gone
	defer p.life.Close()
	p.report.SetReadDeadline(late)
	o := order{Plan: sandbox.Plan{Means: means, Program: program, Scratch: folder}, Stdin: os.DevNull, Probe: true}
	if err := json.NewEncoder(p.life).Encode(o); err != nil {
		return r, err
	}
	var s started
	if err := json.NewDecoder(p.report).Decode(&s); err != nil {
		return r, fmt.Errorf("no report from the probe: %w", err)
	}
	if s.Error != "" {
		return r, errors.New(s.Error)
	}
	return s.Found, nil
}

package submit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/internal/jobspec"
)

// Program and inputs are recorded for peers that join the job later, so that a process that resumes
// the job can send them. A program that a p2prun has built is lost if that p2prun is killed: the next
// p2prun removes it.
//
//	<jobs>/<ID>/work       a keptWork, as JSON
//	            contents/  the programs and the list of the input files, by digest;
//	                       input files that were downloaded
//
// Other input files stay where the user has them. A peer refuses one that has changed since.

// keptWork is the information that a peer needs to run a process of the job.
type keptWork struct {
	Spec   []byte            `json:"spec"`   // signed; see package jobspec
	Inputs map[string]string `json:"inputs"` // path of each input file, by digest
}

// unreplaced returns the warning that recording the work has failed.
func unreplaced(err error) string {
	return fmt.Sprintf("if this p2prun is killed, p2prun --attach will not replace lost replicas: %v", err)
}

// contents returns the contents that are copied for a job: its programs, and the list of its input
// files.
func contents(spec jobspec.Spec) (ds []filetransfer.Digest, err error) {
	names := []string{spec.Inputs}
	for _, p := range spec.Programs {
		names = append(names, p.Digest)
	}
	for _, name := range names {
		d, wrong := filetransfer.ParseDigest(name)
		ds, err = append(ds, d), errors.Join(err, wrong)
	}
	return ds, err
}

func (k *keeper) content(d filetransfer.Digest) string {
	return filepath.Join(k.dir, "contents", d.String())
}

// writeWork records the data that peers need to run a process of j, if lost replicas of j are
// replaced.
func (k *keeper) writeWork(j *run) error {
	if k == nil || !j.req.Heal {
		return nil
	}
	whole, err := contents(j.spec)
	if err == nil {
		err = os.MkdirAll(filepath.Join(k.dir, "contents"), 0o700)
	}
	w := keptWork{Spec: j.envelope, Inputs: make(map[string]string)}
	for d, s := range j.local {
		absolute, wrong := filepath.Abs(s.From)
		w.Inputs[d.String()], err = absolute, errors.Join(err, wrong)
	}
	for _, d := range whole {
		delete(w.Inputs, d.String())
		if err == nil {
			err = copyFile(k.content(d), j.local[d].From)
		}
	}
	for _, d := range j.downloaded {
		w.Inputs[d.String()] = k.content(d)
		if err == nil {
			err = linkFile(k.content(d), j.local[d].From)
		}
	}
	text, wrong := json.Marshal(w)
	if err = errors.Join(err, wrong); err == nil {
		err = os.WriteFile(filepath.Join(k.dir, "work"), text, 0o600)
	}
	if err != nil {
		os.RemoveAll(filepath.Join(k.dir, "contents")) // the rest of the job may still fit on the disk
		return fmt.Errorf("keep the program: %w", err)
	}
	return nil
}

// linkFile makes a read-only file available at a second path, without a copy if both are on one
// file system.
func linkFile(to, from string) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	return copyFile(to, from)
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// readWork restores the spec and the contents of j from the record.
func (k *keeper) readWork(j *run) error {
	var w keptWork
	text, err := os.ReadFile(filepath.Join(k.dir, "work"))
	if err == nil {
		err = json.Unmarshal(text, &w)
	}
	if err != nil {
		return fmt.Errorf("the program was not kept: %w", err)
	}
	spec, err := jobspec.Verify(w.Spec)
	if err != nil {
		return err
	}
	if spec.ID != j.spec.ID || spec.Submitter != j.spec.Submitter {
		return fmt.Errorf("the record contains job %s of %s", spec.ID, spec.Submitter)
	}
	local := make(map[filetransfer.Digest]filetransfer.Source)
	for name, path := range w.Inputs {
		d, wrong := filetransfer.ParseDigest(name)
		local[d], err = filetransfer.Source{From: path}, errors.Join(err, wrong)
	}
	whole, wrong := contents(*spec)
	err = errors.Join(err, wrong)
	for _, d := range whole {
		local[d] = filetransfer.Source{From: k.content(d)}
		_, wrong := os.Stat(local[d].From)
		err = errors.Join(err, wrong)
	}
	if err != nil {
		return fmt.Errorf("the program was not kept: %w", err)
	}
	j.spec, j.envelope, j.local = *spec, w.Spec, local
	return nil
}

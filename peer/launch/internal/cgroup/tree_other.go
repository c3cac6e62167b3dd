//go:build !linux

package cgroup

import "errors"

// A Tree is where a peer makes the groups of its jobs: there are none on this system.
type Tree struct{}

// Open returns a Tree that has nothing.
func Open(string) *Tree { return &Tree{} }

// Missing says why a controller cannot be used.
func (*Tree) Missing(Controller) error { return errors.New("this system has no control groups") }

// Home returns nothing.
func (*Tree) Home() []string { return nil }

// NewJob returns a group that holds nobody.
func (*Tree) NewJob(string, Quota) (*Group, error) { return &Group{}, nil }

// A Group is that of a job, or of a process.
type Group struct{}

// GiveWay does nothing.
func (*Group) GiveWay(Precedence) error { return nil }

// Hurry does nothing.
func (*Group) Hurry() {}

// SetCPU does nothing.
func (*Group) SetCPU(int64) error { return nil }

// NewProcess returns a group that holds nobody.
func (*Group) NewProcess(string, Quota) (*Group, error) { return &Group{}, nil }

// Folders returns nothing.
func (*Group) Folders() []string { return nil }

// Usage returns nothing.
func (*Group) Usage() Usage { return Usage{} }

// Processes returns nothing.
func (*Group) Processes() []int { return nil }

// Remove does nothing.
func (*Group) Remove() error { return nil }

// Enter does nothing.
func Enter([]string) error { return nil }

// RemoveEmpty does nothing.
func RemoveEmpty([]string) {}

//go:build !linux

package cgroup

import "errors"

// A Tree is empty: this system has no control groups.
type Tree struct{}

// Open returns an empty Tree.
func Open(string) *Tree { return &Tree{} }

// Missing returns the reason why a controller cannot be used.
func (*Tree) Missing(Controller) error { return errors.New("this system has no control groups") }

// Home returns nothing.
func (*Tree) Home() []string { return nil }

// NewJob returns a group without effect.
func (*Tree) NewJob(string, Quota) (*Group, error) { return &Group{}, nil }

// A Group is the control group of a job or of a process.
type Group struct{}

// SetPriority does nothing.
func (*Group) SetPriority(Priority) error { return nil }

// RestoreWeight does nothing.
func (*Group) RestoreWeight() {}

// SetCPU does nothing.
func (*Group) SetCPU(int64) error { return nil }

// NewProcess returns a group without effect.
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

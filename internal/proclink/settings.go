package proclink

import (
	"fmt"
	"slices"
	"strings"
)

// CheckVariable and CollectiveVariable are environment variables of p2prun that every process of a job
// gets as well; package mpj documents them.
const (
	CheckVariable      = "P2PMPI_CHECK"
	CollectiveVariable = "P2PMPI_COLL"
)

var settings = []string{CheckVariable, CollectiveVariable}

// maxSetting bounds a setting, in bytes including its name.
const maxSetting = 4096

// Settings returns the variables that have a nonempty value, as NAME=value.
func Settings(getenv func(string) string) []string {
	var all []string
	for _, name := range settings {
		if value := getenv(name); value != "" {
			all = append(all, name+"="+value)
		}
	}
	return all
}

// CheckSettings validates settings from another peer. It returns an error for the first setting that a process may
// not get.
func CheckSettings(all []string) error {
	if len(all) > len(settings) {
		return fmt.Errorf("%d settings, only %d exist", len(all), len(settings))
	}
	for _, s := range all {
		name, _, _ := strings.Cut(s, "=")
		switch {
		case !slices.Contains(settings, name):
			return fmt.Errorf("unknown setting %.100q: want one of %s", name, strings.Join(settings, ", "))
		case len(s) > maxSetting:
			return fmt.Errorf("setting %s has %d bytes, at most %d are allowed", name, len(s), maxSetting)
		case strings.ContainsRune(s, 0):
			return fmt.Errorf("setting %s contains a zero byte", name)
		}
	}
	return nil
}

package proclink

import (
	"slices"
	"strings"
	"testing"
)

func TestSettingsIncludeOnlyKnownVariables(t *testing.T) {
	user := map[string]string{CheckVariable: "1", "HOME": "/home/user"}
	got := Settings(func(name string) string { return user[name] })
	if want := []string{"P2PMPI_CHECK=1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := CheckSettings(got); err != nil {
		t.Error(err)
	}
}

// TestO1OtherSettingsAreRefused checks that a job cannot set other environment variables for its processes.
func TestO1OtherSettingsAreRefused(t *testing.T) {
	for name, settings := range map[string][]string{
		"another variable": {"LD_PRELOAD=/x.so"},
		"empty setting":    {""},
		"too long":         {CheckVariable + "=" + strings.Repeat("1", maxSetting)},
		"zero byte":        {CheckVariable + "=\x00"},
		"too many":         {"P2PMPI_CHECK=1", "P2PMPI_CHECK=1", "P2PMPI_CHECK=1"},
	} {
		if CheckSettings(settings) == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

package peer

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/peer/launch"
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
	"github.com/p2pmpi/p2pmpi/peer/owner/presence"
)

// TestBuiltInEngineIsTheDefault checks that no engine next to the program's file is used.
func TestBuiltInEngineIsTheDefault(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	beside := filepath.Join(filepath.Dir(self), "p2pmpi-wasmtime")
	if err := os.WriteFile(beside, []byte("#!/bin/sh\necho another\n"), 0o755); err != nil {
		skip.Lacks(t, err)
	}
	defer os.Remove(beside)
	cfg := DefaultConfig()
	if got := cfg.chooseEngine(t.TempDir(), launch.Sandbox{}, zerolog.Nop()); got != launch.BuiltIn() {
		t.Errorf("the engine is %q", got.Name)
	}
	cfg.WasmEngine = "bin/engine"
	if cfg.Validate() == nil {
		t.Error("a relative path is accepted, although it has no base folder")
	}
}

// TestLocalPeersHaveNoLimits checks that local peers, which run their user's own programs, have no limits.
func TestLocalPeersHaveNoLimits(t *testing.T) {
	for want, c := range map[bool]Config{true: LocalConfig(), false: DefaultConfig()} {
		g, err := c.Grant(t.TempDir(), c.Slots)
		if err != nil || (g == limits.Grant{}) != want {
			t.Errorf("the grant is %+v, %v", g, err)
		}
	}
}

func TestOpenNetworkWarning(t *testing.T) {
	invited := t.TempDir()
	folder := filepath.Join(invited, "networks", "lab")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "token"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	token := filepath.Join(t.TempDir(), "token")
	for name, c := range map[string]struct {
		change func(*Config)
		warns  bool
	}{
		"the default network": {func(c *Config) { c.Network = DefaultConfig().Network }, false},
		"no invitation":       {func(*Config) {}, true},
		"meant":               {func(c *Config) { c.Open = true }, false},
		"an invitation":       {func(c *Config) { c.Home = invited }, false},
		"the user's home":     {func(c *Config) { c.MemberOf = invited }, false},
		"a token":             {func(c *Config) { c.Token = token }, false},
	} {
		cfg := DefaultConfig()
		cfg.Home, cfg.Network = t.TempDir(), "lab"
		c.change(&cfg)
		if got := cfg.NetworkChoice().OpenWarning(); (got != "") != c.warns {
			t.Errorf("%s: the warning is %q", name, got)
		}
	}
}

// TestLocalPeersHaveNoSuspendRules checks that local peers have no suspend rules: their user wants the job
// to run, even on battery.
func TestLocalPeersHaveNoSuspendRules(t *testing.T) {
	for want, c := range map[bool]Config{false: LocalConfig(), true: DefaultConfig()} {
		if rules, err := presence.ParseRules(c.PauseWhen); err != nil || (len(rules) > 0) != want {
			t.Errorf("the suspend rules are %v, %v", rules, err)
		}
	}
}

package peer

import (
	"os"
	"path/filepath"
	"testing"
)

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
		if got := cfg.OpenWarning(); (got != "") != c.warns {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

package machine

import (
	"os"
	"path/filepath"
	"testing"
)

func TestGroupLimit(t *testing.T) {
	const v2, v1 = "0::/user/p2p\n", "9:cpu:/\n8:pids:/user/p2p\n"
	tests := map[string]struct {
		groups string
		files  map[string]string // below sys/fs/cgroup
		want   uint64
	}{
		"no control groups": {"", nil, Unlimited},
		"no limit":          {v2, map[string]string{"user/p2p/pids.max": "max\n"}, Unlimited},
		"its own":           {v2, map[string]string{"user/p2p/pids.max": "100\n", "user/pids.max": "200\n"}, 100},
		"of a parent":       {v2, map[string]string{"user/p2p/pids.max": "max\n", "user/pids.max": "200\n", "pids.max": "300\n"}, 200},
		"version 1":         {v1, map[string]string{"pids/user/old.max": "50\n", "user/pids.max": "1\n"}, 50},
		"of a container":    {v1, map[string]string{"pids/old.max": "70\n"}, 70},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write := func(file, text string) {
				file = filepath.Join(root, file)
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write("proc/self/cgroup", test.groups)
			for file, text := range test.files {
				write(filepath.Join("sys/fs/cgroup", file), text)
			}
			if got := groupLimit(root, "pids", "pids.max", "old.max"); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

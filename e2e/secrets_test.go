package e2e

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSecretsAreNotRevealed checks that secrets do not leak: the network's token, its owner's key, a
// peer's identity, and the password of the status page. They must not occur in logs at the most
// verbose level, in p2prun's messages, in command lines, or in the environment of programs.
func TestSecretsAreNotRevealed(t *testing.T) {
	t.Parallel()
	m := *loopback
	m.boot = append(m.boot[:len(m.boot):len(m.boot)], "--network", "lab", "--log-level", "trace", "--http", "127.0.0.1:0")
	home := t.TempDir()
	network(t, home, "create", "lab")
	token := network(t, home, "invite")
	volunteer := m.startPeer(t, home)
	volunteer.awaitReady()
	member := t.TempDir()
	joined := m.joins(t, member, token)
	second := m.startPeer(t, member, "--supernode", volunteer.addr)
	second.awaitReady()
	j := m.submit(t, t.TempDir(), "--network", "lab", "--token", tokenFile(t, token), "--supernode", volunteer.addr, "-n", "2", "-w", "60", "--verbose",
		filepath.Join(bin, "stepper"), "-steps", "1000000", "-every", "10", "-work", "0", "-pause", "10ms")
	j.waitRunning()
	j.printed("rank 1 step 20 ")

	told := map[string]string{
		"log of the first peer":  volunteer.log.String(),
		"log of the second peer": second.log.String(),
		"output of p2prun":       j.stderr.String(),
		"output of join":         joined,
	}
	for pid := range workingFolders() {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		told[fmt.Sprintf("command line of process %d", pid)] = string(line)
	}
	program, ok := volunteer.rankProcess(processOn(j, volunteer))
	if !ok {
		t.Fatal("no process on the first peer")
	}
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", program))
	if err != nil || len(environment) == 0 {
		t.Fatalf("environment of the program: %q, %v", environment, err)
	}
	told["environment of the program"] = string(environment)
	for place, text := range told {
		for _, h := range []string{home, member} {
			for _, file := range []string{"identity", "http-password", "networks/lab/token", "networks/lab/owner"} {
				for _, secret := range forms(t, filepath.Join(h, file)) {
					if strings.Contains(text, secret) {
						t.Errorf("%s contains the secret of %s", place, file)
					}
				}
			}
		}
		if strings.Contains(text, token) {
			t.Errorf("%s contains the token of p2prun", place)
		}
	}
	if !strings.Contains(told["log of the first peer"], "status page") {
		t.Error("the log lacks the line about the status page")
	}
}

// joins accepts an invitation from standard input, since p2pboot refuses it as an argument.
func (m *machine) joins(t *testing.T, home, token string) string {
	t.Helper()
	join := func(word string) (string, error) {
		cmd := exec.Command(filepath.Join(bin, "p2pboot"), "network", "--home", home, "join", word)
		m.prepare(cmd, home)
		cmd.Stdin = strings.NewReader(token + "\n")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := join(token); err == nil {
		t.Errorf("an invitation on the command line was accepted: %s", out)
	}
	out, err := join("-")
	if err != nil {
		t.Fatalf("p2pboot network join: %v: %s", err, out)
	}
	return out
}

// forms returns the representations in which a secret in a file may occur elsewhere. A peer that is
// only a member has no owner's key.
func forms(t *testing.T, file string) []string {
	t.Helper()
	b, err := os.ReadFile(file)
	if os.IsNotExist(err) && filepath.Base(file) == "owner" {
		return nil
	}
	if err != nil || len(b) < 16 {
		t.Fatalf("%s: %d bytes, %v", file, len(b), err)
	}
	b = []byte(strings.TrimSpace(string(b)))
	return []string{string(b), hex.EncodeToString(b), base64.StdEncoding.EncodeToString(b), base64.RawURLEncoding.EncodeToString(b)}
}

// processOn returns a process of the job on a peer.
func processOn(j *job, p *peerProcess) string {
	for process, peer := range j.placed {
		if peer == p.id {
			return process
		}
	}
	return ""
}

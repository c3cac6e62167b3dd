package tool

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestExitStatuses(t *testing.T) {
	echo := Tool[string]{
		Name: "echo",
		Parse: func(flags *flag.FlagSet, args []string) (string, error) {
			text := flags.String("text", "", "what to say")
			err := flags.Parse(args)
			return *text, err
		},
		Work: func(_ context.Context, text string, stdout, _ io.Writer) error {
			if text == "" {
				return errors.New("nothing to say")
			}
			_, err := io.WriteString(stdout, text)
			return err
		},
	}
	for _, tt := range []struct {
		args           []string
		status         int
		stdout, stderr string
	}{
		{[]string{"-text", "aha"}, 0, "aha", ""},
		{[]string{"-h"}, 0, "", "what to say"},
		{[]string{"-x"}, 64, "", "echo: flag provided"},
		{nil, 1, "", "echo: nothing to say"},
	} {
		var stdout, stderr bytes.Buffer
		status := echo.Run(t.Context(), tt.args, &stdout, &stderr)
		if status != tt.status || stdout.String() != tt.stdout || !strings.Contains(stderr.String(), tt.stderr) {
			t.Errorf("%q: exit status %d, %q, %q", tt.args, status, &stdout, &stderr)
		}
	}
}

// stubborn is an environment variable that makes this binary a tool that ignores its signals.
const stubborn = "TOOL_TEST_STUBBORN"

func TestMain(m *testing.M) {
	if os.Getenv(stubborn) != "" {
		Tool[bool]{
			Parse: func(*flag.FlagSet, []string) (bool, error) { return true, nil },
			Work: func(ctx context.Context, _ bool, stdout, _ io.Writer) error {
				fmt.Fprintln(stdout, "begins")
				<-ctx.Done()
				fmt.Fprintln(stdout, "goes on")
				select {}
			},
		}.Main()
	}
	os.Exit(m.Run())
}

// TestSecondSignalEnds sends a second signal to a tool that still works after the first.
func TestSecondSignalEnds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), stubborn+"=1")
	said, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	for _, want := range []string{"begins", "goes on"} {
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("the tool printed %q, want %q", lines.Text(), want)
		}
		cmd.Process.Signal(syscall.SIGTERM)
	}
	ended := make(chan struct{})
	go func() { // ends with the tool
		defer close(ended)
		lines.Scan()
	}()
	for again := time.Tick(time.Millisecond); ; { // until the system handles the signal
		select {
		case <-again:
			cmd.Process.Signal(syscall.SIGTERM)
			continue
		case <-ended:
		}
		break
	}
	cmd.Wait()
	if s := cmd.ProcessState.Sys().(syscall.WaitStatus); !s.Signaled() || s.Signal() != syscall.SIGTERM {
		t.Errorf("the tool ended with %v", cmd.ProcessState)
	}
}

func TestPublish(t *testing.T) {
	sections := []Section{{"a", "table"}, {"b", ""}}
	var stdout bytes.Buffer
	if err := Publish(sections, "echo", "", "page.md", &stdout); err != nil || stdout.String() != "## a\n\ntable\n" {
		t.Errorf("Publish printed %q, %v", &stdout, err)
	}
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	if err := os.WriteFile(page, []byte("<!-- echo:a -->\nold\n<!-- /echo:a -->\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Publish(sections, "echo", dir, "page.md", io.Discard); err != nil {
		t.Error(err)
	}
	if got, _ := os.ReadFile(page); !strings.Contains(string(got), "table") || strings.Contains(string(got), "old") {
		t.Errorf("the page contains %q", got)
	}
	if err := Publish([]Section{{"c", "x"}}, "echo", dir, "page.md", io.Discard); err == nil {
		t.Error("a section that is missing in the page was written")
	}
}

package lending

import (
	"strings"
	"testing"
)

// TestValidateNamesTheOptions checks that each invalid setting is reported with the name of its option.
func TestValidateNamesTheOptions(t *testing.T) {
	if err := Default().Validate(); err != nil {
		t.Errorf("default settings: %v", err)
	}
	for option, change := range map[string]func(*Settings){
		"slots":       func(s *Settings) { s.Slots = -1 },
		"max-jobs":    func(s *Settings) { s.MaxJobs = -1 },
		"slot-limits": func(s *Settings) { s.SlotLimits = []string{"memory=much"} },
		"job-limits":  func(s *Settings) { s.JobLimits = []string{"memory=much"} },
		"allow":       func(s *Settings) { s.Allow = []string{"me"} },
		"deny":        func(s *Settings) { s.Deny = []string{"me"} },
		"accept":      func(s *Settings) { s.Accept = []string{"everything"} },
		"quiet-hours": func(s *Settings) { s.QuietHours = []string{"at night"} },
		"pause-when":  func(s *Settings) { s.PauseWhen = []string{"bored"} },
		"pause-jobs":  func(s *Settings) { s.PauseJobs = "maybe" },
	} {
		s := Default()
		change(&s)
		if err := s.Validate(); err == nil || !strings.HasPrefix(err.Error(), option) || strings.Contains(err.Error(), "\n") {
			t.Errorf("option %s: got %v", option, err)
		}
	}
}

package spelling

import "testing"

func TestNearest(t *testing.T) {
	names := []string{"as", "status", "slot-limits", "slots", "arch", "json", "supernode", "strategy", "home"}
	for typed, want := range map[string]string{
		"slotz": "slots", "slot": "slots", "SLOTS": "slots", "stauts": "status", "jsn": "json", "super": "supernode",
		"hoem": "home", "arg": "", "np": "", "a": "", "": "", "start": "", "everything": "", "stratgy": "strategy",
		"slot-": "slot-limits", "slot-limit": "slot-limits",
	} {
		if got := Nearest(typed, names); got != want {
			t.Errorf("%q: got %q, want %q", typed, got, want)
		}
	}
}

package faultdetect

import "testing"

func TestNewerMessageSupersedesOlderOfItsKindAndSubject(t *testing.T) {
	accusation := Message{Kind: Accuse, About: 1, Tree: Backward, Heartbeat: 99}
	for older, want := range map[*Message]bool{
		{Kind: Accuse, About: 1, Tree: Backward, Heartbeat: 98}: true,
		{Kind: Accuse, About: 1, Tree: Forward, Heartbeat: 98}:  false,
		{Kind: Accuse, About: 0, Tree: Backward, Heartbeat: 98}: false,
		{Kind: Ask, About: 1, Tree: Backward, Heartbeat: 98}:    false,
	} {
		if got := supersedes(accusation, *older); got != want {
			t.Errorf("%+v: superseded %t, want %t", *older, got, want)
		}
	}
}

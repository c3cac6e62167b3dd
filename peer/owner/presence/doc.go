// Package presence determines whether the owner needs the machine: by user activity, battery power, a
// metered link, or load from the owner's own programs.
//
//	logind, NetworkManager, /sys, /proc --> Reading --> Watch.Step (pure) --> the rule that fires, or none
//
// A rule fires at once. It is released only after it has not applied for a while, so that the peer does not
// resume during each short break of its owner. If a rule cannot be evaluated any more, its last value counts for
// half an hour, and the reason is reported. The restart of a bus service therefore does not resume jobs. A rule
// that could never be evaluated does not fire. A server without battery and seat therefore never suspends jobs
// by these rules.
package presence

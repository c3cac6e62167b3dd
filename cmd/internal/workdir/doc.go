// Package workdir gives p2prun a temporary folder that is removed at the end,
// also at the end of a p2prun that was killed.
//
//	TMPDIR/p2prun-123/lock   locked while its p2prun lives
//	                 /...    whatever p2prun puts there
//
// The kernel lets go of the lock when the process ends, however it ends. So a
// folder whose lock is free belongs to nobody any more, and whoever comes by,
// the next p2prun or a throw-away peer that has lost its own, sweeps it away.
package workdir

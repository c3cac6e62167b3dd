// Package proc tells what some processes have and do, as /proc has it: their memory, their threads and open files,
// files that no name leads to, how much of the processors they have had, and whether they stand still. It is asked
// with the numbers of the processes; which these are, the caller knows.
//
//	Inspect                                   threads, open files, bytes on disk without a name
//	MemoryOf ── Parts                         memory, as long as it takes; what several share counts once
//	TouchedBy                                 memory, at a glance
//	CPUTime, TurnsOf ── Turns.Lacked, Starved processor time; how long they wanted to run and could not
//	SceneOf ── Stop ── Stillness ── GoOn      that they stand while what they have on disk is measured
//
// Whoever is looked at does not help. He moves, shares, maps, forks and ends meanwhile, and may be hostile: Inspect
// says who hides files from this peer, and Stillness who does not stand.
//
// Not promised: that a number is still that of the same process when it is used. And where there is no /proc, anything:
// all is then nothing, and nobody is stopped.
package proc

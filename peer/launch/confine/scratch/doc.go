// Package scratch creates, measures and removes the folders in which processes run.
//
//	<root>/<job>/program/<name>     the executable, shared by the job's processes here
//	<root>/<job>/compile/           working folder of the compiler of a module
//	<root>/<job>/<rank>.<replica>/  working folder of one process: its inputs, its output files
//	<root>/.stale-<random>/         job folder left by an earlier peer
//
// The package never removes anything outside <root>. Nothing that a process leaves in its folder prevents
// removal or leads out of it, such as folders without permissions, deeply nested folders or symbolic links.
// The caller ensures that the processes have ended before it removes their folders.
package scratch

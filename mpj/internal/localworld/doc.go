// Package localworld runs a whole job within one process: an engine for every process of the job,
// channels between the engines, and the authority that makes the views. It is for debugging
// programs, and for tests that kill processes.
//
//	Run -> program(0.0) -> engine 0.0 --\
//	    -> program(0.1) -> engine 0.1 ---+-- channels: self, or socket pairs
//	    -> program(1.0) -> engine 1.0 --/
//	Kill, Finish -> next view -> every engine
package localworld

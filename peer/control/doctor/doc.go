// Package doctor implements p2pboot doctor: it examines a machine and its peer, and judges the result.
//
//	ExamineNetwork (host, discovery) --+
//	                                   +--> Facts --> Diagnose --> []Finding
//	ExamineMachine (disk, limits) -----+
//
// Facts are measurements without a judgement. The peer that runs on a home collects them and sends them over
// its control socket; if no peer runs, p2pboot doctor collects them itself. Diagnose is a pure function from
// facts to findings. Each finding has a level, and advice unless all is well.
package doctor

// Package report turns what contenders printed, round by round, into tables, ratios
// and plots.
//
//	Results.Add(round, contender, line) ──► Latency, Collectives, … tables
//	                                   ├──► Targets               ratios
//	                                   └──► Plot                  SVG files
//
// All figures are medians over the rounds of a run, with the least and the greatest
// in brackets. A ratio is that of two medians; its brackets hold the least and the
// greatest of the ratios within one round.
package report
